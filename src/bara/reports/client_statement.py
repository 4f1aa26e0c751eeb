"""One client's statement as a page to print: self-contained and signed.

`bara receipt` checks such a page as it checks a receipt in JSON.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Any

from bara.errors import ConfigError
from bara.ledger.statements import ClientTotal, Line, Period
from bara.records import show_money
from bara.reports.html import fact_list, page, table
from bara.text import spelled

Sign = Callable[..., dict[str, Any]]
"""A function that signs a receipt, given the digest of the page that shows it (`page`)."""

_SIGNED = re.compile(r'<script type="application/json" id="receipt">(.*?)</script>', re.DOTALL)


def client_statement(
    run: str,
    total: ClientTotal,
    own: Sequence[Line],
    currency: str | None,
    period: Period | None,
    sign: Sign | None,
    payee: Mapping[str, str] = MappingProxyType({}),
    transferred: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return the page.

    Args:
        run: The name of the run whose books these are.
        total: The sums that the client was promised and paid.
        own: The client's lines, round by round.
        currency: The currency of all amounts.
        period: The days that were asked for; None for the whole run.
        sign: Signs a receipt of the same statement, given this page's digest; None if there is no
            key to sign with.
        payee: What the operator's file says of the client: its name, address and tax number.
        transferred: The client's payments in batches, as `bara.ledger.payouts.transfers` tells.
    """
    unsettled = 0
    rows = []
    for line in own:
        settled = line.at[:10] if line.at else "not yet"
        paid = "not yet"
        if line.paid is None:
            unsettled += 1
        else:
            paid = show_money(line.paid, currency)
        asked = "" if line.asked is None else show_money(line.asked, currency)
        promised = show_money(line.promised, currency)
        rows.append((str(line.round), settled, asked, promised, paid, spelled(line.remark)))
    delivered = total.won - total.void - unsettled
    rounds = f"{delivered} delivered, {total.void} void"
    if unsettled:
        rounds += f", {unsettled} not settled"
    days = sorted(line.at[:10] for line in own if line.at) or ["not settled"]
    wanted = period or Period()
    facts = {
        "period": f"{wanted.first or days[0]} to {wanted.last or days[-1]}",
        "earned": show_money(total.paid, currency),
        "rounds": rounds,
    }
    head = ("round", "settled", "asked", "promised", "earned", "remark")
    body = party(payee) + fact_list(facts) + table(head, rows)
    if transferred:
        body += _transfers(transferred, currency)
    return signed_page(f"Statement for {spelled(total.client)}, run {spelled(run)}", body, sign)


def party(known: Mapping[str, str]) -> str:
    """Return who somebody is: name, address and tax number, as far as they are known."""
    words = []
    if known.get("name"):
        words.append(f"<b>{escape(spelled(known['name']))}</b>")
    if known.get("address"):
        words.append(escape(spelled(known["address"])))
    if known.get("tax_number"):
        words.append(f"tax number {escape(spelled(known['tax_number']))}")
    return f"<p>{'<br>'.join(words)}</p>" if words else ""


def _transfers(payments: Sequence[Mapping[str, Any]], currency: str | None) -> str:
    rows = []
    for one in payments:
        state = "in a batch"
        if one["transferred"]:
            state = f"transferred on {one['transferred']} by the bank's statement"
        if one["returned"]:
            state = "came back"
        amount = show_money(one["amount"], currency)
        rows.append((str(one["batch"]), one["reference"], amount, state))
    head = ("batch", "reference", "amount", "by now")
    return "<h2>Payments, over the whole run</h2>" + table(head, rows)


def signed_page(title: str, body: str, sign: Sign | None) -> str:
    """Return a page with its signature, or with a line that says that it has none."""
    signature = "<p>Not signed: no key was at hand.</p>"
    if sign is not None:
        signature = _signature(sign(page=_digest(page(title, body))))
    return page(title, body + signature)


def _digest(unsigned: str) -> str:
    return hashlib.sha256(unsigned.strip().encode()).hexdigest()


def _signature(receipt: dict[str, Any]) -> str:
    data = json.dumps(receipt).replace("<", "\\u003c")
    head = escape(receipt["head"])
    first_half = escape(receipt["signature"][:64])  # in two lines, which fit on paper
    second_half = escape(receipt["signature"][64:])
    return (
        "<h2>Signature</h2><p>Check it with the public key that the operator published: "
        "<code>bara receipt THIS-FILE --public-key KEY</code>. "
        f"The ledger had {receipt['events']} events, the last with the hash below.</p>"
        f"<pre>{head}\nEd25519:\n{first_half}\n{second_half}</pre>"
        f'<script type="application/json" id="receipt">{data}</script>'
    )


def read_receipt(text: str) -> dict[str, Any]:
    """Return the signed receipt that a text holds: JSON, or a statement's page."""
    found = _SIGNED.search(text)
    try:
        receipt = json.loads(found[1] if found else text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(str(error)) from None
    if not isinstance(receipt, dict):
        raise ConfigError("a receipt must be a JSON object")
    if found and not _is_shown(receipt, text):
        raise ConfigError("the page was changed after it was signed")
    return receipt


def _is_shown(receipt: dict[str, Any], text: str) -> bool:
    """Return True if the page, apart from its signature, is the page that was signed."""
    try:
        unsigned = text.replace("\r\n", "\n").replace(_signature(receipt), "", 1)
    except (AttributeError, KeyError, TypeError):
        return False
    return _digest(unsigned) == receipt.get("page")
