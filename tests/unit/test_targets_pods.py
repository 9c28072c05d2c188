"""A kubelet's list of pods: what is taken from it, and what it is not believed for."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kubelet.answers import CHAT, CHAT_UID, MIRROR, STATIC, STATIC_HASH, pod, pod_list
from tracer.targets.pods import parse


def test_pods_are_known_by_uid():
    chat = parse(pod_list(CHAT))[CHAT_UID]

    assert "team-a/chat-0" == chat.full_name
    assert "gold" == chat.labels["tier"]
    assert {"example.com/customer": "acme"} == chat.annotations


@pytest.mark.parametrize("static", [STATIC, MIRROR], ids=["the kubelet's", "the API server's"])
def test_a_static_pod_is_known_by_the_hash_in_its_control_group(static):
    assert "kube-system/etcd-node-1" == parse(pod_list(CHAT, static))[STATIC_HASH].full_name


def test_an_annotation_does_not_make_a_pod_another_one():
    forged = pod("22222222", name="evil", annotations={"kubernetes.io/config.hash": CHAT_UID})

    for order in ([CHAT, forged], [forged, CHAT]):
        assert "chat-0" == parse(pod_list(*order))[CHAT_UID].name


@pytest.mark.parametrize("answer", [pod_list(), b'{"kind": "PodList", "items": null}'])
def test_a_node_may_have_no_pods(answer):
    assert {} == parse(answer)


WRONG = {
    "no JSON": (b"<html>", "malformed"),
    "cut off": (pod_list(CHAT)[:-9], "truncated"),
    "nothing": (b"", "truncated"),
    "another kind": (b'{"kind": "NodeList", "items": []}', "Invalid enum value 'NodeList'"),
    "no kind": (b'{"items": []}', "missing required field `kind`"),
    "no uid": (b'{"kind": "PodList", "items": [{"metadata": {}}]}', "field `uid`"),
    "a number as name": (pod_list(pod("1", name=7)), "Expected `str`, got `int`"),
    "a name of another alphabet": (pod_list(pod("1", name="a\n")), "metadata.name"),
    "a long name": (pod_list(pod("1", name="a" * 254)), "metadata.name"),
    "a namespace with a path": (pod_list(pod("1", "../etc")), "metadata.namespace"),
    "a label with controls": (pod_list(pod("1", labels={"a": "\x1b"})), "metadata.labels"),
    "too many labels": (pod_list(pod("1", labels=dict.fromkeys(map(str, range(300)), ""))), "256"),
    "one uid twice": (pod_list(CHAT, CHAT), f"two pods have the uid {CHAT_UID}"),
    "too many": (pod_list(*(pod(str(n)) for n in range(2001))), "length <= 2000"),
    "nested too deep": (b'{"a":' * 100_000, "recursion"),
}


@pytest.mark.parametrize(("answer", "why"), WRONG.values(), ids=WRONG)
def test_what_is_no_list_of_pods_is_refused_whole(answer, why):
    with pytest.raises(ValueError, match=why.replace("(", r"\(")):
        parse(answer)


@given(st.binary() | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps))
def test_any_answer_is_a_list_of_pods_or_refused(answer):
    try:
        parse(answer if isinstance(answer, bytes) else answer.encode())
    except ValueError as e:
        assert str(e)
