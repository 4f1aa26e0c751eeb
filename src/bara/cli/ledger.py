"""`bara ledger DIR ...`: what each client was promised and paid, proof of it, and what an operator may do."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bara.cli.options import AsJson, Debug, Folder, examples
from bara.cli.output import errors, print_json, say, show
from bara.errors import ConfigError

if TYPE_CHECKING:
    from bara.experiments.run_folder import RunFolder
    from bara.ledger import Books

ledger_app = typer.Typer(help="What each client was promised and paid; proof that the record is whole.")

Client = Annotated[str | None, typer.Option(help="One client's own account, with nothing of the others' bids.")]
Round = Annotated[int, typer.Argument(metavar="ROUND", min=0, max=2**31 - 1, help="Whose award.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV.")]


@ledger_app.callback(invoke_without_command=True)
def _open(context: typer.Context, folder: Folder) -> None:
    context.obj = folder
    if context.invoked_subcommand is None:
        context.invoke(statement_command, context)


@contextlib.contextmanager
def _books(context: typer.Context, debug: bool) -> Iterator["Books"]:
    """The books for reading: nothing in the folder is made or changed."""
    with _folder(context, debug) as folder:
        yield folder.read_books()


@contextlib.contextmanager
def _folder(context: typer.Context, debug: bool) -> Iterator["RunFolder"]:
    with errors(debug):
        from bara.experiments.run_folder import RunFolder

        with RunFolder.find(context.obj) as folder:
            yield folder


@ledger_app.command("statement", epilog=examples("bara ledger DIR statement --client client-03 --csv"))
def statement_command(
    context: typer.Context,
    client: Client = None,
    rounds: Annotated[bool, typer.Option("--rounds", help="With --csv: a line a round, not a client.")] = False,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Who was promised and paid what, by client and by round."""
    with _books(context, debug) as books:
        from bara.ledger.statements import line_json, own_statement, statement, statement_json, table_csv
        from bara.reports.tables import own_table, statement_tables

        if client is not None:
            total, own = own_statement(books, client)
            if as_json:
                print_json({**line_json(total), "rounds": [line_json(line) for line in own]})
            elif as_csv:
                say(table_csv(own), nl=False)
            else:
                show(own_table(total, own))
            return
        account = statement(books)
        if as_json:
            print_json(statement_json(account))
        elif as_csv:
            say(table_csv(account.rounds if rounds else account.clients), nl=False)
        else:
            show(statement_tables(account))


