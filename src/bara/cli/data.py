"""The verbs of `bara data`: list, fetch, verify and show datasets."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bara.cli.options import AsJson, Debug, examples
from bara.cli.output import errors, print_json, say, show

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

data_app = typer.Typer(help="Find, download, check and show datasets.", no_args_is_help=True)

DataName = Annotated[str, typer.Argument(metavar="NAME", help="The name of a dataset.")]
DataPath = Annotated[
    Path | None,
    typer.Option(
        "--path", help="Read from and write to this folder instead of $BARA_DATA or the cache."
    ),
]


@data_app.command("list", epilog=examples("bara data list"))
def data_list(path: DataPath = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """List the datasets that are here, and the commands that fetch the others."""
    with errors(debug):
        from bara import datasets
        from bara.cli.tables import datasets_table

        found = datasets.available(path)
        if as_json:
            print_json({"datasets": [one.as_json() for one in found]})
        else:
            show(datasets_table(found))


@data_app.command("fetch", epilog=examples("bara data fetch fashion-mnist", "bara data fetch all"))
def data_fetch(
    name: DataName, path: DataPath = None, as_json: AsJson = False, debug: Debug = False
) -> None:
    """Download a dataset from its public source and check it; `all` for every one."""
    with errors(debug):
        from bara import datasets
        from bara.runs.progress import progress_bar

        wanted = datasets.names() if name == "all" else (name,)
        with progress_bar(quiet=as_json) as progress:
            fetched = []
            for each in wanted:
                update = partial(_update, progress, {})
                fetched.append(datasets.fetch(each, path, progress=update))
        if as_json:
            trees = [{**vars(one), "folder": one.folder and str(one.folder)} for one in fetched]
            print_json({"fetched": trees})
            return
        for one in fetched:
            where = f"in {one.folder}"
            if one.folder is None:
                where = "embedded, nothing to fetch"
            files = f"{len(one.downloaded)} downloaded, {len(one.kept)} already there"
            say(f"{one.name}: {where} ({files})")


def _update(
    progress: "Progress", tasks: "dict[str, TaskID]", file: str, done: int, total: int
) -> None:
    """Show how much of a file is downloaded."""
    if file not in tasks:
        tasks[file] = progress.add_task(file, total=total, note="bytes")
    progress.update(tasks[file], completed=done, total=total)


@data_app.command("verify", epilog=examples("bara data verify cifar10"))
def data_verify(
    name: DataName, path: DataPath = None, as_json: AsJson = False, debug: Debug = False
) -> None:
    """Check a dataset's files against their published checksums."""
    with errors(debug):
        from bara import datasets
        from bara.cli.tables import verification

        report = datasets.verify(name, path)
        if as_json:
            print_json(report.as_json())
        else:
            show(verification(report))
        if not report.ok:
            raise typer.Exit(1)


@data_app.command(
    "show",
    epilog=examples(
        "bara data show digits --clients 20 --partition 'shards(2)'", "bara data show rand-hie"
    ),
)
def data_show(
    name: DataName = "digits",
    clients: Annotated[
        int, typer.Option(min=1, help="How many clients; data with owners has one per owner.")
    ] = 20,
    partition: Annotated[
        str | None,
        typer.Option(
            help="shards(k), iid, dirichlet(alpha), quantity(skew), natural or natural(k).",
            show_default="natural, where silos are known; else shards(2)",
        ),
    ] = None,
    client: Annotated[
        str | None, typer.Option(help="For a table: the column that says who owns a row.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="For a table: the column to learn.")] = None,
    seed: Annotated[int, typer.Option(help="The seed that decides who gets which samples.")] = 0,
    path: DataPath = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show which client holds which samples."""
    with errors(debug):
        from bara import datasets

        dataset = datasets.load(name, path, columns=datasets.Columns(target or "", client))
        if not partition:
            partition = "natural" if dataset.silos else "shards(2)"
        shares, names = datasets.divide(dataset, partition, clients, seed)
        labels = dataset.y_train
        classes = dataset.classes
        if not classes:  # a regression: its targets are shown in ten levels
            labels = dataset.levels
            classes = 10
        if as_json:
            print_json(
                {
                    "dataset": name,
                    "partition": partition,
                    "clients": len(shares),
                    "seed": seed,
                    "labels": datasets.counts(labels, shares, classes).tolist(),
                    "names": list(names),
                }
            )
        else:
            say(datasets.picture(labels, shares, classes, names=names))
