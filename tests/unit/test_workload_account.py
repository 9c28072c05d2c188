"""The RL workload's own account: quantiles of what it timed, by step and tenant."""

from __future__ import annotations

import io

from workloads.rl_sampling.account import Account, Timed, read, summarise, write

MS = 1_000_000


def steps(kind: str, durations_ms: list[int], tenants: dict[str, int]) -> list[Timed]:
    return [Timed(kind, 1, 0, duration * MS, tenants) for duration in durations_ms]


def test_quantiles_are_values_that_occurred() -> None:
    (summary,) = summarise(steps("forward", list(range(1, 2001)), {}))

    assert (
        summary.count,
        summary.p50_ms,
        summary.p99_ms,
        summary.p999_ms,
        summary.max_ms,
    ) == (2000, 1000.0, 1980.0, 1998.0, 2000.0)


def test_a_shared_step_counts_for_each_of_its_tenants_and_once_for_all() -> None:
    rows = steps("infer", [10, 20], {"a": 3, "b": 1}) + steps("infer", [30], {"b": 4})

    counts = {summary.tenant: summary.count for summary in summarise(rows)}
    assert counts == {None: 3, "a": 2, "b": 3}


def test_a_kind_is_spread_from_its_first_begin_to_its_last_end() -> None:
    rows = [Timed("infer", 1, 500 * MS, 600 * MS, {}), Timed("infer", 1, 900 * MS, 1000 * MS, {})]
    other = Timed("sample", 2, 0, 9000 * MS, {})

    assert [(s.count, s.seconds) for s in summarise([*rows, other])] == [(2, 0.5), (1, 9.0)]


def test_nothing_timed_is_no_row() -> None:
    assert summarise([]) == []


def test_rows_survive_being_written() -> None:
    own, file = Account(), io.StringIO()
    with own.timed("infer", {"a": 3}):
        own.add("queued", 1, 2, {"a": 1})

    write(own.rows, file)
    file.seek(0)

    assert list(own.rows) == read(file)
    assert [row.step for row in own.rows] == ["queued", "infer"]
