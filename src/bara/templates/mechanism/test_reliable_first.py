"""The contract of every mechanism, and the properties that yours claims, tried on random rounds."""

from reliable_first import ReliableFirst

from bara.testing import MECHANISM_CHECKS, contract_test

test_contract = contract_test(MECHANISM_CHECKS, ReliableFirst)
