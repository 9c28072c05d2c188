"""Marks as an engine writes them, and as a hostile process does, read from a real memfd."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracer.kernel import btf
from tracer.targets.mark_bytes import PageBytes
from tracer.targets.mark_file import Reason, Refused
from tracer.targets.mark_page import MarkPage

PAGE = btf.wire().dtype("stepmark_page")
LIMITS = btf.wire().enum("stepmark_limits")
RING = LIMITS["STEPMARK_RING"]
PID, START = 41, 0x7F0000000000
HOSTILE_NUMBERS = [0, 1, 255, 256, 2**31, 2**32 - 1]
same_page = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


class Engine:
    """A process in a recorded /proc whose mark page is a real memfd, written through a mapping."""

    def __init__(self, proc: Path, start: int = START) -> None:
        self.process = proc / str(PID)
        self.start = start
        self.descriptor = os.memfd_create("stepmark")
        os.ftruncate(self.descriptor, PAGE.itemsize)
        self.page = np.memmap(f"/proc/self/fd/{self.descriptor}", PAGE, "r+", shape=1)[0]
        header = self.page["header"]
        header["magic"] = int.from_bytes(b"stepmark", "little")
        header["version"], header["page_size"] = 1, PAGE.itemsize
        header["header_size"] = PAGE.fields["kinds"][1]
        for name in ("kinds", "tenants", "name_len", "slots", "ring"):
            header[name] = LIMITS[f"STEPMARK_{name.upper()}"]
        header["pid"], header["nr_kinds"], header["nr_tenants"] = PID, 1, 1
        self.name("kinds", "decode")
        self.name("tenants", "chat")
        self._record()

    def _record(self) -> None:
        (self.process / "map_files").mkdir(parents=True)
        area = f"{self.start:x}-{self.start + PAGE.itemsize:x}"
        inode = os.fstat(self.descriptor).st_ino
        (self.process / "maps").write_text(
            f"400000-401000 r--p 00000000 08:01 5 /usr/bin/python3\n"
            f"{area} rw-s 00000000 00:01 {inode}      /memfd:stepmark (deleted)\n"
        )
        (self.process / "status").write_text(f"Name:\tengine\nNSpid:\t{PID}\n")
        (self.process / "map_files" / area).symlink_to(f"/proc/self/fd/{self.descriptor}")

    def name(self, table: str, text: str | bytes) -> int:
        number = int(self.page["header"][f"nr_{table}"])
        self.page[table][number]["text"] = text
        self.page["header"][f"nr_{table}"] += 1
        return number

    def finish(self, slot: int = 3, **fields: object) -> None:
        """One finished step, plausible but for the given fields."""
        ring, row = self.page["rings"][slot], self.page["slots"][slot]
        number, now = int(row["finished"]) + 1, time.monotonic_ns()
        done = {"number": number, "number_end": number, "what": 1, "kind": 1, "nr_shares": 1}
        done |= {"begin_ns": now - 1000, "end_ns": now, "shares": [(1, 1)] + [(0, 0)] * 7}
        for field, value in (done | fields).items():
            ring[field][(number - 1) % RING] = value
        row["finished"] = number

    def open(self) -> MarkPage:
        return MarkPage.open(PID, self.process.parent)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = Engine(tmp_path)
    yield engine
    os.close(engine.descriptor)


@pytest.fixture
def page(engine: Engine) -> Iterator[MarkPage]:
    page = engine.open()
    yield page
    page.close()


def test_the_page_lies_where_the_process_mapped_it(page):
    assert page.address == START


def test_every_mark_is_given_once_with_its_slot(engine, page):
    for slot in (3, 3, 255):
        engine.finish(slot)

    assert page.finished()[["slot", "number"]].tolist() == [(3, 1), (3, 2), (255, 1)]
    assert len(page.finished()) == 0


def test_a_ring_with_few_new_marks_is_left_for_later(engine, page):
    for slot in (3, 3, 255):
        engine.finish(slot)

    assert page.finished(least=2)[["slot", "number"]].tolist() == [(3, 1), (3, 2)]
    engine.finish(3)
    assert page.finished()[["slot", "number"]].tolist() == [(3, 3), (255, 1)]


def test_marks_from_before_the_page_was_opened_are_left_alone(engine):
    engine.finish()
    page = engine.open()
    engine.finish()

    assert page.finished()["number"].tolist() == [2]
    page.close()


def test_marks_are_in_order_around_the_end_of_the_ring(engine, page):
    for _ in range(RING - 2):
        engine.finish()
    page.finished()
    for _ in range(5):
        engine.finish()

    assert page.finished()["number"].tolist() == [RING - 1 + i for i in range(5)]


def test_what_the_ring_no_longer_holds_is_counted(engine, page):
    for _ in range(RING + 88):
        engine.finish()

    assert page.finished()["number"].tolist() == list(range(90, RING + 89))
    assert page.losses["mark_overrun"] == 89


def test_a_mark_written_over_while_the_ring_is_read_is_counted(engine, page, monkeypatch):
    for _ in range(4):
        engine.finish()
    read = PageBytes.ring

    def read_while_the_writer_runs(*where: Any) -> bytes:
        data = read(*where)
        for _ in range(RING - 2):
            engine.finish()
        return data

    monkeypatch.setattr(PageBytes, "ring", read_while_the_writer_runs)

    assert page.finished()["number"].tolist() == [4]
    assert page.losses["mark_overrun"] == 3


def test_a_queue_wait_has_no_number(engine, page):
    engine.finish(number=0, number_end=0, what=2, kind=0)

    assert page.finished()[["what", "number"]].tolist() == [(2, 0)]


def test_a_step_may_name_no_tenant(engine, page):
    engine.finish(nr_shares=0)

    assert page.finished()["nr_shares"].tolist() == [0]


def test_names_are_read_as_they_are_given(engine, page):
    page.finished()
    assert list(page.kinds) == ["", "decode"]

    engine.finish(kind=engine.name("kinds", "prefill"))
    assert page.kinds[page.finished()["kind"][0]] == "prefill"


def test_names_are_made_visible_and_cut(engine, page):
    for name in (b"a\x1b[2J\n", b"\xff\xfe", "b\u202ec".encode(), b"x" * 64, b"\x01" * 64):
        engine.name("tenants", name)
    page.finished()

    assert list(page.tenants[2:7]) == [
        "a\\x1b[2J\\n",
        "\\xff\\xfe",
        "b\\u202ec",
        "x" * 64,
        "\\x01" * 15 + "\\x0…",
    ]


def test_running_marks_are_those_inside_a_step(engine, page):
    inside = {"seq": 8, "seq_end": 8, "tid": 7, "step": 4, "kind": 1, "tenant": 1, "since_ns": 5}
    for slot, change in enumerate([{}, {"step": 0}, {"tid": 0}, {"seq": 9}]):
        for field, value in (inside | change).items():
            engine.page["slots"][slot][field] = value

    assert page.running()[["slot", "step", "since_ns"]].tolist() == [(0, 4, 5)]


def test_what_the_engine_could_not_mark_is_counted_from_now_on(engine):
    engine.page["header"]["lost_kinds_full"] = 7
    page = engine.open()
    engine.page["header"]["lost_kinds_full"] = 9
    page.finished()

    assert page.losses["mark_kinds_full"] == 2
    page.close()


# Hostile pages


@pytest.mark.parametrize(
    "fields",
    [
        {"what": 3},
        {"kind": 2},
        {"kind": 2**32 - 1},
        {"nr_shares": 9},
        {"nr_shares": 2**32 - 1},
        {"shares": [(2, 1)] * 8},
        {"shares": [(1, 0)] * 8},
        {"begin_ns": 2**63},
        {"begin_ns": 2**62, "end_ns": 2**62},
        {"number": 0, "number_end": 0},
        {"what": 2},
    ],
    ids=str,
)
def test_an_implausible_mark_is_counted_and_the_others_kept(engine, page, fields):
    engine.finish()
    engine.finish(**fields)
    engine.finish()

    assert page.finished()["number"].tolist() == [1, 3]
    assert page.losses["mark_implausible"] == 1


def test_a_mark_that_is_not_whole_is_counted(engine, page):
    engine.finish(number_end=0)

    assert len(page.finished()) == 0
    assert page.losses["mark_torn"] == 1


@pytest.mark.parametrize("finished", [2**63, 2**64 - 2, 2**33, 0], ids=str)
def test_a_count_that_leaps_or_runs_backwards_is_followed_from_there_on(engine, page, finished):
    engine.finish()
    page.finished()
    engine.page["slots"][3]["finished"] = finished
    assert len(page.finished()) == 0
    assert page.losses["mark_implausible"] == 1

    engine.finish(number=77, number_end=77)
    assert page.finished()["number"].tolist() == [77]


def test_a_writer_that_never_ends_its_mark_is_in_no_running_step(engine, page):
    engine.page["slots"][0]["seq"], engine.page["slots"][0]["step"] = 2**64 - 1, 1

    assert len(page.running()) == 0


def test_losses_that_leap_or_run_backwards_are_not_believed(engine, page):
    for lost in (2**64 - 1, 0):
        engine.page["header"]["lost_slots_full"] = lost
        page.finished()

    assert (page.losses["mark_slots_full"], page.losses["mark_implausible"]) == (0, 2)


def test_name_counts_beyond_the_tables_are_cut_to_them(engine, page):
    engine.page["kinds"]["text"][255], engine.page["tenants"]["text"][0] = "last", "next table"
    for number in (2**32 - 1, 0):
        engine.page["header"]["nr_kinds"] = number
        page.finished()

    assert (page.kinds[255], len(page.kinds)) == ("last", 256)


def refusal(engine: Engine) -> Reason:
    with pytest.raises(Refused) as refused:
        engine.open()
    return refused.value.reason


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("magic", "bad_magic"),
        ("version", "bad_version"),
        ("page_size", "bad_size"),
        ("header_size", "bad_size"),
        ("ring", "bad_size"),
        ("name_len", "bad_size"),
        ("pid", "inherited"),
    ],
)
def test_a_header_that_is_not_ours_is_refused_by_name(engine, field, reason):
    engine.page["header"][field] += 1

    assert refusal(engine) == reason


@pytest.mark.parametrize("size", [0, 1, 4096, PAGE.itemsize - 1, PAGE.itemsize + 1])
def test_a_file_of_another_size_is_refused(engine, size):
    os.ftruncate(engine.descriptor, size)

    assert refusal(engine) == "bad_size"


@pytest.mark.parametrize("size", [0, 4096, PAGE.fields["slots"][1] + 64, PAGE.fields["rings"][1]])
def test_a_file_cut_short_while_it_is_read_is_refused(engine, page, size):
    engine.finish(255)
    os.ftruncate(engine.descriptor, size)

    with pytest.raises(Refused) as refused:
        page.finished()
    assert refused.value.reason == "truncated"


def test_a_file_that_only_has_the_name_of_a_memfd_is_never_opened(engine, tmp_path):
    (link,) = (engine.process / "map_files").iterdir()
    link.unlink()
    os.mkfifo(tmp_path / "pipe")  # opening it would block for ever
    link.symlink_to(tmp_path / "pipe")

    assert refusal(engine) == "not_memfd"


def test_another_memfd_in_the_place_of_the_page_is_refused(engine):
    (link,) = (engine.process / "map_files").iterdir()
    link.unlink()
    (engine.process / "fd").mkdir()
    link.symlink_to(f"/proc/self/fd/{os.memfd_create('other')}")

    assert refusal(engine) == "unreadable"


def test_of_a_parents_page_and_its_own_a_process_is_read_by_its_own(engine, tmp_path):
    parent = Engine(tmp_path / "parent", START - 2**30)
    parent.page["header"]["pid"] = PID - 1
    (link,) = (parent.process / "map_files").iterdir()
    link.rename(engine.process / "map_files" / link.name)
    maps = engine.process / "maps"
    maps.write_text((parent.process / "maps").read_text() + maps.read_text())

    page = engine.open()
    assert page.address == START
    page.close()
    os.close(parent.descriptor)


def test_a_process_without_a_page_is_refused_as_such(engine):
    (engine.process / "maps").write_text("400000-401000 r--p 00000000 08:01 5 /bin/sh\n")

    assert refusal(engine) == "no_page"


def test_a_process_that_is_gone_is_refused_as_such(tmp_path):
    with pytest.raises(Refused) as refused:
        MarkPage.open(PID, tmp_path)

    assert refused.value.reason == "gone"


@pytest.mark.parametrize(
    ("theirs", "offset", "reason"),
    [("time:[2]", "5 0", "time_namespace"), ("time:[2]", "0 1", "time_namespace")],
)
def test_another_clock_is_refused(engine, theirs, offset, reason):
    record_time_namespace(engine.process.parent, theirs, offset)

    assert refusal(engine) == reason


@pytest.mark.parametrize(("theirs", "offset"), [("time:[1]", "5 0"), ("time:[2]", "0 0")])
def test_our_own_clock_is_taken_whatever_children_would_get(engine, theirs, offset):
    record_time_namespace(engine.process.parent, theirs, offset)

    engine.open().close()


def record_time_namespace(proc: Path, theirs: str, offset: str) -> None:
    for process, namespace in (("self", "time:[1]"), (str(PID), theirs)):
        (proc / process / "ns").mkdir(parents=True)
        (proc / process / "ns" / "time").symlink_to(namespace)
    (proc / str(PID) / "timens_offsets").write_text(f"monotonic {offset}\nboottime 0 0\n")


@same_page
@given(seed=st.integers(0, 2**32), finished=st.sampled_from([1, 5, RING, RING + 1, 2**32, 2**63]))
def test_random_rings_give_plausible_marks_only(engine, page, seed, finished):
    rings = engine.page["rings"][:4]
    noise = np.random.default_rng(seed)
    rings.view(np.uint8)[:] = noise.integers(0, 256, rings.nbytes, np.uint8).reshape(4, -1)
    rings["number_end"] = rings["number"]
    for field in ("what", "kind", "nr_shares"):
        rings[field] = noise.choice(HOSTILE_NUMBERS, rings.shape)
    engine.page["slots"]["finished"][:4] += np.uint64(finished)

    done = page.finished()
    assert len(done) < 4 * RING
    assert (done["begin_ns"] <= done["end_ns"]).all()
    assert set(done["kind"]) <= {0, 1}


@same_page
@given(raw=st.binary(min_size=1, max_size=200), at=st.integers(0, PAGE.fields["rings"][1] - 200))
def test_random_bytes_anywhere_never_break_the_reader(engine, page, raw, at):
    os.pwrite(engine.descriptor, raw, at)

    page.finished()
    page.running()
    names = [*page.kinds, *page.tenants]
    assert all(len(name) <= 64 and name.isprintable() for name in names)


@same_page
@given(raw=st.binary(min_size=1, max_size=96), at=st.integers(0, 96))
def test_a_random_header_is_refused_or_read(engine, raw, at):
    os.pwrite(engine.descriptor, raw, at)
    try:
        engine.open().close()
    except Refused as refused:
        assert refused.reason in {"bad_magic", "bad_version", "bad_size", "inherited"}
