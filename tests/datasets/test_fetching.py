import contextlib
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from refusals import refused

from bara.datasets import fetch, load
from bara.errors import DatasetError, MissingExtraError, UnknownNameError


class Server(ThreadingHTTPServer):
    """Serves files from memory, well or badly, and remembers what it was asked for."""

    daemon_threads = True

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.faults, self.asked = files, {}, []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        file = self.path.lstrip("/")
        self.server.asked.append(file)
        content, fault = self.server.files.get(file), self.server.faults.get(file)
        if content is None or fault == "missing":
            self.send_error(404)
            return
        sent = {
            "cut short": content[:-20],
            "announced": content[:-20],
            "altered": b"!" + content[1:],
        }.get(fault, content)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content if fault == "announced" else sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(files):
    with Server(files) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def published(fabricate, tmp_path, publish):
    """The bytes of four small files that pass for MNIST's; the images come in several chunks."""
    arrays = fabricate.arrays((28, 28), train=400)
    folder = fabricate.idx(tmp_path / "published", arrays)
    files = {file.name: file.read_bytes() for file in sorted(folder.iterdir())}
    publish("mnist", arrays, files=files)
    return files


@pytest.fixture
def server(published):
    with serving(published) as running:
        yield running


def files_in(folder):
    return sorted(file.name for file in folder.rglob("*") if file.is_file())


def test_what_is_fetched_loads(server, data_path, published):
    result = fetch("mnist", data_path, base_urls=[server.url])
    assert result.folder == data_path / "mnist"
    assert sorted(result.downloaded) == files_in(data_path) == sorted(published)
    assert load("mnist", data_path).version == "version 0"


def test_a_second_call_fetches_nothing(server, data_path, published):
    fetch("mnist", data_path, base_urls=[server.url])
    server.asked.clear()
    result = fetch("mnist", data_path, base_urls=[server.url])
    assert not server.asked
    assert result.downloaded == ()
    assert sorted(result.kept) == sorted(published)


@pytest.mark.parametrize("fault", ["cut short", "announced", "altered", "missing"])
def test_a_bad_file_is_an_error_leaves_nothing_behind_and_is_made_good_by_running_again(
    server, data_path, published, fault
):
    bad = list(published)[2]
    server.faults[bad] = fault
    with refused(DatasetError, bad, data_path, server.url):
        fetch("mnist", data_path, base_urls=[server.url])
    assert files_in(data_path) == sorted(list(published)[:2])

    server.faults.clear()
    server.asked.clear()
    fetch("mnist", data_path, base_urls=[server.url])
    assert server.asked == list(published)[2:]
    assert load("mnist", data_path).version


def test_a_wrong_file_that_is_already_there_is_replaced(server, data_path, published):
    bad = next(iter(published))
    (data_path / "mnist").mkdir()
    (data_path / "mnist" / bad).write_bytes(published[bad][:-5])
    result = fetch("mnist", data_path, base_urls=[server.url])
    assert bad in result.downloaded
    assert (data_path / "mnist" / bad).read_bytes() == published[bad]


def test_the_next_mirror_is_tried(server, data_path, published):
    with serving(dict.fromkeys(published, b"not it")) as bad:
        result = fetch("mnist", data_path, base_urls=[bad.url, server.url])
        assert bad.asked == list(published)
    assert len(result.downloaded) == 4
    assert load("mnist", data_path).version


@pytest.mark.usefixtures("published")
def test_a_refused_connection_is_an_error_that_names_the_address(data_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with refused(DatasetError, f"http://127.0.0.1:{port}", "ConnectionRefusedError"):
            fetch("mnist", data_path, base_urls=[f"http://127.0.0.1:{port}"])
    assert not files_in(data_path)


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(server, data_path):
    (data_path / "file").touch()
    with refused(DatasetError, data_path / "file" / "mnist"):
        fetch("mnist", data_path / "file", base_urls=[server.url])


def test_progress_is_told_to_a_function_never_more_than_there_is_nor_the_same_twice(
    server, data_path, published
):
    told = []
    fetch("mnist", data_path, progress=lambda *news: told.append(news), base_urls=[server.url])
    for file, raw in published.items():
        mine = [done for name, done, _ in told if name == file]
        assert mine == sorted(set(mine))
        assert mine[0] >= 0
        assert mine[-1] == len(raw)
    assert {(file, total) for file, _, total in told} == {
        (file, len(raw)) for file, raw in published.items()
    }
    assert len(told) > len(published)


def test_without_a_path_it_goes_where_it_is_looked_for(server, cache, monkeypatch, tmp_path):
    assert fetch("mnist", base_urls=[server.url]).folder == cache / "mnist"
    assert load("mnist").version
    monkeypatch.setenv("BARA_DATA", str(tmp_path / "variable"))
    assert fetch("mnist", base_urls=[server.url]).folder == tmp_path / "variable" / "mnist"
    given = fetch("mnist", tmp_path / "given", base_urls=[server.url])
    assert given.folder == tmp_path / "given" / "mnist"


def test_an_interrupted_download_leaves_nothing_behind(server, data_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch("mnist", data_path, progress=interrupt, base_urls=[server.url])
    assert not files_in(data_path)


def test_what_is_fetched_can_be_read_by_everybody(server, data_path):
    folder = fetch("mnist", data_path, base_urls=[server.url]).folder
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o644}


def test_the_embedded_dataset_needs_no_fetching():
    assert fetch("digits").folder is None


def test_an_unknown_name_gets_the_nearest():
    with refused(UnknownNameError, "'minst'", "'mnist'"):
        fetch("minst")


def test_without_pooch_it_says_what_to_install(monkeypatch, data_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with refused(MissingExtraError, "pooch", "bara-fl[sim]"):
        fetch("mnist", data_path)
