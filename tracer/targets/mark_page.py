"""
The mark page of one process, read as what it is: bytes that a stranger writes.

An index is used only after it was compared with its table, a count only after it was found
plausible. What is refused is counted by reason.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tracer.model import Records, take_rows
from tracer.targets import mark_file
from tracer.targets.mark_bytes import PageBytes, layout, with_slot
from tracer.targets.mark_file import Location, Reason, Refused
from tracer.targets.mark_rings import Rings
from tracer.targets.text import visible

_MAX_LEAP = 1 << 32
"""More losses between two reads are not believed."""


class MarkPage:
    """
    The marks of one process from now on. Close it after use.

    Every method raises Refused when the file was cut short; the page is of no more use then.
    """

    @classmethod
    def open(cls, pid: int, proc: Path = Path("/proc")) -> MarkPage:
        """The page of a process. Raises Refused with the reason why there is none to read."""
        refusal = Refused(Reason.NO_PAGE, f"process {pid} has none")
        for location in mark_file.locate(pid, proc):
            try:
                return cls._open_at(location, pid, proc)
            except Refused as refused:
                refusal = refused
        raise refusal

    @classmethod
    def _open_at(cls, location: Location, pid: int, proc: Path) -> MarkPage:
        mark_file.require_our_clock(pid, proc)
        page = PageBytes(mark_file.open_memfd(pid, location, proc))
        try:
            _require_layout(page)
            _require_writer(page, mark_file.number_in_own_namespace(pid, proc))
            return cls(page, location)
        except Refused:
            page.close()
            raise

    def __init__(self, page: PageBytes, location: Location) -> None:
        self.location = location
        self._page = page
        self._losses: Counter[str] = Counter()
        self._rings = Rings(page, self._losses)
        self._writer_lost = _lost_fields(page.header())
        self._header = b""
        self._kinds: list[str] = []
        self._tenants: list[str] = []

    def close(self) -> None:
        self._page.close()

    @property
    def address(self) -> int:
        """User virtual address of the page's first byte in its process."""
        return self.location.start

    @property
    def losses(self) -> Mapping[str, int]:
        """Marks that ``finished`` could not give, by reason, since the page was opened."""
        return self._losses

    @property
    def kinds(self) -> Sequence[str]:
        """Names of step kinds by their number in the page; number 0 is empty: none was given."""
        return self._kinds

    @property
    def tenants(self) -> Sequence[str]:
        """Names of tenants by their number in the page; number 0 is empty: none was given."""
        return self._tenants

    def finished(self, least: int = 1) -> Records:
        """
        The marks finished since they were read last, or since the page was opened.

        (n,) ``struct stepmark_done`` and its ``slot``, in the order written within each slot.
        All are whole and plausible: begin <= end <= now, kind and tenants named, a step numbered,
        shares with a sum above 0 (or no shares at all: no tenant was named).

        :param least: those of a thread that has finished fewer are left for later
        """
        done, slots = self._rings.read(least)
        now = time.monotonic_ns()
        self._read_header()  # after the marks: a name is written before it is used
        if len(done) == 0:
            return with_slot(done, slots)
        plausible = self._are_plausible(done, now)
        self._losses["mark_implausible"] += int(np.count_nonzero(~plausible))
        return with_slot(take_rows(done, plausible), slots[plausible])

    def running(self) -> Records:
        """
        The marks that threads are inside of now: (n,) ``struct stepmark_slot`` and its ``slot``.

        One that is being written at this moment is not among them.
        """
        # A mark that changed under the first read has another `seq` by the second.
        slots, again = self._page.slots(), self._page.slots()
        now = time.monotonic_ns()
        self._read_header()
        whole = (slots["seq"] == again["seq"]) & (slots["seq"] == slots["seq_end"])
        inside = whole & (slots["step"] > 0) & (slots["tid"] > 0)
        plausible = (
            (slots["since_ns"] <= now)
            & (slots["kind"] < len(self._kinds))
            & (slots["tenant"] < len(self._tenants))
        )
        self._losses["mark_implausible"] += int(np.count_nonzero(inside & ~plausible))
        return with_slot(slots[inside & plausible], np.flatnonzero(inside & plausible))

    def _are_plausible(self, done: Records, now: int) -> NDArray[np.bool_]:
        what, most = layout().what, layout().limits["SHARES"]
        nr_shares = done["nr_shares"]
        used = np.arange(most) < nr_shares[:, np.newaxis]
        weights = np.where(used, done["shares"]["weight"], 0).sum(axis=1, dtype=np.uint64)
        tenants = np.where(used, done["shares"]["tenant"], 0)
        is_step = (done["what"] == what["STEP"]) & (done["number"] > 0)
        is_queued = (done["what"] == what["QUEUED"]) & (done["number"] == 0) & (nr_shares <= 1)
        plausible: NDArray[np.bool_] = (
            (is_step | is_queued)
            & (done["begin_ns"] <= done["end_ns"])
            & (done["end_ns"] <= now)
            & (done["kind"] < len(self._kinds))
            & (nr_shares <= most)
            & (tenants < len(self._tenants)).all(axis=1)
            & ((weights > 0) | (nr_shares == 0))
        )
        return plausible

    def _read_header(self) -> None:
        """Take over new names, and what the writer says it could not mark."""
        header = self._page.header()
        if header.tobytes() == self._header:
            return
        self._header = header.tobytes()
        self._read_names(self._kinds, "kinds", int(header["nr_kinds"]))
        self._read_names(self._tenants, "tenants", int(header["nr_tenants"]))
        lost = _lost_fields(header)
        for reason, number in lost.items():
            more = number - self._writer_lost[reason]
            if 0 <= more <= _MAX_LEAP:
                self._losses[reason] += more
            else:
                self._losses["mark_implausible"] += 1
        self._writer_lost = lost

    def _read_names(self, names: list[str], table: str, number: int) -> None:
        number = min(number, layout().limits[table.upper()])
        if number > len(names):
            names += [visible(name) for name in self._page.names(table, len(names), number)]


def _require_layout(page: PageBytes) -> None:
    """Raises Refused unless file and header have the layout that we know."""
    limits, size = layout().limits, layout().size
    if page.size != size:
        raise Refused(Reason.BAD_SIZE, f"file of {page.size} bytes, must be {size}")
    header = page.header()
    if header["magic"] != int.from_bytes(b"stepmark", "little"):
        raise Refused(Reason.BAD_MAGIC, "not a mark page, or not ready yet")
    if header["version"] != limits["VERSION"]:
        raise Refused(
            Reason.BAD_VERSION, f"version {header['version']}, must be {limits['VERSION']}"
        )
    expected = {name: limits[name.upper()] for name in ("kinds", "tenants", "name_len", "slots")}
    expected |= {
        "ring": limits["RING"],
        "page_size": size,
        "header_size": layout().offsets["kinds"],
    }
    for name, value in expected.items():
        if header[name] != value:
            raise Refused(Reason.BAD_SIZE, f"{name} is {header[name]}, must be {value}")


def _require_writer(page: PageBytes, pid: int) -> None:
    """Raises Refused when the page is that of a process which forked this one."""
    writer = page.header()["pid"]
    if writer != pid:
        raise Refused(Reason.INHERITED, f"written by process {writer}, mapped by {pid}")


def _lost_fields(header: np.void) -> dict[str, int]:
    """What the writer could not mark, by reason: ``lost_slots_full`` is ``mark_slots_full``."""
    fields = header.dtype.names or ()
    return {
        f"mark_{name.removeprefix('lost_')}": int(header[name])
        for name in fields
        if name.startswith("lost_")
    }
