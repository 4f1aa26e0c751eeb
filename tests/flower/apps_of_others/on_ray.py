"""Runs the apps in these folders, one after the other, in one session of Flower's simulation
engine.

python on_ray.py CLIENTS FOLDER ...
"""

import importlib.util
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from flwr.app import ConfigRecord, Context, RecordDict
from flwr.clientapp import ClientApp

from ray_simulation import Simulation


def load(path):
    """The app in that file, once a process."""
    if path not in sys.modules:
        spec = importlib.util.spec_from_file_location("app", path)
        sys.modules[path] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[path])
    return sys.modules[path]


class Running(ClientApp):
    """The client of the app whose path stands in a file."""

    def __init__(self, now):
        super().__init__()
        self.now = now

    def __call__(self, message, context):
        """As that app does."""
        path = self.now.read_text()
        app, whose = load(path), ConfigRecord({"app": path})
        if context.state.get("whose") != whose:  # what the app before has left to itself
            for name in list(context.state):
                del context.state[name]
            context.state["whose"] = whose
        own = Context(
            context.run_id, context.node_id, context.node_config, context.state, app.run_config
        )
        return app.client(message, own)


def main(clients, *folders):
    """One after the other, each in its folder."""
    now = Path(folders[0]).parent / "now"
    simulation = Simulation(Running(now), int(clients))
    grid = simulation.start()
    try:
        for folder in folders:
            os.chdir(folder)
            now.write_text(str(Path(folder) / "app.py"))
            app = load(now.read_text())
            app.server(grid, Context(1, 0, {}, RecordDict(), app.run_config))
    finally:
        simulation.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
