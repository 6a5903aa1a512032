"""Is a version that we pin known to be vulnerable? PyPI is asked, by pip-audit.

Where nobody answers, that is said and is no finding: exit code 0. An advisory, or an audit that cannot begin, is 1.
"""

import importlib.util
import json
import re
import subprocess
import sys
from typing import Any

AUDIT = ("-m", "pip_audit", "--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off")
UNREACHABLE = re.compile(r"ConnectionError|ConnectTimeout|ReadTimeout|ServiceError|SSLError|ProxyError|HTTPError")


def audit(pins: str) -> tuple[str, bool]:
    """What there is to say of the versions in the file `pins`, and whether it is well."""
    if importlib.util.find_spec("pip_audit") is None:
        return "not audited: pip-audit is not installed; it comes with the extra `dev`", False
    run = subprocess.run([sys.executable, *AUDIT, "--requirement", pins], capture_output=True, text=True, check=False)
    try:
        found = json.loads(run.stdout)["dependencies"]
    except (ValueError, KeyError):
        last = run.stderr.strip().rpartition("\n")[2]
        unreachable = UNREACHABLE.search(run.stderr) is not None
        return f"not audited: {'service not reachable' if unreachable else 'pip-audit failed'} ({last})", unreachable
    return _said(found)


def _said(found: list[dict[str, Any]]) -> tuple[str, bool]:
    unknown = [each["name"] for each in found if "skip_reason" in each]
    if found and len(unknown) == len(found):
        return f"not audited: service not reachable (it knows none of {len(found)} packages)", True
    lines = [
        f"{each['name']} {each['version']}: {advisory['id']}, mended in {', '.join(advisory['fix_versions']) or 'none'}"
        for each in found
        for advisory in each.get("vulns", ())
    ]
    rest = f"; not audited, for nobody answers for them: {', '.join(unknown)}" if unknown else ""
    return "\n".join(
        [*lines, f"audited: {len(found) - len(unknown)} packages, {len(lines)} advisories{rest}"]
    ), not lines


if __name__ == "__main__":
    said, well = audit(sys.argv[1])
    print(said)
    sys.exit(0 if well else 1)
