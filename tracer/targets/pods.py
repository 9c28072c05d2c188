"""
The pods of a node, out of a kubelet's answer, which is not believed before it was checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

_MAX_PODS = 2000
_MAX_LABELS = 256
_MAX_VALUE = 253
"""Characters of an annotation that can name a tenant; longer ones are somebody's documents."""

_STATIC = ("kubernetes.io/config.hash", "kubernetes.io/config.mirror")
"""Annotations with the uid that a static pod has in its control group's name."""

_DNS = r"^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\Z"
_Name = Annotated[str, msgspec.Meta(pattern=_DNS, max_length=253)]
_Namespace = Annotated[str, msgspec.Meta(pattern=_DNS, max_length=63)]
_Uid = Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Za-z-]+\Z", max_length=64)]
_Label = Annotated[str, msgspec.Meta(pattern=r"^[-A-Za-z0-9_./]*\Z", max_length=317)]
_Labels = Annotated[dict[_Label, _Label], msgspec.Meta(max_length=_MAX_LABELS)]


@dataclass(frozen=True, slots=True)
class Pod:
    namespace: str
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


FindPod = Callable[[str], Pod | None]
"""What is known of the pod with a uid; None without a pod, or without knowledge."""


class _Metadata(msgspec.Struct):
    uid: _Uid
    namespace: _Namespace
    name: _Name
    labels: _Labels | None = None
    annotations: dict[str, str] | None = None


class _Item(msgspec.Struct):
    metadata: _Metadata


class _PodList(msgspec.Struct):
    kind: Literal["PodList"]
    items: Annotated[list[_Item], msgspec.Meta(max_length=_MAX_PODS)] | None = None


def parse(answer: bytes) -> dict[str, Pod]:
    """
    Uid as in the names of control groups -> pod, of a ``PodList`` as JSON.

    Raises ValueError that says what is wrong with it.
    """
    try:
        told = msgspec.json.decode(answer, type=_PodList)
    except (msgspec.DecodeError, RecursionError) as e:
        raise ValueError(str(e)) from e
    pods: dict[str, Pod] = {}
    static: dict[str, Pod] = {}
    for item in told.items or ():
        if item.metadata.uid in pods:
            raise ValueError(f"two pods have the uid {item.metadata.uid}")
        pod = pods[item.metadata.uid] = _pod(item.metadata)
        static |= {pod.annotations[key]: pod for key in _STATIC if key in pod.annotations}
    # Anybody can annotate a pod; a uid is the API server's or the kubelet's word.
    return static | pods


def _pod(metadata: _Metadata) -> Pod:
    annotations = metadata.annotations or {}
    short = {key: text for key, text in annotations.items() if len(text) <= _MAX_VALUE}
    return Pod(metadata.namespace, metadata.name, metadata.labels or {}, short)
