"""The agent, run as its container runs it: with some capabilities and no way to get more."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TAILTRACE = [sys.executable, "-m", "tracer.cli"]

NAMESPACE = "team-a"
"""What the engine says in POD_NAMESPACE, and so its tenant."""

CONFIGURATION = """
listen: 127.0.0.1:0
targets:
  - name: engine
    match: {marked: true, user: 65534, cmdline: tests.deploy.engine}
    tenant: "{namespace}"
"""


@dataclass(frozen=True)
class Outcome:
    code: int
    errors: list[str]
    """Lines on standard error."""

    output: str

    @property
    def report(self) -> Any:
        return json.loads(self.output)

    @property
    def steps(self) -> dict[str, int]:
        """Steps by tenant."""
        found: dict[str, int] = {}
        for row in self.report["rows"]:
            found[row["tenant"]] = found.get(row["tenant"], 0) + row["count"]
        return found

    @property
    def unreadable_pages(self) -> int:
        return int(self.report["lost"].get("page_unreadable", 0))


def with_capabilities(
    capabilities: Collection[str], *arguments: str | Path, user: int = 0
) -> Outcome:
    """``tailtrace ARGUMENTS`` by a user who has these capabilities only."""
    return outcome([*only_with(capabilities, user), *TAILTRACE, *arguments])


def only_with(capabilities: Collection[str], user: int = 0) -> list[str]:
    """What starts a command by a user who has these capabilities only, for ever."""
    only = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    privileges = [f"--bounding-set={only}", f"--inh-caps={only}", "--no-new-privs"]
    if user:
        privileges += [f"--ambient-caps={only}", f"--reuid={user}", "--clear-groups"]
    return ["setpriv", *privileges]


def outcome(command: Sequence[str | Path]) -> Outcome:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return Outcome(done.returncode, done.stderr.splitlines(), done.stdout)
