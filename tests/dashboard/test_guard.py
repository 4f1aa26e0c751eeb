import pytest
from refusals import refused

from bara.dashboard.server import Address, RunIndex, serve
from bara.errors import ConfigError

TOKEN = "correct-horse-battery"  # noqa: S105


def test_strict_headers_stand_on_every_answer(make_run, visit):
    make_run()
    for path in ("/", "/index.json", "/assets/style.css", "/nowhere", "/runs/one/rounds.csv"):
        headers = visit().get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';"), path
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_nothing_can_be_changed(make_run, visit, method):
    make_run()
    for path in ("/", "/index.json", "/runs/one", "/runs/one.json", "/runs/one/events"):
        assert visit().request(method, path).status_code == 405


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "10.0.0.7", "", "[evil.example]"]
)
def test_a_foreign_host_is_refused(make_run, visit, host):
    make_run()
    assert visit().get("/index.json", headers={"host": host}).status_code == 400


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:9999", "127.0.0.1:1", "[::1]:80", "LOCALHOST"]
)
def test_this_machine_under_any_of_its_names_is_served(make_run, visit, host):
    make_run()
    assert visit().get("/index.json", headers={"host": host}).status_code == 200


def test_a_dashboard_answers_at_the_address_it_prints_and_the_names_it_was_given(make_run, visit):
    make_run()

    def answer(address, host):
        return visit(address.rules()).get("/index.json", headers={"host": host}).status_code

    assert answer(Address("127.0.0.2"), "127.0.0.2:8765") == 200
    assert answer(Address("127.0.0.2"), "127.0.0.3:8765") == 400
    assert answer(Address("::1"), "[::1]:8765") == 200
    assert answer(Address(hosts=["Runs.Example"]), "runs.example") == 200
    assert answer(Address(hosts=["Runs.Example"]), "www.runs.example") == 400
    with refused(ConfigError, "--allow-host", "'*.example'"):
        Address(hosts=["*.example"]).rules()


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://localhost:1",
        "https://localhost.evil",
        "http://[",
        "http://[]:",
        "",
    ],
)
def test_a_foreign_origin_is_refused(make_run, visit, origin):
    make_run()
    assert visit().get("/index.json", headers={"origin": origin}).status_code == 403
    assert visit().get("/index.json", headers={"origin": "http://localhost"}).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/runs/..%2fsecret.json",
        "/runs/%2e%2e/secret.json",
        "/runs//etc/passwd",
        "/assets/..%2fpages.py",
        "/assets/%2e%2e/pages.py",
        "/runs/link",
        "/runs/linked-ledger",
    ],
)
def test_no_path_leads_out_of_the_folder(make_run, visit, tmp_path, path):
    outside = make_run("../secret")
    runs = tmp_path / "runs"
    runs.mkdir(exist_ok=True)
    (runs / "link").symlink_to(outside)
    (runs / "linked-ledger").mkdir()
    (runs / "linked-ledger/config.toml").write_text("seed = 0")
    (runs / "linked-ledger/ledger.db").symlink_to(outside / "ledger.db")
    answer = visit().get(path)
    assert answer.status_code == 404
    assert "secret" not in answer.text
    assert RunIndex(runs).names() == []


def test_without_the_token_nothing_is_seen(make_run, visit):
    make_run()
    visitor = visit(Address(token=TOKEN).rules())
    for path in (
        "/",
        "/index.json",
        "/runs/one",
        "/assets/run.js",
        f"/index.json?token={TOKEN}x",
        "/?token=",
    ):
        answer = visitor.get(path)
        assert answer.status_code == 401, path
        assert "one" not in answer.headers.get("location", "")
    assert visitor.get("/index.json", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert (
        visitor.get("/index.json", headers={"cookie": f"bara-dashboard={TOKEN}"}).status_code == 401
    )


def test_the_token_is_used_once_and_then_a_cookie_that_does_not_reveal_it(make_run, visit):
    make_run()
    visitor = visit(Address(token=TOKEN).rules())
    first = visitor.get(f"/runs/one?x=1&token={TOKEN}")
    assert (first.status_code, first.headers["location"]) == (303, "/runs/one?x=1")
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    assert visitor.get("/runs/one.json").status_code == 200


def test_a_redirect_never_leaves_the_dashboard(make_run, visit):
    make_run()
    answer = visit(Address(token=TOKEN).rules()).get(
        f"http://localhost//evil.example/?token={TOKEN}"
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/evil.example/")


def test_the_token_may_come_in_a_header(make_run, visit):
    make_run()
    answer = visit(Address(token=TOKEN).rules()).get(
        "/index.json", headers={"authorization": f"Bearer {TOKEN}"}
    )
    assert answer.status_code == 200


def test_the_cookie_is_for_tls_only_where_a_proxy_says_so(make_run, visit):
    make_run()
    visitor = visit(Address(token=TOKEN).rules())
    assert "Secure" not in visitor.get(f"/?token={TOKEN}").headers["set-cookie"]
    assert (
        "Secure"
        in visitor.get(f"/?token={TOKEN}", headers={"x-forwarded-proto": "https"}).headers[
            "set-cookie"
        ]
    )


def test_another_address_needs_a_token_and_has_one_made():
    assert Address().rules().token is None
    assert Address("::1").rules().token is None
    made = Address("0.0.0.0").rules()  # noqa: S104
    assert len(made.token) >= 32
    assert made.token != Address("0.0.0.0").rules().token  # noqa: S104
    with refused(ConfigError, "token", "16", "got 5"):
        Address(token="short").rules()  # noqa: S106


@pytest.mark.parametrize("host", ["192.0.2.7:8765", "runs.example", "evil.example"])
def test_another_address_is_served_under_any_name_to_who_knows_the_token_and_to_nobody_else(
    make_run, visit, host
):
    make_run()
    visitor = visit(Address("0.0.0.0", token=TOKEN).rules(), host=host)  # noqa: S104
    assert visitor.get("/index.json").status_code == 401
    assert (
        visitor.get("/index.json", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    )


def test_looking_leaves_the_folder_as_it_was(make_run, visit):
    folder = make_run()
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}
    visit().get("/runs/one.json")
    assert {
        path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()
    } == before


def test_no_token_is_told_where_a_log_keeps_it(make_run, monkeypatch):
    runs = make_run().parent
    told = []
    monkeypatch.setattr(
        "bara.dashboard.server.uvicorn.Server.run", lambda _, listeners: listeners[0].close()
    )
    monkeypatch.setattr("bara.dashboard.server.os.nice", lambda _: None)
    monkeypatch.setattr("bara.dashboard.server.is_loopback", lambda _: False)
    with refused(ConfigError, "BARA_DASHBOARD_TOKEN", "127.0.0.1"):
        serve(runs, Address(port=0), told.append)
    assert told == []
    serve(runs, Address(port=0, token=TOKEN), told.append)
    assert told
    assert not [line for line in told if TOKEN in line]
    serve(runs, Address(port=0), told.append, private=True)
    assert [line for line in told if "?token=" in line and line.startswith("http")]
