"""Flower's simulation engine (ray) in a thread, so that the auction can drive it."""

import logging
import os
import queue
import threading
import time
from typing import Any, final

from flwr.app import Context
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation
from telemetry_off import quieten

from bara.errors import TrainingError

_LONGEST_START = 300.0
"""How many seconds ray and the nodes may take to start."""

_LONGEST_END = 60.0
"""How many seconds ray and the nodes may take to end."""


@final
class Simulation:
    """A number of virtual nodes that all run one app, from `start` to `close`.

    Args:
        app: The app of every node.
        nodes: The number of nodes; node i has partition i.
        workers: The number of processes that the nodes share; 0 for the number of cores.
    """

    def __init__(self, app: ClientApp, nodes: int, workers: int = 0) -> None:
        self._app = app
        self._nodes = nodes
        self._workers = workers or os.cpu_count() or 1
        self._grids: queue.Queue[Grid | BaseException] = queue.Queue()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> Grid:
        """Start ray and the nodes; return the grid once all nodes are connected."""
        self._thread = threading.Thread(target=self._run, name="flower-simulation", daemon=True)
        self._thread.start()
        end = time.monotonic() + _LONGEST_START
        grid = self._told(end)
        while grid is None or len(list(grid.get_node_ids())) < self._nodes:
            grid = self._told(end) or grid
        return grid

    def close(self) -> None:
        """End the nodes and ray."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_LONGEST_END)
            self._thread = None

    def _told(self, end: float) -> Grid | None:
        """Return the grid if the simulation's thread provides it soon; raise the thread's error."""
        if time.monotonic() > end:
            raise TrainingError(f"Flower's simulation did not start in {_LONGEST_START:g} seconds")
        try:
            found = self._grids.get(timeout=0.02)
        except queue.Empty:
            return None
        if isinstance(found, BaseException):
            raise TrainingError(f"Flower's simulation did not start: {found}") from found
        return found

    def _run(self) -> None:
        quieten()
        server = ServerApp()

        @server.main()
        def wait(grid: Grid, _context: Context) -> None:
            self._grids.put(grid)
            self._over.wait()

        resources: Any = {
            "client_resources": {"num_cpus": 1, "num_gpus": 0},
            "init_args": {
                "num_cpus": self._workers,
                "log_to_driver": False,
                "logging_level": logging.ERROR,
            },
        }
        try:
            run_simulation(server, self._app, self._nodes, backend_config=resources)
        except BaseException as error:  # noqa: BLE001 - `start` raises it
            self._grids.put(error)
