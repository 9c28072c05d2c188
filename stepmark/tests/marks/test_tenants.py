"""Whom a step serves, and with what weight."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stepmark.shares import MAX_WEIGHT, scaled

from stepmark import page as layout


def test_weights_are_kept_and_the_largest_is_the_current_tenant(python):
    engine = python("with step('decode', {'batch': 2, 'chat': 30, 'probe': 1}): pause()")
    page = engine.page()

    assert page.slot().tenant == "chat"
    engine.go_on()
    assert [it.shares for it in page.done()] == [{"chat": 30, "batch": 2, "probe": 1}]


def test_of_many_tenants_the_largest_are_kept_and_the_rest_is_counted(python):
    engine = python(
        "many = {f't{i}': i + 1 for i in range(11)}\n"
        "for _ in range(2):\n    with step('decode', many): pass\n"
        "print(stepmark.status().lost['shares_full'])"
    )
    page = engine.page()

    largest = {f"t{i}": i + 1 for i in range(3, 11)}
    assert [it.shares for it in page.done()] == [largest] * 2
    assert len(largest) == layout.SHARES
    assert page.lost() == [0, 0, 0, 2 * 3]
    assert engine.said == ["6"]


def test_one_name_is_one_tenant_in_whole(python):
    assert [it.shares for it in python("with step('a', 'chat'): pass").page().done()] == [
        {"chat": 1}
    ]


def test_a_mapping_of_any_class_will_do(python):
    engine = python(
        "from collections import UserDict\n"
        "tenants = UserDict(chat=2)\n"
        "with step('a', tenants): pass\n"
        "tenants['batch'] = 1\n"
        "with step('a', tenants): pass\n"
    )

    assert [it.shares for it in engine.page().done()] == [{"chat": 2}, {"chat": 2, "batch": 1}]


def test_an_empty_mapping_is_nobody(python):
    engine = python("with step('a', 'chat'):\n    with step('b', {}): pass")

    assert [it.shares for it in engine.page().done()] == [{}, {"chat": 1}]


@pytest.mark.parametrize(
    ("tenants", "said"),
    [
        ("{'chat': 0}", "weight of tenant 'chat' is 0, must be at least 1"),
        ("{'chat': -3}", "weight of tenant 'chat' is -3, must be at least 1"),
        ("{'chat': 1.5}", "weight of tenant 'chat' is 1.5, must be an integer"),
        ("{'chat': None}", "weight of tenant 'chat' is None, must be an integer"),
        ("{7: 1}", "tenant is 7, must be a str"),
        ("7", "tenants are 7, must be a name or a mapping of names to weights"),
        ("['chat']", "tenants are ['chat'], must be a name or a mapping of names to weights"),
    ],
)
def test_what_is_no_weight_or_name_is_refused_in_one_line(python, tenants, said):
    code = "try: {}\nexcept (TypeError, ValueError) as error: print(error)\n"
    engine = python(
        code.format(f"step('decode', {tenants})") + code.format(f"tick('decode', {tenants})")
    )

    assert engine.said == [said, said]


@given(st.lists(st.integers(1, 2**80), min_size=1, max_size=8))
def test_scaled_weights_fit_and_keep_their_proportions(weights):
    weights = sorted(weights, reverse=True)
    fitted = scaled(weights)

    assert all(1 <= weight <= MAX_WEIGHT for weight in fitted)
    for weight, fit in zip(weights, fitted):
        # Whole numbers: off by less than one, except where less than one would be left.
        assert abs(fit - weight * fitted[0] / weights[0]) <= 1


def test_large_weights_are_scaled(python):
    engine = python("with step('decode', {'chat': 2**40, 'batch': 2**39}): pass")

    assert [it.shares for it in engine.page().done()] == [
        {"chat": MAX_WEIGHT, "batch": MAX_WEIGHT // 2}
    ]
