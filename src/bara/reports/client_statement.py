"""One client's account as a page to print: self-contained, signed, and checked with `bara receipt` like the JSON."""

import json
import re
from collections.abc import Sequence
from html import escape
from typing import Any

from bara.errors import ConfigError
from bara.ledger.statements import ClientTotal, Line
from bara.records import show_money
from bara.reports.html import page, table
from bara.text import spelled

_SIGNED = re.compile(r'<script type="application/json" id="receipt">(.*?)</script>', re.DOTALL)


def client_statement(
    run: str, total: ClientTotal, own: Sequence[Line], currency: str | None, receipt: dict[str, Any] | None
) -> str:
    """The page.

    Args:
        run: Whose books.
        total: What the client was promised and paid.
        own: Round by round.
        currency: What amounts are in.
        receipt: The same, signed; None where there is no key to sign with.
    """
    days = sorted(line.at[:10] for line in own if line.at)
    rows = [
        (
            str(line.round),
            (line.at or "not settled")[:10],
            show_money(line.promised, currency),
            "not settled" if line.paid is None else show_money(line.paid, currency),
            spelled(line.reason or ""),
        )
        for line in own
    ]
    facts = {
        "paid": show_money(total.paid, currency),
        "rounds": f"{total.won - total.void} delivered, {total.void} void",
        "settled": f"{days[0]} to {days[-1]}" if days else "nothing yet",
    }
    shown = "".join(f"<div><span>{escape(name)}</span><b>{escape(value)}</b></div>" for name, value in facts.items())
    body = f'<div class="facts">{shown}</div>' + table(("round", "settled", "promised", "paid", "why not"), rows)
    return page(f"Statement for {spelled(total.client)}, run {spelled(run)}", body + _signature(receipt))


def _signature(receipt: dict[str, Any] | None) -> str:
    if receipt is None:
        return "<p>Not signed: this ledger has no key.</p>"
    data = json.dumps(receipt).replace("<", "\\u003c")
    return (
        "<h2>Signature</h2><p>Check it with the public key that the operator published: <code>bara receipt THIS-FILE "
        f"--public-key KEY</code>. The ledger had {receipt['events']} events, the last with the hash below.</p>"
        f"<pre>{escape(receipt['head'])}\nEd25519 {escape(receipt['signature'])}</pre>"
        f'<script type="application/json" id="receipt">{data}</script>'
    )


def read_receipt(text: str) -> dict[str, Any]:
    """A signed receipt, as JSON or from such a page."""
    found = _SIGNED.search(text)
    try:
        receipt = json.loads(found[1] if found else text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"it is not a receipt: {error}") from None
    if not isinstance(receipt, dict):
        raise ConfigError("a receipt must be a JSON object")
    return receipt
