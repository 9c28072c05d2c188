"""The command line: help that teaches, and one line for what is wrong with a call."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tracer.cli import main


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["trace"], "trace"),
        ([], "COMMAND"),
        (["run", "--duration", "soon"], "'soon'"),
        (["run", "--duration", "-1"], "'-1'"),
        (["run", "--colour"], "--colour"),
        (["run", "--config", "/nonexistent.yaml"], "/nonexistent.yaml"),
        (["explain", "first", "a.db"], "'first'"),
        (["explain", "1", "/nonexistent.db"], "/nonexistent.db"),
    ],
)
def test_a_wrong_call_gets_one_line_that_names_it(
    argv: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tailtrace: ")
    assert named in line


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
