"""The verb `report`: a run or a comparison as one page, figures and data."""

from pathlib import Path
from typing import Annotated

import typer

from bara.cli.options import Debug
from bara.cli.output import errors, say


def report_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run's folder, or the --out of a comparison.")],
    debug: Debug = False,
) -> None:
    """Write one self-contained HTML page, the figures on it (PNG, SVG, PDF) and the data behind them."""
    with errors(debug):
        from bara.experiments.comparison import Comparison
        from bara.experiments.results import by_setting
        from bara.experiments.run_folder import RunFolder
        from bara.files import write_whole
        from bara.reports.charts import comparison_charts, run_charts
        from bara.reports.html import comparison_report, run_report

        if Comparison.is_in(folder):
            kept = Comparison.find(folder)
            results = kept.results(folder)
            page = comparison_report(results, kept.config, kept.command)
            charts = {setting or "comparison": comparison_charts(runs) for setting, runs in by_setting(results).items()}
        else:
            with RunFolder.find(folder) as found:
                result = found.result()
            page = run_report(result, found.config.to_toml(), found.command)
            charts, results = {"run": run_charts(result)}, [result]
        write_whole(folder / "report.html", [page])

        from bara.reports import figures  # what drawing needs is an extra: the page comes first

        figures.save_all(charts, results, folder / "figures")
        say(f"open {folder / 'report.html'}; figures and data are in {folder / 'figures'}")
