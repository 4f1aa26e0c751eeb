"""Starts a SuperLink and three SuperNodes on this machine, with TLS and node authentication, and runs the app on them.

    python deploy.py [--folder FOLDER] [--rounds 5] [--budget 30]

Everything listens on loopback only and is ended, by process id, when the app is through.
`docs/flower.md` leads an operator through the same steps on machines of their own.
"""

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
APART = tuple(map(int, version("flwr").split(".")[:2])) < (
    1,
    40,
)  # silos connect to a port of their own there
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}


class Deployment(contextlib.ExitStack):
    """A SuperLink and its SuperNodes; everything started is ended on leaving.

    Args:
        home: Where keys, certificates and logs go.
        app: The Flower app's folder.
    """

    def __init__(self, home: Path, app: Path = HERE) -> None:
        super().__init__()
        self.home = home
        self.app = app
        self.port = free_port()
        self.fleet_port = free_port() if APART else self.port
        path = os.pathsep.join(
            [str(BIN), os.environ.get("PATH", "")]
        )  # Flower starts programs of its own by name
        self.environment = {**os.environ, **QUIET, "FLWR_HOME": str(home / "flwr"), "PATH": path}
        self.superlink: subprocess.Popen | None = None
        self.nodes: dict[int, subprocess.Popen] = {}

    def start_superlink(self) -> None:
        """Certificates, the SuperLink, and the connection by which `flwr` finds it.

        What it knows, registered keys included, is in a database: started again, it goes on as the
        same SuperLink.
        """
        if not (self.home / "ca.crt").exists():
            make_certificates(self.home)
        certificates = [
            "--ssl-ca-certfile",
            "ca.crt",
            "--ssl-certfile",
            "server.pem",
            "--ssl-keyfile",
            "server.key",
        ]
        self.superlink = self.begin(
            "superlink",
            ["flower-superlink", *certificates, "--enable-supernode-auth", "--host", "127.0.0.1"]
            + ["--port", str(self.port), "--disable-runtime-dependency-installation"]
            + ["--database", str(self.home / "superlink.db")]
            + (["--fleet-api-address", f"127.0.0.1:{self.fleet_port}"] if APART else []),
        )
        self.connect(f'root-certificates = "{self.home / "ca.crt"}"')

    def start_simulation_superlink(self) -> None:
        """A SuperLink that simulates nodes instead of waiting for them."""
        self.superlink = self.begin(
            "superlink",
            ["flower-superlink", "--simulation", "--insecure", "--host", "127.0.0.1"]
            + ["--port", str(self.port), "--disable-runtime-dependency-installation"],
        )
        self.connect("insecure = true")

    def connect(self, security: str) -> None:
        """Write down where the SuperLink is, and wait until it listens."""
        words = [
            "[superlink]",
            'default = "loopback"',
            "[superlink.loopback]",
            f'address = "127.0.0.1:{self.port}"',
        ]
        (self.home / "flwr").mkdir(exist_ok=True)
        (self.home / "flwr" / "config.toml").write_text("\n".join([*words, security, ""]))
        self.wait_until_it_listens()

    def make_key(self, name: str) -> None:
        """A key pair, by which a node is known for good."""
        path = self.home / name
        command = [
            "ssh-keygen",
            "-t",
            "ecdsa",
            "-b",
            "384",
            "-N",
            "",
            "-q",
            "-f",
            str(path),
            "-C",
            name,
        ]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)

    def register(self, name: str) -> None:
        """Tell the SuperLink whose key it may trust."""
        self.flwr("supernode", "register", f"{name}.pub", "loopback")

    def start_supernode(
        self, number: int, of: int, name: str, **config: object
    ) -> subprocess.Popen:
        """A silo's node; its configuration stays on its machine."""
        words = {"partition-id": number, "num-partitions": of, "name": name, **config}
        node_config = " ".join(
            f'{key}="{v}"' if isinstance(v, str) else f"{key}={v}" for key, v in words.items()
        )
        node = self.begin(
            f"supernode-{name}",
            [
                "flower-supernode",
                "--root-certificates",
                "ca.crt",
                "--superlink",
                f"127.0.0.1:{self.fleet_port}",
            ]
            + [
                "--auth-supernode-private-key",
                name,
                "--host",
                "127.0.0.1",
                "--port",
                str(free_port()),
            ]
            + ["--node-config", node_config],
        )
        self.nodes[number] = node
        return node

    def flwr(self, *arguments: str, timeout: float = 300, check: bool = True) -> str:
        """Flower's own command; returns what it prints."""
        done = subprocess.run(
            [BIN / "flwr", *arguments],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode:
            raise SystemExit(
                f"flwr {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}\n{self.logs()}"
            )
        return done.stdout

    def run(self, run_config: str, timeout: float = 300) -> str:
        """The app, to its end."""
        words = ["run", str(self.app), "loopback", "--stream", "--run-config", run_config]
        return self.flwr(*words, timeout=timeout)

    def begin(self, name: str, command: list[str]) -> subprocess.Popen:
        """Start a process; it is ended on leaving."""
        log = self.enter_context((self.home / f"{name}.log").open("ab"))
        process = subprocess.Popen(
            [BIN / command[0], *command[1:]],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        self.callback(end, process)
        return process

    def wait_until_it_listens(self, seconds: float = 60) -> None:
        """Until the SuperLink can be reached."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.superlink.poll() is None:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), timeout=1),
            ):
                return
            time.sleep(0.1)
        raise SystemExit(f"the SuperLink does not listen:\n{self.logs()}")

    def logs(self) -> str:
        """The end of every log."""
        return "\n".join(
            f"--- {path.name}\n{path.read_text()[-3000:]}"
            for path in sorted(self.home.glob("*.log"))
        )


def end(process: subprocess.Popen, how: signal.Signals = signal.SIGTERM) -> None:
    """End a process and everything it started, by their ids: Flower gives its own processes sessions of their own."""
    started = descendants(process.pid)
    for signal_number, patience in ((how, 10), (signal.SIGKILL, 5)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal_number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            break
    for child in started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def descendants(process: int) -> list[int]:
    """The ids of the processes that this one has started, and those they have."""
    children: list[int] = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            children += map(int, task.read_text().split())
    return children + [one for child in children for one in descendants(child)]


def make_certificates(home: Path) -> None:
    """A certificate authority, and the SuperLink's certificate for loopback."""

    def openssl(*words: str) -> None:
        subprocess.run(
            ["openssl", *words], cwd=home, check=True, stdin=subprocess.DEVNULL, capture_output=True
        )

    new = ["req", "-newkey", "rsa:2048", "-nodes"]
    openssl(
        *new,
        "-x509",
        "-days",
        "365",
        "-keyout",
        "ca.key",
        "-out",
        "ca.crt",
        "-subj",
        "/CN=bara example CA",
    )
    openssl(*new, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    (home / "server.ext").write_text("subjectAltName = DNS:localhost, IP:127.0.0.1, IP:::1\n")
    signing = [
        "x509",
        "-req",
        "-days",
        "365",
        "-in",
        "server.csr",
        "-CA",
        "ca.crt",
        "-CAkey",
        "ca.key",
    ]
    openssl(*signing, "-CAcreateserial", "-out", "server.pem", "-extfile", "server.ext")


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--folder", type=Path, default=Path("runs/deployed"), help="the run's folder"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=30.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, Deployment(Path(home)) as deployment:
        deployment.start_superlink()
        for number, price in enumerate((0.002, 0.003, 0.004)):
            name = f"silo-{number}"
            deployment.make_key(name)
            deployment.register(name)
            deployment.start_supernode(number, 3, name, **{"price-per-sample": price})
        words = f"num-server-rounds={chosen.rounds} bara.budget.total={chosen.budget} bara.clients.count=3"
        print(deployment.run(f'{words} bara.folder="{chosen.folder.resolve()}"'))
    print(f"look at it: bara ledger {chosen.folder}")


if __name__ == "__main__":
    main()
