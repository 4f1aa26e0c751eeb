"""The command line: one module for each verb, thin over the functions that Python users call.

A verb imports what it needs when it runs, so that `--version`, `--help` and a mistyped option
answer at once. This module imports almost nothing, so that Ctrl-C works from the first moment.
"""

import contextlib
import os
import sys

from bara._lazy import lazily

__getattr__, __dir__ = lazily(__name__, {"app": "commands"})

RUNNING = {"run", "resume", "compare", "paper", "audit", "plan"}
"""The verbs that run plug-ins, and so also find those in the current folder."""


def main() -> None:
    """Run the program `bara`."""
    try:
        from typer import Exit

        from bara.cli.commands import app
        from bara.cli.output import errors, standard_streams

        with standard_streams(), errors():
            words = (word for word in sys.argv[1:] if not word.startswith("-"))
            if next(words, None) in RUNNING:
                _find_plugins_here()
            app()
    except KeyboardInterrupt:
        sys.stderr.write("bara: interrupted\n")
        sys.exit(130)
    except Exit as ended:
        sys.exit(ended.exit_code)


def _find_plugins_here() -> None:
    """Let this process and its workers import plug-ins from the current folder."""
    with contextlib.suppress(OSError):  # the current folder may be gone
        # At the end of the path, where nothing in the folder can replace an installed package.
        sys.path.append(os.getcwd())  # noqa: PTH109 - pathlib takes long to import
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        os.environ["PYTHONSAFEPATH"] = "1"  # or workers would put their folder first
