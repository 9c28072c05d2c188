"""The RL workload's command line: what is wrong is refused in one line, with exit code 2."""

from __future__ import annotations

import pytest

from workloads.rl_sampling.options import parse


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--variant", "fast"], "fast is not one of plain, affinity, isolated"),
        (["--queue", "left"], "left is not one of first-touch, right, wrong, moved"),
        (["--duration", "0"], "'0' is not a number, 0.1 to 86400"),
        (["--duration", "nan"], "'nan' is not a number"),
        (["--duration", "soon"], "'soon' is not a number"),
        (["--batch", "257"], "'257' is not a whole number, 1 to 256"),
        (["--batch", "-1"], "'-1' is not a whole number, 1 to 256"),
        (["--samplers", "policy-a"], "'' is not a whole number, 1 to 64"),
        (["--samplers", "=3"], "tenant '' in '=3' must be new"),
        (["--samplers", "a=1,a=2"], "tenant 'a' in 'a=1,a=2' must be new"),
        (["--samplers", "a=40,b=40"], "'80' is not a whole number, 1 to 64"),
        (["--samplers", f"{'x' * 53}=1"], "of 1 to 52 bytes"),
        (["--truth", "/nowhere/truth.jsonl"], "/nowhere/truth.jsonl: No such file"),
        (["--dur", "3"], "unrecognized arguments: --dur 3"),
        (["faster"], "unrecognized arguments: faster"),
    ],
)
def test_bad_arguments_get_one_line(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(arguments)

    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert reason in told
    assert told.count("\n") == 1


def test_samplers_are_counted_by_tenant() -> None:
    assert parse([]).samplers == {"policy-a": 3, "policy-b": 1}
    assert parse(["--samplers", "x=2"]).samplers == {"x": 2}
