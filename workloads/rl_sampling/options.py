"""The command line. What it lets through is valid: nothing behind it checks again."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

from workloads.rl_sampling.pinning import Variant
from workloads.rl_sampling.placing import Place
from workloads.rl_sampling.slot_queue import TENANT_BYTES

MAX_SAMPLERS = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Times are in seconds, rates per second."""

    duration: float
    variant: Variant
    queue: Place
    samplers: Mapping[str, int]
    environments: int
    batch: int
    hidden: int
    helpers: int
    service_threads: int
    service_rate: float
    service_burst: float
    antagonist: bool
    json: bool
    truth: IO[str] | None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, where argparse would print the whole usage first."""
        self.exit(2, f"{self.prog}: {message} (--help lists what there is)\n")


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Exits with code 2 and one line when something is wrong."""
    parser = _Parser(
        prog="rl_sampling",
        description="RL sampling over a shared-memory queue: samplers ask, one policy answers.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    for add in (_add_run, _add_engine, _add_competition, _add_output):
        add(parser.add_argument)
    return Options(**vars(parser.parse_args(arguments)))


def _add_run(add: Callable[..., object]) -> None:
    add("--duration", type=_real(0.1, 86_400), default="30", help="seconds", metavar="S")
    add("--variant", type=_variant, default="plain", help="plain, affinity or isolated")
    add(
        "--queue",
        type=_place,
        default="first-touch",
        metavar="PLACE",
        help="node of the queue's memory: first-touch, right, wrong, moved",
    )
    add(
        "--samplers",
        type=_samplers,
        default="policy-a=3,policy-b=1",
        metavar="TENANT=N,...",
        help="sampling processes of each tenant",
    )
    add("--environments", type=_whole(1, 64), default="4", help="of each sampler", metavar="N")


def _add_engine(add: Callable[..., object]) -> None:
    add("--batch", type=_whole(1, 256), default="8", help="requests in a full step", metavar="N")
    add("--hidden", type=_whole(1, 16_384), default="1536", help="units of the MLP", metavar="N")
    add("--helpers", type=_whole(0, 63), default="0", help="more BLAS threads", metavar="N")


def _add_competition(add: Callable[..., object]) -> None:
    add(
        "--service-threads",
        type=_whole(0, 64),
        default="2",
        metavar="N",
        help="threads beside the inference thread, as a gRPC server has them",
    )
    add(
        "--service-rate",
        type=_real(0.01, 1_000),
        default="20",
        metavar="HZ",
        help="bursts a second of each service thread",
    )
    add(
        "--service-burst",
        type=_real(0.0001, 10),
        default="0.005",
        metavar="S",
        help="CPU seconds of a burst",
    )
    add("--antagonist", action="store_true", help="a neighbour bursts on every CPU")


def _add_output(add: Callable[..., object]) -> None:
    add("--json", action="store_true", help="print the account as JSON")
    add("--truth", type=_writable, help="write all that was timed, as JSON lines", metavar="FILE")


def _variant(text: str) -> Variant:
    try:
        return Variant(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not one of {', '.join(Variant)}") from None


def _place(text: str) -> Place:
    try:
        return Place(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not one of {', '.join(Place)}") from None


def _samplers(text: str) -> Mapping[str, int]:
    samplers: dict[str, int] = {}
    for part in text.split(","):
        tenant, _, count = part.partition("=")
        if not 1 <= len(tenant.encode()) <= TENANT_BYTES or tenant in samplers:
            raise argparse.ArgumentTypeError(
                f"tenant {tenant!r} in {text!r} must be new, of 1 to {TENANT_BYTES} bytes"
            )
        samplers[tenant] = _whole(1, MAX_SAMPLERS)(count)
    _whole(1, MAX_SAMPLERS)(str(sum(samplers.values())))
    return samplers


def _whole(low: int, high: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, {low} to {high}")
        return int(text)

    return whole


def _real(low: float, high: float) -> Callable[[str], float]:
    def real(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number, {low:g} to {high:g}")
        return number

    return real


def _writable(text: str) -> IO[str]:
    try:
        return Path(text).open("w")
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error.strerror}") from None
