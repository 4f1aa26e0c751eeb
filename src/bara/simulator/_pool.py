"""The pool of workers: the parent's side, which gives each free worker the next task.

Joblib's pool does not do instead: a round of 20 empty tasks on 2 workers takes 10 ms there (it
polls) and 0.7 ms here, and its workers outlive a parent that is killed.
"""

import os
import signal
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol, Self, final

from bara.errors import TrainingError
from bara.simulator._shared_memory import Arrays
from bara.simulator._trainer import Setup, Task, TaskFailure, TaskResult, Trainer, one_thread

SURROUNDINGS = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # These let glibc hold on to freed memory: returning pages and faulting them in again costs
    # convolutions a tenth of their time.
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
}
"""The environment variables that a worker has in addition to the parent's."""


class WorkerPool(Protocol):
    """A pool of workers that do tasks."""

    def run(self, tasks: Sequence[Task]) -> list[TaskResult]:
        """Do the tasks and return their results in the same order."""

    def close(self) -> None:
        """Stop every worker; may be called twice."""


@final
class InProcess:
    """A pool without worker processes: tasks run in this process, on one thread."""

    def __init__(self, setup: Setup, arrays: Arrays) -> None:
        """Build the trainer in this process."""
        self._trainer = Trainer(setup, arrays)

    def run(self, tasks: Sequence[Task]) -> list[TaskResult]:
        """Do the tasks one after the other."""
        with one_thread():
            return list(map(self._done, tasks))

    def close(self) -> None:
        """Do nothing: there is no worker to stop."""

    def _done(self, task: Task) -> TaskResult:
        try:
            return self._trainer.do(task)
        except Exception as error:
            raise TrainingError(f"{task} failed: {error!r}") from error


@final
@dataclass(frozen=True)
class Worker:
    """A worker process and the connection to it."""

    process: subprocess.Popen[bytes]
    line: Connection

    @classmethod
    def start(cls, memory: int) -> Self:
        """Start a process with this process's import path, which computes on one thread."""
        ours, theirs = Pipe()
        command = [
            sys.executable,
            "-P",
            "-m",
            "bara.simulator._worker",
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

    def release(self) -> None:
        """Close the lifeline, whereupon the process ends itself at once."""
        if self.process.stdin:
            self.process.stdin.close()

    def stop(self) -> None:
        """Wait until the released process has ended; kill it after five seconds."""
        self.line.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def fate(self) -> str:
        """Say how the process ended, for an error message."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        code = self.process.returncode
        how = f"ended with code {code}"
        if code and code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
        return f"worker process {self.process.pid} {how}"


@final
class Processes:
    """A pool of worker processes, each with one thread, that live as long as the pool."""

    def __init__(self, setup: Setup, memory: int, count: int) -> None:
        """Start the workers side by side and wait until every trainer is built.

        Args:
            setup: The plan from which each worker builds its trainer.
            memory: The file descriptor of the shared memory.
            count: The number of workers.
        """
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
        """Do the tasks; if one fails, stop all workers, because half a round is of no use."""
        if not self._end.alive:
            raise TrainingError("the engine is closed: its workers have stopped")
        try:
            return self._distribute(tasks)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop every worker."""
        self._end()

    def _distribute(self, tasks: Sequence[Task]) -> list[TaskResult]:
        """Give each free worker the next task until every result has arrived."""
        results: dict[int, TaskResult] = {}
        waiting = deque(enumerate(tasks))
        busy: dict[object, tuple[Worker, int]] = {}
        free = self._workers.copy()
        while waiting or busy:
            while free and waiting:
                worker = free.pop()
                number, task = waiting.popleft()
                _say(worker, task, str(task))
                busy[worker.line] = (worker, number)
            for line in wait([worker.line for worker, _ in busy.values()]):
                worker, number = busy.pop(line)
                results[number] = _hear(worker, str(tasks[number]))
                free.append(worker)
        return [results[number] for number in range(len(tasks))]


def _say(worker: Worker, message: Setup | Task, doing: str) -> None:
    """Send a message to a worker; `doing` names the task for an error message."""
    try:
        worker.line.send(message)
    except (BrokenPipeError, ConnectionError) as error:
        raise TrainingError(f"{worker.fate()} before {doing}") from error


def _hear(worker: Worker, doing: str) -> Any:
    """Receive a worker's answer; raise an error if the worker or the task failed."""
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
    """Stop the workers; all are released first, so that they end side by side."""
    for worker in workers:
        worker.release()
    for worker in workers:
        worker.stop()


def _surroundings() -> dict[str, str]:
    """Return a worker's environment, with this process's own import path."""
    paths = [path or str(Path.cwd()) for path in sys.path]
    return {**os.environ, **SURROUNDINGS, "PYTHONPATH": os.pathsep.join(paths)}
