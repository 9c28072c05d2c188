"""What a verdict rests on, when it refuses to be one, and how it is told."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.unit.recorded import Drains, meta
from tests.unit.synthetic import DESCHEDULES, STEPS, distribution, machine, sample
from tracer.catalog import CAUSES
from tracer.judge.migration import phrases
from tracer.judge.migration.changes import PARTS, Change
from tracer.judge.migration.chart import chart
from tracer.judge.migration.compare import compare
from tracer.judge.migration.criteria import Criteria, Criterion
from tracer.judge.migration.html import as_html
from tracer.judge.migration.intervals import quantile_interval, student
from tracer.judge.migration.text import WIDTH, as_dict, as_lines, as_markdown
from tracer.judge.migration.verdict import Outcome, judge
from tracer.record.meta import MachineKind
from tracer.record.recorder import Recorder
from tracer.record.recording import Recording

GOOD = replace(STEPS, tail_from=0.011, steepness=6.0)
VM = machine(MachineKind.VIRTUAL, cpus=88, numa_nodes=1)


def good(seed=1, windows=120, **changed):
    return sample(np.random.default_rng(seed), windows, GOOD, **changed)


def finding(verdict, figure):
    (found,) = (f for f in verdict.findings if f.criterion.figure == figure)
    return found


@pytest.fixture
def before():
    return good(1)


@pytest.fixture
def after():
    return good(2)


# What it rests on.


def test_every_default_criterion_is_judged_with_both_sides_ratio_and_counts(before, after):
    verdict = judge(before, after, Criteria())

    assert [f.criterion.figure for f in verdict.findings] == [
        "deschedule_p999",
        "step_p999_p50",
        "step_p50",
        "steps_per_second",
    ]
    p50 = finding(verdict, "step_p50")
    assert p50.before.interval.low < 0.010 < p50.before.interval.high
    assert p50.ratio.low < 1 < p50.ratio.high
    assert p50.before.observations == before.elapsed["chat", "decode"].observations
    assert (verdict.outcome, verdict.exit_code) == (Outcome.PASS, 0)


def test_one_criterion_that_does_not_hold_fails_the_verdict(before):
    after = good(2, deschedules=replace(DESCHEDULES, tail_from=0.4))

    verdict = judge(before, after, Criteria())

    assert finding(verdict, "deschedule_p999").outcome is Outcome.FAIL
    assert finding(verdict, "step_p50").outcome is Outcome.PASS
    assert (verdict.outcome, verdict.exit_code) == (Outcome.FAIL, 1)


def test_numa_nodes_are_what_they_are(before, after):
    two = Criteria(criteria=(Criterion(figure="numa_nodes", at_least=2, at_most=2),))
    one = replace(after, meta=meta(machine=machine(numa_nodes=1)))
    unknown = replace(after, meta=meta(machine=machine(numa_nodes=None)))

    outcomes = [
        finding(judge(before, side, two), "numa_nodes").outcome for side in (after, one, unknown)
    ]

    assert outcomes == [Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE]
    assert phrases.limits(two.criteria[0]) == "exactly 2"


def test_a_segment_on_the_wrong_node_fails_and_what_is_not_told_does_not_pass(before, after):
    none = Criteria(criteria=(Criterion(figure="misplaced_segments", at_most=0),))

    outcomes = [
        finding(
            judge(before, replace(after, misplaced_segments=misplaced), none), "misplaced_segments"
        ).outcome
        for misplaced in (0, 1, None)
    ]

    assert outcomes == [Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE]


def test_segments_are_judged_by_default_where_memory_is_told(before, after):
    told, untold = (
        judge(before, replace(after, misplaced_segments=misplaced), Criteria())
        for misplaced in (1, None)
    )

    assert finding(told, "misplaced_segments").outcome is Outcome.FAIL
    assert untold.outcome is Outcome.PASS
    assert untold.remarks == [
        "misplaced_segments is not judged: nothing is told of it after the migration."
    ]


def test_rare_kinds_and_stages_are_judged_only_when_named(before, after):
    rare = distribution(120, np.arange(120), np.full(120, 0.001))
    sides = [
        replace(
            side,
            elapsed={**side.elapsed, ("chat", "reset"): rare, ("chat", "copy"): rare},
            stages=frozenset({("chat", "copy")}),
        )
        for side in (before, after)
    ]
    named = Criterion(figure="step_p50", tenant="chat", step="copy", max_ratio=1.5)

    by_default = judge(*sides, Criteria())
    verdict = judge(*sides, Criteria(criteria=(named,)))

    assert {(f.tenant, f.step) for f in by_default.findings} == {("chat", "decode"), ("chat", "")}
    assert [(f.step, f.outcome) for f in verdict.findings if f.criterion == named] == [
        ("copy", Outcome.PASS)
    ]


def test_what_went_away_and_what_appeared_is_told_by_tier(before, after):
    stolen, faulty = before.causes.copy(), after.causes.copy()
    names = [cause.name for cause in CAUSES]
    stolen[:, names.index("steal")] = stolen[:, 0] / 2
    faulty[:, names.index("lock")] = faulty[:, 0] / 2
    verdict = judge(replace(before, causes=stolen), replace(after, causes=faulty), Criteria())

    change = {change.name: change.change for change in verdict.causes}

    assert change["steal"] is change["0 hypervisor"] is Change.GONE
    assert change["lock"] is change["waited"] is Change.APPEARED
    assert change["preempted"] is Change.SAME
    assert change["stall"] is Change.UNKNOWN


def test_every_cause_is_in_one_part():
    assert sorted(c for causes in PARTS.values() for c in causes) == sorted(c.name for c in CAUSES)


# When it refuses.


def reasons(verdict):
    assert (verdict.outcome, verdict.exit_code) == (Outcome.INCONCLUSIVE, 3)
    said = [f.reason for f in verdict.findings if f.outcome is Outcome.INCONCLUSIVE]
    assert all(said)
    return " | ".join([*said, *(objection.text for objection in verdict.objections)])


def test_short_recordings_are_inconclusive_and_it_says_how_long_to_record():
    verdict = judge(good(1, windows=12), good(2, windows=120), Criteria())

    assert "before: 12 windows only; record at least 5 minutes" in reasons(verdict)


def test_too_few_steps_are_inconclusive_and_it_says_how_long_to_record():
    few = replace(GOOD, per_window=30)
    sides = (sample(np.random.default_rng(seed), 60, few) for seed in (1, 2))

    said = finding(judge(*sides, Criteria()), "step_p999_p50").reason

    minutes = int(re.search(r"too few samples; about (\d+) minutes of each", said)[1])
    assert 20 <= minutes <= 320


def test_a_figure_on_its_limit_is_not_settled_by_recording_longer(before, after):
    limit = before.elapsed["chat", "decode"].quantile(0.5)
    on_it = Criteria(criteria=(Criterion(figure="step_p50", at_most=limit),))

    assert "would not settle it soon" in finding(judge(after, before, on_it), "step_p50").reason


def test_another_mix_of_steps_is_another_workload(before, after):
    prefill = after.elapsed["chat", "decode"]
    mixed = replace(after, elapsed={**after.elapsed, ("chat", "prefill"): prefill})

    said = reasons(judge(before, mixed, Criteria()))

    assert "the work differs: 50 % of the steps are of another tenant or kind" in said


def test_another_load_is_another_workload(before):
    busy = sample(np.random.default_rng(2), 120, replace(GOOD, per_window=900))

    said = reasons(judge(before, busy, Criteria()))

    assert re.search(
        r"the load differs: [23]\d\.\d+ steps a second before, [89]\d\.\d* after", said
    )


def test_deschedules_are_not_judged_where_the_hypervisor_is_not_seen(before, after):
    blind = meta(machine=VM, cannot_tell={"steal": "no clock", "stall": "not measured"})

    verdict = judge(replace(before, meta=blind), after, Criteria())

    assert "before: a virtual machine, where what the hypervisor took cannot be told" in reasons(
        verdict
    )
    assert finding(verdict, "step_p50").outcome is Outcome.PASS
    assert finding(verdict, "deschedule_p999").reason == (
        "cannot be compared: steal unknown before"
    )


@pytest.mark.parametrize(
    "side",
    [
        meta(machine=VM, cannot_tell={"stall": "not measured"}),
        meta(machine=VM, cannot_tell={"steal": "no clock"}),
        meta(machine=machine(), cannot_tell={"steal": "no clock", "stall": "not measured"}),
    ],
)
def test_steal_or_stalls_or_no_hypervisor_at_all_is_enough(before, after, side):
    assert judge(replace(before, meta=side), after, Criteria()).outcome is Outcome.PASS


def test_losses_that_falsify_refuse_and_harmless_ones_do_not(before, after):
    falsified = replace(after, lost={"pieces_ring_full": 1000, "blame_migrated": 5})
    harmless = replace(after, lost={"blame_migrated": 10_000, "mark_torn": 1})

    assert "after: lost pieces_ring_full 1,000;" in reasons(judge(before, falsified, Criteria()))
    assert judge(before, harmless, Criteria()).outcome is Outcome.PASS


def test_what_fails_without_doubt_fails_whatever_else_is_unknown(before):
    blind = meta(machine=VM, cannot_tell={"steal": "no clock", "stall": "not measured"})
    slow = sample(np.random.default_rng(2), 120, replace(GOOD, median=0.014))

    assert judge(replace(before, meta=blind), slow, Criteria()).outcome is Outcome.FAIL


def test_nothing_observed_is_no_pass(before, after):
    nothing = replace(after, elapsed={}, deschedules={}, steps=np.zeros(120))

    assert "nothing was observed after" in reasons(judge(before, nothing, Criteria()))


# Intervals.


def test_the_median_of_what_is_always_equal_is_exact_and_its_interval_narrow():
    same = distribution(60, np.repeat(np.arange(60), 100), np.full(6000, 0.0103))

    interval = quantile_interval(same, 0.5, 0.95)

    assert interval.value == pytest.approx(0.0103)
    assert [interval.low, interval.high] == pytest.approx([0.0103, 0.0103], rel=0.001)


def test_too_few_observations_leave_the_tail_without_bound():
    few = distribution(30, np.arange(30), np.linspace(0.001, 0.030, 30))

    assert quantile_interval(few, 0.999, 0.95).high == float("inf")


@pytest.mark.parametrize(("free", "published"), [(3, 3.182), (8, 2.306), (30, 2.042)])
def test_students_quantiles_are_those_of_tables(free, published):
    assert published == pytest.approx(student(0.95, free), rel=0.03 if free == 3 else 0.001)


# From recordings.


@pytest.fixture
def recordings(tmp_path):
    paths = [tmp_path / "before.db", tmp_path / "after.db"]
    for seed, path in enumerate(paths):
        drains = Drains(seed)
        with Recorder(path, meta(machine=VM, started_unix_ns=seed)) as recorder:
            for _ in range(35):
                recorder.write(drains.window())
    with Recording.open(paths[0]) as before, Recording.open(paths[1]) as after:
        yield before, after


def test_recordings_are_compared_and_a_recording_with_itself_has_no_effect(recordings):
    before, after = recordings

    verdict = compare(before, after, Criteria())
    itself = compare(before, before, Criteria())

    same = "before and after are the same recording."
    assert (same in itself.remarks, same in verdict.remarks) == (True, False)
    assert {f.tenant for f in verdict.findings} == {"chat", "batch", "search", "other"}
    assert [f.ratio.value for f in itself.findings if f.ratio] == [1.0] * len(itself.findings)
    assert sum(verdict.before.steps) == before.summary().steps
    by_cause = {c.name: c.before.value for c in verdict.causes if c.before and not c.is_part}
    of_summary = sum(row.seconds["lock"] for row in before.summary().rows if not row.is_stage)
    assert of_summary / before.summary().steps == pytest.approx(by_cause["lock"])


def test_a_recording_of_nothing_is_inconclusive(tmp_path, recordings):
    with Recorder(tmp_path / "empty.db", meta()):
        pass
    with Recording.open(tmp_path / "empty.db") as empty:
        verdict = compare(recordings[0], empty, Criteria())

    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "after: 0 windows only" in "\n".join(as_lines(verdict))


# How it is told.

HOSTILE = "<script>alert('x')</script>|`rm`\\"


@pytest.fixture
def hostile(before, after):
    """A verdict about a tenant whose name is an attack, and of every outcome."""
    sides = [
        replace(
            side,
            elapsed={(HOSTILE, HOSTILE): side.elapsed["chat", "decode"]},
            deschedules={HOSTILE: side.deschedules["chat"]},
            lost={"mark_torn": 99_999},
        )
        for side in (before, after)
    ]
    return judge(*sides, Criteria(), ["a <remark>"])


def test_text_fits_and_says_all(before, after):
    lines = as_lines(judge(before, after, Criteria(), ["before: a remark."]))

    assert lines[0] == "PASS: every criterion holds"
    assert max(map(len, lines)) <= WIDTH
    text = "\n".join(lines)
    assert "PASS          step_p50 of chat decode: at most 1.05 times before" in text
    assert "before: 20.0 minutes" in text
    assert "before: a remark." in text
    assert re.search(r"running +9\.\d+ ms +9\.\d+ ms  no change told", text)


def test_json_is_json_and_has_no_infinity(before):
    few = distribution(120, np.arange(120), np.full(120, 0.01))
    after = replace(before, elapsed={("chat", "decode"): few})
    verdict = judge(before, after, Criteria())

    again = json.loads(json.dumps(as_dict(verdict), allow_nan=False))

    tail = next(f for f in again["findings"] if f["figure"] == "step_p999_p50")
    assert tail["after"]["high"] is None
    assert tail["after"]["observations"] == 120
    assert (again["outcome"], again["exit_code"]) == (verdict.outcome, verdict.exit_code)
    assert again["after"]["machine"]["kind"] == "bare metal"


def test_markdown_has_a_row_for_each_finding_and_escapes_names(hostile):
    text = as_markdown(hostile)

    assert "<script>" not in text
    rows = [line for line in text.splitlines() if line.startswith("| inconclusive")]
    assert len(rows) == len(hostile.findings)
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {10}


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.open = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_html_is_one_file_without_script_and_escapes_names(hostile):
    page = as_html(hostile)

    tags = _Tags()
    tags.feed(page)
    assert tags.open == []
    assert not {"script", "link", "img", "iframe"} & set(tags.tags)
    assert not {"src", "href", "onload"} & set(tags.attributes)
    assert tags.tags.count("svg") == 2
    assert "&lt;script&gt;" in page


def test_a_chart_draws_both_distributions_from_all_to_the_rarest(before, after):
    svg = chart("a <title>", before.elapsed["chat", "decode"], after.elapsed["chat", "decode"])

    curves = _curves(svg)
    assert len(curves) == 2
    for path in curves:
        x = [float(n) for n in re.findall(r"[MH]([\d.]+)", path.get("d"))]
        y = [float(n) for n in re.findall(r"[V,]([\d.]+)", path.get("d"))]
        assert x == sorted(x)
        assert y == sorted(y)
        assert 0 <= min(x) <= max(x) <= 530
        assert 0 <= min(y) <= max(y) <= 300


@pytest.mark.parametrize(("times", "outcome"), [(2, Outcome.PASS), (0.5, Outcome.FAIL)])
def test_a_limit_is_drawn_right_of_a_curve_that_keeps_it(before, after, times, outcome):
    p999 = quantile_interval(after.deschedules["chat"], 0.999, 0.95).value
    limit = Criterion(figure="deschedule_p999", at_most=times * p999)
    verdict = judge(before, after, Criteria(criteria=(limit,), defaults=False))

    page = as_html(verdict)

    svg = page[page.index("<svg") : page.index("</svg>") + len("</svg>")]
    _, curve = _curves(svg)
    (bar,) = re.findall(r'<path d="M([\d.]+),([\d.]+)V([\d.]+)" stroke="#1a1a1a"', svg)
    x, top, bottom = map(float, bar)
    points = re.findall(r"H([\d.]+)V([\d.]+)", curve.get("d"))
    crossing = next(float(at) for at, y in points if float(y) >= (top + bottom) / 2)
    assert verdict.outcome is outcome
    assert (crossing < x) is (outcome is Outcome.PASS)
    assert "p999 at most " in svg


def _curves(svg):
    return [path for path in ElementTree.fromstring(svg) if path.get("fill") == "none"]
