import json
from dataclasses import replace

from refusals import refused

from bara.datasets import available, names, verify
from bara.errors import DatasetError


def test_a_whole_dataset_is_reported_so(fabricate, data_path, publish):
    arrays = fabricate.arrays((28, 28), train=41)
    publish("mnist", arrays)
    fabricate.idx(data_path / "mnist", arrays)
    report = verify("mnist", data_path)
    assert report.ok
    assert (report.format, report.path, report.version) == ("idx", data_path / "mnist", "version 0")
    assert report.train_counts == (5, 4, 4, 4, 4, 4, 4, 4, 4, 4)
    assert report.test_counts == (2,) * 10
    assert len(report.checks) == 4
    assert all(check.right for check in report.checks)


def test_a_wrong_part_is_reported_not_raised(fabricate, data_path, publish):
    arrays = fabricate.arrays((28, 28))
    publish("mnist", arrays)
    fabricate.npz(data_path, "mnist", replace(arrays, x_test=arrays.x_test[::-1]))
    report = verify("mnist", data_path)
    assert not report.ok
    assert report.version == ""
    assert [check.part for check in report.checks if not check.right] == ["x_test"]
    assert "x_test" in report.problems[0]


def test_an_unreadable_file_is_reported_not_raised(data_path):
    (data_path / "mnist.npz").write_bytes(b"rubbish")
    report = verify("mnist", data_path)
    assert not report.ok
    assert str(data_path / "mnist.npz") in report.problems[0]


def test_labels_out_of_range_are_reported(fabricate, data_path):
    arrays = fabricate.arrays((28, 28))
    fabricate.npz(data_path, "mnist", replace(arrays, y_test=arrays.y_test + 1))
    problems = verify("mnist", data_path).problems
    assert any("y_test[9]" in problem and "10" in problem for problem in problems)


def test_data_nobody_published_is_well_when_it_is_well_formed(fabricate, data_path):
    fabricate.npz(data_path, "mine", fabricate.arrays((5, 5), classes=3))
    report = verify("mine", data_path)
    assert report.ok
    assert report.version == ""
    assert sum(report.train_counts) == 40


def test_a_missing_dataset_is_an_error(data_path):
    with refused(DatasetError, "bara data fetch cifar10", data_path):
        verify("cifar10", data_path)


def test_the_embedded_digits_verify():
    report = verify("digits")
    assert report.ok
    assert sum(report.train_counts) == 1400


def test_every_name_is_listed_with_where_it_is_or_how_to_get_it(fabricate, data_path, cache):
    fabricate.npz(data_path, "mine", fabricate.arrays((5, 5)))
    fabricate.cifar_archive(cache, "cifar100", fabricate.arrays((32, 32, 3), 100, train=5, test=2))
    lines = {line.name: line for line in available(data_path)}
    assert list(lines) == [*names(), "mine"]
    assert lines["digits"].status == "embedded"
    assert (lines["mnist"].status, lines["mnist"].command) == ("missing", "bara data fetch mnist")
    assert (lines["cifar100"].status, lines["cifar100"].format) == ("found", "cifar archive")
    assert lines["mine"].path == data_path / "mine.npz"


def test_a_listing_does_not_mind_folders_that_are_not_there(tmp_path):
    assert [line.status for line in available(tmp_path / "nowhere")] == ["embedded"] + [
        "missing"
    ] * 5 + ["embedded"]


def test_report_and_listing_are_plain_json(fabricate, data_path):
    fabricate.npz(data_path, "mine", fabricate.arrays((5, 5)))
    report = json.loads(json.dumps(verify("mine", data_path).as_json()))
    assert report["ok"] is True
    assert report["checks"][0]["right"] is True
    assert (
        json.loads(json.dumps([line.as_json() for line in available(data_path)]))[1]["path"] is None
    )
