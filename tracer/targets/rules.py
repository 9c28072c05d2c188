"""
Which rule of the configuration a process falls under, and for whom it works by that rule.
"""

from __future__ import annotations

import fnmatch
import pwd
import re
import string
from collections.abc import Callable, Mapping, Sequence

from tracer import selector
from tracer.config import TENANT_FIELDS, TENANT_MAPPINGS, Rule
from tracer.errors import UsageError
from tracer.targets.mark_file import Location
from tracer.targets.pods import Pod
from tracer.targets.process import Process
from tracer.targets.text import visible

UNKNOWN = "unknown"
"""What a field of a tenant template reads when it cannot be told."""

_Test = Callable[[Process], bool]


class Rules:
    """The rules of a configuration, in order."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Raises UsageError for a user that this machine does not know."""
        self._rules = [(rule, _tests(rule)) for rule in rules]

    def tenant_of(self, process: Process) -> str | None:
        """
        Whom a process works for by the first rule of which everything holds; None without one.

        Raises OSError when the process is gone or what a rule asks for may not be read.
        """
        for rule, tests in self._rules:
            if all(test(process) for test in tests):
                return _filled_in(rule.tenant, process)
        return None


def _tests(rule: Rule) -> list[_Test]:
    """What must hold, cheapest first: the search for a mark page reads all of a process's maps."""
    match = rule.match
    tests: list[_Test] = []
    if match.comm is not None:
        comm = re.compile(fnmatch.translate(match.comm))
        tests.append(lambda process: comm.match(process.comm) is not None)
    if match.namespace is not None:
        namespace = re.compile(fnmatch.translate(match.namespace))
        tests.append(_of_pod(lambda pod: namespace.match(pod.namespace) is not None))
    if match.pod is not None:
        name = re.compile(fnmatch.translate(match.pod))
        tests.append(_of_pod(lambda pod: name.match(pod.name) is not None))
    if match.labels is not None:
        terms = selector.parse(match.labels)
        tests.append(_of_pod(lambda pod: all(term.holds(pod.labels) for term in terms)))
    if match.user is not None:
        uid = _uid(rule)
        tests.append(lambda process: process.uid == uid)
    if match.cgroup is not None:
        cgroup = re.compile(match.cgroup)
        tests.append(lambda process: any(map(cgroup.search, process.cgroup_paths)))
    if match.cmdline is not None:
        cmdline = re.compile(match.cmdline)
        tests.append(lambda process: cmdline.search(process.cmdline) is not None)
    if match.marked is not None:
        tests.append(lambda process: isinstance(process.mark_page, Location) == match.marked)
    return tests


def _of_pod(test: Callable[[Pod], bool]) -> _Test:
    return lambda process: process.pod is not None and test(process.pod)


def _uid(rule: Rule) -> int:
    user = rule.match.user or ""
    if user.isdecimal():
        return int(user)
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError as e:
        raise UsageError(
            f"rule {rule.name}: match.user is {user!r}, which this machine does not know; "
            "give the user's number"
        ) from e


def _filled_in(template: str, process: Process) -> str:
    parts = string.Formatter().parse(template)
    filled = (
        text + ((_value(field, process) or UNKNOWN) if field else "") for text, field, _, _ in parts
    )
    return visible("".join(filled).encode())


def _value(field: str, process: Process) -> str:
    mapping, _, key = field.removesuffix("]").partition("[")
    if not key:
        return _VALUES[field](process)
    return _MAPPINGS[mapping](process.pod).get(key, "") if process.pod else ""


def _pod(process: Process) -> str:
    if process.pod:
        return process.pod.name
    return process.pod_uid and (process.environment("POD_NAME", "HOSTNAME") or process.pod_uid)


def _namespace(process: Process) -> str:
    return process.pod.namespace if process.pod else process.environment("POD_NAMESPACE")


_VALUES: dict[str, Callable[[Process], str]] = {
    "comm": lambda process: process.comm,
    "container": lambda process: process.container.name if process.container else "",
    "namespace": _namespace,
    "pod": _pod,
}
_MAPPINGS: dict[str, Callable[[Pod], Mapping[str, str]]] = {
    "labels": lambda pod: pod.labels,
    "annotations": lambda pod: pod.annotations,
}
assert set(TENANT_FIELDS) == set(_VALUES)
assert set(TENANT_MAPPINGS) == set(_MAPPINGS)
