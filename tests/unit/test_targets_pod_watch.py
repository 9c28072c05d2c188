"""When the kubelet is asked, and what is known meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.kubelet.answers import CHAT, CHAT_UID, pod, pod_list
from tests.kubelet.server import running_kubelet
from tracer.catalog import KUBELET_LOSSES
from tracer.config import Kubelet as Settings
from tracer.model import Capability
from tracer.targets import pod_watch
from tracer.targets.kubelet import Reason
from tracer.targets.pod_watch import PodWatch

BATCH_UID = "2f0c6d27-3e6a-4b5c-9d8e-7a6b5c4d3e2f"
BATCH = pod(BATCH_UID, name="batch-0")


@pytest.fixture
def server(tmp_path):
    with running_kubelet(tmp_path) as server:
        server.body = pod_list(CHAT)
        yield server


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(pod_watch, "_PAUSE_SECONDS", 0.01)


def eventually(holds: Callable[[], object]) -> None:
    for _ in range(2000):
        if holds():
            return
        time.sleep(0.01)
    pytest.fail("did not happen")


def test_without_a_kubelet_nothing_is_known_and_nobody_is_asked():
    with PodWatch(Settings()) as pods:
        pods.ask()

        assert pods.find(CHAT_UID) is None
        assert not pods.is_asking_for(CHAT_UID)
    assert () == pods.capabilities
    assert {} == pods.losses


def test_pods_are_known_after_the_first_answer(server):
    with PodWatch(server.settings()) as pods:
        eventually(lambda: pods.find(CHAT_UID))

    assert (Capability("pods", "kubelet"),) == pods.capabilities


def test_a_new_pod_is_asked_for_at_once(server):
    with PodWatch(server.settings(interval_seconds=3600)) as pods:
        eventually(lambda: pods.find(CHAT_UID))
        server.body = pod_list(CHAT, BATCH)

        eventually(lambda: pods.find(BATCH_UID))


def test_a_pod_that_the_kubelet_does_not_know_is_asked_for_once(server):
    with PodWatch(server.settings(interval_seconds=3600)) as pods:
        eventually(lambda: pods.find(CHAT_UID))
        pods.find(BATCH_UID)
        assert pods.is_asking_for(BATCH_UID)
        eventually(lambda: not pods.is_asking_for(BATCH_UID))

        asked = len(server.requests)
        for _ in range(20):
            assert pods.find(BATCH_UID) is None
            time.sleep(0.01)
        assert asked == len(server.requests)


def test_labels_are_read_again_after_the_interval(server):
    with PodWatch(server.settings()) as pods:
        pods._interval = 0.02  # less than a configuration may say
        eventually(lambda: pods.find(CHAT_UID))
        server.body = pod_list(pod(CHAT_UID, labels={"tier": "silver"}))

        eventually(lambda: pods.find(CHAT_UID).labels.get("tier") == "silver")


def test_a_deleted_pod_is_remembered_for_one_answer_more(server):
    pods = PodWatch(server.settings())
    pods.ask()
    server.body = pod_list(BATCH)
    pods.ask()
    assert pods.find(CHAT_UID)

    pods.ask()
    assert pods.find(CHAT_UID) is None


def test_what_was_known_stays_known_while_the_kubelet_refuses(server, caplog):
    pods = PodWatch(server.settings())
    pods.ask()
    server.status, server.body = 403, b"no"
    for _ in range(3):
        pods.ask()

    assert pods.find(CHAT_UID)
    assert {"kubelet_refuses": 3} == pods.losses
    (capability,) = pods.capabilities
    assert not capability.available
    assert capability.reason.endswith("status 403: no; let the service account get nodes/pods")
    assert len(caplog.records) == 1

    server.status, server.body = 200, pod_list(CHAT)
    pods.ask()
    assert (Capability("pods", "kubelet"),) == pods.capabilities


def test_what_is_not_running_asks_for_nothing(server):
    pods = PodWatch(server.settings())
    pods.ask()
    pods.find(BATCH_UID)

    assert not pods.is_asking_for(BATCH_UID)


def test_stopping_does_not_wait_for_a_kubelet_that_hangs(server):
    server.chunks = []
    with PodWatch(server.settings()) as pods:
        eventually(lambda: server.requests)
    assert pods.find(CHAT_UID) is None


def test_every_reason_is_a_loss_with_a_name():
    assert [f"kubelet_{reason}" for reason in Reason] == [loss.name for loss in KUBELET_LOSSES]
