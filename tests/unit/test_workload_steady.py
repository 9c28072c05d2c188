"""The steady workload: no step before it is due, whatever the machine does."""

from __future__ import annotations

import pytest

from workloads.steady import run


@pytest.mark.parametrize(("period_s", "most"), [(0.05, 4), (0.2, 1)])
def test_there_are_no_more_steps_than_its_pace_allows(period_s, most):
    assert 1 <= run(duration_s=0.19, period_s=period_s, work=3) <= most
