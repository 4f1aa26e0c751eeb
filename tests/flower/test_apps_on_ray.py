"""Eight of the same apps on Flower's own simulation engine."""

import subprocess
import sys

import numpy as np
import pytest

from .test_apps_of_others import APPS, CLIENTS, OWN_KEYS, load, numbers, paid_rounds, under_a_budget

pytestmark = [
    pytest.mark.full,
    pytest.mark.xdist_group("flower"),  # ray and Flower's processes share the machine badly
]


ON_RAY = [*list(OWN_KEYS)[:2], "custom_mods", "federated_vae"]


def made(folder, text):
    folder.mkdir()
    (folder / "app.py").write_text(text)
    return folder


def test_on_ray_they_train_the_same_model_with_and_without_a_budget(tmp_path):
    folders = {}
    for name in ON_RAY:
        keys = OWN_KEYS[name]
        text = (APPS / f"{name}.py").read_text()
        changed = under_a_budget(text, keys)
        folders[name] = (
            made(tmp_path / f"{name}-plain", text),
            made(tmp_path / f"{name}-paid", changed),
        )
    words = [
        sys.executable,
        APPS / "on_ray.py",
        str(CLIENTS),
        *(one for both in folders.values() for one in both),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    for name, both in folders.items():
        plain, paid = (numbers(folder, load(folder / "app.py")) for folder in both)
        for one, two in zip(plain, paid, strict=True):
            np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-5, err_msg=name)
        assert paid_rounds(both[1] / "run") == {(CLIENTS, CLIENTS * 1_000_000)}
