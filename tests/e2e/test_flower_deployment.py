"""A deployment, for real: a SuperLink and authenticated SuperNodes over TLS.

Whoever can be killed is.

The app is the example's; its client has mishaps where its node's configuration says so, and its
server is private and has moments, of which it keeps a diary.
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

from bara.flower.identity import client_of_key_file
from bara.ledger import verify
from bara.ledger.statements import statement
from bara.runs.folder import RunFolder

pytestmark = pytest.mark.xdist_group("flower")

EXAMPLE = Path(__file__).parents[2] / "src" / "bara" / "templates" / "flower-app"

PATIENCE = 1800
"""Seconds for anything that must happen; on a busy machine a message takes a minute."""

MISHAPS = """
import os, time
from pathlib import Path

class Silo(ClientApp):
    def __call__(self, message, context):
        reply = super().__call__(message, context)
        if context.node_config.get("mishap") == "lie":
            lie(message, reply)
        return reply

def lie(message, reply):
    nan = float("nan")
    if message.metadata.message_type == "train":
        reply.content["metrics"] = MetricRecord({"num-examples": 1e300, "train-loss": nan})
    elif message.content["bara-round"]["round"] == 1:
        reply.content["bara-bid"].update({"price": 10**18, "column-samples": nan})
    else:
        reply.content["bara-bid"]["price"] = 1  # a millionth, to be sure to win

app = Silo()
answer_bids(app, price)

@app.train()
def with_mishaps(message, context):
    number = message.content["config"]["server-round"]
    mishap = context.node_config.get("mishap", "")
    if mishap == "raise" and number == 2:
        raise RuntimeError("the disk is full")
    if mishap == "hang" and number == 2:
        Path(context.node_config["told"]).write_text(str(os.getpid()))
        time.sleep(600)
    reply = train(message, context)
    reply.content["metrics"]["num-examples"] = 1  # an accountant wants equal weights
    return reply
"""

PRIVATE = """
import json
import numpy as np
from flwr.serverapp import NeighboringRelation, PrivacyConfig, RdpAccountant, SamplingMethod
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAdam

class Diarist(FedAdam):
    def aggregate_train(self, server_round, replies):
        before = self.moments()
        result = super().aggregate_train(server_round, replies)
        with open("DIARY", "a") as diary:
            entry = {"round": server_round, "before": before, "after": self.moments()}
            diary.write(json.dumps(entry) + "\\n")
        return result

    def moments(self):
        return {name: float(np.abs(one).sum()) for name, one in (self.m_t or {}).items()}

class Private(DifferentialPrivacyServerSideFixedClipping):
    def aggregate_train(self, server_round, replies):
        result = super().aggregate_train(server_round, replies)
        spent = self.privacy_spent()
        with open("DIARY", "a") as diary:
            diary.write(json.dumps({"round": server_round, "releases": spent.num_releases}) + "\\n")
        return result

def private():
    promise = PrivacyConfig(
        1e-5, 4, NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.NO_AMPLIFICATION
    )
    inner = Diarist(fraction_evaluate=0.0, eta=0.02)
    wrapped = Private(inner, 0.02, 5.0, 4)
    # Flower's constructor has accounts for a plain mean only.
    wrapped.accountant = RdpAccountant(promise)
    return wrapped
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
    server = app / "bara_digits" / "server_app.py"
    text = server.read_text().replace("FedAvg(fraction_evaluate=0.0)", "private()")
    server.write_text(text + PRIVATE.replace("DIARY", str(tmp_path / "diary")))
    home = tmp_path / "home"
    home.mkdir()
    with deploy.Deployment(home, app) as deployment:
        yield deployment


def start_silos(deployment, told):
    """Four silos, each with its mishap; returns what the books call them."""
    called = []
    for number, mishap in enumerate(("none", "raise", "hang", "lie")):
        name = f"silo-{number}"
        deployment.make_key(name)
        deployment.register(name)
        deployment.start_supernode(number, 4, name, mishap=mishap, told=str(told))
        key = client_of_key_file(deployment.home / f"{name}.pub").removeprefix("key")
        called.append(f"{name}{key}")
    return called


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


