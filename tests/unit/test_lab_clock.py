"""A guest's clock in terms of ours, and stalls in terms of the guest's clock."""

from hypothesis import given
from hypothesis import strategies as st

from lab.clock import ClockMap, Exchange, clock_map
from lab.stall import Interval, interval

SECOND = 1_000_000_000


def test_quickest_exchange_is_the_one_believed() -> None:
    slow = Exchange(asked_ns=0, guest_ns=9_000, answered_ns=10_000)
    quick = Exchange(asked_ns=20_000, guest_ns=120_100, answered_ns=20_200)

    assert ClockMap(offset_ns=100_000, uncertainty_ns=100) == clock_map([slow, quick])


@given(
    offset_ns=st.integers(-1000 * SECOND, 1000 * SECOND),
    trips_ns=st.lists(
        st.tuples(st.integers(0, SECOND), st.integers(0, SECOND)), min_size=1, max_size=20
    ),
)
def test_true_offset_is_within_the_uncertainty(
    offset_ns: int, trips_ns: list[tuple[int, int]]
) -> None:
    exchanges = [Exchange(7, 7 + there + offset_ns, 7 + there + back) for there, back in trips_ns]

    found = clock_map(exchanges)

    assert abs(found.offset_ns - offset_ns) <= found.uncertainty_ns


def test_each_end_of_a_stall_is_mapped_by_the_clock_read_beside_it() -> None:
    before, after = ClockMap(1_000, 20), ClockMap(1_010, 30)

    stall = interval("stall", {2, 0}, start=(before, 100, 110), end=(after, 500, 540))

    assert Interval("stall", 1_105, 1_530, uncertainty_ns=50, cpus=(0, 2)) == stall
