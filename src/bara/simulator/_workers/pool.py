"""The parent's side of the workers: hands out tasks, one at a time to whoever is free."""

import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol, Self, final

from bara.errors import TrainingError
from bara.simulator._workers.shared_memory import Arrays
from bara.simulator._workers.tasks import Setup, Task, TaskFailure, TaskResult
from bara.simulator._workers.trainer import Trainer, one_thread

SURROUNDINGS = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # glibc: keep what is freed. Giving pages back and faulting them in again costs convolutions a
    # tenth of their time
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
}
"""What a worker's environment says beside the parent's."""


class WorkerPool(Protocol):
    """The workers that do the tasks."""

    def run(self, tasks: Sequence[Task]) -> list[TaskResult]:
        """Every task's result, in the tasks' order."""

    def close(self) -> None:
        """Stop every worker; may be called twice."""


@final
class InProcess:
    """One worker: this process, on one thread."""

    def __init__(self, setup: Setup, arrays: Arrays) -> None:
        """Build the trainer here."""
        self._trainer = Trainer(setup, arrays)

    def run(self, tasks: Sequence[Task]) -> list[TaskResult]:
        """One after the other."""
        with one_thread():
            return [self._done(task) for task in tasks]

    def close(self) -> None:
        """No worker to stop."""

    def _done(self, task: Task) -> TaskResult:
        try:
            return self._trainer.do(task)
        except Exception as error:
            raise TrainingError(f"{task} failed: {error!r}") from error


@final
@dataclass(frozen=True)
class Worker:
    """One process and the line to it."""

    process: subprocess.Popen[bytes]
    line: Connection

    @classmethod
    def start(cls, memory: int) -> Self:
        """Start a process that imports what this one can import, and computes on one thread."""
        ours, theirs = Pipe()
        command = [
            sys.executable,
            "-P",
            "-m",
            "bara.simulator._workers.worker",
            str(theirs.fileno()),
            str(memory),
        ]
        with theirs:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                command,
                stdin=subprocess.PIPE,
                pass_fds=(theirs.fileno(), memory),
                env=_surroundings(),
            )
        return cls(process, ours)

    def stop(self) -> None:
        """Let go of the lifeline: the process ends itself at once; should it not, it is ended."""
        self.line.close()
        if self.process.stdin:
            with suppress(BrokenPipeError):
                self.process.stdin.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def fate(self) -> str:
        """How the process ended, for an error message."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        code = self.process.returncode
        how = (
            f"was ended by {signal.Signals(-code).name}"
            if code and code < 0
            else f"ended with code {code}"
        )
        return f"worker process {self.process.pid} {how}"


@final
class Processes:
    """Several workers, each a process of one thread that lives as long as the pool."""

    def __init__(self, setup: Setup, memory: int, count: int) -> None:
        """Start them side by side and wait until every trainer is built."""
        self._workers: list[Worker] = []
        self._end = weakref.finalize(self, _stop, self._workers)
        try:
            self._workers.extend(Worker.start(memory) for _ in range(count))
            for worker in self._workers:
                _say(worker, setup, "startup")
            for worker in self._workers:
                _hear(worker, "startup")
        except BaseException:
            self.close()
            raise

    def run(self, tasks: Sequence[Task]) -> list[TaskResult]:
        """Give each free worker the next task; when anything fails, all of them stop: half a round is no round."""
        if not self._end.alive:
            raise TrainingError("the engine is closed: its workers have stopped")
        try:
            return self._shared_out(tasks)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End every process."""
        self._end()

    def _shared_out(self, tasks: Sequence[Task]) -> list[TaskResult]:
        results: dict[int, TaskResult] = {}
        waiting = list(enumerate(tasks))[::-1]
        busy: dict[object, tuple[Worker, int]] = {}
        free = self._workers.copy()
        while waiting or busy:
            while free and waiting:
                worker, (number, task) = free.pop(), waiting.pop()
                _say(worker, task, str(task))
                busy[worker.line] = (worker, number)
            for line in wait([worker.line for worker, _ in busy.values()]):
                worker, number = busy.pop(line)
                results[number] = _hear(worker, str(tasks[number]))
                free.append(worker)
        return [results[number] for number in range(len(tasks))]


def _say(worker: Worker, message: Setup | Task, doing: str) -> None:
    try:
        worker.line.send(message)
    except (BrokenPipeError, ConnectionError) as error:
        raise TrainingError(f"{worker.fate()} before {doing}") from error


def _hear(worker: Worker, doing: str) -> Any:
    try:
        answer = worker.line.recv()
    except (EOFError, ConnectionError) as error:
        raise TrainingError(
            f"{worker.fate()} during {doing}; the round is lost, run it again"
        ) from error
    if isinstance(answer, TaskFailure):
        raise TrainingError(f"a worker failed during {doing}: {answer.reason}") from RuntimeError(
            answer.traceback
        )
    return answer


def _stop(workers: list[Worker]) -> None:
    for (
        worker
    ) in workers:  # all lifelines first, so that nobody is waited for while others still compute
        if worker.process.stdin:
            with suppress(BrokenPipeError):
                worker.process.stdin.close()
    for worker in workers:
        worker.stop()


def _surroundings() -> dict[str, str]:
    here = os.pathsep.join(path or os.getcwd() for path in sys.path)  # noqa: PTH109 - the text is wanted
    return {**os.environ, **SURROUNDINGS, "PYTHONPATH": here}
