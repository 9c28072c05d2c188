"""
YAML from a file, within bounds: text, lists and mappings; no tags, no aliases, no key twice.

Scalars stay text. What a value is, its reader's type says: a process named ``on`` or ``1e3`` is
not turned into something else on the way.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, NoReturn

import yaml

from tracer.errors import UsageError

_MAX_BYTES = 1 << 20
_MAX_NODES = 20_000
_MAX_DEPTH = 16


def read(path: Path) -> Any:
    """The file's only document; None when it is empty. Raises UsageError with file and line."""
    try:
        return yaml.load(_text(path), Loader=_Loader)
    except yaml.YAMLError as e:
        raise UsageError(f"{path}: {_problem(e)}") from e


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as e:
        raise UsageError(f"{path}: {e.strerror}; give a readable YAML file") from e
    if len(raw) > _MAX_BYTES:
        raise UsageError(f"{path}: larger than {_MAX_BYTES} bytes, must be at most that")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise UsageError(f"{path}: byte {e.start} is not UTF-8; save the file as UTF-8") from e


class _Loader(yaml.BaseLoader):
    _nodes = 0
    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._nodes += 1
        self._depth += 1
        if self.check_event(yaml.AliasEvent):
            self._refuse("aliases are not allowed")
        if self._nodes > _MAX_NODES or self._depth > _MAX_DEPTH:
            self._refuse(f"more than {_MAX_NODES} values, or nested over {_MAX_DEPTH} deep")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = {key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)}
        if len(keys) != len(node.value) or not all(re.fullmatch(r"[\w.@-]+", key) for key in keys):
            what = "a key of this mapping is given twice, or is not one word"
            raise yaml.constructor.ConstructorError(None, None, what, node.start_mark)
        return super().construct_mapping(node, deep)

    def _refuse(self, what: str) -> NoReturn:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        raise yaml.composer.ComposerError(None, None, what, mark)


def _problem(e: yaml.YAMLError) -> str:
    what = getattr(e, "problem", None) or getattr(e, "reason", None) or "not YAML"
    mark = getattr(e, "problem_mark", None)
    return f"line {mark.line + 1}, column {mark.column + 1}: {what}" if mark else what
