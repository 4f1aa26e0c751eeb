"""Each metric is a fraction that rises, as scikit-learn has it, and says its name."""

import numpy as np
import pytest
from refusals import refused
from sklearn import metrics as reference

from bara.errors import ConfigError, TrainingError, UnknownNameError
from bara.server.metrics import METRICS, check_name, check_task, find_measure, metric_title

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, 300)
LOGITS = (LABELS + RNG.normal(0, 1, 300) - 0.3).astype(np.float32)[:, None]


def test_two_labels_by_one_score():
    assert find_measure("auc")(LOGITS, LABELS) == pytest.approx(
        reference.roc_auc_score(LABELS, LOGITS[:, 0])
    )
    found = find_measure("balanced-accuracy")(LOGITS, LABELS)
    assert found == pytest.approx(reference.balanced_accuracy_score(LABELS, LOGITS[:, 0] > 0))


def test_several_labels():
    labels = RNG.integers(0, 3, 300)
    scores = (np.eye(3)[labels] + RNG.normal(0, 1, (300, 3))).astype(np.float32)
    want = np.mean([reference.roc_auc_score(labels == k, scores[:, k]) for k in range(3)])
    assert find_measure("auc")(scores, labels) == pytest.approx(want)
    found = find_measure("balanced-accuracy")(scores, labels)
    assert found == pytest.approx(reference.balanced_accuracy_score(labels, scores.argmax(axis=1)))


def test_numbers_are_cut_at_zero_and_turned_round():
    targets = RNG.normal(size=300)
    good, bad = (targets + 0.1)[:, None].astype(np.float32), (-targets)[:, None].astype(np.float32)
    assert find_measure("r2")(good, targets) == pytest.approx(
        reference.r2_score(targets, good[:, 0])
    )
    assert find_measure("rmse")(good, targets) == pytest.approx(1 - 0.1 / targets.std(), abs=1e-4)
    assert (find_measure("r2")(bad, targets), find_measure("rmse")(bad, targets)) == (0.0, 0.0)


def test_every_metric_says_its_name():
    assert [metric_title(name) for name in METRICS] == [
        *("accuracy", "balanced accuracy", "AUC", "R2", "1 - RMSE/SD")
    ]
    assert metric_title("my_package.scores:weighted_f1") == "weighted f1"


def test_what_does_not_fit_is_refused(tmp_path, monkeypatch):
    with refused(UnknownNameError, "metric", "'aucc'", "'auc'"):
        check_name("aucc")
    with refused(ConfigError, "training.metric", "'accuracy'", "number", "r2", "rmse"):
        check_task("accuracy", "regression")
    with refused(ConfigError, "training.metric", "'r2'", "label", "balanced-accuracy", "auc"):
        check_task("r2", "binary")
    with refused(TrainingError, "AUC", "held-out"):
        find_measure("auc")(LOGITS, np.ones(300))
    (tmp_path / "own_metric.py").write_text(
        "def rmse(scores, y): return 3.0\ndef half(scores, y): return 0.5\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert find_measure("own_metric:half")(LOGITS, LABELS) == 0.5
    with refused(TrainingError, "training.metric", "'own_metric:rmse'", "3.0", "[0, 1]"):
        find_measure("own_metric:rmse")(LOGITS, LABELS)
