"""Draws docs/assets/round.svg (one round, worked) and docs/assets/ledger.svg (what is stored).

python scripts/diagrams.py

The amounts in the example are what the auction itself computes.
"""

from html import escape
from pathlib import Path

from bara import AwardedRound, Bids, Delivery, Evaluation, Evidence, Offer, Purse, money
from bara.mechanisms import bid_price_first

ASSETS = Path(__file__).parents[1] / "docs" / "assets"
WIDTH, STEP = 600, 56
COUNTED = [(1, "client costs"), (2, "cost"), (3, "cost")]
COLOURS = {
    "allocator": "#b35900",
    "clients": "#2b7bb4",
    "mechanism": "#7a5ca8",
    "ledger": "#3a7d44",
}


def amount(micro):
    """1.5 or 2, without zeros that say nothing."""
    return f"{micro / 1e6:g}"


def played():
    """The steps of one round, who takes each, and what it comes to here."""
    asks = {"north": 1, "south": 2, "east": 4, "west": 5}
    menu = bid_price_first().menu(Bids.of(asks))
    awarded = AwardedRound.of(Purse.of(100, 20), Offer.spend(money(10)), menu)
    failed = awarded.award.clients[-1]
    evidence = {client: Evidence() for client in awarded.award.clients if client != failed}
    settled = awarded.settle(
        Delivery(Evaluation(0.2), evidence, void={failed: "it did not answer"})
    )
    winners, each = " and ".join(awarded.award.clients), amount(awarded.award.payments[0])
    (paid,) = settled.payments
    return [
        (
            "allocator",
            "Offer",
            f"before bids are opened: up to {amount(money(10))} for any number of clients",
        ),
        (
            "clients",
            "Bids",
            "sealed: " + ", ".join(f"{client} asks {price}" for client, price in asks.items()),
        ),
        (
            "mechanism",
            "Menu",
            ", ".join(f"{n} {word} {amount(menu.cost(n))}" for n, word in COUNTED),
        ),
        ("mechanism", "Award", f"the largest number within the offer: {winners}, {each} each"),
        (
            "ledger",
            "Promise",
            f"stored before anyone trains: {amount(awarded.award.cost)} promised",
        ),
        ("clients", "Training", f"{paid} delivers its update; {failed} does not answer"),
        (
            "ledger",
            "Settlement",
            (
                f"{paid} is owed {each}, {failed} nothing: "
                f"{amount(settled.purse_after.left)} of 100 left"
            ),
        ),
        ("ledger", "Payment", f"{each} to {paid}; allocator and mechanism learn from the round"),
    ]


STORED = [
    ("opened", "the whole configuration, budget, deadline, place"),
    ("bids, awarded", "before training: bids, offer, purse, each winner's promise"),
    ("settled", "after delivery: each winner's payment or why not, balance, model digest"),
    ("by an operator", "topped up, paused, approved, declined, voided, forgotten, adopted, ..."),
    ("paid out", "a numbered batch: the rounds it pays, with the hash of every payment"),
    ("closed", "why the run ended"),
]


def drawing(height, parts):
    """A picture that is legible on white and on black alike."""
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">'
    paper = f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#fbfbf8"/>'
    return "\n".join([start, paper, *parts, "</svg>\n"])


def text(x, y, words, **look):
    """Words at a place."""
    looks = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in look.items())
    return f'<text x="{x}" y="{y}"{looks}>{escape(words)}</text>'


def one_round():
    """Eight steps from top to bottom."""
    steps = played()
    yield f'<path d="M32 40V{STEP * len(steps) - 18}" stroke="#999" stroke-width="2"/>'
    for number, (who, step, example) in enumerate(steps, 1):
        middle = STEP * number - 18
        yield f'<circle cx="32" cy="{middle}" r="14" fill="{COLOURS[who]}"/>'
        yield text(
            32, middle + 5, str(number), fill="#fff", text_anchor="middle", font_weight="bold"
        )
        yield text(58, middle - 4, step, font_weight="bold", fill="#222")
        yield text(580, middle - 4, who, fill=COLOURS[who], text_anchor="end")
        yield text(58, middle + 15, example, fill="#444", font_size=14)


def what_is_stored():
    """A chain of events, the receipt beside it."""
    for number, (event, content) in enumerate(STORED, 1):
        top = STEP * number - 40
        yield (
            f'<rect x="20" y="{top}" width="560" height="44" rx="6" fill="#fff" '
            f'stroke="{COLOURS["ledger"]}"/>'
        )
        yield text(34, top + 19, event, font_weight="bold", fill=COLOURS["ledger"])
        yield text(34, top + 37, content, fill="#444", font_size=14)
        if number > 1:
            yield f'<path d="M545 {top - 12}V{top}" stroke="#555" stroke-width="2"/>'
            yield text(
                536,
                top + 19,
                "hash of the event before",
                fill="#777",
                font_size=12,
                text_anchor="end",
            )
    end = STEP * len(STORED) + 24
    yield text(
        20,
        end,
        "Receipt, in a second place: the newest hash. With a key it is also signed.",
        fill="#444",
        font_size=14,
    )


def pictures():
    """Every picture by its name."""
    return {
        "round": drawing(STEP * 8 + 12, one_round()),
        "ledger": drawing(STEP * len(STORED) + 44, what_is_stored()),
    }


if __name__ == "__main__":
    for name, picture in pictures().items():
        (ASSETS / f"{name}.svg").write_text(picture)
