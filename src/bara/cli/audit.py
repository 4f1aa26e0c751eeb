"""The verb `audit`: a test of a mechanism's claims on random rounds, and of whole runs."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bara.cli.options import AsJson, Debug
from bara.cli.output import errors, print_json, show

if TYPE_CHECKING:
    from bara.protocols import Allocator


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
    runs: Annotated[
        int,
        typer.Option(
            min=0,
            help="Also play this many federations whose prices stay, and tell what each client "
            "could gain over the whole run by not asking its cost.",
        ),
    ] = 0,
    allocator: Annotated[
        str, typer.Option(help="With --runs: the allocator of these runs.")
    ] = "even:carry_over=true",
    currency: Annotated[
        str | None, typer.Option(help="Use whole units of this currency: EUR for cents.")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Test what a mechanism claims on random rounds, and print counter-examples."""
    with errors(debug):
        from bara.cli.tables import audit_table, run_audit_table
        from bara.mechanisms import MECHANISMS
        from bara.mechanisms.audit import audit, regret
        from bara.plugins import parse_spec
        from bara.records import smallest_unit

        spec = parse_spec(mechanism)
        make = partial(MECHANISMS.build, spec.pop("name"), spec)
        audited = make()
        findings = list(audit(make, trials, seed, unit=smallest_unit(currency)))
        is_refused = any(finding.refused for finding in findings)
        lying = None
        if not is_refused and "truthful-in-price" not in audited.claims:
            lying = regret(audited, seed=seed)
        over_runs = []
        if runs and not is_refused:
            from bara.allocators import ALLOCATORS
            from bara.studies.run_audit import audit_runs

            how = parse_spec(allocator)
            called = how.pop("name")

            def make_allocator(clients: int, number: int) -> "Allocator":
                return ALLOCATORS.build(called, how, clients=clients, seed=number)

            over_runs = list(audit_runs(make, make_allocator, runs, seed, currency))
        if as_json:
            tree: dict[str, Any] = {
                "mechanism": mechanism,
                "findings": list(map(vars, findings)),
            }
            if lying is not None:
                tree["regret"] = vars(lying)
            if over_runs:
                tree["runs"] = list(map(vars, over_runs))
            print_json(tree)
        else:
            show(audit_table(mechanism, findings, lying))
            if over_runs:
                show(run_audit_table(over_runs))
        if any(finding.broken for finding in findings):
            raise typer.Exit(1)
