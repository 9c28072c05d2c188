"""
Print the tree of the machine this runs on: ``python -m tests.trees.record > NAME.tree``.

Only what the doctor reads and no name of a person, machine or program is in it: processes are left
out, and of the kernel's command line all words but those that change a clock.
"""

from __future__ import annotations

from pathlib import Path

_CPU = "sys/devices/system/cpu"
_CLOCK_WORDS = ("no-steal", "nopv", "tsc=", "clocksource")
_FIRST_LINES = ("proc/stat", "sys/devices/system/node/node*/meminfo")
_FILES = (
    "proc/interrupts",
    "proc/irq/*/effective_affinity_list",
    "proc/pressure/*",
    "proc/device-tree/hypervisor/compatible",
    "proc/sys/kernel/numa_balancing",
    "proc/sys/kernel/sched_rt_*_us",
    f"{_CPU}/online",
    f"{_CPU}/possible",
    f"{_CPU}/isolated",
    f"{_CPU}/nohz_full",
    f"{_CPU}/cpu*/topology/physical_package_id",
    f"{_CPU}/cpu*/topology/thread_siblings_list",
    f"{_CPU}/cpu*/cache/index*/level",
    f"{_CPU}/cpu*/cache/index*/size",
    f"{_CPU}/cpu*/cache/index*/shared_cpu_list",
    f"{_CPU}/cpu*/cpufreq/scaling_governor",
    f"{_CPU}/cpu0/cpuidle/state*/name",
    f"{_CPU}/cpu0/cpuidle/state*/latency",
    f"{_CPU}/cpu0/cpuidle/state*/disable",
    "sys/devices/system/node/node*/cpulist",
    "sys/devices/system/clocksource/clocksource0/*_clocksource",
    "sys/class/dmi/id/sys_vendor",
    "sys/class/dmi/id/product_name",
    "sys/class/dmi/id/b*_vendor",
    "sys/hypervisor/type",
    "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/kernel/mm/transparent_hugepage/defrag",
)


def main(root: Path = Path("/")) -> None:
    cpuinfo = (root / "proc/cpuinfo").read_text().split("\n\n", 1)[0]
    _line("proc/cpuinfo", cpuinfo)
    words = (root / "proc/cmdline").read_text().split()
    _line("proc/cmdline", " ".join(word for word in words if word.startswith(_CLOCK_WORDS)))
    for pattern in _FIRST_LINES:
        for path in sorted(root.glob(pattern)):
            _line(str(path.relative_to(root)), path.read_text().partition("\n")[0])
    for pattern in _FILES:
        for path in sorted(root.glob(pattern)):
            if path.name != "unbind_clocksource":  # may be written only
                _line(str(path.relative_to(root)), path.read_text())


def _line(path: str, content: str) -> None:
    escaped = content.strip().replace("\n", "\\n").replace("\t", "\\t")
    print(f"{path}\t{escaped}")


if __name__ == "__main__":
    main()
