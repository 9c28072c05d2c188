"""
Trace until interrupted, or for --duration seconds; serve metrics; print the report.

On a terminal a report is printed every 10 s. The last one is always printed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tracer.agent.kernel_side import kernel_side
from tracer.cli.options import Parser, add_config, add_duration, settings_of
from tracer.host.machine import Machine


def add_options(sub: Parser) -> None:
    add_config(sub)
    add_duration(sub)
    sub.add_argument("--quiet", action="store_true", help="no live reports")
    sub.add_argument(
        "--web.config.file",
        dest="web_config",
        type=Path,
        metavar="FILE",
        help="YAML for TLS, client certificates and passwords, docs/prometheus.md",
    )
    sub.add_argument("--ready-file", type=Path, metavar="FILE", help="written once tracing began")


def main(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments)
    kernel = kernel_side(settings, Machine.read())
    from tracer.cli.tracing import trace  # noqa: PLC0415 - takes as long as the kernel to verify

    return trace(arguments, settings, kernel)
