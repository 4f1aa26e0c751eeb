"""A deployment, for real: a SuperLink and authenticated SuperNodes over TLS, of which one is killed and one raises.

The app is the example's; its client is replaced by one that has mishaps where its node's configuration says so.
"""

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from bara.experiments.run_folder import RunFolder
from bara.flower.identity import client_of_key_file
from bara.ledger import verify
from bara.ledger.statements import statement

pytestmark = pytest.mark.xdist_group("flower")

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower-bara"

MISHAPS = """
import os, time
from pathlib import Path
_train = app._registered_funcs.pop("train.default")

@app.train()
def with_mishaps(message, context):
    number, mishap = message.content["config"]["server-round"], context.node_config.get("mishap", "")
    if mishap == "raise" and number == 2:
        raise RuntimeError("the disk is full")
    if mishap == "hang" and number == 2:
        Path(context.node_config["told"]).write_text(str(os.getpid()))
        time.sleep(600)
    return _train(message, context)
"""


@pytest.fixture
def deploy():
    """The example's script."""
    spec = importlib.util.spec_from_file_location("deploy", EXAMPLE / "deploy.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def deployment(deploy, tmp_path):
    app = tmp_path / "app"
    shutil.copytree(EXAMPLE, app, ignore=shutil.ignore_patterns("__pycache__", "runs"))
    client = app / "bara_digits" / "client_app.py"
    client.write_text(client.read_text() + MISHAPS)
    home = tmp_path / "home"
    home.mkdir()
    with deploy.Deployment(home, app) as deployment:
        yield deployment


def until(true, seconds, what):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, what()
        time.sleep(0.2)


def books_of(folder):
    with RunFolder.find(folder) as found:
        books = found.open_books()
        assert verify(books, None).ok
        return statement(books), list(books.history())


def processes_of(parent, name, deploy):
    """The ids of the processes of that name which this one has started."""
    found = []
    for process in deploy.descendants(parent.pid):
        with contextlib.suppress(OSError):
            if name.encode() in Path(f"/proc/{process}/cmdline").read_bytes():
                found.append(process)
    return found


def test_silos_are_killed_raise_and_are_refused_the_server_is_killed_and_the_books_add_up(deploy, deployment, tmp_path):
    told, run = tmp_path / "told", tmp_path / "run"
    deployment.start_superlink()
    for number, config in enumerate(({}, {"mishap": "raise"}, {"mishap": "hang", "told": str(told)})):
        deployment.make_key(f"silo-{number}")
        deployment.register(f"silo-{number}")
        deployment.start_supernode(number, 3, f"silo-{number}", **config)
    deployment.make_key("stranger")  # nobody registers its key
    stranger = deployment.start_supernode(3, 4, "stranger")
    words = f'bara.folder="{run}" bara.budget.total=60.0 bara.clients.count=3 num-server-rounds=3'
    words += " bara.federation.bid-seconds=300.0"  # a busy machine is no silent silo
    command = ["flwr", "run", str(deployment.app), "loopback", "--stream", "--run-config", words]

    first = deployment.begin("first", command)
    until(told.exists, 600, deployment.logs)  # round 2 is promised and one silo is in the middle of its training
    assert stranger.wait(120) != 0
    [server] = processes_of(deployment.superlink, "flwr-serverapp", deploy)
    os.kill(server, signal.SIGKILL)
    os.kill(int(told.read_text()), signal.SIGKILL)  # what it trains on belongs to a run that is over
    told.unlink()
    deploy.end(first)
    account, rounds = books_of(run)
    assert [record.n for record in rounds] == [0, 3]
    assert account.outstanding > 0

    again = deployment.begin("again", command)
    until(told.exists, 600, deployment.logs)  # the same round, the same winners
    deploy.end(deployment.nodes[2], signal.SIGKILL)
    assert again.wait(600) == 0, deployment.logs()
    assert account.outstanding == books_of(run)[1][2].awarded.award.cost  # what was promised before the kill
    account, rounds = books_of(run)
    assert [record.n for record in rounds] == [0, 3, 1, 1]  # both backed off in the last round
    reasons = sorted(rounds[2].delivery.void.values())
    assert reasons[0].startswith("its app raised an error")
    assert "the disk is full" in reasons[0]
    assert reasons[1].startswith(("its node is gone", "no answer within"))
    assert account.spent == sum(record.paid for record in rounds) == sum(client.paid for client in account.clients)
    assert account.outstanding == 0
    assert all(client.promised == client.paid + client.returned for client in account.clients)
    keys = {client_of_key_file(deployment.home / f"silo-{number}.pub") for number in range(3)}
    assert {client.client for client in account.clients} == keys  # whatever restarted
    assert rounds[-1].evaluation.accuracy > rounds[0].evaluation.accuracy + 0.3
    assert json.loads((run / "result.json").read_text())["rounds"] == 3
