"""
The capabilities of the DaemonSet suffice, and each is needed.

What is missing when one is left out is in docs/kubernetes.md.
"""

from __future__ import annotations

import pytest

from tests.deploy.agent import NAMESPACE, TAILTRACE, Outcome, outcome, with_capabilities
from tests.deploy.manifests import capabilities

LOADING = {"bpf", "perfmon"}
"""Without these nothing works; without one of the others, engines of other users are not seen."""

ORDINARY_USER = 1000


@pytest.fixture(scope="module")
def traced(engine, configuration) -> Outcome:
    """A second with everything that the DaemonSet gives."""
    return run_with(capabilities(), configuration)


def run_with(given, configuration) -> Outcome:
    return with_capabilities(given, "run", "--duration=1", "--json", "--config", configuration)


def without(name: str | None) -> list[str]:
    return [each for each in capabilities() if each != name]


def test_the_steps_of_an_engine_of_another_user_are_seen(traced):
    assert traced.code == 0
    assert traced.steps[NAMESPACE] > 0


@pytest.mark.parametrize("name", sorted(set(capabilities()) - LOADING))
def test_without_one_of_the_reading_capabilities_its_page_is_counted_as_lost(
    traced, configuration, name
):
    lacking = run_with(without(name), configuration)

    assert lacking.code == 0
    assert {} == lacking.steps
    assert lacking.unreadable_pages > traced.unreadable_pages


@pytest.mark.parametrize(
    ("lacked", "source"),
    [(None, "map_files"), ("checkpoint_restore", "fd"), ("sys_ptrace", "none")],
)
def test_check_says_how_mark_pages_can_be_read(engine, lacked, source):
    checked = with_capabilities(without(lacked), "check", "--json")
    (marks,) = (each for each in checked.report["capabilities"] if each["name"] == "marks")

    assert checked.code == (1 if source == "none" else 0)
    assert source == marks["source"]
    assert (f"lacks CAP_{lacked.upper()}" if lacked else "") in marks["reason"]


@pytest.mark.parametrize("name", sorted(LOADING))
def test_without_one_of_the_loading_capabilities_one_line_names_it(engine, name):
    lacking = with_capabilities(without(name), "check")

    assert lacking.code == 3
    (line,) = lacking.errors
    assert f"the agent lacks CAP_{name.upper()}: grant that" in line


def test_an_ordinary_user_with_ambient_capabilities_can_load(engine):
    assert with_capabilities(capabilities(), "check", user=ORDINARY_USER).code == 0


def test_a_kernel_without_type_information_is_named(engine):
    hiding = 'mount -t tmpfs none /sys/kernel/btf && exec "$@"'
    hidden = outcome(["unshare", "--mount", "sh", "-c", hiding, "sh", *TAILTRACE, "check"])

    assert hidden.code == 3
    (line,) = hidden.errors
    assert line.startswith("tailtrace: this kernel has no BTF")
