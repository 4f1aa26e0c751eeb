"""How the benchmark's driver and its contestants take turns: a line in, a round, its seconds out.

A contestant of two processes starts its own partner, which takes turns with it in the same way.
"""

import os
import subprocess
import sys
import time


class Gate:
    """Waits for the driver, starts the partner, stops the clock."""

    def __init__(self, *, partner: bool = False, environment: dict[str, str] | None = None) -> None:
        """With a partner, run this same command again with BARA_BENCH_RANK=1."""
        self._out = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)  # whatever a library prints must not look like an answer
        self._partner = self._hire(environment or {}) if partner and rank() == 0 else None
        self._began = 0.0

    def _hire(self, environment):
        return subprocess.Popen(
            [sys.executable, *sys.argv],
            env={**os.environ, **environment, "BARA_BENCH_RANK": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def ready(self):
        """Say that everything is set up, the partner too."""
        if self._partner:
            self._partner.stdout.readline()
        self._out.write("ready\n")

    def wait(self):
        """Until it is our turn; start the clock."""
        if not sys.stdin.readline():
            os._exit(0)
        if self._partner:
            self._partner.stdin.write("go\n")
        self._began = time.perf_counter()

    def done(self):
        """Say how long it took, once the partner has done too."""
        if self._partner:
            self._partner.stdout.readline()
        self._out.write(f"{time.perf_counter() - self._began}\n")

    def serve(self, play):
        """Play once unmeasured, then whenever told."""
        play()
        self.ready()
        while True:
            self.wait()
            play()
            self.done()


def rank():
    return int(os.environ.get("BARA_BENCH_RANK", "0"))
