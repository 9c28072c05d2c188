"""
What Prometheus and Grafana read, written from the catalog.

examples:
  python -m dashboards build build/dashboards
  python -m dashboards rules build/rules --step-ratio 3
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards import fleet, health, migration, node, tenant
from dashboards.alerts import Objectives, groups

DASHBOARDS = (fleet, node, tenant, migration, health)
RULES_FILE = "tailtrace.rules.yaml"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        options.directory.mkdir(parents=True, exist_ok=True)
        options.write(options)
    except OSError as e:
        parser.error(f"{e.filename}: {e.strerror}; name a directory that can be written to")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dashboards",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="dashboards for Grafana, one JSON file each")
    build.set_defaults(write=_write_dashboards)
    build.add_argument("directory", type=Path)
    _add_rules(commands.add_parser("rules", help="recording rules and alerts for Prometheus"))
    return parser


def _add_rules(parser: argparse.ArgumentParser) -> None:
    default = Objectives()
    parser.set_defaults(write=_write_rules)
    parser.add_argument("directory", type=Path)
    parser.add_argument(
        "--step-ratio",
        type=_ratio,
        default=default.step_ratio,
        metavar="N",
        help="steps are slow when their p999 is over N times their median (%(default)g)",
    )
    parser.add_argument(
        "--job",
        default=default.job,
        metavar="REGEX",
        help="the scrape's job (%(default)s)",
    )
    parser.add_argument(
        "--runbooks",
        default=default.runbooks,
        metavar="URL",
        help="where the runbooks are served (%(default)s)",
    )


def _ratio(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number above 1, such as 2")
    return value


def _write_dashboards(options: argparse.Namespace) -> None:
    encoder = JSONEncoder(sort_keys=True, indent=2)
    for module in DASHBOARDS:
        made = module.dashboard()
        (options.directory / f"{made.uid}.json").write_text(encoder.encode(made) + "\n")


def _write_rules(options: argparse.Namespace) -> None:
    objectives = Objectives(
        step_ratio=options.step_ratio, job=options.job, runbooks=options.runbooks.rstrip("/")
    )
    text = yaml.safe_dump(groups(objectives), sort_keys=False, width=100)
    (options.directory / RULES_FILE).write_text(text)


if __name__ == "__main__":
    main()
