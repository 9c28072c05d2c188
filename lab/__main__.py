"""
Boot Debian's kernels in virtual machines and run commands in them.

examples:
  python -m lab list                                        # kernels and shapes there are
  python -m lab fetch 6.12                                  # download it into the cache
  python -m lab run 6.12 --shape two-node -- uname -r       # boot, run, exit with its status
  python -m lab run 6.1 --stall-ms 300 300 -- ./victim.sh   # two stalls once it is ready
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab import kernels, matrix, stall, vm
from lab.console import say, told
from lab.emulator import SHAPES
from lab.examination import CHECK, examine
from tracer.errors import TailtraceError, UsageError

_PAUSE_S = 1.0


def list_(options: argparse.Namespace) -> int:
    """List kernels and shapes."""
    cached = {name: kernels.cached(name) for name in kernels.SUITES}
    releases = {name: kernel and kernel.release for name, kernel in cached.items()}
    if options.json:
        print(json.dumps({"kernels": releases, "shapes": list(SHAPES)}))
        return 0
    for name, release in releases.items():
        print(f"{name:8} {kernels.SUITES[name]:17} {release or 'not fetched'}")
    print(f"shapes   {', '.join(SHAPES)}")
    return 0


def fetch(options: argparse.Namespace) -> int:
    """Download a kernel into the cache."""
    kernel = kernels.fetch(options.kernel, say)
    if options.json:
        print(json.dumps({"release": kernel.release, "image": str(kernel.image)}))
    else:
        print(f"{kernel.release} {kernel.image}")
    return 0


def page(_: argparse.Namespace) -> int:
    """Boot every kernel, ask what it lets the tracer tell, and print docs/kernels.md."""
    examined = []
    for name in kernels.TRACED:
        kernel = kernels.fetch(name, say)
        say(f"booting {kernel.release}")
        examined.append(examine(kernel, CHECK, vm.new_run_directory()))
    print(matrix.page(examined), end="")
    return 0


def run(options: argparse.Namespace) -> int:
    """Boot a kernel, run a command in it as root, exit with its status."""
    if not options.command:
        raise UsageError("lab run: no command; write it behind --")
    kernel = kernels.fetch(options.kernel, say)
    directory = options.out.absolute() if options.out else vm.new_run_directory()
    say(f"booting {kernel.release} as {options.shape}, everything goes to {directory}")
    with vm.booted(kernel, options.shape, options.command, directory) as guest:
        say(f"up after {guest.boot_seconds:.0f} s")
        intervals = list(_take_cpus_away(guest, options))
        outcome = guest.wait(options.timeout, echo=not options.json)
    if intervals:
        stall.write_truth(outcome.files / "truth.json", intervals)
    if options.json:
        report = {"release": kernel.release, "shape": options.shape, "status": outcome.status}
        output = {"stdout": outcome.stdout, "stderr": outcome.stderr, "files": str(outcome.files)}
        print(json.dumps({**report, "boot_seconds": outcome.boot_seconds, **output}))
    return outcome.status


def _take_cpus_away(guest: vm.Guest, options: argparse.Namespace) -> Iterator[stall.Interval]:
    if options.stall_ms or options.starve_ms:
        guest.wait_for_file("ready")
    for milliseconds in options.stall_ms:
        time.sleep(_PAUSE_S)
        if options.stall_cpu is None:
            yield stall.stall_all(guest, milliseconds / 1e3)
        else:
            yield stall.stall_one(guest, options.stall_cpu, milliseconds / 1e3)
    for milliseconds in options.starve_ms:
        time.sleep(_PAUSE_S)
        yield stall.starve(guest, processors=1, seconds=milliseconds / 1e3)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    functions = {"list": list_, "fetch": fetch, "run": run, "page": page}
    for name, function in functions.items():
        command = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        command.set_defaults(function=function)
        if function is page:
            continue
        command.add_argument("--json", action="store_true", help="one JSON object on stdout")
        if function is not list_:
            command.add_argument("kernel", metavar="KERNEL", help=", ".join(kernels.SUITES))
        if function is run:
            command.usage = "%(prog)s KERNEL [options] -- COMMAND..."
            _add_run_options(command)
    return parser


def _add_run_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--shape", choices=SHAPES, default="two-node")
    command.add_argument("--out", type=Path, help="new directory for output, files, console log")
    command.add_argument("--timeout", type=float, default=600, help="s the command may take [600]")
    command.add_argument(
        "--stall-ms",
        type=int,
        nargs="+",
        default=[],
        help="stop all virtual CPUs for so long, 1 s apart, once LAB_OUT/ready exists",
    )
    command.add_argument("--stall-cpu", type=int, help="stop this virtual CPU only")
    command.add_argument(
        "--starve-ms",
        type=int,
        nargs="+",
        default=[],
        help="confine all virtual CPUs to one processor for so long, after the stalls",
    )


def _split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """What stands before and behind the first ``--``: ours, and the guest's command."""
    if "--" not in arguments:
        return arguments, ()
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def main() -> int:
    ours, command = _split(sys.argv[1:])
    options = _parser().parse_args(ours)
    options.command = command
    try:
        status: int = options.function(options)
    except TailtraceError as error:
        return told(error)
    return status


if __name__ == "__main__":
    sys.exit(main())
