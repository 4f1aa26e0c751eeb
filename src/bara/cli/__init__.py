"""The command line: one module a verb, thin over the functions that Python users call.

A verb imports what it needs when it runs, so that `--version`, `--help` and a mistyped option
answer at once; and what is here imports nothing yet, so that Ctrl-C is heard from the first moment
on.
"""

import contextlib
import os
import sys

from bara._lazy import lazily

__getattr__, __dir__ = lazily(__name__, {"app": "commands"})


RUNNING = {"run", "resume", "compare", "audit", "plan"}
"""The verbs that run plug-ins, which they also find in the folder where they are started; the others only open."""


def main() -> None:
    """The program `bara`."""
    try:
        from typer import Exit

        from bara.cli.commands import app
        from bara.cli.output import errors, standard_streams

        with standard_streams(), errors():
            if next((word for word in sys.argv[1:] if not word.startswith("-")), None) in RUNNING:
                _find_plugins_here()
            app()
    except KeyboardInterrupt:
        sys.stderr.write("bara: interrupted\n")
        sys.exit(130)
    except Exit as ended:
        sys.exit(ended.exit_code)


def _find_plugins_here() -> None:
    with contextlib.suppress(OSError):  # a folder that is gone holds none
        sys.path.append(os.getcwd())  # noqa: PTH109 - pathlib is a tenth of the time until Ctrl-C is heard
        # Last: what lies around there stands in for no package of ours. For workers, which would
        # put it first, too.
        os.environ.update(
            {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"}
        )
