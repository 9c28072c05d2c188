"""The numbers in page.py are those of the C header."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from stepmark import page as layout

IN_C = {
    "MAGIC": "STEPMARK_MAGIC",
    "VERSION": "STEPMARK_VERSION",
    "KINDS": "STEPMARK_KINDS",
    "TENANTS": "STEPMARK_TENANTS",
    "NAME_LEN": "STEPMARK_NAME_LEN",
    "SLOTS": "STEPMARK_SLOTS",
    "PROBES": "STEPMARK_PROBES",
    "RING": "STEPMARK_RING",
    "SHARES": "STEPMARK_SHARES",
    "STEP": "STEPMARK_STEP",
    "QUEUED": "STEPMARK_QUEUED",
    "HEADER_SIZE": "offsetof(struct stepmark_page, kinds)",
    "AT_KINDS": "offsetof(struct stepmark_page, kinds)",
    "AT_TENANTS": "offsetof(struct stepmark_page, tenants)",
    "AT_SLOTS": "offsetof(struct stepmark_page, slots)",
    "AT_RINGS": "offsetof(struct stepmark_page, rings)",
    "PAGE_SIZE": "sizeof(struct stepmark_page)",
    "SLOT_SIZE": "sizeof(struct stepmark_slot)",
    "DONE_SIZE": "sizeof(struct stepmark_done)",
    "AT_MAGIC": "offsetof(struct stepmark_header, magic)",
    "AT_NR_KINDS": "offsetof(struct stepmark_header, nr_kinds)",
    "AT_NR_TENANTS": "offsetof(struct stepmark_header, nr_tenants)",
    "AT_LOST_SLOTS_FULL": "offsetof(struct stepmark_header, lost_slots_full)",
    "AT_LOST_KINDS_FULL": "offsetof(struct stepmark_header, lost_kinds_full)",
    "AT_LOST_TENANTS_FULL": "offsetof(struct stepmark_header, lost_tenants_full)",
    "AT_LOST_SHARES_FULL": "offsetof(struct stepmark_header, lost_shares_full)",
    "SLOT_SEQ": "offsetof(struct stepmark_slot, seq)",
    "SLOT_SEQ_END": "offsetof(struct stepmark_slot, seq_end)",
    "SLOT_FINISHED": "offsetof(struct stepmark_slot, finished)",
    "SLOT_TID": "offsetof(struct stepmark_slot, tid)",
    "SLOT_BODY.size": "offsetof(struct stepmark_slot, finished) - 8",
    "DONE_BODY.size": "sizeof(struct stepmark_done) - 8",
    "DONE_TAIL.size": "offsetof(struct stepmark_done, number_end) -"
    " offsetof(struct stepmark_done, what)",
}


@pytest.fixture
def c_values(compiled: Callable[..., Path]) -> dict[str, int]:
    prints = "\n".join(f'printf("%llu\\n", (unsigned long long)({c}));' for c in IN_C.values())
    program = compiled(
        layout_c='#include "stepmark_page.h"\n#include <stddef.h>\n#include <stdio.h>\n'
        f"int main(void) {{ {prints} }}"
    )
    printed = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
    return dict(zip(IN_C, map(int, printed.split())))


def test_python_layout_is_the_c_layout(c_values):
    in_python = {name: eval(f"layout.{name}") for name in IN_C}

    assert c_values == in_python


def test_no_number_of_the_layout_goes_unchecked():
    numbers = {name for name, value in vars(layout).items() if isinstance(value, int)}

    assert {name for name in numbers if name.isupper() and not name.startswith("_")} <= set(IN_C)


def test_a_new_page_describes_itself(python):
    engine = python("with step('decode'): pass")
    page = engine.page()

    assert page.header(0, "Q") == layout.MAGIC
    assert [page.header(8), page.header(12)] == [layout.VERSION, layout.HEADER_SIZE]
    assert layout.PAGE_SIZE == page.header(16, "Q") == len(page.bytes)
    assert [page.header(at) for at in range(24, 44, 4)] == [
        layout.KINDS,
        layout.TENANTS,
        layout.NAME_LEN,
        layout.SLOTS,
        layout.RING,
    ]
    assert engine.pid == page.header(44)