def check_diary(diary):
    """Each round's moments begin where those of the round before ended,
    and every release is accounted for once.
    """
    moments, releases = (
        [line for line in diary if "before" in line],
        [line for line in diary if "releases" in line],
    )
    assert (
        [line["round"] for line in moments] == [line["releases"] for line in releases] == [1, 2, 3]
    )
    assert moments[0]["before"] == {}
    assert (
        [line["before"] for line in moments[1:]]
        == [line["after"] for line in moments[:-1]]
        != [{}, {}]
    )


def kill_superlink(deployment, deploy):
    """Kill it alone, and start it again.

    Returns when the ServerApp that it had started has given up.
    """
    started = processes_of(deployment.superlink, "flwr-serverapp", deploy)
    os.kill(deployment.superlink.pid, signal.SIGKILL)
    deployment.superlink.wait()
    deployment.start_superlink()  # it knows its silos by its database, and they come back to it
    until(lambda: not any(map(alive, started)), PATIENCE, deployment.logs)


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def test_superlink_server_and_a_silo_are_killed_a_silo_lies_a_stranger_is_refused_the_books_add_up(
    deploy, deployment, tmp_path
):
    told, run = tmp_path / "told", tmp_path / "run"
    deployment.start_superlink()
    honest, raised, killed, liar = start_silos(deployment, told)
    deployment.make_key("stranger")  # nobody registers its key
    stranger = deployment.start_supernode(4, 5, "stranger")
    words = f'bara.folder="{run}" bara.budget.total=60.0 bara.clients.count=4 num-server-rounds=3'
    words += ' bara.training.memory="off"'  # noise is for the clients of one round
    words += " bara.federation.bid-seconds=900.0"  # a busy machine is no silent silo
    command = ["flwr", "run", str(deployment.app), "loopback", "--stream", "--run-config", words]

    def into_round_two(name):
        """Until round 2 is promised and one silo is in the middle of its training.

        What it trains is then in vain.
        """
        session = deployment.begin(name, command)
        until(lambda: told.exists() or session.poll() is not None, PATIENCE, deployment.logs)
        assert told.exists(), deployment.logs()
        return session

    def end_training():
        os.kill(
            int(told.read_text()), signal.SIGKILL
        )  # what it trains on belongs to a run that is over
        told.unlink()

    first = into_round_two("first")
    assert stranger.wait(PATIENCE) != 0
    kill_superlink(deployment, deploy)
    assert first.wait(PATIENCE) != 0
    end_training()

    second = into_round_two("second")  # the same round, the same winners
    [server] = processes_of(deployment.superlink, "flwr-serverapp", deploy)
    os.kill(server, signal.SIGKILL)
    end_training()
    deploy.end(second)
    account, rounds = books_of(run)
    assert [record.n for record in rounds] == [0, 3]
    assert account.outstanding > 0

    again = into_round_two("again")
    deploy.end(deployment.nodes[2], signal.SIGKILL)
    assert again.wait(PATIENCE) == 0, deployment.logs()
    assert (
        account.outstanding == books_of(run)[1][2].awarded.award.cost
    )  # what was promised before the kill
    account, rounds = books_of(run)
    assert [record.n for record in rounds] == [0, 3, 1, 1]  # three backed off in the last round
    assert list(rounds[1].awarded.left_out.reasons) == [liar]
    reasons = rounds[2].delivery.void
    assert reasons[raised].startswith("its app raised an error")
    assert "the disk is full" in reasons[raised]
    assert reasons[killed].startswith(("its node is gone", "no answer within"))
    assert "num-examples" in reasons[liar]
    assert (
        account.spent
        == sum(record.paid for record in rounds)
        == sum(client.paid for client in account.clients)
    )
    assert account.outstanding == 0
    assert all(client.promised == client.paid + client.returned for client in account.clients)
    paid = {client.client: client.paid for client in account.clients}
    assert set(paid) == {honest, raised, killed, liar}  # whatever restarted
    assert paid[liar] == 0
    assert json.loads((run / "result.json").read_text())["rounds"] == 3
    check_diary([json.loads(line) for line in (tmp_path / "diary").read_text().splitlines()])
