"""What can go wrong with a virtual machine."""

from pathlib import Path

from tracer.errors import TailtraceError

_TAIL_LINES = 80  # a panic with its registers and call trace


class GuestError(TailtraceError):
    """
    A guest did not come up, or its command never ran to an end.

    The end of the console log is attached as a note: pytest and the command line show it.
    """

    def __init__(self, message: str, console: Path) -> None:
        super().__init__(f"{message} (console log: {console})")
        lines = console.read_text(errors="replace").splitlines() if console.exists() else []
        self.add_note("\n".join(["console log ends:", *lines[-_TAIL_LINES:]]))
