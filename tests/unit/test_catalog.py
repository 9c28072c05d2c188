"""The catalog says what the wire format says, and its metrics keep Prometheus' rules."""

from __future__ import annotations

import re

import pytest

from tracer import catalog
from tracer.catalog import Group, Type
from tracer.config import Kubelet
from tracer.host.machine import Machine
from tracer.judge import locality
from tracer.kernel.btf import Btf, wire
from tracer.kernel.hooks import plan
from tracer.memory.accesses import remote_accesses
from tracer.targets.mark_file import Reason
from tracer.targets.pod_watch import PodWatch


def test_causes_are_in_the_kernels_order():
    assert [cause.name for cause in catalog.CAUSES] == wire().names("cause", "CAUSE_")


def test_events_are_in_the_kernels_order_and_behind_a_capability():
    assert [event.name for event in catalog.EVENTS] == wire().names("event", "EVENT_")
    assert {event.capability for event in catalog.EVENTS} <= catalog.CAPABILITIES.keys()


def test_losses_are_in_the_kernels_order():
    assert [loss.name for loss in catalog.KERNEL_LOSSES] == wire().names("lost", "LOST_")


def test_engine_losses_are_in_the_mark_pages_order():
    fields = wire().dtype("stepmark_header").names or ()
    counters = [field for field in fields if field.startswith("lost_")]

    assert [loss.name.replace("mark", "lost") for loss in catalog.ENGINE_LOSSES] == counters


def test_every_reason_to_refuse_a_mark_page_is_named():
    named = {loss.name for loss in catalog.TARGET_LOSSES if loss.name.startswith("page_")}

    assert named == {f"page_{reason}" for reason in Reason} - {"page_no_page", "page_gone"}


def test_capabilities_are_those_that_are_probed():
    probed = [capability.name for capability in plan(Btf.of_kernel()).capabilities]
    probed += [locality.placement(Machine.read()).name, remote_accesses().name]
    probed += [each.name for each in PodWatch(Kubelet(host="node")).capabilities]

    assert sorted(probed) == sorted(catalog.CAPABILITIES)
    assert catalog.CAPABILITIES.keys() >= catalog.OPTIONAL_CAPABILITIES


def test_what_wanted_a_cpu_was_descheduled_and_what_waited_was_not():
    wanted = {cause.name for cause in catalog.CAUSES if cause.group is Group.WANTED}
    waited = {cause.name for cause in catalog.CAUSES if cause.group is Group.WAITED}

    assert set(catalog.DESCHEDULES) == wanted | {"steal", "stall"}
    assert not waited & set(catalog.DESCHEDULES)


def test_names_are_unique():
    names = [metric.name for metric in catalog.METRICS]

    assert sorted(set(names)) == sorted(names)
    assert len({loss.name for loss in catalog.LOSSES}) == len(catalog.LOSSES)
    assert catalog.LABELS.keys() == {label for m in catalog.METRICS for label in m.labels}


@pytest.mark.parametrize("metric", catalog.METRICS, ids=lambda metric: metric.name)
def test_a_metric_keeps_the_naming_rules(metric):
    assert re.fullmatch(r"tailtrace_[a-z0-9_]+", metric.name)
    assert (metric.type is Type.COUNTER) == metric.name.endswith("_total")
    assert not re.search(r"_(ns|us|ms|kb|mb|percent)(_|$)", metric.name)
    assert not {"pid", "tid", "step_number", "le", "job", "instance"} & set(metric.labels)


@pytest.mark.parametrize("metric", catalog.METRICS, ids=lambda metric: metric.name)
def test_a_metric_is_described_by_sentences(metric):
    assert re.fullmatch(r"(\d|[A-Z]).+\.", metric.help)
