"""A self-billing invoice for one payment of a batch, as a page to print: self-contained and signed.

Whoever pays writes it in the payee's name. `bara receipt` checks it like a statement.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

from bara.errors import ConfigError
from bara.ledger.payouts import Part
from bara.records import show_money
from bara.reports.client_statement import Sign, party, signed_page
from bara.reports.html import fact_list, table
from bara.text import spelled

PARTICULARS = ("name", "address", "tax_number")
"""What an invoice must say of whoever pays and of whoever is paid."""


@dataclass(frozen=True)
class Invoice:
    """An invoice for one payment of a batch.

    Attributes:
        run: The name of the run whose books these are.
        client: The client that is paid.
        reference: The end-to-end reference of the payment, which is the invoice's number.
        made: The day on which the batch was made, in ISO 8601.
        parts: What the payment is made of.
        payer: The name, the address and the tax number of who pays.
        payee: Those of the client, its VAT rate in per cent (`vat`), if it has one, and a note.
        unit: The smallest amount, in micro-units, to which VAT is rounded.
        currency: The currency of all amounts.
    """

    run: str
    client: str
    reference: str
    made: str
    parts: Sequence[Part]
    payer: Mapping[str, str]
    payee: Mapping[str, str]
    unit: int
    currency: str | None

    @property
    def total(self) -> int:
        """The sum paid for services, VAT included, without transfers that are made again."""
        return sum(one.amount for one in self.parts if one.again is None)

    def page(self, sign: Sign | None) -> str:
        """Return the page; refuse one that would lack what an invoice must say.

        Args:
            sign: Signs a receipt of the same payment, given the page's digest; None for no key.
        """
        for whose, known in (("who pays", self.payer), (f"the payee {self.client!r}", self.payee)):
            for name in PARTICULARS:
                if not known.get(name, "").strip():
                    raise ConfigError(f"an invoice needs the {name!r} of {whose}")
        rows = []
        for one in self.parts:
            if one.again is None:
                rows.append(self._row(one))
        if not rows:
            again = {one.again for one in self.parts}
            raise ConfigError(
                f"{self.reference} only pays again what came back of batch "
                f"{', '.join(map(str, again))}; its invoice counts"
            )
        days = sorted(day for _, day, _, _ in rows)
        facts = {
            "number": self.reference,
            "date": self.made,
            "services": f"{days[0]} to {days[-1]}",
            "total": self._show(self.total),
        }
        body = (
            f"<h2>From</h2>{party(self.payee)}<h2>To</h2>{party(self.payer)}"
            + fact_list(facts)
            + table(("round", "day", "for", "amount"), rows)
            + table(("", "amount"), self._sums())
        )
        note = self.payee.get("vat_note", "")
        if note:
            body += fact_list({"VAT": spelled(note)})
        title = f"Self-billing invoice {self.reference}, run {spelled(self.run)}"
        return signed_page(title, body, sign)

    def _row(self, one: Part) -> tuple[str, str, str, str]:
        what = "taking part in the training"
        if one.correction is not None:
            what = f"correction: {spelled(one.correction)}"
        return str(one.round), one.at[:10], what, self._show(one.amount)

    def _sums(self) -> list[tuple[str, str]]:
        """Return the net amount, the VAT that the total includes, and the total."""
        transferred = sum(one.amount for one in self.parts)
        totals = [("total", self._show(self.total))]
        if transferred != self.total:
            totals = [
                ("total", self._show(self.total)),
                ("paid again, after it came back", self._show(transferred - self.total)),
                ("transferred", self._show(transferred)),
            ]
        text = self.payee.get("vat", "").strip()
        if not text:
            return totals
        rate = _rate(text, self.client)
        units = Decimal(self.total // self.unit) * 100 / (100 + rate)
        net = int(units.quantize(Decimal(1), ROUND_HALF_UP)) * self.unit
        return [
            ("net", self._show(net)),
            (f"VAT {rate.normalize():f} %", self._show(self.total - net)),
            *totals,
        ]

    def _show(self, amount: int) -> str:
        return show_money(amount, self.currency)


def _rate(text: str, client: str) -> Decimal:
    rate = Decimal(-1)
    with contextlib.suppress(InvalidOperation):
        rate = Decimal(text)
    if not (rate.is_finite() and 0 <= rate < 100):
        raise ConfigError(f"the VAT rate of the payee {client!r} must be per cent, got {text!r}")
    return rate
