"""Apps shaped like twelve of Flower's own examples come under a budget with few changed lines, and
train what they did.

The model is the same within 1e-5 of every number (of a tree ensemble: of every prediction) when the
money suffices for everybody and everybody is paid what it asks. (Bagged trees start from a base
score of the app's choice here: Flower takes the first reply's, and which that is differs from run
to run without bara, too.)
"""

import difflib
import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import xgboost
from flwr.app import Context, RecordDict

from bara.runs.folder import RunFolder

from .conftest import LocalGrid

torch.set_num_threads(1)  # several threads slow each other down on a busy machine

APPS = Path(__file__).parent / "apps_of_others"
TREES = "federation.same-shapes = false\n"
OWN_KEYS = {
    "quickstart_pytorch": "",
    "quickstart_sklearn": "",
    "advanced_pytorch": "",
    "xgboost_comprehensive": TREES,
    "quickstart_xgboost": TREES,
    "quickstart_numpy": "",
    "fl_tabular": "",
    "opacus_dp": "",
    "custom_mods": "",
    "federated_vae": "",
    "quickstart_jax": "",
    "pytorch_lightning": "",
}
"""What each app has to say of itself, beside what all of them say."""

CHANGED = {name: 12 + len(keys.splitlines()) for name, keys in OWN_KEYS.items()}
"""The lines of each app that change, at most fifteen."""

CLIENTS = 4
KEYS = """
[bara]
folder = "run"
budget.total = 100.0
allocator.name = "even"
mechanism.reserve = 1.0
"""


def under_a_budget(text, keys):
    """The app with what its author has to add, as the documentation shows it."""
    text = text.replace(
        "from flwr.app", "from bara.flower import answer_bids, fixed, start\nfrom flwr.app", 1
    )
    text = re.sub(
        r"(client = ClientApp\(.*\)\n)", r'\1answer_bids(client, fixed("1.00"))\n', text, count=1
    )
    text = re.sub(
        r"strategy\.start\(\n( *)(?=grid=)", r"start(\n\1strategy,\n\1context,\n\1", text, count=1
    )
    return re.sub(
        r'(CONFIG = """.*?)"""',
        lambda found: f'{found[1]}{KEYS}{keys}"""',
        text,
        count=1,
        flags=re.DOTALL,
    )


def load(path):
    """The app as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    app = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(app)
    return app


def run(path, **changes):
    """The app on four clients; returns it."""
    app = load(path)
    config = {**app.run_config, **changes}
    grid = LocalGrid(app.client, CLIENTS)
    for context in grid.contexts.values():
        context.run_config = config
    app.server(grid, Context(1, 0, {}, RecordDict(), config))
    return app


def numbers(folder, app):
    """What the model that the app has saved is made of, or predicts."""
    (path,) = folder.glob("final_model.*")
    if path.suffix == ".pt":
        return [array.numpy() for array in torch.load(path).values()]
    if path.suffix == ".json":
        model = xgboost.Booster(model_file=path)
        return [model.predict(app.load_data(77), output_margin=True), len(trees(path))]
    with np.load(path) as arrays:
        return list(arrays.values())


def paid_rounds(folder):
    """How many were paid how much, in each round of the run in that folder."""
    with RunFolder.find(folder) as run_folder:
        return {
            (len(one.payments), one.paid) for one in list(run_folder.open_books().history())[1:]
        }


def trees(path):
    return json.loads(path.read_bytes())["learner"]["gradient_booster"]["model"]["trees"]


FIRST, *OTHERS = OWN_KEYS


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(FIRST, marks=pytest.mark.path),
        *(pytest.param(other, marks=pytest.mark.full) for other in OTHERS),
    ],
)
def test_it_trains_the_same_model_with_and_without_a_budget(tmp_path, monkeypatch, name, logged):
    text = (APPS / f"{name}.py").read_text()
    changed = under_a_budget(text, OWN_KEYS[name])
    lines = [
        line for line in difflib.ndiff(text.splitlines(), changed.splitlines()) if line[0] in "+-"
    ]
    assert len(lines) == CHANGED[name] <= 15
    found = {}
    for folder, code in (("plain", text), ("paid", changed)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "app.py").write_text(code)
        monkeypatch.chdir(tmp_path / folder)
        found[folder] = numbers(tmp_path / folder, run(tmp_path / folder / "app.py"))
    for one, two in zip(found["plain"], found["paid"], strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-5)
    assert paid_rounds(tmp_path / "paid" / "run") == {
        (CLIENTS, CLIENTS * 1_000_000)
    }  # what they asked, and no more
    assert ("overrides start, which is not called" in logged.text) == (name == "advanced_pytorch")


def test_cyclic_training_pays_the_one_client_it_asks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "xgboost_comprehensive"
    (tmp_path / "app.py").write_text(
        under_a_budget((APPS / f"{name}.py").read_text(), OWN_KEYS[name])
    )
    run(tmp_path / "app.py", **{"train-method": "cyclic"})
    with RunFolder.find(tmp_path / "run") as run_folder:
        paid = [record.payments for record in run_folder.open_books().history()][1:]
    assert [len(one) for one in paid] == [1, 1, 1]
    assert len({client for one in paid for client in one}) == 3  # in turn
    assert len(trees(tmp_path / "final_model.json")) == 3
