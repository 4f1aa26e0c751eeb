"""Whether what requirements.lock and constraints.txt pin has vulnerabilities that are known.

python scripts/audit.py PIP_AUDIT

Ends with 0 if none is known, 1 if some are, and 2 if the service was not reached or did not know a
package: where every release is skipped, pip-audit itself ends with "No known vulnerabilities
found".
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[1]
FILES = ("requirements.lock", "constraints.txt")
OPTIONS = ("--no-deps", "--disable-pip", "--progress-spinner", "off", "-f", "json")


def findings(pip_audit):
    """What the service says of each release, by name.

    None where the service does not answer; the reason goes to stderr.
    """
    found = {}
    for name in FILES:  # one with hashes and one without do not go together; the second adds torch
        command = [pip_audit, *OPTIONS, "-r", HERE / name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
        try:
            found |= {one["name"]: one for one in json.loads(done.stdout)["dependencies"]}
        except (ValueError, KeyError):
            sys.stderr.write(f"{done.stderr.strip().rpartition(chr(10))[2]}\n")
            return None
    return list(found.values())


def verdict(found):
    """An exit code, and what to print."""
    if not found or all("skip_reason" in one for one in found):
        silent = (
            "pip-audit's service does not answer: nothing was audited; "
            "run `make audit` where the internet is"
        )
        return 2, [silent]
    known = [
        f"{one['name']} {one['version']}: {hole['id']}, mended in "
        f"{', '.join(hole['fix_versions']) or 'no release yet'}"
        for one in found
        for hole in one.get("vulns", ())
    ]
    unknown = sorted(one["name"] for one in found if "skip_reason" in one)
    summary = f"{len(found) - len(unknown)} releases audited, {len(known)} known vulnerabilities"
    lines = [*known, summary]
    if unknown:
        lines.append(
            f"{len(unknown)} were not audited, the service does not know them: {', '.join(unknown)}"
        )
    return 1 if known else 2 if unknown else 0, lines


if __name__ == "__main__":
    code, lines = verdict(findings(sys.argv[1]))
    sys.stdout.write("\n".join(lines) + "\n")
    sys.exit(code)
