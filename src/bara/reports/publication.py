"""A run or a comparison as files to read and to print: page, tables, figures, data."""

from pathlib import Path

from bara.files import make_folder, write_whole
from bara.reports.comparison import Comparison
from bara.reports.data_files import Origin, write_runs
from bara.reports.html import comparison_report, run_report
from bara.reports.result import Result


def publish(shown: Comparison, folder: Path, *, columns: int = 1) -> None:
    """Write a comparison's page, its tables (CSV, Markdown, LaTeX) and its `figures/`."""
    make_folder(folder)
    write_runs(shown, folder)
    write_whole(folder / "report.html", [comparison_report(shown)])
    write_whole(folder / "table.md", [shown.to_markdown(), f"\n<!--\n{shown.config}-->\n"])
    write_whole(folder / "table.tex", [shown.to_latex()])

    from bara.reports.drawings import save_figures  # noqa: PLC0415 - the page needs no extra

    save_figures(shown, folder / "figures", columns)


def publish_run(
    result: Result, folder: Path, *, command: str, config: str, columns: int = 1
) -> None:
    """Write a run's page and its `figures/`.

    Args:
        result: The run's result, as far as it has come.
        folder: The folder to write to.
        command: The command that repeats the run, or makes it go on.
        config: The run's configuration, as TOML.
        columns: How many columns of a two-column page each figure is wide.
    """
    make_folder(folder)
    write_whole(folder / "report.html", [run_report(result, config, command)])

    from bara.reports.drawings import save_figures  # noqa: PLC0415 - as above

    save_figures(result, folder / "figures", columns, Origin(command, config))
