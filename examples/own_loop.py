"""A training loop of your own with bara's books.

Stop it anywhere, start it again, and nobody is paid twice.
"""

import random

import bara

CONFIG = {
    "budget": {"total": 100, "max_rounds": 10},
    "clients": {"count": 5},
    "allocator": "even",
    "ledger": {"url": "sqlite:///books.db"},
}

with bara.open_session("spring", CONFIG) as session:
    session.begin(0.1)  # the initial model's accuracy
    while session.ask() is not None:
        dice = random.Random(session.round)
        award = session.award({f"site-{k}": f"{dice.uniform(1, 3):.2f}" for k in range(5)})
        if award is None:
            break
        accuracy = 0.9 - 0.8 / (1 + session.round)  # here your own system trains award.clients
        record = session.settle(accuracy)
        print(
            f"round {record.round}: {', '.join(award.clients)} for {bara.show_money(record.paid)}"
        )
    print(session.ended, bara.show_money(session.purse.left), "left")

print(bara.open("books.db", run="spring"))
