"""The verbs of `bara data`."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bara.cli.options import AsJson, Debug, examples
from bara.cli.output import errors, print_json, progress_bar, say, show

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

data_app = typer.Typer(help="Find, download, check and picture datasets.", no_args_is_help=True)

DataName = Annotated[str, typer.Argument(metavar="NAME", help="Which dataset.")]
DataPath = Annotated[
    Path | None, typer.Option("--path", help="Look here (and put it here) instead of $BARA_DATA or the cache.")
]


@data_app.command("list", epilog=examples("bara data list"))
def data_list(path: DataPath = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Show which datasets are here, and the command that gets the others."""
    with errors(debug):
        from bara import datasets
        from bara.reports.tables import datasets_table

        found = datasets.available(path)
        if as_json:
            print_json({"datasets": [one.as_json() for one in found]})
        else:
            show(datasets_table(found))


@data_app.command("fetch", epilog=examples("bara data fetch fashion-mnist", "bara data fetch all"))
def data_fetch(name: DataName, path: DataPath = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Download a dataset from its public source, check it, and keep it; `all` for every one."""
    with errors(debug):
        from bara import datasets

        wanted = datasets.names() if name == "all" else (name,)
        with progress_bar(quiet=as_json) as progress:
            fetched = [datasets.fetch(one, path, progress=partial(_update, progress, {})) for one in wanted]
        if as_json:
            print_json({"fetched": [{**vars(f), "folder": f.folder and str(f.folder)} for f in fetched]})
        else:
            for f in fetched:
                where = "embedded, nothing to fetch" if f.folder is None else f"in {f.folder}"
                say(f"{f.name}: {where} ({len(f.downloaded)} downloaded, {len(f.kept)} already there)")


def _update(progress: "Progress", tasks: "dict[str, TaskID]", file: str, done: int, total: int) -> None:
    if file not in tasks:
        tasks[file] = progress.add_task(file, total=total, note="bytes")
    progress.update(tasks[file], completed=done, total=total)


@data_app.command("verify", epilog=examples("bara data verify cifar10"))
def data_verify(name: DataName, path: DataPath = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Check a dataset's files against what was published."""
    with errors(debug):
        from bara import datasets
        from bara.reports.tables import verification

        report = datasets.verify(name, path)
        if as_json:
            print_json(report.as_json())
        else:
            show(verification(report))
        if not report.ok:
            raise typer.Exit(1)


@data_app.command("show", epilog=examples("bara data show digits --clients 20 --partition 'shards(2)'"))
def data_show(
    name: DataName = "digits",
    clients: Annotated[int, typer.Option(min=1, help="How many clients.")] = 20,
    partition: Annotated[str, typer.Option(help="shards(k), iid, dirichlet(alpha) or quantity(skew).")] = "shards(2)",
    seed: Annotated[int, typer.Option(help="Decides who gets what.")] = 0,
    path: DataPath = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Picture who holds what."""
    with errors(debug):
        from bara import datasets

        dataset = datasets.load(name, path)
        parts = datasets.partition(partition, dataset.y_train, clients, seed)
        if as_json:
            held = datasets.counts(dataset.y_train, parts, dataset.classes).tolist()
            print_json({"dataset": name, "partition": partition, "clients": clients, "seed": seed, "labels": held})
        else:
            say(datasets.picture(dataset.y_train, parts, dataset.classes))