@ledger_app.command("verify", epilog=examples("bara ledger DIR verify --receipt /elsewhere/receipt.json"))
def verify_command(
    context: typer.Context,
    receipt: Annotated[Path | None, typer.Option(help="A receipt from the second place.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Check every event, row, digest and sum; names the first that is wrong."""
    with _books(context, debug) as books:
        from bara.ledger import Receipt, verify

        finding = verify(books, None if receipt is None else Receipt.read(receipt))
        if as_json:
            print_json({"ok": finding.ok, **vars(finding)})
        elif finding.ok:
            fits = ["the key fits"] * finding.keyed + ["the receipt fits"] * (receipt is not None)
            say(f"the record is whole: {finding.events} events, head {', '.join([finding.head, *fits])}")
        else:
            say(f"the record is NOT whole: event {finding.wrong}: {finding.problem}")
        if not finding.ok:
            raise typer.Exit(1)


@ledger_app.command("export", epilog=examples("bara ledger DIR export > ledger.json", "bara ledger DIR export --csv"))
def export_command(context: typer.Context, as_csv: AsCsv = False, debug: Debug = False) -> None:
    """Everything but bids and menus: each event (JSON), or each promise and what became of it (CSV)."""
    with _books(context, debug) as books:
        from bara.ledger.statements import export_json, lines, table_csv

        if as_csv:
            say(table_csv(lines(books)), nl=False)
        else:
            print_json(export_json(books))


@ledger_app.command("payouts", epilog=examples("bara ledger DIR payouts > payouts.csv"))
def payouts_command(context: typer.Context, debug: Debug = False) -> None:
    """What is to be transferred to whom, as CSV."""
    with _books(context, debug) as books:
        from bara.ledger.statements import payouts_csv

        say(payouts_csv(books), nl=False)


@ledger_app.command("topup", epilog=examples("bara ledger DIR topup 250"))
def topup_command(context: typer.Context, amount: str, debug: Debug = False) -> None:
    """Add to the budget; the next round's offer is made with it."""
    with _folder(context, debug) as folder:
        from bara.ledger import operators
        from bara.ledger.statements import statement
        from bara.records import money, show_money

        books = folder.open_books()
        added = money(amount, what="the top-up")
        before = statement(books).budget  # of a record that is whole: to another nothing is added
        operators.top_up(books, added)
        say(f"the budget is {show_money(before + added)} now")


def _act(context: typer.Context, debug: bool, action: str, done: str, *arguments: object) -> None:
    """Do what an operator says, and say what makes the run go on."""
    with _folder(context, debug) as folder:
        from bara.ledger import operators

        books = folder.hold_books() if action in ("void", "forget") else folder.open_books()
        getattr(operators, action)(books, *arguments)
        say(f"{done}: {folder.resume_command}")


@ledger_app.command("pause", epilog=examples("bara ledger DIR pause"))
def pause_command(context: typer.Context, debug: Debug = False) -> None:
    """Stop the run before its next round; `bara resume DIR` continues it."""
    _act(context, debug, "pause", "paused before its next round; continue with")


@ledger_app.command("adopt", epilog=examples("bara ledger DIR adopt"))
def adopt_command(context: typer.Context, debug: Debug = False) -> None:
    """Let a moved or copied run go on here, where no other copy of it will ever go on."""
    _act(context, debug, "adopt", "the run belongs here now; go on with")


@ledger_app.command("approve", epilog=examples("bara ledger DIR approve 12"))
def approve_command(context: typer.Context, round_number: Round, debug: Debug = False) -> None:
    """Allow an award above ledger.approve_above; `bara resume DIR` trains it."""
    _act(context, debug, "approve", f"round {round_number} is approved; train it with", round_number)


@ledger_app.command("decline", epilog=examples("bara ledger DIR decline 12"))
def decline_command(context: typer.Context, round_number: Round, debug: Debug = False) -> None:
    """Refuse an award above ledger.approve_above: nobody trains, nobody is paid, `bara resume DIR` goes on."""
    _act(context, debug, "decline", f"round {round_number} is declined; go on with", round_number)


@ledger_app.command("void", epilog=examples('bara ledger DIR void 12 --reason "training fails at each resume"'))
def void_command(
    context: typer.Context,
    round_number: Round,
    reason: Annotated[str, typer.Option(help="Why, for the record and for the statements of its winners.")],
    debug: Debug = False,
) -> None:
    """Take back a promise that is never settled: nobody trains, nobody is paid, `bara resume DIR` goes on."""
    _act(context, debug, "void", f"round {round_number} is void; go on with", round_number, reason)


@ledger_app.command("forget", epilog=examples("bara ledger DIR forget client-03"))
def forget_command(
    context: typer.Context, client: Annotated[str, typer.Argument(help="Whose update.")], debug: Debug = False
) -> None:
    """Let go of the update that is remembered of a client, from the next round on; `bara resume DIR` goes on."""
    _act(context, debug, "forget", f"{client} is forgotten; go on with", client)


@ledger_app.command("sign", epilog=examples("bara ledger DIR sign --client client-03 > client-03.json"))
def sign_command(context: typer.Context, client: Client = None, debug: Debug = False) -> None:
    """Sign a client's receipt; without a client, print the public key that receipts are checked with."""
    with _books(context, debug) as books:
        from bara.ledger.signatures import client_receipt, public_key

        if client is None:
            say(public_key(books))
        else:
            print_json(client_receipt(books, client))


def receipt_command(
    file: Annotated[Path, typer.Argument(help="A receipt that the operator signed.")],
    public_key: Annotated[str, typer.Option(help="The key that the operator published.")],
    paid: Annotated[str | None, typer.Option(help="What you were paid by your own record.")] = None,
    debug: Debug = False,
) -> None:
    """Check a signed receipt, as a client, against your own record."""
    with errors(debug):
        from bara.files import read_whole
        from bara.ledger.signatures import check_client_receipt
        from bara.records import money, show_money

        try:
            receipt = json.loads(read_whole(file, plain=False))
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(f"{file} is no receipt: {error}") from None
        check_client_receipt(receipt, public_key, None if paid is None else money(paid))
        say(f"the receipt is good: {receipt['client']} was paid {show_money(receipt['paid'])}")
