"""One tree of errors; each is also the builtin it is, and says what was got, what is expected, and whose it was."""

from typing import Any


class BaraError(Exception):
    """Everything bara raises on purpose."""


class InvalidMoneyError(BaraError, ValueError):
    """An amount that is not a whole number of micro-units, or out of range."""


class InvalidBidError(BaraError, ValueError):
    """A bid, or a column that comes with it, that breaks a rule; names the client."""


class InvalidOfferError(BaraError, ValueError):
    """An offer that is not a cap for every n."""


class InvalidRecordError(BaraError, ValueError):
    """A record whose parts contradict each other."""


class OverspentError(BaraError, ValueError):
    """A payment that would exceed what is left in the purse."""


class ConfigError(BaraError, ValueError):
    """A configuration that cannot be run; names the key and what it requires."""


class UnknownNameError(ConfigError, LookupError):
    """A name that is in no registry; suggests the nearest."""


class MissingExtraError(BaraError, ImportError):
    """Something that needs an extra which is not installed; names the extra."""


class DatasetError(BaraError, ValueError):
    """A dataset that is missing, damaged, or does not fit the federation."""


class UnfitDatasetError(DatasetError, ConfigError):
    """A configuration that asks of a dataset what it does not have: a path, so many samples, some for each client."""


class TrainingError(BaraError, ArithmeticError):
    """A round whose training failed as a whole (a loss that is not finite, say); nothing is paid for it."""


class LedgerError(BaraError, RuntimeError):
    """A ledger that cannot be read or written, or whose record is not whole; nothing half-done is left behind."""


class NoBooksError(LedgerError):
    """A place where a run's books are not, or not yet."""


class RunStoppedError(BaraError, RuntimeError):
    """A run that stopped between rounds with its books closed, and how to go on.

    Attributes:
        so_far: The result of the rounds that were played, or the comparison of the runs that ended.
    """

    so_far: Any = None


class InterruptionError(RunStoppedError):
    """Somebody pressed Ctrl-C, or a notebook's stop; what was begun was finished, and what is done is kept."""


class PausedError(RunStoppedError):
    """A run that stopped because an operator paused it, or must say yes or no first."""


class WaitingError(PausedError):
    """A run whose next award is promised and waits for an operator's yes or no."""
