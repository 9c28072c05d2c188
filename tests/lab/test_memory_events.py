"""Where pages come from, what moves and what faults cost: as the program in the guest has it."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from lab.examination import Examination

pytestmark = pytest.mark.lab


@dataclass(frozen=True)
class Account:
    """What a guest's program and the tracer said."""

    told: dict[str, Any]

    def program(self, kind: str) -> dict[str, Any]:
        """What the program says of its step, or steps, of a kind."""
        (said,) = (each for each in self.told["program"] if each["kind"] == kind)
        return dict(said)

    def sums(self, kind: str, of: str) -> Counter[str]:
        """``events`` or ``ns`` of these steps, as traced."""
        said = self.program(kind)
        steps = range(said["step"], said.get("last", said["step"]) + 1)
        total: Counter[str] = Counter()
        for piece in self.told["pieces"]:
            if piece["step"] in steps:
                total.update(piece[of])
        return total


@pytest.fixture(scope="module")
def account(memory: Examination) -> Account:
    return Account(memory.json("events"))


def test_functions_can_be_traced_here(account: Account) -> None:
    timed = ("fault count", "fault", "hint faults", "numa_migrate")
    assert {account.told["sources"][name] for name in timed} == {"fentry", "task+fentry"}


@pytest.mark.parametrize("kind", ["remote", "local", "mixed"])
def test_the_remote_share_is_what_the_program_did(account: Account, kind: str) -> None:
    said, counted = account.program(kind), account.sums(kind, "events")

    pages = said["remote"] + said["local"]
    assert pages == 4000
    told = counted["alloc_remote"] + counted["alloc_local"]
    assert told == pytest.approx(pages, rel=0.02)
    assert counted["alloc_remote"] / told == pytest.approx(said["remote"] / pages, abs=0.02)


@pytest.mark.parametrize("kind", ["move_pages", "migrate_pages"])
def test_pages_moved_by_request_are_those_of_vmstat(account: Account, kind: str) -> None:
    said = account.program(kind)

    assert said["vmstat"] >= 2000
    assert account.sums(kind, "events")["migrate_request"] == said["vmstat"]


def test_what_the_balancer_did_is_in_vmstat_and_charged_to_the_step(account: Account) -> None:
    said, counted = account.program("balance"), account.sums("balance", "events")

    assert said["numa_pages_migrated"] >= 2000
    assert counted["migrate_balancer"] == said["numa_pages_migrated"]
    assert counted["hint_local"] == said["numa_hint_faults_local"]
    assert counted["hint_local"] + counted["hint_remote"] == said["numa_hint_faults"]
    ns = account.sums("balance", "ns")
    assert ns["numa_migrate"] > 1_000 * said["numa_pages_migrated"]


def test_moves_between_nodes_are_counted(account: Account) -> None:
    said = account.program("move_thread")

    assert account.sums("move_thread", "events")["move_node"] == said["moves"]


def test_the_time_of_faults_is_what_the_program_waited_for_them(account: Account) -> None:
    said, ns = account.program("fault"), account.sums("fault", "ns")

    on_top = sum(ns.values()) - ns["running"] - ns["fault"]
    assert ns["fault"] + on_top == pytest.approx(said["wall_ns"], rel=0.05)
    assert ns["fault"] > 0.5 * said["wall_ns"]


def test_books_close_to_the_nanosecond(account: Account) -> None:
    pieces = [piece for piece in account.told["pieces"] if piece["step"]]

    assert [p for p in pieces if sum(p["ns"].values()) != p["span_ns"]] == []
    harmless = ("blame_overwritten", "blame_migrated", "clock_backwards")
    # NUMA balancing takes the mark page away, too, until the next mark brings it back.
    harmless += ("mark_unreadable", "mark_implausible")
    lost = {why: n for why, n in account.told["lost"].items() if n and why not in harmless}
    assert lost == {}
