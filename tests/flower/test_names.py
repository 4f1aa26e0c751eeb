"""What clients are called wherever a person looks: by the operator's file of keys, by themselves,
else by their key.
"""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from refusals import refused
from typer.testing import CliRunner

from bara.cli import app as program
from bara.errors import ConfigError
from bara.flower.identity import key_fingerprint, read_names
from bara.runs.folder import RunFolder

from .conftest import LocalGrid, amid, silent, walking_app
from .test_app import account, begin


def keyed(nodes=5, **names):
    """A grid whose nodes have real keys; those named say so in their configuration."""
    grid = LocalGrid(walking_app(), nodes)
    made = [ec.generate_private_key(ec.SECP384R1()).public_key() for _ in range(nodes)]
    for (node, context), key in zip(grid.contexts.items(), made, strict=True):
        grid.keys[node] = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        if (name := names.get(f"n{context.node_config['partition-id']}")) is not None:
            context.node_config["name"] = name
    lines = [key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode() for key in made]
    return grid, lines, [key_fingerprint(key) for key in grid.keys.values()]


def winners(folder):
    return {client for paid in account(folder)[1] for client in paid}


def test_books_ledger_and_report_show_the_names_that_nodes_give_themselves(tmp_path):
    grid, _, prints = keyed(n0="silo-north", n1="silo south@host", n2="../")
    begin(tmp_path / "run", grid=grid)
    named = [f"silo-north-{prints[0]}", f"silo-south-host-{prints[1]}", f"key-{prints[2]}"]
    assert winners(tmp_path / "run") == set(named)
    told = (
        CliRunner(env={"COLUMNS": "200"}).invoke(program, ["ledger", str(tmp_path / "run")]).output
    )
    assert all(name in told for name in named)
    assert named[0] in (tmp_path / "run" / "report.html").read_text()


def test_the_operators_file_of_keys_comes_first_and_nobody_takes_anothers_name(tmp_path, logged):
    grid, lines, prints = keyed(n0="mine", n1="silo-north")
    (tmp_path / "silos.pub").write_text(f"# our silos\n\n{lines[0]} silo-north\n")
    grid.mishaps["query", 4] = silent
    keys = {"bara.names": str(tmp_path / "silos.pub"), "bara.federation.bid-seconds": 0.2}
    begin(tmp_path / "run", grid=grid, **keys)
    assert winners(tmp_path / "run") == {
        f"silo-north-{prints[0]}",
        f"silo-north-{prints[1]}",
        f"key-{prints[2]}",
    }
    assert f"round 1: key-{prints[4]} is not in the menu: no answer within" in logged.text


@pytest.mark.parametrize("died", [1, 2])
def test_a_name_that_stands_in_the_books_stays_whatever_a_node_calls_itself_later(tmp_path, died):
    grid, _, prints = keyed(n0="old")
    with amid(died, "awarded"), pytest.raises(KeyboardInterrupt):
        begin(tmp_path / "run", grid=grid)
    grid.contexts[100].node_config["name"] = "new"
    begin(tmp_path / "run", grid=grid)
    assert winners(tmp_path / "run") == {f"old-{prints[0]}", f"key-{prints[1]}", f"key-{prints[2]}"}
    assert all(len(paid) == 3 for paid in account(tmp_path / "run")[1][1:])


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        (None, ("public keys", "No such file")),
        ("ssh-ed25519 nonsense silo", ("public keys",)),
        ("{key}", ("no name", "ecdsa-sha2")),
    ],
    ids=["absent", "broken", "nameless"],
)
def test_a_file_of_names_that_cannot_be_read_is_refused_before_anybody_is_asked(
    tmp_path, content, facts
):
    grid, lines, _ = keyed(2)
    if content is not None:
        (tmp_path / "silos.pub").write_text(content.format(key=lines[0]))
    with refused(ConfigError, "bara.names", tmp_path / "silos.pub", *facts):
        begin(tmp_path / "run", grid=grid, **{"bara.names": str(tmp_path / "silos.pub")})
    assert not grid.pushed
    assert not (tmp_path / "run").exists()


def test_a_simulated_client_is_logged_by_its_name_once_it_has_bid(federate, grid, logged):
    federation = federate()
    grid.mishaps["query", 1] = silent
    federation.bids(1)
    grid.mishaps["query", 2] = silent
    federation.bids(2)
    assert "round 1: node 101 is not in the menu" in logged.text  # nobody knows its name yet
    assert "round 2: client-2 is not in the menu" in logged.text


def test_names_are_read_from_the_comments_of_public_keys(tmp_path):
    _, lines, prints = keyed(2)
    (tmp_path / "silos.pub").write_text(f"{lines[0]} ann@north\n{lines[1]} south\n")
    assert read_names(tmp_path / "silos.pub") == {prints[0]: "ann-north", prints[1]: "south"}


def test_the_evidence_of_a_delivery_says_how_long_it_took_and_what_was_sent(tmp_path, clock):
    class SlowGrid(LocalGrid):
        def pull_messages(self, message_ids):
            clock.sleep(2.5)
            return super().pull_messages(message_ids)

    begin(tmp_path / "run", grid=SlowGrid(walking_app(), 5))
    with RunFolder.find(tmp_path / "run") as found:
        delivered = [record.delivery.delivered for record in found.open_books().history()][1:]
    evidence = [one for round_ in delivered for one in round_.values()]
    assert len(evidence) == 9
    assert all(one.seconds == pytest.approx(2.5, abs=0.01) for one in evidence)
    assert all(one.bytes_received > 0 for one in evidence)
    assert all(
        one.bytes_sent > 2 * 3 * 4 + 2 * 8 for one in evidence
    )  # the model's numbers, and what names them
    told = CliRunner().invoke(program, ["ledger", str(tmp_path / "run"), "export"]).output
    assert "bytes_sent" in told
