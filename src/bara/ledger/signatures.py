"""Receipts signed with Ed25519, which a client can check without seeing or trusting the ledger."""

import hashlib
from dataclasses import asdict
from typing import Any

from bara.errors import ConfigError, LedgerError, MissingExtraError
from bara.ledger._events import canonical
from bara.ledger.books import Books
from bara.ledger.payouts import payment, reference_of
from bara.ledger.statements import Period, own_statement
from bara.records import show_money

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )
except ModuleNotFoundError as error:
    raise MissingExtraError(
        "signed receipts need cryptography: pip install 'bara-fl[sign]'"
    ) from error


def public_key(books: Books) -> str:
    """Return the key that clients check receipts with; publish it before the run."""
    return _signer(books).public_key().public_bytes_raw().hex()


def client_receipt(
    books: Books, client: str, period: Period | None = None, page: str | None = None
) -> dict[str, Any]:
    """Return one client's statement in micro-units, the ledger's head, and a signature over both.

    Args:
        books: The run's books.
        client: The client's name.
        period: The days that the statement covers; None for the whole run.
        page: The digest of the HTML page that shows the statement; None for no page.
    """
    with books.store.read():
        total, own = own_statement(books, client, period)
        head = books.receipt()
    rounds = []
    for line in own:
        amounts = {"promised": line.promised, "paid": line.paid}
        rounds.append({"round": line.round, **amounts, "reason": line.remark or None})
    words = {**asdict(head), "client": client, "paid": total.paid, "rounds": rounds}
    if period is not None:
        words |= {name: day for name, day in vars(period).items() if day}
    return _signed(books, words, page)


def payment_receipt(
    books: Books, batch: int, client: str, place: int, page: str | None = None
) -> dict[str, Any]:
    """Return what a batch pays to a client, its reference, the ledger's head, and a signature.

    Args:
        books: The run's books.
        batch: The number of the batch.
        client: The client's name.
        place: The place of the client's payment in the batch, from 1 on.
        page: The digest of the HTML page that shows the payment; None for no page.
    """
    with books.store.read():
        parts = payment(books, batch, client)
        head = books.receipt()
    paid = [{"round": one.round, "paid": one.amount} for one in parts if one.again is None]
    words = {
        **asdict(head),
        "client": client,
        "paid": sum(one["paid"] or 0 for one in paid),
        "rounds": paid,
        "reference": reference_of(books, batch, place),
    }
    return _signed(books, words, page)


def _signed(books: Books, words: dict[str, Any], page: str | None) -> dict[str, Any]:
    """Return a receipt's words with the currency, the page's digest and the signature."""
    if books.purse.currency:
        words["currency"] = books.purse.currency
    if page:
        words["page"] = page
    signature = _signer(books).sign(canonical(words).encode()).hex()
    return {**words, "public_key": public_key(books), "signature": signature}


def check_client_receipt(receipt: dict[str, Any], key: str, paid: int | None = None) -> None:
    """Refuse a receipt that does not match the operator's public key or the client's own books.

    Args:
        receipt: The receipt, as `client_receipt` returns it.
        key: The public key that the operator published.
        paid: What the client was paid by its own books, in micro-units; None to check only the
            signature and the sum.
    """
    try:
        words = dict(receipt)
        for added in ("public_key", "signature"):
            words.pop(added, None)
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(
            bytes.fromhex(receipt["signature"]), canonical(words).encode()
        )
    except InvalidSignature as error:
        raise LedgerError(
            "the receipt's signature does not match the receipt and this public key"
        ) from error
    except (AttributeError, KeyError, ValueError, TypeError) as error:
        raise LedgerError(f"this is not a signed receipt, or not a public key: {error}") from error
    if words["paid"] != sum(line["paid"] or 0 for line in words["rounds"]):
        raise LedgerError("the receipt's rounds do not add up to what it says was paid")
    if paid is not None and words["paid"] != paid:
        said = show_money(words["paid"], words.get("currency"))
        own = show_money(paid, words.get("currency"))
        raise LedgerError(
            f"the receipt says that {said} was paid, but the client's record says {own}"
        )


def _signer(books: Books) -> Ed25519PrivateKey:
    if books.chain.key is None:
        raise ConfigError(
            "signing needs a key; "
            "set ledger.key to the name of an environment variable that holds one"
        )
    books.check_key()
    return Ed25519PrivateKey.from_private_bytes(
        hashlib.sha256(b"bara client receipt\n" + books.chain.key).digest()
    )
