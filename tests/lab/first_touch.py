"""
Runs in a guest of two nodes: traces touch_victim.c, whose shared segment is touched first in parts
from either node. Prints as JSON what is recorded of its memory.
"""

import json
import sys
from pathlib import Path

from tests.lab.moved_segment import record
from tests.lab.placement import tailtrace
from tracer.config import Config

RECORDING = Path("/dev/shm/touched.db")


if __name__ == "__main__":
    Path("/proc/sys/kernel/numa_balancing").write_text("0")  # it stays where it was touched
    shortest = Config(window_seconds=10)
    record(sys.argv[1], RECORDING, shortest, lambda agent, _: agent.memory.placement)
    told = {
        "memory": json.loads(tailtrace("memory", "--json", str(RECORDING))),
        "text": tailtrace("memory", str(RECORDING)),
        "report": tailtrace("report", str(RECORDING)),
    }
    print(json.dumps(told))
