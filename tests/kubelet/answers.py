"""What kubelets answer to ``GET /pods``: the fields that matter, among others that do not."""

from __future__ import annotations

import json
from typing import Any

CHAT_UID = "1f0c6d27-3e6a-4b5c-9d8e-7a6b5c4d3e2f"
STATIC_HASH = "0123456789abcdef0123456789abcdef"


def pod(uid: str, namespace: str = "team-a", name: str = "chat-0", **more: Any) -> dict[str, Any]:
    """An item of the list; ``more`` is metadata."""
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "resourceVersion": "81",
            "creationTimestamp": "2026-03-01T10:00:00Z",
            **more,
        },
        "spec": {
            "nodeName": "node-1",
            "containers": [
                {"name": "engine", "image": "engine:1", "env": [{"name": "A", "value": "…"}]}
            ],
        },
        "status": {"phase": "Running", "qosClass": "Burstable"},
    }


def pod_list(*items: dict[str, Any]) -> bytes:
    answer = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": list(items)}
    return json.dumps(answer).encode()


CHAT = pod(
    CHAT_UID,
    labels={"app.kubernetes.io/name": "chat", "tier": "gold"},
    annotations={"example.com/customer": "acme", "document": "x" * 1000},
)
STATIC = pod(
    STATIC_HASH,
    "kube-system",
    "etcd-node-1",
    annotations={
        "kubernetes.io/config.hash": STATIC_HASH,
        "kubernetes.io/config.source": "file",
    },
)
MIRROR = pod(
    "77777777-3e6a-4b5c-9d8e-7a6b5c4d3e2f",
    "kube-system",
    "etcd-node-1",
    annotations={"kubernetes.io/config.mirror": STATIC_HASH},
)
