"""A run or a comparison as files to read and to print: page, tables, figures, data."""

from pathlib import Path

from bara.experiments.stored_results import result_of
from bara.files import make_folder, write_whole
from bara.reports.comparison import Comparison
from bara.reports.data_files import Origin, write_runs
from bara.reports.html import comparison_report, run_report
from bara.runs.database import DatabaseRun
from bara.runs.folder import RunFolder


def publish(shown: Comparison, folder: Path, *, columns: int = 1) -> None:
    """Write a comparison's page, its tables (CSV, Markdown, LaTeX), and its figures into `figures/`."""
    make_folder(folder)
    write_runs(shown, folder)
    write_whole(folder / "report.html", [comparison_report(shown)])
    write_whole(folder / "table.md", [shown.to_markdown(), f"\n<!--\n{shown.config}-->\n"])
    write_whole(folder / "table.tex", [shown.to_latex()])

    from bara.reports.drawings import save_figures  # noqa: PLC0415 - what drawing needs is an extra: the page comes first

    save_figures(shown, folder / "figures", columns)


def publish_run(run: RunFolder | DatabaseRun, folder: Path, *, columns: int = 1) -> None:
    """Write a run's page, and its figures into `figures/`; of a database, as far as it has come."""
    if isinstance(run, DatabaseRun):
        result, command = result_of(run.read_books()), run.resume_command
    else:
        result, command = run.result(), run.command
    config = run.config.to_toml()
    make_folder(folder)
    write_whole(folder / "report.html", [run_report(result, config, command)])

    from bara.reports.drawings import save_figures  # noqa: PLC0415 - as above

    save_figures(result, folder / "figures", columns, Origin(command, config))
