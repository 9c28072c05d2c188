"""Series of tenants that are gone are left out, and nobody else's."""

from __future__ import annotations

import numpy as np
import pytest

from tracer import catalog
from tracer.agent.expiry import AFTER_SECONDS, Expiry
from tracer.ledger.labels import OTHER
from tracer.model import Exemplar, Family, Histogram

ONE = Histogram(np.array([1, 0]), 0.1)
EXEMPLAR = Exemplar(0.1, {}, 0.0)


def node(signs: Family) -> list[Family]:
    """What was counted since the start, for two tenants, and what is said of now."""
    return [
        Family(
            catalog.STEP_ELAPSED,
            {("chat", "decode"): ONE, ("batch", "decode"): ONE, (OTHER, "decode"): ONE},
            np.array([1.0]),
            {("chat", "decode"): [EXEMPLAR], ("batch", "decode"): [EXEMPLAR]},
        ),
        Family(catalog.BLAME, {("chat", "batch", "preempted"): 1.0, ("batch", "x", "quota"): 1.0}),
        Family(catalog.LOST, {("mark_torn",): 1.0}),
        signs,
    ]


def tenants(families: list[Family]) -> set[str]:
    return {labels[0] for labels in families[0].rows}


BOTH = Family(catalog.TARGETS, {("chat",): 1.0, ("batch",): 1.0})
CHAT_ALONE = [
    Family(catalog.TARGETS, {("chat",): 1.0, ("batch",): 0.0}),
    Family(catalog.STEP_RATIO, {("chat", "decode"): 1.5}),
    Family(catalog.DESCHEDULE_WINDOW_COUNT, {("chat",): 7.0, ("batch",): 0.0}),
]


@pytest.mark.parametrize("sign", CHAT_ALONE, ids=lambda family: family.metric.name)
def test_who_shows_a_sign_of_life_stays_and_who_does_not_goes_after_a_while(sign):
    expiry = Expiry()
    expiry.living(node(BOTH), 0)

    assert {"chat", "batch", OTHER} == tenants(expiry.living(node(sign), AFTER_SECONDS))
    steps, blame, lost, _ = expiry.living(node(sign), AFTER_SECONDS + 1)
    assert {"chat", OTHER} == {tenant for tenant, _ in steps.rows}
    assert {("chat", "decode")} == steps.exemplars.keys()
    assert [("chat", "batch", "preempted")] == list(blame.rows)
    assert [("mark_torn",)] == list(lost.rows)


def test_who_comes_back_is_shown_again():
    expiry = Expiry()
    expiry.living(node(BOTH), 0)
    expiry.living(node(CHAT_ALONE[0]), 2 * AFTER_SECONDS)

    assert {"chat", "batch", OTHER} == tenants(expiry.living(node(BOTH), 2 * AFTER_SECONDS + 5))


def test_what_the_families_themselves_are_is_not_changed():
    expiry = Expiry()
    expiry.living(node(BOTH), 0)
    given = node(CHAT_ALONE[0])
    expiry.living(given, 2 * AFTER_SECONDS)

    assert {"chat", "batch", OTHER} == tenants(given)
