"""Receipts that a client can check without trusting, or seeing, the ledger: Ed25519 over its own statement."""

import hashlib
from dataclasses import asdict
from typing import Any

from bara.errors import ConfigError, LedgerError, MissingExtraError
from bara.ledger._events import canonical
from bara.ledger.books import Books
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
    """What clients check receipts with; publish it before the run."""
    return _signer(books).public_key().public_bytes_raw().hex()


def client_receipt(
    books: Books, client: str, period: Period | None = None, page: str | None = None
) -> dict[str, Any]:
    """One client's own statement, the ledger's head, and a signature over both. Amounts are micro-units.

    Args:
        books: Whose.
        client: Which.
        period: The days that it is of; None for the whole run.
        page: The digest of the page that shows it; None where it is shown on none.
    """
    with books.store.read():
        (total, own), head = own_statement(books, client, period), books.receipt()
    rounds = [
        {"round": line.round, "promised": line.promised, "paid": line.paid, "reason": line.reason}
        for line in own
    ]
    words = {**asdict(head), "client": client, "paid": total.paid, "rounds": rounds}
    words |= {"currency": books.purse.currency} if books.purse.currency else {}
    words |= {name: day for name, day in vars(period or Period()).items() if day}
    words |= {"page": page} if page else {}
    signature = _signer(books).sign(canonical(words).encode()).hex()
    return {**words, "public_key": public_key(books), "signature": signature}


def check_client_receipt(receipt: dict[str, Any], key: str, paid: int | None = None) -> None:
    """Check a receipt with the public key that the operator published, and with what the client's own books say.

    Raises:
        LedgerError: says what does not fit.
    """
    try:
        words = {
            name: value
            for name, value in receipt.items()
            if name not in ("public_key", "signature")
        }
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
        said, own = (show_money(amount, words.get("currency")) for amount in (words["paid"], paid))
        raise LedgerError(
            f"the receipt says that {said} was paid, but the client's record says {own}"
        )


def _signer(books: Books) -> Ed25519PrivateKey:
    if books.chain.key is None:
        raise ConfigError(
            "signing needs a key; set ledger.key to the name of an environment variable that holds one"
        )
    books.check_key()
    return Ed25519PrivateKey.from_private_bytes(
        hashlib.sha256(b"bara client receipt\n" + books.chain.key).digest()
    )
