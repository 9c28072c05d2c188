"""The order of stores: what a reader could see between any two bytecodes of a step."""

from __future__ import annotations

TRACED = """
import struct, threading
from stepmark import page as layout
from stepmark.process import process
queued(now_ns(), 'chat')  # this thread has its slot
page, slot = process._page, layout.AT_SLOTS + threading.get_native_id() % 256 * 64
ring = layout.AT_RINGS + threading.get_native_id() % 256 * layout.RING * 128
def word(at): return struct.unpack_from('Q', page.map, at)[0]
def look():
    entry = ring + 128  # the second
    now = (
        word(slot) == word(slot + layout.SLOT_SEQ_END),
        word(slot + 8),
        word(entry),
        word(entry + 112),
        word(slot + layout.SLOT_FINISHED),
    )
    if not seen or seen[-1] != now: seen.append(now)
def trace(frame, event, argument):
    frame.f_trace_opcodes = True
    look()
    return trace
seen = []
decode = step('decode', 'chat')
sys.settrace(trace)
with decode: pass
sys.settrace(None)
for state in seen: print(*state)
"""


def test_a_mark_is_whole_only_with_all_of_it_and_counted_only_when_whole(python):
    """Slot whole, its step; number and number_end of the ring's entry; entries finished."""
    assert python(TRACED).said == [
        "True 0 0 0 1",
        "False 0 0 0 1",
        "True 1 0 0 1",
        "False 1 0 0 1",
        "False 1 1 0 1",
        "False 1 1 1 1",
        "False 1 1 1 2",
        "True 0 1 1 2",
    ]
