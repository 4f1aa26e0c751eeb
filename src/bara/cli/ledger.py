"""The verbs of `bara ledger`: statements, proofs and payouts for clients, actions for operators."""

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import typer
from typer.core import TyperGroup

from bara.cli.options import AsJson, By, Debug, Once, PlaceArgument, Reason, RunName, examples
from bara.cli.output import errors, print_json, say, show
from bara.errors import ConfigError
from bara.text import counted, note

if TYPE_CHECKING:
    from bara.ledger import Books
    from bara.ledger.statements import ClientTotal, Line, Period
    from bara.runs.place import Place
    from bara.runs.replay import Replay


class _RunAnywhere(TyperGroup):
    """A group that accepts `--run NAME` anywhere; click wants it before the arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move the first `--run` to the front, and parse the arguments."""
        for start, word in enumerate(args):
            if word == "--run":
                end = start + 2
            elif word.startswith("--run="):
                end = start + 1
            else:
                continue
            return super().parse_args(ctx, args[start:end] + args[:start] + args[end:])
        return super().parse_args(ctx, args)


ledger_app = typer.Typer(
    help="Show what each client was promised and earned, verify the record, and operate a run.",
    cls=_RunAnywhere,
)

Client = Annotated[
    str | None, typer.Option(help="One client's own account, with nothing of the others' bids.")
]
Round = Annotated[
    int, typer.Argument(metavar="ROUND", min=0, max=2**31 - 1, help="The number of the round.")
]
Plugins = Annotated[
    bool,
    typer.Option("--plugins", help="Import third-party code that the run's configuration names."),
]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV.")]


@ledger_app.callback(invoke_without_command=True)
def _open(context: typer.Context, place: PlaceArgument, run: RunName = None) -> None:
    context.obj = place, run
    if context.invoked_subcommand is None:
        context.invoke(statement_command, context)


@contextlib.contextmanager
def _books(context: typer.Context, debug: bool) -> Iterator["Books"]:
    """Open the books for reading; nothing in the folder is created or changed."""
    with _folder(context, debug) as folder:
        from bara.ledger import is_locked

        books = folder.read_books()
        if is_locked(books):
            note(
                f"NOT VERIFIED: run {books.name!r} has a key, which is not set here, so changed "
                f"amounts would not be noticed; set {books.key_name}"
            )
        yield books


@contextlib.contextmanager
def _folder(context: typer.Context, debug: bool) -> Iterator["Place"]:
    """Open the run that the command line names, and report errors in one line."""
    with errors(debug):
        from bara.runs.database import find_run

        with find_run(*context.obj) as folder:
            yield folder


