"""A YAML file into a msgspec struct that cannot exist invalid, or one line that says why not."""

from __future__ import annotations

import re
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from tracer import bounded_yaml
from tracer.errors import UsageError

_S = TypeVar("_S", bound=msgspec.Struct)

_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "array": "a list",
    "object": "a mapping of keys to values",
}


def load(path: Path, struct: type[_S]) -> _S:
    """
    Raises UsageError: file, key, value, what is allowed.

    A ``__post_init__`` refuses with ``require``.
    """
    tree = bounded_yaml.read(path)
    try:
        # Not strict: every scalar was read as text, the struct says what it is.
        return msgspec.convert({} if tree is None else tree, struct, strict=False)
    except msgspec.ValidationError as e:
        raise UsageError(f"{path}: {_problem(str(e), tree, struct)}") from e


def require(holds: bool, key: str, value: object, allowed: str) -> None:
    if not holds:
        raise ValueError(f"{key} is {shown(value)}, must be {allowed}")


def shown(value: object) -> str:
    """A value in a message: one line of bounded length."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _problem(message: str, tree: Any, struct: type[msgspec.Struct]) -> str:
    """msgspec's message, with the value and what is allowed in its place."""
    what, _, where = message.partition(" - at `$")
    where = where.rstrip("`").removeprefix(".")
    if unknown := re.search(r"unknown field `([^`]+)`", what):
        allowed = ", ".join(_struct_at(struct, where).__struct_fields__)
        return f"{_key(where, shown(unknown[1]))}: no such key, must be one of {allowed}"
    if missing := re.search(r"missing required field `(\w+)`", what):
        return f"{_key(where, missing[1])} is missing and has no default"
    if wrong := re.match(r"Expected `(\w+)", what):
        if where.endswith("[...]"):  # an entry whose key msgspec does not tell, perhaps a secret
            return f"{where.removesuffix('[...]')} has a value that is not {_TYPES[wrong[1]]}"
        value = shown(_value_at(tree, where))
        return f"{where or 'the file'} is {value}, must be {_TYPES[wrong[1]]}"
    return _key(where, what)  # written by ``require``: begins with the key


def _key(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _steps(where: str) -> list[tuple[str, str]]:
    """``a[0].b`` -> key or index, each."""
    return re.findall(r"(\w+)|\[(\d+)\]", where)


def _value_at(tree: Any, where: str) -> Any:
    for key, index in _steps(where):
        tree = tree[int(index)] if index else tree[key]
    return tree


def _struct_at(struct: Any, where: str) -> type[msgspec.Struct]:
    """The struct at ``where``, of those that fields, optional or tuples too, lead to."""
    for key, index in _steps(where):
        struct = get_args(struct)[0] if index else get_type_hints(struct)[key]
        if isinstance(struct, UnionType):  # with None
            struct = get_args(struct)[0]
    found: type[msgspec.Struct] = struct
    return found
