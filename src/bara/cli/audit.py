"""The verb `audit`: a test of a mechanism's claims on random rounds."""

from functools import partial
from typing import Annotated, Any

import typer

from bara.cli.options import AsJson, Debug
from bara.cli.output import errors, print_json, show


def audit_command(
    mechanism: Annotated[
        str,
        typer.Argument(
            help="A mechanism's name or import path, with options: quality:quality=samples"
        ),
    ],
    trials: Annotated[
        int, typer.Option(min=1, help="How many random rounds to try each property on.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the random rounds.")] = 0,
    currency: Annotated[
        str | None, typer.Option(help="Use whole units of this currency: EUR for cents.")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Test what a mechanism claims on random rounds, and print counter-examples."""
    with errors(debug):
        from bara.cli.tables import audit_table
        from bara.mechanisms import MECHANISMS
        from bara.mechanisms.audit import audit, regret
        from bara.plugins import parse_spec
        from bara.records import smallest_unit

        spec = parse_spec(mechanism)
        make = partial(MECHANISMS.build, spec.pop("name"), spec)
        audited = make()
        findings = list(audit(make, trials, seed, unit=smallest_unit(currency)))
        lying = None
        if "truthful-in-price" not in audited.claims:
            lying = regret(audited, seed=seed)
        if as_json:
            tree: dict[str, Any] = {
                "mechanism": mechanism,
                "findings": [vars(finding) for finding in findings],
            }
            if lying is not None:
                tree["regret"] = vars(lying)
            print_json(tree)
        else:
            show(audit_table(mechanism, findings, lying))
        if any(finding.broken for finding in findings):
            raise typer.Exit(1)
