"""`python -m bara.cli`: the program `bara`."""

from bara.cli import main

main()
