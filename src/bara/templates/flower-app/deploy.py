"""A deployment on this machine: runs the app on a SuperLink and three SuperNodes.

    python deploy.py [--folder FOLDER] [--rounds 5] [--budget 30]

Connections use TLS, and nodes authenticate themselves by their keys. Everything listens on loopback
only and is ended, by process id, when the app has finished. `docs/flower.md` leads an operator
through the same steps on machines of their own.
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
FLOWER = tuple(map(int, version("flwr").split(".")[:2]))
APART = FLOWER < (1, 40)  # in these releases, SuperNodes connect to a port of their own
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}


class Deployment(contextlib.ExitStack):
    """A SuperLink and its SuperNodes; a context manager that ends every process it started.

    Args:
        home: The folder for keys, certificates and logs.
        app: The Flower app's folder.
    """

    def __init__(self, home: Path, app: Path = HERE) -> None:
        super().__init__()
        self.home = home
        self.app = app
        self.port = free_port()
        self.fleet_port = free_port() if APART else self.port
        # Flower starts programs of its own by name.
        path = os.pathsep.join([str(BIN), os.environ.get("PATH", "")])
        self.environment = {**os.environ, **QUIET, "FLWR_HOME": str(home / "flwr"), "PATH": path}
        self.superlink: subprocess.Popen | None = None
        self.nodes: dict[int, subprocess.Popen] = {}

    def start_superlink(self) -> None:
        """Start the SuperLink, with new certificates if there are none, and connect `flwr` to it.

        The SuperLink keeps its state, registered keys included, in a database. Started again, it
        goes on as the same SuperLink.
        """
        if not (self.home / "ca.crt").exists():
            make_certificates(self.home)
        command = ["flower-superlink", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--ssl-ca-certfile", "ca.crt", "--ssl-certfile", "server.pem"]
        command += ["--ssl-keyfile", "server.key", "--enable-supernode-auth"]
        command += ["--database", str(self.home / "superlink.db")]
        command += ["--disable-runtime-dependency-installation"]
        if APART:
            command += ["--fleet-api-address", f"127.0.0.1:{self.fleet_port}"]
        self.superlink = self.begin("superlink", command)
        self.connect(f'root-certificates = "{self.home / "ca.crt"}"')

    def start_simulation_superlink(self) -> None:
        """Start a SuperLink that simulates nodes instead of waiting for them."""
        command = ["flower-superlink", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--simulation", "--insecure", "--disable-runtime-dependency-installation"]
        self.superlink = self.begin("superlink", command)
        self.connect("insecure = true")

    def connect(self, security: str) -> None:
        """Write the SuperLink's address into Flower's configuration, and wait until it listens."""
        lines = [
            "[superlink]",
            'default = "loopback"',
            "[superlink.loopback]",
            f'address = "127.0.0.1:{self.port}"',
            security,
        ]
        folder = self.home / "flwr"
        folder.mkdir(exist_ok=True)
        (folder / "config.toml").write_text("\n".join(lines) + "\n")
        self.wait_until_it_listens()

    def make_key(self, name: str) -> None:
        """Make the key pair that identifies a node for good."""
        command = ["ssh-keygen", "-q", "-t", "ecdsa", "-b", "384", "-N", ""]
        command += ["-f", str(self.home / name), "-C", name]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)

    def register(self, name: str) -> None:
        """Tell the SuperLink to trust a node's key."""
        self.flwr("supernode", "register", f"{name}.pub", "loopback")

    def start_supernode(
        self, number: int, of: int, name: str, **config: object
    ) -> subprocess.Popen:
        """Start a silo's node and return its process.

        Args:
            number: The node's partition.
            of: The number of partitions.
            name: The silo's name, which is also its key's file name.
            config: Further entries of the node's configuration, which stays on its machine.
        """
        entries = {"partition-id": number, "num-partitions": of, "name": name, **config}
        words = []
        for key, value in entries.items():
            shown = f'"{value}"' if isinstance(value, str) else value
            words.append(f"{key}={shown}")
        command = ["flower-supernode", "--host", "127.0.0.1", "--port", str(free_port())]
        command += ["--superlink", f"127.0.0.1:{self.fleet_port}"]
        command += ["--root-certificates", "ca.crt", "--auth-supernode-private-key", name]
        command += ["--node-config", " ".join(words)]
        node = self.begin(f"supernode-{name}", command)
        self.nodes[number] = node
        return node

    def flwr(self, *arguments: str, timeout: float = 300, check: bool = True) -> str:
        """Run Flower's own command and return what it prints."""
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
                f"flwr {' '.join(arguments)} ended with {done.returncode}:\n"
                f"{done.stdout}\n{self.logs()}"
            )
        return done.stdout

    def run(self, run_config: str, timeout: float = 300) -> str:
        """Run the app to its end and return what it prints."""
        words = ["run", str(self.app), "loopback", "--stream", "--run-config", run_config]
        return self.flwr(*words, timeout=timeout)

    def begin(self, name: str, command: list[str]) -> subprocess.Popen:
        """Start a process, which is ended when the deployment is left."""
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

    def wait_until_it_listens(self, seconds: float = 600) -> None:
        """Wait until the SuperLink accepts connections."""
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
        """Return the end of every log."""
        paths = sorted(self.home.glob("*.log"))
        return "\n".join(f"--- {path.name}\n{path.read_text()[-3000:]}" for path in paths)


def end(process: subprocess.Popen, how: signal.Signals = signal.SIGTERM) -> None:
    """End a process and everything it started, by their ids.

    Ending the process group would not do: Flower's processes have sessions of their own.
    """
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
    """Return the ids of the processes that a process has started, directly or indirectly."""
    children: list[int] = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            children += map(int, task.read_text().split())
    found = list(children)
    for child in children:
        found += descendants(child)
    return found


def make_certificates(home: Path) -> None:
    """Make a certificate authority, and the SuperLink's certificate for loopback."""

    def openssl(*words: str) -> None:
        subprocess.run(
            ["openssl", *words], cwd=home, check=True, stdin=subprocess.DEVNULL, capture_output=True
        )

    new = ["req", "-newkey", "rsa:2048", "-nodes"]
    authority = ["-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=bara example CA"]
    openssl(*new, "-x509", "-days", "365", *authority)
    openssl(*new, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    (home / "server.ext").write_text("subjectAltName = DNS:localhost, IP:127.0.0.1, IP:::1\n")
    signed_by = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "365"]
    files = ["-in", "server.csr", "-extfile", "server.ext", "-out", "server.pem"]
    openssl("x509", "-req", *signed_by, *files)


def free_port() -> int:
    """Return a port of loopback that nobody listens on now."""
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
        settings = [
            f"num-server-rounds={chosen.rounds}",
            f"bara.budget.total={chosen.budget}",
            "bara.clients.count=3",
            f'bara.folder="{chosen.folder.resolve()}"',
        ]
        print(deployment.run(" ".join(settings)))
    print(f"look at it: bara ledger {chosen.folder}")


if __name__ == "__main__":
    main()