@ledger_app.command(
    "statement", epilog=examples("bara ledger DIR statement --client client-03 --csv")
)
def statement_command(
    context: typer.Context,
    client: Client = None,
    since: Annotated[
        str | None, typer.Option(metavar="DAY", help="With --client: from this day on.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="DAY", help="With --client: to this day, included.")
    ] = None,
    as_html: Annotated[
        bool, typer.Option("--html", help="With --client: a page to print, signed with the key.")
    ] = False,
    payees: Annotated[
        Path | None,
        typer.Option(help="With --html: CSV with `client`, `name`, `address` and `tax_number`."),
    ] = None,
    rounds: Annotated[
        bool, typer.Option("--rounds", help="With --csv: one line per round instead of per client.")
    ] = False,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Who was promised and earned what, by client and by round."""
    with _books(context, debug) as books:
        from bara.cli.tables import own_table, statement_tables
        from bara.ledger.attention import attentions
        from bara.ledger.statements import (
            Period,
            line_json,
            own_statement,
            statement,
            statement_json,
            table_csv,
        )
        from bara.runs.engines import stored_metric

        if client is None and (since or until or as_html or payees):
            raise ConfigError(
                "--since, --until, --html and --payees need --client NAME: "
                "they are for one client's statement"
            )
        if client is not None:
            with books.store.read():
                currency = books.purse.currency
                period = Period(since, until) if since or until else None
                total, own = own_statement(books, client, period)
                if as_html:
                    say(_page(books, total, own, period, payees))
                elif as_json:
                    own_rounds = list(map(line_json, own))
                    print_json({**line_json(total), "currency": currency, "rounds": own_rounds})
                elif as_csv:
                    say(table_csv(own, currency), nl=False)
                else:
                    show(own_table(total, own, currency))
            return
        with books.store.read():
            account = statement(books)
            needs = attentions(books)
        if as_json:
            print_json({**statement_json(account), "needs": list(map(vars, needs))})
        elif as_csv:
            records = account.rounds if rounds else account.clients
            say(table_csv(records, account.currency), nl=False)
        else:
            show(statement_tables(account, stored_metric(books.opening.get("config") or {})))
            for one in needs:
                answer = f"; {one.answer}" if one.answer else ""
                say(f"needs you: {one.text}{answer}")


def _page(
    books: "Books",
    total: "ClientTotal",
    own: "list[Line]",
    period: "Period | None",
    payees: Path | None,
) -> str:
    """Return one client's statement as an HTML page, signed if the run has a key."""
    from bara.ledger.payouts import read_payees, transfers
    from bara.reports.client_statement import client_statement

    payee = {} if payees is None else read_payees(payees).get(total.client, {})
    sign = None
    transferred = []
    if books.chain.key is not None:
        from bara.ledger.signatures import client_receipt

        sign = partial(client_receipt, books, total.client, period)
    if books.chain.key is not None or not books.opening.get("keyed"):
        transferred = [one for one in transfers(books) if one["client"] == total.client]
    currency = books.purse.currency
    return client_statement(books.name, total, own, currency, period, sign, payee, transferred)


@ledger_app.command(
    "verify", epilog=examples("bara ledger DIR verify --receipt /elsewhere/receipt.json")
)
def verify_command(
    context: typer.Context,
    receipt: Annotated[
        Path | None, typer.Option(help="A receipt from the second place. Default: ledger.receipt.")
    ] = None,
    again: Annotated[
        bool,
        typer.Option(
            "--replay", help="Also make every offer, menu and award again from the stored bids."
        ),
    ] = False,
    plugins: Plugins = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Check every event, row, digest and sum; names the first that is wrong."""
    with _books(context, debug) as books:
        from bara.ledger import Receipt, verify
        from bara.runs.replay import replay

        known = books.stored_receipt() if receipt is None else Receipt.read(receipt)
        finding = verify(books, known)
        replayed = None
        if again and finding.ok:
            replayed = replay(books, plugins=plugins)
        if as_json:
            tree: dict[str, Any] = {"ok": finding.ok, **vars(finding)}
            if replayed is not None:
                tree["replay"] = {"ok": replayed.ok, **vars(replayed)}
            print_json(tree)
        elif finding.ok:
            words = f"the record is whole: {counted(finding.events, 'event')}, head {finding.head}"
            if finding.keyed:
                words += ", the key fits"
            if known is not None:
                words += ", the receipt fits"
            say(words)
            if replayed is not None:
                say(_replay_words(replayed))
        else:
            say(f"the record is NOT whole: event {finding.wrong}: {finding.problem}")
        if not finding.ok or (replayed is not None and not replayed.ok):
            raise typer.Exit(1)


def _replay_words(replayed: "Replay") -> str:
    offers = counted(replayed.offers, "offer")
    menus = counted(replayed.awards, "menu")
    same = f"replayed with the same result: {offers}, {menus} with awards"
    if not replayed.ok:
        return f"round {replayed.round} comes out otherwise: {replayed.problem}; {same}"
    if replayed.unknown:
        return f"{same}; {replayed.unknown}"
    return same


@ledger_app.command(
    "explain",
    help="Why a round went as it did: offer, bids, winners, what set the price, what other asks "
    "would have brought.",
    epilog=examples("bara ledger DIR explain 12 --client client-03"),
)
def explain_command(
    context: typer.Context,
    round_number: Round,
    client: Annotated[
        str | None, typer.Option(help="Explain this client's part in detail.")
    ] = None,
    plugins: Plugins = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Explain a round in words."""
    with _books(context, debug) as books:
        from bara.ledger import require_whole
        from bara.runs.explanation import explain_round

        with books.store.read():
            require_whole(books)
            explained = explain_round(books, round_number, client, plugins=plugins)
        if as_json:
            print_json(explained.to_json())
        else:
            say("\n".join(explained.sentences))


@ledger_app.command(
    "export",
    help="Everything but bids and menus: each event (JSON), or each promise and what became of it "
    "(CSV).",
    epilog=examples("bara ledger DIR export > ledger.json", "bara ledger DIR export --csv"),
)
def export_command(context: typer.Context, as_csv: AsCsv = False, debug: Debug = False) -> None:
    """Print the ledger without bids and menus."""
    with _books(context, debug) as books:
        from bara.ledger.statements import export_json, lines, table_csv

        if as_csv:
            say(table_csv(lines(books), books.purse.currency), nl=False)
        else:
            print_json(export_json(books))


@ledger_app.command(
    "payouts",
    help="What is to be transferred to whom: the batches that were made, a new one, or one of them "
    "again (CSV or JSON).",
    epilog=examples("bara ledger DIR payouts --new --payees payees.csv > batch.csv"),
)
def payouts_command(
    context: typer.Context,
    new: Annotated[
        bool, typer.Option("--new", help="Put what is due into a new batch, and print it.")
    ] = False,
    batch: Annotated[int | None, typer.Option(min=1, help="Print this batch again.")] = None,
    payees: Annotated[
        Path | None,
        typer.Option(
            help="CSV with a column `client` and others (name, account) to stand beside it."
        ),
    ] = None,
    sepa: Annotated[
        bool,
        typer.Option(
            "--sepa",
            help="Print SEPA credit transfers (pain.001) instead; needs --payees with columns "
            "`name` and `iban`, --from-name and --from-iban.",
        ),
    ] = False,
    from_name: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --sepa: whose account pays.")
    ] = None,
    from_iban: Annotated[
        str | None, typer.Option(metavar="IBAN", help="With --sepa: the account that pays.")
    ] = None,
    without_receipt: Annotated[
        bool,
        typer.Option(
            "--without-receipt",
            help="Make a batch above ledger.receipt_above though the run has no receipt: you know "
            "that no copy of this disk pays it, too.",
        ),
    ] = False,
    by: By = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Print the batches of payments, make a new one, or print one of them again."""
    with _folder(context, debug) as folder:
        from bara.cli.tables import batches_table
        from bara.ledger import payouts

        known = None if payees is None else payouts.read_payees(payees)
        if new and batch is not None:
            raise ConfigError("give either --new or --batch, not both")
        books = folder.open_books() if new else folder.read_books()
        message = None
        if sepa:
            if known is None or not from_name or not from_iban or not (new or batch):
                raise ConfigError(
                    "--sepa needs --payees, --from-name, --from-iban, and --new or --batch"
                )
            from bara.ledger.bank import credit_transfers

            message = partial(credit_transfers, books, payees=known, name=from_name, iban=from_iban)
        if new:
            check = message or (lambda _batch: None)
            wanted = payouts.new_batch(
                books, known, by=by, check=check, without_receipt=without_receipt
            )
        elif batch is not None:
            wanted = payouts.find_batch(books, batch)
        else:
            with books.store.read():
                made = payouts.batches(books)
                due = payouts.due(books)
                owing = payouts.kept_back(books)
                ended = books.ended() is not None
            if as_json:
                listed = list(made)
                if due:
                    listed.append(due)
                print_json([payouts.batch_json(books, one) for one in listed])
            else:
                currency = books.purse.currency
                show(batches_table(made, due, owing, currency, folder.address, ended=ended))
            return
        if message is not None:
            say(message(wanted), nl=False)
        elif as_json:
            print_json(payouts.batch_json(books, wanted, known))
        else:
            say(payouts.batch_csv(books, wanted, known), nl=False)


@ledger_app.command(
    "invoice",
    help="A self-billing invoice for one payment of a batch: a page to print, signed with the key.",
    epilog=examples(
        "bara ledger DIR invoice 3 --client client-03 --payees payees.csv --from-name Clinic "
        "--from-address '1 Main Street, Aachen' --from-tax-number DE123456789 > invoice.html"
    ),
)
def invoice_command(
    context: typer.Context,
    batch: Annotated[int, typer.Argument(metavar="BATCH", min=1, help="The number of the batch.")],
    client: Annotated[str, typer.Option(help="Whose payment.")],
    payees: Annotated[
        Path,
        typer.Option(
            help="CSV with the columns `client`, `name`, `address` and `tax_number`; `vat` (the "
            "rate in per cent that the amounts include) and `vat_note`, if there are any."
        ),
    ],
    from_name: Annotated[str, typer.Option(metavar="NAME", help="Who pays.")],
    from_address: Annotated[str, typer.Option(metavar="TEXT", help="The address of who pays.")],
    from_tax_number: Annotated[str, typer.Option(metavar="TEXT", help="The payer's tax number.")],
    debug: Debug = False,
) -> None:
    """Print a self-billing invoice for one payment."""
    with _books(context, debug) as books:
        from bara.ledger.payouts import find_batch, payment, read_payees, reference_of
        from bara.reports.invoice import Invoice

        with books.store.read():
            made = find_batch(books, batch)
            parts = payment(books, batch, client)
        place = [paid for paid, _, _ in made.payments].index(client) + 1
        invoice = Invoice(
            run=books.name,
            client=client,
            reference=reference_of(books, batch, place),
            made=made.at[:10],
            parts=parts,
            payer={"name": from_name, "address": from_address, "tax_number": from_tax_number},
            payee=read_payees(payees).get(client, {}),
            unit=books.purse.unit,
            currency=books.purse.currency,
        )
        sign = None
        if books.chain.key is not None:
            from bara.ledger.signatures import payment_receipt

            sign = partial(payment_receipt, books, batch, client, place)
        say(invoice.page(sign))


@ledger_app.command(
    "reconcile",
    help="Compare a bank's statement with the batches, and store which payments it shows as "
    "transferred.",
    epilog=examples("bara ledger DIR reconcile statement.xml"),
)
def reconcile_command(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="camt.053, or a CSV with the columns `reference` and `amount`.")
    ],
    by: By = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Read a bank's statement: what was transferred, what is missing, what is unknown."""
    with _folder(context, debug) as folder:
        from bara.cli.tables import reconciliation_table
        from bara.ledger.bank import reconcile, report_json

        books = folder.open_books()
        report = reconcile(books, file, by=by)
        if as_json:
            print_json(report_json(report))
        else:
            show(reconciliation_table(report, books.purse.currency))


@ledger_app.command(
    "topup",
    epilog=examples('bara ledger DIR topup 250 --reason "two more hospitals"'),
    context_settings={"ignore_unknown_options": True},  # -5 is a wrong amount, not an option
)
def topup_command(
    context: typer.Context,
    amount: str,
    reason: Reason,
    once: Once = None,
    by: By = None,
    debug: Debug = False,
) -> None:
    """Add to the budget; the next round's offer is made with it."""
    with _folder(context, debug) as folder:
        from bara.ledger import operators
        from bara.ledger.statements import statement
        from bara.records import money

        books = folder.open_books()
        added = money(amount, what="the top-up")
        before = statement(books).budget  # refuses a record that is not whole
        if operators.top_up(books, added, by=by, reason=reason, once=once):
            say(f"the budget is {books.purse.show(before + added)} now")
        else:
            say(f"{once} was added before; the budget is {books.purse.show(before)}")


def _act(
    context: typer.Context,
    debug: bool,
    action: str,
    done: str,
    *arguments: object,
    **options: object,
) -> None:
    """Do what an operator asks for, and print the command that lets the run go on.

    Args:
        context: The command line.
        debug: Whether to show the traceback of an error.
        action: The name of a function in `bara.ledger.operators`.
        done: The words to print before the command.
        arguments: The further arguments of the function.
        options: Its options, by name.
    """
    with _folder(context, debug) as folder:
        from bara.ledger import operators

        books = folder.hold_books() if action in ("void", "forget") else folder.open_books()
        getattr(operators, action)(books, *arguments, **options)
        command = folder.continue_command if action == "pause" else folder.resume_command
        say(f"{done}: {command}")


@ledger_app.command("pause", epilog=examples("bara ledger DIR pause"))
def pause_command(context: typer.Context, by: By = None, debug: Debug = False) -> None:
    """Stop the run before its next round, until `continue`; `bara resume` ends the pause, too."""
    _act(context, debug, "pause", "paused before its next round; continue with", by=by)


@ledger_app.command("continue", epilog=examples("bara ledger DIR continue"))
def continue_command(context: typer.Context, by: By = None, debug: Debug = False) -> None:
    """End a pause: the run goes on when it is started again."""
    _act(context, debug, "let_go_on", "the pause is over; go on with", by=by)


@ledger_app.command("adopt", epilog=examples('bara ledger DIR adopt --reason "a new server"'))
def adopt_command(
    context: typer.Context,
    reason: Reason,
    new_receipt: Annotated[
        bool,
        typer.Option(
            "--new-receipt",
            help="Begin a receipt, or another for one that is lost: you know that this record is "
            "the newest.",
        ),
    ] = False,
    by: By = None,
    debug: Debug = False,
) -> None:
    """Let a moved or copied run go on here, where no other copy of it will ever go on."""
    done = "the run belongs here now; go on with"
    _act(context, debug, "adopt", done, new_receipt=new_receipt, by=by, reason=reason)


@ledger_app.command(
    "approve", epilog=examples('bara ledger DIR approve 12 --reason "as agreed with finance"')
)
def approve_command(
    context: typer.Context,
    round_number: Round,
    reason: Reason,
    by: By = None,
    debug: Debug = False,
) -> None:
    """Allow an award above ledger.approve_above; the resumed run trains it."""
    with _folder(context, debug) as folder:
        from bara.ledger import operators
        from bara.ledger.attention import attentions

        books = folder.open_books()
        operators.approve(books, round_number, by=by, reason=reason)
        waiting = [one for one in attentions(books) if one.key.startswith("approval")]
        if waiting:
            say(f"{waiting[0].text}; {waiting[0].answer}")
        else:
            say(f"round {round_number} is approved; train it with: {folder.resume_command}")


@ledger_app.command(
    "decline",
    help="Refuse an award above ledger.approve_above: nobody trains, nobody is paid, "
    "the resumed run goes on.",
    epilog=examples('bara ledger DIR decline 12 --reason "too expensive"'),
)
def decline_command(
    context: typer.Context,
    round_number: Round,
    reason: Reason,
    by: By = None,
    debug: Debug = False,
) -> None:
    """Refuse an award that needs approval."""
    done = f"round {round_number} is declined; go on with"
    _act(context, debug, "decline", done, round_number, by=by, reason=reason)


@ledger_app.command(
    "void",
    help="Take back a promise that is never settled: nobody trains, nobody is paid, "
    "the resumed run goes on.",
    epilog=examples('bara ledger DIR void 12 --reason "training fails at each resume"'),
)
def void_command(
    context: typer.Context,
    round_number: Round,
    reason: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help="Why, for the record and for the statements of its winners."
        ),
    ],
    by: By = None,
    debug: Debug = False,
) -> None:
    """Take back the promise of a round that is never settled."""
    done = f"round {round_number} is void; go on with"
    _act(context, debug, "void", done, round_number, reason, by=by)


@ledger_app.command(
    "correct",
    help="Correct what a winner was paid for a settled round, by an entry of its own; nobody may "
    "play the run meanwhile.",
    epilog=examples('bara ledger DIR correct 12 client-03 -61.31 --reason "it was paid twice"'),
    context_settings={"ignore_unknown_options": True},  # -61.31 is an amount, not an option
)
def correct_command(
    context: typer.Context,
    round_number: Round,
    client: Annotated[str, typer.Argument(help="The winner whose payment is corrected.")],
    amount: Annotated[str, typer.Argument(help="What to add; negative to take it back.")],
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Why, for the record and the client's statement.")
    ],
    once: Once = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="Correct by an amount by which it was corrected before."),
    ] = False,
    by: By = None,
    debug: Debug = False,
) -> None:
    """Add to a settled payment, or take from it."""
    with _folder(context, debug) as folder:
        from bara.ledger.corrections import correct
        from bara.records import money

        books = folder.hold_books()
        change = money(amount, what="the correction")
        now = correct(
            books, round_number, client, change, by=by, reason=reason, once=once, again=again
        )
        if now is None:
            say("noted; it takes effect once another person gives the same command")
        else:
            say(f"{client} has earned {books.purse.show(now)} in round {round_number} now")


