"""What the threads of this process share: its page and the names in it."""

from __future__ import annotations

import threading
from typing import NamedTuple

from stepmark import page as layout
from stepmark.page import Page


class Status(NamedTuple):
    """Whether marks reach a page, and what could not be marked."""

    active: bool
    reason: str
    """Why there is no page; empty when there is one."""

    lost: dict[str, int]
    """Threads (``slots_full``), names (``kinds_full``, ``tenants_full``) and ``shares_full``."""


class Names:
    """A table of names as ids from 1 on. Id 0 is the empty name, and any that found no room."""

    def __init__(self, table: int, count: int, limit: int, lost: int) -> None:
        self.table, self.count, self.limit, self.lost = table, count, limit, lost
        self._ids: dict[bytes, int] = {b"": 0}

    def id(self, name: str, page: Page | None) -> int:
        """The id of a name, given and written to the page when it is new."""
        text = _cut(name)
        known = self._ids.get(text)
        if known is not None:
            return known
        new = len(self._ids)
        if new == self.limit:
            if page:
                page.lose(self.lost)
            return 0
        self._ids[text] = new
        if page:
            page.write_name(self.table, self.count, new, text)
        return new

    def write_all(self, page: Page) -> None:
        """Give a new page the names that this process has used, with the same ids."""
        for text, number in list(self._ids.items())[1:]:
            page.write_name(self.table, self.count, number, text)


class Process:
    """The page is made at the first name or mark, and again in a forked child."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may mark while its thread holds it
        self._page: Page | None = None
        self._reason = ""
        self._kinds = Names(
            layout.AT_KINDS, layout.AT_NR_KINDS, layout.KINDS, layout.AT_LOST_KINDS_FULL
        )
        self._tenants = Names(
            layout.AT_TENANTS, layout.AT_NR_TENANTS, layout.TENANTS, layout.AT_LOST_TENANTS_FULL
        )

    def kind(self, name: str) -> int:
        with self._lock:
            return self._kinds.id(name, self._open())

    def tenant(self, name: str) -> int:
        with self._lock:
            return self._tenants.id(name, self._open())

    def claim_slot(self) -> tuple[Page, int] | None:
        """The page and the index of a slot for the calling thread; None without either."""
        with self._lock:
            page = self._open()
            slot = page.claim(threading.get_native_id()) if page else None
            return (page, slot) if page and slot is not None else None

    def lose_shares(self, number: int) -> None:
        with self._lock:
            if self._page:
                self._page.lose(layout.AT_LOST_SHARES_FULL, number)

    def status(self) -> Status:
        with self._lock:
            page = self._open()
            return Status(page is not None, self._reason, page.lost() if page else {})

    def _open(self) -> Page | None:
        if self._page is None and not self._reason:
            try:
                self._page = Page()
            except OSError as error:
                self._reason = f"no mark page: {error.strerror}"
            else:
                self._kinds.write_all(self._page)
                self._tenants.write_all(self._page)
        return self._page

    def forget_parent(self) -> None:
        """In a forked child: let go of the parent's page, keep the names and their ids."""
        self._lock = threading.RLock()  # another thread of the parent may have held it
        if self._page:
            self._page.close()
        self._page = None


def _cut(name: str) -> bytes:
    """UTF-8 that leaves room for a NUL, cut between characters."""
    text = name.encode("utf-8", "replace")[: layout.NAME_LEN - 1]
    return text.decode("utf-8", "ignore").encode()


process = Process()
