"""Errors an operator can act on. Each is one line; anything else that escapes is a bug."""


class TailtraceError(Exception):
    """Base class. The message is one line that names the value, the place and the way out."""

    exit_code = 1


class UsageError(TailtraceError):
    """A command line, configuration or input file is wrong; retrying will not help."""

    exit_code = 2


class UnavailableError(TailtraceError):
    """This kernel, machine or set of privileges cannot tell."""

    exit_code = 3
