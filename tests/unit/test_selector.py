"""Label selectors, as ``kubectl get --selector`` takes them."""

from __future__ import annotations

import pytest

from tracer.selector import parse

LABELS = {"app.kubernetes.io/name": "chat", "tier": "gold", "empty": ""}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("tier=gold", True),
        ("tier==gold", True),
        ("tier = gold, app.kubernetes.io/name=chat", True),
        ("tier=gold,app.kubernetes.io/name=batch", False),
        ("tier=gol", False),
        ("gold=tier", False),
        ("tier!=gold", False),
        ("tier!=silver", True),
        ("gpu!=a100", True),
        ("tier", True),
        ("gpu", False),
        ("!gpu", True),
        ("!tier", False),
        ("empty=", True),
        ("gpu=", False),
    ],
)
def test_a_selector_holds_when_all_of_its_terms_do(text, holds):
    assert holds == all(term.holds(LABELS) for term in parse(text))


@pytest.mark.parametrize("text", ["tier in (gold)", "a=b,", "=b", "!a=b", "a=b=c", "a=b\n", "!"])
def test_anything_else_is_no_selector(text):
    with pytest.raises(ValueError, match="terms such as app=chat"):
        parse(text)
