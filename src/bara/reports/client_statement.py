"""One client's account as a page to print: self-contained, signed, and checked with `bara receipt` like the JSON."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from bara.errors import ConfigError
from bara.ledger.statements import ClientTotal, Line, Period
from bara.records import show_money
from bara.reports.html import page, table
from bara.text import spelled

Sign = Callable[..., dict[str, Any]]
"""Makes a signed receipt, given the digest of the page that shows it."""

_SIGNED = re.compile(r'<script type="application/json" id="receipt">(.*?)</script>', re.DOTALL)


def client_statement(
    run: str,
    total: ClientTotal,
    own: Sequence[Line],
    currency: str | None,
    period: Period | None,
    sign: Sign | None,
) -> str:
    """The page.

    Args:
        run: Whose books.
        total: What the client was promised and paid.
        own: Round by round.
        currency: What amounts are in.
        period: The days that were asked for; None for the whole run.
        sign: Makes the same a signed receipt, with this page's digest; None where there is no key
            to sign with.
    """
    days = sorted(line.at[:10] for line in own if line.at) or ["not settled"]
    unsettled = sum(line.paid is None for line in own)
    rows = [
        (
            str(line.round),
            line.at[:10] if line.at else "not yet",
            show_money(line.promised, currency),
            "not yet" if line.paid is None else show_money(line.paid, currency),
            spelled(line.reason or ""),
        )
        for line in own
    ]
    asked = period or Period()
    facts = {
        "period": f"{asked.first or days[0]} to {asked.last or days[-1]}",
        "paid": show_money(total.paid, currency),
        "rounds": f"{total.won - total.void - unsettled} delivered, {total.void} void"
        + (f", {unsettled} not settled" if unsettled else ""),
    }
    shown = "".join(
        f"<div><span>{escape(name)}</span><b>{escape(value)}</b></div>"
        for name, value in facts.items()
    )
    body = f'<div class="facts">{shown}</div>' + table(
        ("round", "settled", "promised", "paid", "why not"), rows
    )
    title = f"Statement for {spelled(total.client)}, run {spelled(run)}"
    signature = "<p>Not signed: no key was at hand.</p>"
    if sign is not None:
        signature = _signature(sign(page=_digest(page(title, body))))
    return page(title, body + signature)


def _digest(unsigned: str) -> str:
    return hashlib.sha256(unsigned.strip().encode()).hexdigest()


def _signature(receipt: dict[str, Any]) -> str:
    data = json.dumps(receipt).replace("<", "\\u003c")
    signature = receipt["signature"]  # in two lines, which fit on paper
    return (
        "<h2>Signature</h2><p>Check it with the public key that the operator published: <code>bara receipt THIS-FILE "
        f"--public-key KEY</code>. The ledger had {receipt['events']} events, the last with the hash below.</p>"
        f"<pre>{escape(receipt['head'])}\nEd25519:\n{escape(signature[:64])}\n{escape(signature[64:])}</pre>"
        f'<script type="application/json" id="receipt">{data}</script>'
    )


def read_receipt(text: str) -> dict[str, Any]:
    """A signed receipt, as JSON or from such a page."""
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
    """Whether the page shows what was signed, and nothing else: its signature covers the rest of it."""
    try:
        unsigned = text.replace("\r\n", "\n").replace(_signature(receipt), "", 1)
    except (AttributeError, KeyError, TypeError):
        return False
    return _digest(unsigned) == receipt.get("page")
