"""``python -m dashboards``: what it writes, and how it refuses."""

from __future__ import annotations

import pytest
import yaml

from dashboards.__main__ import RULES_FILE, main


def test_rules_are_written_with_what_the_site_decides(tmp_path):
    main(
        ["rules", f"{tmp_path}/new", "--step-ratio=3", "--job=nodes", "--runbooks=https://wiki/x/"]
    )

    text = (tmp_path / "new" / RULES_FILE).read_text()
    assert [g["name"] for g in yaml.safe_load(text)["groups"]] == [
        "tailtrace.records",
        "tailtrace.alerts",
    ]
    assert "step_elapsed_p999_p50 > 3 and" in text
    assert 'up{job=~"nodes"} == 0' in text
    assert "runbook_url: https://wiki/x/TailtraceAbsent.md" in text


@pytest.mark.parametrize("ratio", ["1", "x", "nan", "inf", "-2"])
def test_a_ratio_that_makes_no_sense_is_refused(tmp_path, capsys, ratio):
    with pytest.raises(SystemExit, match="2"):
        main(["rules", str(tmp_path), f"--step-ratio={ratio}"])

    assert f"'{ratio}' must be a number above 1" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_directory_that_is_a_file_is_refused(tmp_path, capsys):
    (tmp_path / "file").touch()

    with pytest.raises(SystemExit, match="2"):
        main(["rules", f"{tmp_path}/file"])

    assert f"{tmp_path}/file: File exists; name a directory" in capsys.readouterr().err
