import subprocess
import sys

from refusals import refused

from bara.errors import LedgerError
from bara.ledger.locks import only_process

WITHOUT_LOCKS = """
import sys
sys.modules["fcntl"] = None
import bara, bara.allocators, bara.ledger, bara.market, bara.mechanisms, bara.records
print("the core is there")
try:
    import bara.ledger.locks
except bara.BaraError as error:
    print(type(error).__name__, error)
"""


def test_a_system_without_file_locks_has_the_core_and_is_told_what_runs_need():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LOCKS], capture_output=True, text=True, check=True
    )
    first, second = done.stdout.splitlines()
    assert first == "the core is there"
    assert second.startswith("LedgerError ")
    assert "Linux or macOS, or WSL" in second


def test_a_folder_that_cannot_hold_a_lock_is_named(tmp_path):
    with refused(LedgerError, tmp_path / "gone"), only_process(tmp_path / "gone"):
        pass
