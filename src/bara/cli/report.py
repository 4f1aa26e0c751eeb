"""The verb `report`: a run or a comparison as one page, figures and data."""

from pathlib import Path
from typing import Annotated

import typer

from bara.cli.options import Debug, errors
from bara.errors import ConfigError
from bara.experiments.comparison import Comparison
from bara.experiments.results import Result, by_setting, read_result
from bara.experiments.run_folder import RunFolder
from bara.reports.charts import Chart, comparison_charts, run_charts
from bara.reports.html import comparison_report, run_report


def report_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run's folder, or the --out of a comparison.")],
    debug: Debug = False,
) -> None:
    """Write one self-contained HTML page, the figures on it (PNG, SVG, PDF) and the data behind them."""
    with errors(debug):
        if Comparison.is_in(folder):
            kept = Comparison.find(folder)
            results = kept.results(folder)
            page = comparison_report(results, kept.config, kept.command)
            charts = {setting or "comparison": comparison_charts(runs) for setting, runs in by_setting(results).items()}
        else:
            result, found = _finished(folder)
            page = run_report(result, found.config.to_toml(), found.command)
            charts, results = {"run": run_charts(result)}, [result]
        (folder / "report.html").write_text(page)
        _figures(charts, results, folder / "figures")
        typer.echo(f"open {folder / 'report.html'}; figures and data are in {folder / 'figures'}")


def _finished(folder: Path) -> tuple[Result, RunFolder]:
    with RunFolder.find(folder) as found:
        path = folder / "result.json"
        if not path.is_file():
            raise ConfigError(
                f"the run in {str(folder)!r} has not ended; `bara dashboard` shows it as it is, "
                f"`{found.resume_command}` ends it"
            )
        return read_result(path), found


def _figures(charts: dict[str, list[Chart]], results: list[Result], folder: Path) -> None:
    from bara.reports import figures  # noqa: PLC0415 - drawing needs an extra, and a second to import

    folder.mkdir(exist_ok=True)
    for name, panels in charts.items():
        figures.save_charts(panels, folder / name)
    keys = ("round", "n", "cost", "accuracy", "loss", "estimate")
    rows = [
        {"setting": run.setting, "allocator": run.allocator, "seed": run.seed, **{key: entry.get(key) for key in keys}}
        for run in results
        for entry in run.history
    ]
    figures.save_rows(rows, folder / "rounds")
