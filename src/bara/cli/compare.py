"""The verb `compare`: allocators side by side, over one federation or a suite of them."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bara.cli.options import AsJson, Changes, ConfigFile, Debug, command_line, errors, listed, print_json, progress_bar
from bara.errors import ConfigError
from bara.experiments import suites
from bara.experiments.clusters import connected
from bara.experiments.comparison import Cell, Comparison, Failure, cells, compare
from bara.experiments.config import Config
from bara.experiments.results import Result, write_table
from bara.experiments.standings import Standings
from bara.reports.html import comparison_report
from bara.reports.terminal import comparison_table, per_cent, suite_table

USUAL = "even,even:carry_over=true,increasing,finale,bara,planner"
"""The allocators that are compared unless others are asked for."""


def compare_command(
    config: ConfigFile = None,
    allocators: Annotated[
        str | None,
        typer.Option(
            help="Which, by comma; options as in even:carry_over=true. "
            f"Unless given, the one that CONFIG or --set names, if any, and then {USUAL}."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds, from the configuration's own upwards.")] = 5,
    suite: Annotated[
        str | None, typer.Option(help=f"Instead of CONFIG, every setting of a suite: {', '.join(suites.names())}.")
    ] = None,
    only: Annotated[str, typer.Option(help="With --suite: these of its settings, by comma.")] = "",
    full: Annotated[bool, typer.Option("--full", help="With --suite: all samples, for larger machines.")] = False,
    changes: Changes = [],
    out: Annotated[
        Path | None,
        typer.Option(help="Keep results, results.csv and report.html here, and go on where an earlier call stopped."),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for all cores.")] = -1,
    cluster: Annotated[
        str | None, typer.Option(help="Run on a cluster: dask:tcp://HOST:8786 or ray:HOST:6379.")
    ] = None,
    history: Annotated[bool, typer.Option("--history", help="With --json: every round, too.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Run the same federation, or a suite of them, under several allocators and seeds, side by side."""
    with errors(debug):
        if suite and config:
            raise ConfigError(f"both {str(config)!r} and --suite {suite}; required is one of them")
        if (full or only) and not suite:
            raise ConfigError("--full and --only are for suites; required is --suite, too")
        settings = suites.settings(suite, changes, only=listed(only), full=full) if suite else []
        experiment = settings[0].config if settings else Config.load(config, changes)
        grid = _grid(settings, experiment, _names(allocators, experiment), seeds)
        results, failures = run_grid(grid, out, jobs, cluster, quiet=as_json)
        if out is not None and results:
            _keep(out, results, grid, "" if suite else experiment.to_toml())
        standings = _standings(settings, results)
        if as_json:
            failed = [{key: value for key, value in vars(f).items() if value is not None} for f in failures]
            tree: dict[str, Any] = {"results": [r.to_json(history=history) for r in results], "failures": failed}
            print_json(tree | ({"standings": standings.to_json()} if standings else {}))
        else:
            Console().print(suite_table(standings, failures) if standings else comparison_table(results, failures))
        if failures:
            raise typer.Exit(1)


def _keep(out: Path, results: Sequence[Result], grid: Sequence[Cell], config: str) -> None:
    """Leave beside the results what was compared, and a page to open."""
    kept = Comparison(command_line(), config, [cell.key for cell in grid])
    kept.keep(out)
    (out / "report.html").write_text(comparison_report(results, kept.config, kept.command))


def _standings(settings: Sequence[suites.Setting], results: Sequence[Result]) -> Standings | None:
    """Where everybody stands over a suite; None without one, or where too much failed to say."""
    standings = Standings(settings, results) if settings and results else None
    return standings if standings and standings.settings else None


def _names(allocators: str | None, experiment: Config) -> list[str]:
    """Those that were asked for; else the usual ones, after the one that the configuration names."""
    if allocators is not None:
        return listed(allocators, "--allocators")
    own = [experiment.allocator.label] if "allocator" in experiment.model_fields_set else []
    return own + listed(USUAL)


def _grid(settings: Sequence[suites.Setting], experiment: Config, names: Sequence[str], seeds: int) -> list[Cell]:
    if not settings:
        return cells(experiment, names, seeds)
    return [cell for one in settings for cell in cells(one.config, names, seeds, one.name)]


def run_grid(
    grid: Sequence[Cell], out: Path | None, jobs: int, cluster: str | None, *, quiet: bool
) -> tuple[list[Result], list[Failure]]:
    """Run a grid behind a progress bar, or plain lines; what came of it, in the grid's order."""
    # joblib restarts a worker whose memory has grown, as it does with another dataset, and warns of it.
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
    done: list[Result | Failure] = []
    try:
        with connected(cluster) as backend, progress_bar(quiet=quiet) as progress:
            task = progress.add_task("running", total=len(grid), note="")
            for outcome in compare(grid, folder=out, jobs=jobs, backend=backend):
                done.append(outcome)
                where = f"{outcome.setting}, " if outcome.setting else ""
                note = f"{where}{outcome.allocator}, seed {outcome.seed}"
                progress.update(task, advance=1, note=note)
                if progress.disable and not quiet:
                    typer.echo(f"{len(done)} of {len(grid)}: {note}: {_came_to(outcome)}", err=True)
    except KeyboardInterrupt:
        kept = "nothing is kept without --out" if out is None else f"kept in {out}; the same command goes on from there"
        typer.echo(f"stopped after {len(done)} of {len(grid)} runs: {kept}", err=True)
        raise typer.Exit(130) from None
    rank = {(cell.setting, cell.config.allocator.label): i for i, cell in reversed(list(enumerate(grid)))}
    done.sort(key=lambda one: (rank[one.setting, one.allocator], one.seed))
    results = [one for one in done if isinstance(one, Result)]
    if out is not None:
        write_table(results, out / "results.csv")
    return results, [one for one in done if isinstance(one, Failure)]


def _came_to(outcome: Result | Failure) -> str:
    return outcome.error if isinstance(outcome, Failure) else per_cent(outcome.accuracy_final)
