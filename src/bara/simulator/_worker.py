"""The program of a worker process, which only `_pool` starts.

A worker answers each message of its parent with one message. Its standard input is its lifeline:
the parent never writes there, and when the parent ends, in whatever way, the worker reads the end
of the file and exits, even in the middle of a long task.

Usage: `python -m bara.simulator._worker CONNECTION MEMORY`, both as file descriptors.
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
from bara.simulator._trainer import Setup, Task, TaskFailure, TaskResult, Trainer


def work(connection: Connection, memory: int) -> None:
    """Build the trainer from the first message, then do one task for each further message."""
    try:
        trainer = _trainer(connection.recv(), memory)
    except Exception as error:  # noqa: BLE001 - the parent reports any error of a user's module
        connection.send(TaskFailure(explain(error), traceback.format_exc()))
        return
    connection.send(None)  # the trainer is ready
    while True:
        connection.send(_attempt(trainer, connection.recv()))


def _trainer(setup: Setup, memory: int) -> Trainer:
    arrays = setup.memory.attach(memory)
    os.close(memory)
    return Trainer(setup, arrays)


def _attempt(trainer: Trainer, task: Task) -> TaskResult | TaskFailure:
    try:
        return trainer.do(task)
    except Exception as error:  # noqa: BLE001 - the parent reports any error of a user's module
        return TaskFailure(explain(error), traceback.format_exc())


def _end_with_the_parent() -> None:
    """Wait for the end of the lifeline, then exit."""
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    # Ctrl-C is for the parent, which ends its workers by closing their lifelines.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    torch.set_num_threads(1)
    with suppress(EOFError, ConnectionError):  # the parent has closed the connection
        work(Connection(int(sys.argv[1])), int(sys.argv[2]))
    # There is nothing to clean up, and an ordinary exit would wait for the lifeline's thread.
    os._exit(0)
