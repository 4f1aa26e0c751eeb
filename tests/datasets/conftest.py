"""Tiny datasets in every format people have, and a machine on which no real one can be found."""

import gzip
import io
import pickle
import struct
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bara.datasets import _catalogue as catalogue
from bara.datasets import _loading as locating
from bara.datasets._catalogue import Version
from bara.datasets._checksums import sha256
from bara.datasets._formats.cifar import LAYOUTS
from bara.datasets._formats.idx import STEMS
from bara.datasets._record import Arrays


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """A cache of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(locating, "_cache", lambda: [locating.Place(folder, "the cache")])
    return folder


def arrays_of(shape, classes=10, train=40, test=20, seed=0):
    rng = np.random.default_rng(seed)
    return Arrays(
        rng.integers(0, 256, (train, *shape), np.uint8),
        (np.arange(train) % classes).astype(np.uint8),
        rng.integers(0, 256, (test, *shape), np.uint8),
        (np.arange(test) % classes).astype(np.uint8),
    )


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
    python2_pickle = staticmethod(python2_pickle)

    @staticmethod
    def npz(folder, name, arrays, **replaced):
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(folder / f"{name}.npz", **{**arrays._asdict(), **replaced})
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


@pytest.fixture
def publish(monkeypatch):
    """Makes the given arrays the published content of a dataset of the catalogue."""

    def make(name, *versions, **changed):
        accepted = tuple(
            Version(
                f"version {k}", {part: sha256(array) for part, array in arrays._asdict().items()}
            )
            for k, arrays in enumerate(versions)
        )
        entry = replace(catalogue.CATALOGUE[name], versions=accepted, **changed)
        monkeypatch.setitem(catalogue.CATALOGUE, name, entry)
        return entry

    return make


@pytest.fixture
def data_path(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    return Path(folder)
