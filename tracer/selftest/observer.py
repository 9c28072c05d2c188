"""What the kernel side says about processes that are followed, over their whole life or work."""

from __future__ import annotations

from tracer.kernel.btf import wire
from tracer.kernel.trace import KernelTrace
from tracer.model import Records, join_records

CAUSES = wire().names("cause", "CAUSE_")


class Observer:
    def __init__(self, kernel: KernelTrace) -> None:
        self.kernel = kernel
        self._pieces: list[Records] = []
        self._next_index = 1

    def follow(self, pid: int, page: int = 0) -> int:
        """Returns the index of the process, which is its tenant slot, too."""
        index, self._next_index = self._next_index, self._next_index + 1
        row = self.kernel.processes[index]
        row["tgid"], row["page"], row["tenant"] = pid, page, index
        row["tenant_slot"] = index
        self.kernel.follow(index, pid)
        self.kernel.tag_threads()
        return index

    def drain(self) -> None:
        """Make room in the rings. Call it while a program runs that has much to tell."""
        self._pieces.append(self.kernel.pieces())
        self.kernel.stalls()  # their time is in the pieces

    def pieces(self, tid: int | None = None) -> Records:
        """All pieces so far, of one thread or of all."""
        self.drain()
        everything = join_records(self._pieces)
        return everything if tid is None else everything[everything["tid"] == tid]

    def work(self, tid: int) -> Records:
        """The pieces of what a victim did."""
        return self.pieces(tid)

    def seconds(self, tid: int) -> dict[str, float]:
        """Seconds per cause of a victim's work."""
        total = self.work(tid)["ns"].sum(axis=0) / 1e9
        return dict(zip(CAUSES, total.tolist(), strict=True))

    def blame(self, tid: int) -> dict[int, float]:
        """Seconds per thread that ran while this one wanted the CPU; 0 stands for the rest."""
        pieces = self.work(tid)
        seconds = {0: pieces["blame_rest_ns"].sum() / 1e9}
        for aggressor in pieces["aggressors"].ravel():
            who = int(aggressor["who"]["tid"])
            seconds[who] = seconds.get(who, 0) + aggressor["ns"] / 1e9
        return seconds
