"""
Runs in a guest of two nodes: traces segment_victim.c, whose shared segment is on the other node
until NUMA balancing moves it. Prints as JSON what the program says of it, and what a recording.
"""

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO

from tests.lab.placement import tailtrace
from tracer.agent.agent import Agent
from tracer.config import Config
from tracer.judge.tiers import rank_tails
from tracer.record.recorder import Recorder
from tracer.record.recording import Recording

AGENTS_CPU = 0
RECORDING = Path("/dev/shm/moved.db")  # SQLite's log needs shared memory, which LAB_OUT has none of


def record(
    program: str, to: Path, config: Config, ended: Callable[[Agent, IO[str]], object]
) -> str:
    """
    What it says, which waits until it is followed: it is traced from its first step on.

    :param ended: is given the agent and the program's output
    """
    os.sched_setaffinity(0, {AGENTS_CPU})
    with subprocess.Popen([program], stdin=-1, stdout=-1, text=True) as process:
        stdout = process.stdout
        assert process.stdin and stdout and stdout.readline() == "ready\n"
        with Agent(config) as agent, Recorder(to, agent.meta("")) as recorder:
            agent.follow()
            process.stdin.write("go\n")
            process.stdin.flush()
            agent.run(lambda: bool(ended(agent, stdout)), lambda: None)
            recorder.write(agent.window())
        return process.communicate("done\n")[0]


def has_spoken(_: Agent, output: IO[str]) -> bool:
    return bool(select.select([output], [], [], 0)[0])


def main(program: str) -> None:
    Path("/proc/sys/kernel/numa_balancing").write_text("1")
    said = json.loads(record(program, RECORDING, Config(), has_spoken))
    with Recording.open(RECORDING) as recording:
        summary = recording.summary()
    (step,) = (s for s in summary.slowest if said["begin_ns"] < s.end_ns < said["end_ns"])
    (ranking,) = (ranking for row, ranking in rank_tails(summary) if row.step == step.step)
    told = {
        "program": said,
        "step": asdict(step),
        "explain": tailtrace("explain", str(step.number), str(RECORDING)),
        "report": tailtrace("report", str(RECORDING)),
        "carrier": ranking.carrier and ranking.carrier.number,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])
