"""
Functions as steps.

A mark belongs to a thread, and a step must not stay open while the thread does something else. So
a call is a step; of generators and coroutines each run from one suspension to the next is one.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractContextManager
from typing import Any, Callable


def marked(function: Callable[..., Any], mark: AbstractContextManager[None]) -> Callable[..., Any]:
    """The function with its runs inside of ``mark``; of the same kind as ``inspect`` sees it."""
    if inspect.iscoroutinefunction(function):
        wrapper = _coroutine(function, mark)
    elif inspect.isasyncgenfunction(function):
        wrapper = _async_generator(function, mark)
    elif inspect.isgeneratorfunction(function):
        wrapper = _generator(function, mark)
    else:
        wrapper = _call(function, mark)
    return functools.wraps(function)(wrapper)


def _call(function: Callable[..., Any], mark: AbstractContextManager[None]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with mark:
            return function(*args, **kwargs)

    return call


def _generator(
    function: Callable[..., Any], mark: AbstractContextManager[None]
) -> Callable[..., Any]:
    def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        return (yield from _runs(function(*args, **kwargs), mark))

    return generator


def _coroutine(
    function: Callable[..., Any], mark: AbstractContextManager[None]
) -> Callable[..., Any]:
    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        return await _awaitable_runs(function(*args, **kwargs), mark)

    return coroutine


def _async_generator(
    function: Callable[..., Any], mark: AbstractContextManager[None]
) -> Callable[..., Any]:
    async def async_generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner = function(*args, **kwargs)
        resume, value = inner.asend, None
        try:
            while True:
                try:
                    item = await _awaitable_runs(resume(value), mark)
                except StopAsyncIteration:
                    return
                try:
                    resume, value = inner.asend, (yield item)
                except Exception as error:
                    resume, value = inner.athrow, error
        finally:
            await inner.aclose()

    return async_generator


def _runs(inner: Any, mark: AbstractContextManager[None]) -> Generator[Any, Any, Any]:
    """Drive a generator or coroutine to its end; every run between two suspensions is a step."""
    resume, value = inner.send, None
    while True:
        try:
            with mark:
                item = resume(value)
        except StopIteration as end:
            return end.value
        try:
            resume, value = inner.send, (yield item)
        except GeneratorExit:
            with mark:
                inner.close()
            raise
        except BaseException as error:  # thrown in from outside: the inner one decides
            resume, value = inner.throw, error


_awaitable_runs = types.coroutine(_runs)
