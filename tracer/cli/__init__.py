"""
The command line: ``tailtrace COMMAND``. A command's docstring is its help.

Exit codes: 0 yes, 1 no, 2 usage or configuration, 3 cannot be told here.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Sequence

from tracer.cli.parser import parse
from tracer.errors import TailtraceError, UnavailableError

# Before numpy is imported: nothing here multiplies matrices, and a thread for each CPU takes time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main(argv: Sequence[str] | None = None) -> int:
    logging.basicConfig(format="tailtrace: %(message)s")
    try:
        arguments = parse(sys.argv[1:] if argv is None else argv)
        code: int = arguments.command(arguments)
    except TailtraceError as e:
        print(f"tailtrace: {e}", file=sys.stderr)
        return e.exit_code
    except KeyboardInterrupt:  # before there was anything to report
        return 128 + signal.SIGINT
    except BrokenPipeError:  # the reader of our output has gone
        return UnavailableError.exit_code
    return code
