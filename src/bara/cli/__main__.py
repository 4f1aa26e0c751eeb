"""The program `bara` as a module: `python -m bara.cli`."""

from bara.cli import main

main()
