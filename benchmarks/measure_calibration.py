"""How often the intervals of `bara plan` hold: forecasts from past runs against others' finals.

Takes the --out of a suite's comparison. A forecast learns from the `even` runs of some seeds, and
is asked where the run of another seed, under each allocator, has ended. A 90 % interval should hold
nine times in ten; what the forecast cannot know (that a curve breaks through, that clients differ)
shows as misses.
"""

import argparse
import itertools
from pathlib import Path
from statistics import fmean

from bara.reports.result import read_result
from bara.studies import suites
from bara.studies.forecast import curves, forecast_cells, outlooks
from bara.studies.grid import cells, outcomes


def stored(folder, setting, allocator, seeds):
    """The runs of one allocator in one setting that have ended, by seed."""
    found = {}
    for cell in cells(setting.config, [allocator], seeds, setting.name):
        path = folder / f"{cell.key}.json"
        if path.is_file():
            found[cell.config.seed] = read_result(path)
    return found


def misses(chosen, setting, known):
    """Yield each trial: allocator, accuracy less the expected, was it in the interval, width."""
    past = stored(chosen.folder, setting, "even", chosen.seeds)
    for allocator in chosen.allocators.split(","):
        for seed, run in stored(chosen.folder, setting, allocator, chosen.seeds).items():
            others = [past[other] for other in past if other != seed]
            for some in itertools.islice(itertools.combinations(others, known), 2):
                drawn = curves(
                    setting.config.model_copy(update={"seed": 1000 + seed}), some, chosen.draws
                )
                grid = forecast_cells(setting.config, [allocator], [run.budget], drawn)
                low, mean, high = next(outlooks(list(outcomes(grid, jobs=1)))).accuracy
                yield (
                    allocator,
                    run.accuracy_final - mean,
                    low <= run.accuracy_final <= high,
                    high - low,
                )


def main():
    """Measure, and print it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--suite", default="report")
    options.add_argument("--only", default="", help="these of its settings, by comma")
    options.add_argument(
        "--past", type=int, nargs="+", default=[1, 3], help="how many past runs a forecast knows"
    )
    options.add_argument("--allocators", default="even,finale")
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--draws", type=int, default=40)
    chosen = options.parse_args()
    print(
        f"{'past runs':<10}{'setting':<26}{'allocator':<12}"
        f"{'trials':>6}{'held':>7}{'width':>8}{'off by':>8}"
    )
    for known in chosen.past:
        total = []
        for setting in suites.settings(
            chosen.suite, only=chosen.only.split(",") if chosen.only else ()
        ):
            tried = list(misses(chosen, setting, known))
            total += tried
            for allocator, rows in itertools.groupby(tried, key=lambda row: row[0]):
                show(known, setting.name, allocator, list(rows))
        if total:
            show(known, "all", "", total)


def show(known, setting, allocator, rows):
    """One line, in per cent and points."""
    _, off, held, width = zip(*rows, strict=True)
    figures = f"{100 * fmean(held):>6.0f}%{100 * fmean(width):>8.1f}{100 * fmean(off):>+8.1f}"
    print(f"{known:<10}{setting:<26}{allocator:<12}{len(rows):>6}{figures}", flush=True)


if __name__ == "__main__":
    main()
