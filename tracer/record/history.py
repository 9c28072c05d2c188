"""
Recent history: what an agent records all the time, in a directory, within a bound.

Tracing goes on without it when there can be none: that is told once, and what is missing counted.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tracer.config import History
from tracer.errors import TailtraceError
from tracer.record.meta import Meta
from tracer.record.recorder import Recorder, RecordingError, keep_previous
from tracer.record.window import Window


@contextlib.contextmanager
def keeping(
    history: History, meta: Meta, lost: Counter[str], say: Callable[[str], None]
) -> Iterator[Callable[[Window], None]]:
    """
    What takes window after window. What the agent before has left stays beside as ``.previous``.

    :param lost: is counted into: ``history_unwritten``, windows that are missing
    :param say: is told why there is no history, or no more
    """
    with contextlib.ExitStack() as undo:
        recorder: Recorder | None = None
        if history.file:
            try:
                recorder = undo.enter_context(_begun(history.file, history.max_mb << 20, meta))
            except TailtraceError as e:
                say(f"no history is kept: {e}; see history.directory")

        def keep(window: Window) -> None:
            nonlocal recorder
            if recorder:
                try:
                    recorder.write(window)
                except RecordingError as e:
                    recorder = None
                    say(str(e))
            if history.file and not recorder:
                lost["history_unwritten"] += 1

        yield keep


def _begun(file: Path, most_bytes: int, meta: Meta) -> Recorder:
    with contextlib.suppress(OSError):  # what is wrong with the place, the recorder tells
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        keep_previous(file)
    return Recorder(file, meta, most_bytes)
