"""Mark an engine's functions without touching its source, and find the C header."""

from __future__ import annotations

import argparse
import importlib.util
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from stepmark.wrap import not_imported, wrap

EXAMPLES = """\
examples:
  python -m stepmark run --wrap onnxruntime:InferenceSession.run app.py --port 8000
  python -m stepmark run --wrap engine.core:Engine.step --wrap engine.core:Engine.sample -m engine
  cc -I"$(python -m stepmark include)" engine.c
"""


class UsageError(Exception):
    """One line: the value, the place and the way out."""


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    try:
        if arguments.command == "include":
            print(Path(__file__).with_name("include"))
        else:
            run(arguments.wrap, arguments.program, arguments.module)
    except UsageError as error:
        print(f"stepmark: {error}", file=sys.stderr)
        return 2
    return 0


def run(targets: Sequence[str], program: Sequence[str], module: Sequence[str]) -> None:
    """Run ``[script, argument ...]``, or ``[module, argument ...]``, with targets wrapped."""
    for target in targets:
        try:
            wrap(target)
        except (ValueError, AttributeError, TypeError) as error:
            raise UsageError(error) from None
    if module:
        _run_module(module)
    elif program:
        _run_script(program)
    else:
        raise UsageError("nothing to run: give a script, or -m and a module")


def _run_script(program: Sequence[str]) -> None:
    script = Path(program[0])
    if not script.exists():
        raise UsageError(f"no script {program[0]!r} here")
    sys.argv = list(program)
    sys.path[0] = str(script.resolve().parent)  # as `python script` has it
    try:
        runpy.run_path(program[0], run_name="__main__")
    finally:
        _tell_unused()


def _run_module(module: Sequence[str]) -> None:
    if not _is_module(module[0]):
        raise UsageError(f"no module {module[0]!r} on sys.path")
    sys.argv = list(module)
    try:
        runpy.run_module(module[0], run_name="__main__", alter_sys=True)
    finally:
        _tell_unused()


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # of a package around it
        return False


def _tell_unused() -> None:
    for target in not_imported():
        print(f"stepmark: nothing imported {target}, so it marked nothing", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "stepmark",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    runner = commands.add_parser(
        "run",
        help="run a program in which calls of given functions are steps",
        usage="stepmark run --wrap MODULE:FUNCTION ... (SCRIPT | -m MODULE) [ARGUMENT ...]",
    )
    runner.add_argument(
        "--wrap",
        action="append",
        required=True,
        metavar="MODULE:FUNCTION",
        help="a function, or a Class.method, every call of which is a step",
    )
    runner.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module")
    runner.add_argument("program", nargs=argparse.REMAINDER, help="script and its arguments")
    commands.add_parser("include", help="print the directory of stepmark.h")
    return parser


if __name__ == "__main__":
    sys.exit(main())
