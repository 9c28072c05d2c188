"""
What is known of the node's pods: asked of the kubelet by a thread of its own, so that a kubelet
that is slow, or hangs, holds up nobody.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from threading import Event, Thread

from tracer import config
from tracer.model import Capability
from tracer.targets.kubelet import Kubelet, Refused
from tracer.targets.pods import Pod

log = logging.getLogger(__name__)

_PAUSE_SECONDS = 1.0  # between two requests, whoever waits for them
_MAX_MISSING = 1000


class PodWatch:
    """
    A context manager: pods are asked for inside of it. Without a kubelet's host, none is known.

    A pod that is not known is asked for at once; one that the kubelet does not know either, with
    all others again after the interval.
    """

    def __init__(self, settings: config.Kubelet) -> None:
        """Raises UsageError for a variable that the environment does not have."""
        self._kubelet = Kubelet(settings) if settings.host else None
        self._interval = settings.interval_seconds
        self._told: Mapping[str, Pod] = {}
        self._pods: Mapping[str, Pod] = {}
        """As told last, and those told before: processes may outlive their pod's deletion."""

        self._missing: dict[str, int] = {}
        """Uid -> how many requests had begun when it was asked for first."""

        self._begun = self._ended = 0
        self._reason = "the kubelet was not asked yet"
        self._losses: Counter[str] = Counter()
        self._stopping, self._wanted = Event(), Event()
        self._thread = Thread(target=self._poll_for_ever, name="kubelet", daemon=True)

    def __enter__(self) -> PodWatch:
        if self._kubelet:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._wanted.set()

    def find(self, uid: str) -> Pod | None:
        """The pod with the uid that its control group names."""
        pod = self._pods.get(uid)
        if pod is None and uid and self._kubelet and uid not in self._missing:
            if len(self._missing) >= _MAX_MISSING:
                self._missing.clear()
            self._missing[uid] = self._begun
            self._wanted.set()
        return pod

    def is_asking_for(self, uid: str) -> bool:
        """Whether a pod that :meth:`find` did not know may be known in a moment."""
        wanted = uid not in self._pods and self._missing.get(uid, -1) >= self._ended
        return wanted and self._thread.is_alive()

    @property
    def losses(self) -> Mapping[str, int]:
        """Requests in vain: ``kubelet_`` with the reason."""
        return self._losses

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """``pods``, as of the last request; nothing without a kubelet."""
        if self._kubelet is None:
            return ()
        return (Capability("pods", "none" if self._reason else "kubelet", self._reason),)

    def ask(self) -> None:
        """Ask the kubelet now. What was known stays known when it does not tell."""
        if self._kubelet is None:
            return
        self._begun = number = self._begun + 1
        try:
            told, reason = self._kubelet.pods(), ""
            self._pods, self._told = {**self._told, **told}, told
        except Refused as refused:
            reason = str(refused)
            self._losses[f"kubelet_{refused.reason}"] += 1
            if reason != self._reason:  # once, not at every request
                log.warning("%s", reason)
        self._reason = reason
        self._ended = number

    def _poll_for_ever(self) -> None:
        while not self._stopping.is_set():
            self._wanted.clear()
            self.ask()
            if not self._stopping.wait(_PAUSE_SECONDS):
                self._wanted.wait(self._interval - _PAUSE_SECONDS)
