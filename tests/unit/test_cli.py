"""The command line: help that teaches, and one line for what is wrong with a call."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tracer.cli import main
from tracer.cli.commands.record import progress
from tracer.cli.parser import parse

RANGES = ("--before", "0/3600", "--after", "3600/7200")


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["trace"], "trace"),
        ([], "COMMAND"),
        (["run", "--duration", "soon"], "'soon'"),
        (["run", "--duration", "-1"], "'-1'"),
        (["run", "--duration", "m"], "'m'"),
        (["run", "--duration", "9999h"], "'9999h'"),
        (["run", "--colour"], "--colour"),
        (["run", "--config", "/nonexistent.yaml"], "/nonexistent.yaml"),
        (["explain", "first", "a.db"], "'first'"),
        (["doctor", "--pid", "-1"], "'-1'"),
        (["explain", "1", "/nonexistent.db"], "/nonexistent.db"),
        (["compare", "a.db", "b.db", "--window", "60"], "--window goes with --prometheus URL"),
        (["compare", "a.db", "b.db", "--after-selector", "x"], "--after-selector goes with"),
        (["compare", "a.db"], "give two recordings"),
        (["compare", "--prometheus", "node:9090", *RANGES], "node:9090: is no address"),
        (["compare", "--prometheus", "http://[::1", *RANGES], "http://[::1: is no address"),
        (["compare", "--prometheus", "http://node:port", *RANGES], "http://node:port: is no"),
    ],
)
def test_a_wrong_call_gets_one_line_that_names_it(
    argv: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tailtrace: ")
    assert named in line


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("1.5", 1.5), ("90s", 90), ("30m", 1800), ("2h", 7200)]
)
def test_a_duration_may_be_in_minutes_and_hours(text: str, seconds: float) -> None:
    arguments = parse(["record", "-o", "before.db", "--duration", text])

    assert arguments.duration == seconds


@pytest.mark.parametrize(
    ("of", "said"), [(1800.0, "2.5 of 30.0 minutes, 1 step"), (None, "2.5 minutes, 1 step")]
)
def test_a_recording_says_how_far_it_is(of: float | None, said: str) -> None:
    assert said == progress(150.0, of, steps=1)


def test_a_wrong_value_in_the_configuration_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tailtrace.yaml"
    file.write_text("window_seconds: 1\n")

    assert main(["check", "--config", str(file)]) == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"tailtrace: {file}: window_seconds is 1, must be 10 to 3600"


def test_help_has_every_command_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])

    text = capsys.readouterr().out
    assert stop.value.code == 0
    assert "examples:" in text
    assert all(
        f"\n    {command} " in text
        for command in ("check", "doctor", "run", "top", "record", "explain", "compare")
    )


def test_a_port_in_use_is_named_with_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        file = tmp_path / "tailtrace.yaml"
        file.write_text(f"listen: 127.0.0.1:{port}\n")

        code = main(["run", "--config", str(file), "--duration", "1"])

    (line,) = capsys.readouterr().err.splitlines()
    assert code in (2, 3)  # 3 where the kernel side cannot be loaded, which comes first
    if code == 2:
        assert f"127.0.0.1:{port}" in line and "listen" in line
