"""A worker process: `python -m bara.simulator._workers.worker CONNECTION MEMORY`, started by `pool` alone.

It answers one message with one message until its parent is gone. Its standard input is its
lifeline: the parent never writes there, and when the parent ends, in whatever way, the worker reads
the end of the file and is gone too, also from the middle of a long task.
"""

import os
import signal
import sys
import threading
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection

import torch

from bara.plugins import explain
from bara.simulator._workers.tasks import Setup, Task, TaskFailure, TaskResult
from bara.simulator._workers.trainer import Trainer


def serve(connection: Connection, memory: int) -> None:
    """Build the trainer from the first message, then do tasks for as long as there are any."""
    try:
        trainer = _trainer(connection.recv(), memory)
    except Exception as error:  # noqa: BLE001 - whatever a user's module raises is the parent's to report
        connection.send(TaskFailure(explain(error), traceback.format_exc()))
        return
    connection.send(None)  # the trainer stands
    while True:
        connection.send(_attempt(trainer, connection.recv()))


def _trainer(setup: Setup, memory: int) -> Trainer:
    arrays = setup.memory.attach(memory)
    os.close(memory)
    return Trainer(setup, arrays)


def _attempt(trainer: Trainer, task: Task) -> TaskResult | TaskFailure:
    try:
        return trainer.do(task)
    except Exception as error:  # noqa: BLE001 - as above
        return TaskFailure(explain(error), traceback.format_exc())


def _end_with_the_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is the parent's: it ends us by letting go of the lifeline
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    torch.set_num_threads(1)
    with suppress(EOFError, ConnectionError):  # the parent has let go
        serve(Connection(int(sys.argv[1])), int(sys.argv[2]))
    os._exit(
        0
    )  # nothing here has to be put away, and the reader of the lifeline would hold up a slow exit