@ledger_app.command(
    "returned",
    help="Say that transfers of a batch came back: the next batch pays them again.",
    epilog=examples('bara ledger DIR returned 3 --client client-03 --reason "account closed"'),
)
def returned_command(
    context: typer.Context,
    batch: Annotated[int, typer.Argument(metavar="BATCH", min=1, help="The number of the batch.")],
    reason: Reason,
    client: Annotated[
        list[str], typer.Option(help="Whose transfer; may be repeated. Default: the whole batch.")
    ] = [],
    by: By = None,
    debug: Debug = False,
) -> None:
    """Put transfers that came back among what is due."""
    with _folder(context, debug) as folder:
        from bara.ledger.payouts import returned

        owed = returned(folder.open_books(), batch, client, by=by, reason=reason)
        say(f"the next batch pays {', '.join(owed)} what came back of batch {batch}")


@ledger_app.command("forget", epilog=examples("bara ledger DIR forget client-03"))
def forget_command(
    context: typer.Context,
    client: Annotated[str, typer.Argument(help="Whose update.")],
    by: By = None,
    debug: Debug = False,
) -> None:
    """Forget a client's remembered update from the next round on; the resumed run goes on."""
    _act(context, debug, "forget", f"{client} is forgotten; go on with", client, by=by)


@ledger_app.command(
    "register",
    help="List the known clients, or enter one, change its entry, or take it off; bids of others "
    "are left out.",
    epilog=examples(
        "bara ledger DIR register",
        'bara ledger DIR register hospital-9 --limit 5000 --reason "joined in May"',
        'bara ledger DIR register hospital-9 --remove --reason "left the consortium"',
    ),
)
def register_command(
    context: typer.Context,
    client: Annotated[str | None, typer.Argument(help="The client to enter or remove.")] = None,
    limit: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="The most it is paid over the run.")
    ] = None,
    fee: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="The most it is paid for one round.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the client off.")] = False,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why, for the record.")] = None,
    by: By = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List or change the known clients."""
    with _folder(context, debug) as folder:
        from bara.cli.tables import register_table
        from bara.ledger import operators
        from bara.records import Entry, json_money, money

        if client is not None:
            if not reason:
                raise ConfigError("--reason must say why the register changes, for the record")
            books = folder.open_books()
            if remove:
                begins = operators.strike_off(books, client, by=by, reason=reason)
                say(f"{client} is off the register from round {begins} on")
                return
            most = None if limit is None else money(limit, what="--limit")
            each = None if fee is None else money(fee, what="--fee")
            begins = operators.register(books, client, Entry(most, each), by=by, reason=reason)
            say(f"{client} is in the register from round {begins} on")
            return
        if limit or fee or remove:
            raise ConfigError("--limit, --fee and --remove need the name of a client")
        books = folder.read_books()
        known = books.registered(books.last_round() + 2)
        if as_json:
            tree = {name: json_money(**vars(one)) for name, one in (known or {}).items()}
            print_json(None if known is None else tree)
        elif known is None:
            say(f"run {books.name!r} was opened without a register: everybody may bid")
        else:
            show(register_table(known, books.purse.currency))


@ledger_app.command("decisions", epilog=examples("bara ledger DIR decisions --csv"))
def decisions_command(
    context: typer.Context, as_csv: AsCsv = False, as_json: AsJson = False, debug: Debug = False
) -> None:
    """Which commands operators gave: when, who and why."""
    with _books(context, debug) as books:
        from bara.cli.tables import decisions_table
        from bara.ledger import require_whole
        from bara.ledger.decisions import decision_json, decisions, decisions_csv

        with books.store.read():
            require_whole(books)
            found = decisions(books)
        if as_json:
            print_json(list(map(decision_json, found)))
        elif as_csv:
            say(decisions_csv(found, books.purse.currency), nl=False)
        elif found:
            show(decisions_table(found, books.purse.currency))
        else:
            say(f"no operator has given run {books.name!r} a command")


@ledger_app.command(
    "sign",
    help="Sign a client's receipt; without a client, print the public key that receipts are "
    "checked with.",
    epilog=examples("bara ledger DIR sign --client client-03 > client-03.json"),
)
def sign_command(context: typer.Context, client: Client = None, debug: Debug = False) -> None:
    """Sign a client's receipt, or print the public key."""
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
        from bara.reports.client_statement import read_receipt

        try:
            receipt = read_receipt(read_whole(file, plain=False))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{file} cannot be read as a receipt: {error}") from None
        check_client_receipt(receipt, public_key, None if paid is None else money(paid))
        amount = show_money(receipt["paid"], receipt.get("currency"))
        period = " to ".join(receipt[day] for day in ("first", "last") if day in receipt)
        if "reference" in receipt:
            period = f"in the payment {receipt['reference']}"
        elif "first" not in receipt:
            period = f"up to {period}" if period else "over the whole run so far"
        elif "last" not in receipt:
            period = f"from {period} on"
        say(
            f"the receipt is good: the operator signed that {receipt['client']} earned {amount} "
            f"in run {receipt['run']!r}, {period}"
        )
