"""Tiny datasets in every format people have, and a machine on which no real one can be found."""

import gzip
import hashlib
import io
import pickle
import struct
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from bara.datasets._catalogue import CATALOGUE

STEMS = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
"""MNIST's files, as published."""


@dataclass(frozen=True)
class Arrays:
    x_train: Any
    y_train: Any
    x_test: Any
    y_test: Any


class Layout(NamedTuple):
    """The archive of a CIFAR dataset, as published."""

    archive: str
    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    labels: bytes


LAYOUTS = {
    "cifar10": Layout(
        "cifar-10-python.tar.gz",
        "cifar-10-batches-py",
        ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"),
        ("test_batch",),
        b"labels",
    ),
    "cifar100": Layout(
        "cifar-100-python.tar.gz", "cifar-100-python", ("train",), ("test",), b"fine_labels"
    ),
}


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """A cache of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_: folder)
    return folder


def arrays_of(shape, classes=10, train=40, test=20, seed=0):
    rng = np.random.default_rng(seed)
    return Arrays(
        rng.integers(0, 256, (train, *shape), np.uint8),
        (np.arange(train) % classes).astype(np.uint8),
        rng.integers(0, 256, (test, *shape), np.uint8),
        (np.arange(test) % classes).astype(np.uint8),
    )


def as_written(read, arrays):
    """Whether a dataset holds these arrays."""
    return all(np.array_equal(getattr(read, part), array) for part, array in vars(arrays).items())


def python2_pickle(batch):
    """A batch exactly as Python 2 wrote the published ones.

    Protocol 2, byte strings, numpy 1 names.
    """
    out = bytearray(b"\x80\x02}(")
    for key, value in batch.items():
        out += b"U" + bytes([len(key)]) + key
        if isinstance(value, np.ndarray):
            out += (
                b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01"
            )
            out += b"".join(b"M" + struct.pack("<H", side) for side in value.shape) + b"\x86"
            out += b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNN"
            out += b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
            out += b"\x89T" + struct.pack("<i", value.nbytes) + value.tobytes() + b"tb"
        elif isinstance(value, list):
            out += b"](" + b"".join(b"K" + bytes([item]) for item in value) + b"e"
        else:
            out += b"U" + bytes([len(value)]) + value
    return bytes(out + b"u.")


class Fabricate:
    """Writes arrays to disk in one format after the other."""

    arrays = staticmethod(arrays_of)
    as_written = staticmethod(as_written)
    python2_pickle = staticmethod(python2_pickle)

    @staticmethod
    def npz(folder, name, arrays, **replaced):
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(folder / f"{name}.npz", **{**vars(arrays), **replaced})
        return folder / f"{name}.npz"

    @staticmethod
    def idx(folder, arrays, *, zipped=True, dotted=False):
        folder.mkdir(parents=True, exist_ok=True)
        for part, stem in STEMS.items():
            array = getattr(arrays, part)
            shape = b"".join(side.to_bytes(4, "big") for side in array.shape)
            raw = b"\x00\x00\x08" + bytes([array.ndim]) + shape + array.tobytes()
            file = stem.replace("-idx", ".idx") if dotted else stem
            (folder / (f"{file}.gz" if zipped else file)).write_bytes(
                gzip.compress(raw) if zipped else raw
            )
        return folder

    @staticmethod
    def cifar_batches(name, arrays):
        layout = LAYOUTS[name]
        images = (np.array_split(arrays.x_train, len(layout.train)), [arrays.x_test])
        labels = (np.array_split(arrays.y_train, len(layout.train)), [arrays.y_test])
        batches = {}
        for files, xs, ys in zip((layout.train, layout.test), images, labels, strict=True):
            for file, x, y in zip(files, xs, ys, strict=True):
                rows = np.ascontiguousarray(x.transpose(0, 3, 1, 2)).reshape(len(x), 3072)
                content = {b"batch_label": b"a batch", layout.labels: y.tolist(), b"data": rows}
                batches[file] = python2_pickle(content)
        return batches

    @classmethod
    def cifar_folder(cls, folder, name, arrays):
        target = folder / LAYOUTS[name].folder
        target.mkdir(parents=True)
        for file, raw in cls.cifar_batches(name, arrays).items():
            (target / file).write_bytes(raw)
        return target

    @classmethod
    def cifar_archive(cls, folder, name, arrays):
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(folder / LAYOUTS[name].archive, "w:gz") as archive:
            for file, raw in cls.cifar_batches(name, arrays).items():
                member = tarfile.TarInfo(f"{LAYOUTS[name].folder}/{file}")
                member.size = len(raw)
                archive.addfile(member, io.BytesIO(raw))
        return folder / LAYOUTS[name].archive

    @staticmethod
    def pickle3(batch):
        return pickle.dumps(batch, protocol=2)


@pytest.fixture(scope="session")
def fabricate():
    return Fabricate


def digests(parts):
    return {part: hashlib.sha256(content).hexdigest() for part, content in parts.items()}


@pytest.fixture
def publish(monkeypatch):
    """Makes the given versions the published content of a dataset of the catalogue.

    A version is arrays, or the content of a table's files; the files are what can be fetched.
    """

    def make(name, *versions, files=None):
        known = CATALOGUE[name]
        version, remote = known.versions[0], known.remotes[0]
        accepted = tuple(
            replace(version, name=f"version {k}", sha256=digests(parts))
            for k, parts in enumerate(
                vars(one) if isinstance(one, Arrays) else one for one in versions
            )
        )
        remotes = known.remotes
        if files is not None:
            remotes = tuple(
                replace(remote, file=file, size=len(files[file]), sha256=digest)
                for file, digest in digests(files).items()
            )
        monkeypatch.setitem(CATALOGUE, name, replace(known, versions=accepted, remotes=remotes))

    return make


@pytest.fixture
def data_path(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    return Path(folder)
