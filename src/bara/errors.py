"""The errors that bara raises, all derived from `BaraError`.

Each is also the built-in exception that fits. A message says what was expected, what was given
instead, and which client, key or file is concerned.
"""

from typing import Any


class BaraError(Exception):
    """The base class of every error that bara raises on purpose."""


class InvalidMoneyError(BaraError, ValueError):
    """An amount that is not a whole number of micro-units, or that is out of range."""


class InvalidBidError(BaraError, ValueError):
    """A bid, or a column of the bids, that breaks a rule; the message names the client."""


class InvalidOfferError(BaraError, ValueError):
    """An offer whose caps are not amounts, or a number of clients that is not on the menu."""


class InvalidRecordError(BaraError, ValueError):
    """A record whose fields are out of range or contradict each other."""


class OverspentError(BaraError, ValueError):
    """A payment or promise that exceeds the money left in the purse."""


class ConfigError(BaraError, ValueError):
    """A configuration that cannot be run; the message names the key and what it requires."""


class UnknownNameError(ConfigError, LookupError):
    """A name that no registry knows; the message suggests the most similar one."""


class MissingExtraError(BaraError, ImportError):
    """A feature whose optional dependencies are not installed; the message names the extra."""


class DatasetError(BaraError, ValueError):
    """A dataset that is missing, damaged, or unfit for the federation."""


class UnfitDatasetError(DatasetError, ConfigError):
    """A configuration that asks a dataset for what it lacks: a file, a column, enough samples."""


class TrainingError(BaraError, ArithmeticError):
    """A round whose training failed as a whole (an infinite loss, say); nothing is paid for it."""


class LedgerError(BaraError, RuntimeError):
    """A ledger that cannot be read or written, or is damaged; no write is left half done."""


class NoBooksError(LedgerError):
    """A folder or database in which there are no books of the run, at least not yet."""


class RunStoppedError(BaraError, RuntimeError):
    """A run that stopped between rounds, with its books in order; the message says how to go on.

    Attributes:
        so_far: The result of the rounds played so far, or the comparison of the runs that ended.
    """

    so_far: Any = None


class InterruptionError(RunStoppedError):
    """A run interrupted by Ctrl-C or by a notebook's stop button; finished rounds are saved."""


class PausedError(RunStoppedError):
    """A run that stopped because an operator paused it or has to answer first."""


class WaitingError(PausedError):
    """A run whose next award is promised and waits for an operator to approve or decline it."""
