"""Kubernetes' label selectors of the equality-based kind: ``app=chat,tier!=batch,gpu,!debug``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_TERM = re.compile(r"(!?)([A-Za-z0-9_./-]+)(?: *(==?|!=) *([A-Za-z0-9_.-]*))?")


@dataclass(frozen=True, slots=True)
class Term:
    key: str
    value: str | None
    """None: the key alone decides."""

    wanted: bool

    def holds(self, labels: Mapping[str, str]) -> bool:
        found = self.key in labels and self.value in (None, labels[self.key])
        return found == self.wanted


def parse(text: str) -> tuple[Term, ...]:
    """All terms must hold. Raises ValueError that says what a selector is."""
    return tuple(_term(part.strip(" ")) for part in text.split(",")) if text else ()


def _term(text: str) -> Term:
    parts = _TERM.fullmatch(text)
    if parts is None or (parts[1] and parts[3]):
        raise ValueError("terms such as app=chat, tier!=batch, gpu, !debug, joined by commas")
    return Term(parts[2], parts[4], wanted=not parts[1] and parts[3] != "!=")
