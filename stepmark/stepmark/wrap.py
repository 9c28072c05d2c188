"""Steps for engines whose source stays as it is: functions are replaced by marked ones."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import threading
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from stepmark.calls import marked
from stepmark.marks import Mark, Tenants, step


def wrap(target: str, kind: str | None = None, tenants: Tenants = None) -> None:
    """
    Make every call of ``"module:function"`` or ``"module:Class.method"`` a step.

    A module that is not imported yet is patched when it is, before anything can bind its methods;
    if it turns out to have no such function, that is a warning. The step's kind is what follows
    the colon unless given. Generators and coroutines: see ``Mark``.

    Raises ValueError for a malformed target; AttributeError or TypeError when the module is there
    and what the target names is not, or is no function.
    """
    module, _, path = target.partition(":")
    if not all(part.isidentifier() for part in [*module.split("."), *path.split(".")]):
        raise ValueError(f"wrap target is {target!r}, must look like module:Class.method")
    mark = step(kind or path, tenants)
    if module in sys.modules:
        _patch(sys.modules[module], path, mark)
    else:
        _finder.wait_for(module, path, mark)


def not_imported() -> list[str]:
    """Targets whose module has not been imported so far."""
    return [f"{name}:{path}" for name, waiting in _finder.waiting.items() for path, _ in waiting]


def _patch(module: ModuleType, path: str, mark: Mark) -> None:
    owner: Any = module
    *outer, name = path.split(".")
    try:
        for part in outer:
            owner = getattr(owner, part)
        function = inspect.getattr_static(owner, name)
    except AttributeError:
        raise AttributeError(f"module {module.__name__} has no {path}") from None
    if isinstance(function, (staticmethod, classmethod)):
        setattr(owner, name, type(function)(marked(function.__func__, mark)))
    elif callable(function) and not inspect.isclass(function):
        setattr(owner, name, marked(function, mark))
    else:
        raise TypeError(f"{module.__name__}:{path} is {function!r}, must be a function or method")


class _Finder:
    """Lets the other finders find a module, and patches it when it has been loaded."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[tuple[str, Mark]]] = {}
        self._asking = threading.local()

    def wait_for(self, module: str, path: str, mark: Mark) -> None:
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)
        self.waiting.setdefault(module, []).append((path, mark))

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self.waiting or getattr(self._asking, "name", None) == name:
            return None
        self._asking.name = name
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking.name = None
        if spec and spec.loader:
            loader: Any = _Loader(spec.loader)
            spec.loader = loader
        return spec

    def loaded(self, module: ModuleType) -> None:
        for path, mark in self.waiting.pop(module.__name__, []):
            try:
                _patch(module, path, mark)
            except (AttributeError, TypeError) as error:  # not worth failing somebody's import
                warnings.warn(f"stepmark: {error}", RuntimeWarning, stacklevel=2)


class _Loader:
    """The loader that was found, with a word to the finder at the end."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _finder.loaded(module)


_finder = _Finder()
