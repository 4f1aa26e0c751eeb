"""The verb `audit`: what a mechanism claims, tried on random rounds."""

from typing import Annotated

import typer

from bara.cli.options import AsJson, Debug
from bara.cli.output import errors, print_json, show


def audit_command(
    mechanism: Annotated[
        str, typer.Argument(help="A mechanism's name or import path, with options: quality:quality=samples")
    ],
    trials: Annotated[int, typer.Option(min=1, help="Random rounds a property is tried on.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Where the rounds come from.")] = 0,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Check what a mechanism claims: rationality, budget, truthfulness; print counter-examples."""
    with errors(debug):
        from bara.mechanisms import MECHANISMS
        from bara.mechanisms.audit import audit
        from bara.plugins import parse_spec
        from bara.reports.tables import audit_table

        spec = parse_spec(mechanism)
        findings = list(audit(MECHANISMS.build(spec.pop("name"), spec), trials, seed))
        if as_json:
            print_json({"mechanism": mechanism, "findings": [vars(f) for f in findings]})
        else:
            show(audit_table(mechanism, findings))
        if any(finding.broken for finding in findings):
            raise typer.Exit(1)
