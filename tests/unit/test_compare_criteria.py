"""The criteria file: what it says by default, what it adds, and what is refused in one line."""

from __future__ import annotations

import pytest

from tracer.errors import UsageError
from tracer.judge.migration.criteria import Criteria, Criterion, load


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "criteria.yaml"
        path.write_text(text)
        return path

    return write


def refused(path):
    with pytest.raises(UsageError) as refusal:
        load(path)
    message = str(refusal.value)
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def limits(criteria):
    return {c.figure: (c.at_most, c.at_least, c.max_ratio, c.min_ratio) for c in criteria.all}


DEFAULTS = {
    "deschedule_p999": (0.001, None, None, None),
    "step_p999_p50": (2.0, None, 1.25, None),
    "step_p50": (None, None, 1.05, None),
    "steps_per_second": (None, None, None, 0.95),
    "misplaced_segments": (0.0, None, None, None),
}


def test_an_empty_file_has_the_defaults(written):
    assert load(written("")) == Criteria()
    assert limits(Criteria()) == DEFAULTS


def test_a_criterion_replaces_the_default_about_its_figure_and_others_are_added(written):
    criteria = load(
        written(
            "criteria:\n"
            "  - {figure: step_p50, max_ratio: 1.2}\n"
            "  - {figure: numa_nodes, at_least: 2, at_most: 2}\n"
            "max_rate_change: 3\n"
        )
    )

    assert limits(criteria) == DEFAULTS | {
        "step_p50": (None, None, 1.2, None),
        "numa_nodes": (2.0, 2.0, None, None),
    }
    assert criteria.max_rate_change == 3


def test_defaults_can_be_left_out(written):
    criteria = load(
        written(
            "defaults: false\ncriteria:\n  - {figure: queue_wait_p99, tenant: chat, at_most: 1}"
        )
    )

    assert criteria.all == (Criterion(figure="queue_wait_p99", tenant="chat", at_most=1.0),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("criteria: 5", "criteria is '5', must be a list"),
        ("criterion: []", "'criterion': no such key, must be one of criteria, defaults,"),
        ("criteria: [{figure: p50, at_most: 1}]", "criteria[0].figure is 'p50', must be one of"),
        ("criteria: [{figure: step_p50}]", "criteria[0].at_most, at_least, max_ratio, min_ratio"),
        ("criteria: [{at_most: 1}]", "criteria[0].figure is missing and has no default"),
        (
            "criteria: [{figure: step_p50, at_most: fast}]",
            "criteria[0].at_most is 'fast', must be a number",
        ),
        (
            "criteria: [{figure: step_p50, at_most: -1}]",
            "criteria[0].at_most is -1.0, must be above 0",
        ),
        (
            "criteria: [{figure: step_p50, at_most: nan}]",
            "criteria[0].at_most is nan, must be above 0",
        ),
        (
            "criteria: [{figure: step_p50, limit: 1}]",
            "criteria[0].'limit': no such key, must be one of figure, at_most,",
        ),
        (
            "criteria: [{figure: deschedule_p50, at_most: 1, step: decode}]",
            "criteria[0].step is 'decode', must be left out here",
        ),
        (
            "criteria: [{figure: numa_nodes, at_most: 1, tenant: chat}]",
            "criteria[0].tenant is 'chat', must be left out here",
        ),
        (
            "criteria: [{figure: numa_nodes, at_least: 4, at_most: 2}]",
            "criteria[0].at_least is 4.0, must be no more than at_most, 2",
        ),
        ("defaults: false", "defaults is False, must be true without criteria"),
        ("confidence: 0.5", "confidence is 0.5, must be 0.9 to 0.9999"),
        ("defaults: maybe", "defaults is 'maybe', must be true or false"),
        ("- 1", "the file is ['1'], must be a mapping of keys to values"),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_what_is_allowed(written, text, said):
    assert refused(written(text)).startswith(said)
