"""``python -m stepmark``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stepmark import page as layout

APP = """
import sys
import engine
print(sys.argv[1:], engine.forward())
print("paused", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current directory with an engine and an app."""
    (tmp_path / "engine.py").write_text("def forward(): return 4\n")
    (tmp_path / "app.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stepmark(*arguments):
    command = [sys.executable, "-m", "stepmark", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


@pytest.mark.parametrize("program", [["app.py"], ["-m", "app"]])
def test_a_program_runs_with_its_arguments_and_marks(folder, started, program):
    engine = started(
        sys.executable, "-m", "stepmark", "run", "--wrap", "engine:forward", *program, "-m", "--x=1"
    )

    assert engine.said == ["['-m', '--x=1'] 4"]
    assert [it.kind for it in engine.page().done()] == ["forward"]


def test_a_script_imports_from_its_own_directory(folder):
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "beside.py").write_text("NAME = 'beside'\n")
    (folder / "elsewhere" / "script.py").write_text("import beside; print(beside.NAME)\n")

    assert stepmark("run", "--wrap", "engine:forward", "elsewhere/script.py").stdout == "beside\n"


def test_the_program_decides_the_exit_code(folder):
    Path("fails.py").write_text("import sys; sys.exit(7)\n")

    assert stepmark("run", "--wrap", "engine:forward", "fails.py").returncode == 7


def test_a_target_that_nothing_imported_is_told(folder):
    ended = stepmark("run", "--wrap", "engine:forward", "--wrap", "nowhere.core:step", "app.py")

    assert ended.stderr == "stepmark: nothing imported nowhere.core:step, so it marked nothing\n"
    assert ended.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["app.py"], "wrap target is 'engine', must look like module:Class.method"),
        ([], "wrap target is 'engine', must look like module:Class.method"),
    ],
)
def test_a_malformed_target_is_refused(folder, arguments, said):
    ended = stepmark("run", "--wrap", "engine", *arguments)

    assert (ended.stderr, ended.returncode) == (f"stepmark: {said}\n", 2)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (["gone.py"], "no script 'gone.py' here"),
        (["-m", "gone"], "no module 'gone' on sys.path"),
        (["-m", "gone.inner"], "no module 'gone.inner' on sys.path"),
        ([], "nothing to run: give a script, or -m and a module"),
    ],
)
def test_a_program_that_is_not_there_is_refused(folder, program, said):
    ended = stepmark("run", "--wrap", "engine:forward", *program)

    assert (ended.stderr, ended.returncode) == (f"stepmark: {said}\n", 2)


def test_usage_errors_exit_with_2(folder):
    assert stepmark().returncode == 2
    assert stepmark("run", "app.py").returncode == 2
    assert stepmark("nonsense").returncode == 2


def test_the_header_is_where_include_says():
    directory = Path(stepmark("include").stdout.rstrip("\n"))

    assert directory == Path(layout.__file__).with_name("include")
    assert {file.name for file in directory.iterdir()} == {"stepmark.h", "stepmark_page.h"}


def test_help_gives_examples():
    assert "python -m stepmark run --wrap" in stepmark("--help").stdout
