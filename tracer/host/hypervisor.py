"""Whether this machine is virtual, whose hypervisor runs it, its clocks and its steal clock."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tracer.host.facts import Fact, Known, Unknown, convert, text, value_of
from tracer.host.processor import Processor

KVM, VMWARE, HYPERV, XEN = "KVM", "VMware", "Hyper-V", "Xen"

# Words of DMI strings, the most telling first: QEMU also runs Xen's guests and says so itself.
_DMI_WORDS = {
    "vmware": VMWARE,
    "xen": XEN,
    "kvm": KVM,
    "qemu": KVM,
    "kubevirt": KVM,
    "openstack": KVM,
    "amazon ec2": KVM,
    "google compute engine": KVM,
    "alibaba cloud ecs": KVM,
    "nutanix": KVM,
    "virtualbox": "VirtualBox",
    "innotek": "VirtualBox",
    "parallels": "Parallels",
    "bhyve": "bhyve",
    "apple virtualization": "Apple",
    "microsoft corporation virtual machine": HYPERV,
}
_METAL = ".metal"  # EC2's instances without hypervisor have the same vendor as those with one
_DMI_FILES = ("sys_vendor", "product_name", "board_vendor", "bios_vendor")
_CLOCK_WORDS = {"kvm-clock": KVM, "hyperv_clocksource": HYPERV, "xen": XEN}
_SWITCHED_OFF = ("no-steal-acc", "nopv")


@dataclass(frozen=True, slots=True)
class Hypervisor:
    virtual: Fact[bool]
    vendor: Fact[str]
    """Known only when virtual."""

    clock: Fact[str]
    """The clocksource in use."""

    clocks: Fact[tuple[str, ...]]
    steal_clock: Fact[bool]
    """
    True: it has told of steal. False: there is none. Unknown: it has told of none since boot, which
    is what a clock that is switched off looks like too.
    """

    @classmethod
    def read(cls, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> Hypervisor:
        directory = sys / "devices/system/clocksource/clocksource0"
        clock = text(directory / "current_clocksource")
        available = text(directory / "available_clocksource")
        clocks = convert(available, lambda names: tuple(names.split()))
        virtual, vendor = _virtual(proc, sys), _vendor(proc, sys, value_of(clocks) or ())
        if value_of(virtual) is False:
            vendor = Unknown("no hypervisor")
        return cls(virtual, vendor, clock, clocks, _steal_clock(proc, virtual, vendor))


def _virtual(proc: Path, sys: Path) -> Fact[bool]:
    """x86 has a flag for it. Elsewhere only signs of a hypervisor, or a maker's name, can tell."""
    flags = Processor.read(proc).flags
    if _stolen_ticks(proc):
        return Known(True, "time has been stolen since boot")
    if isinstance(flags, Known):
        there = "hypervisor" in flags.value
        return Known(there, f"{'a' if there else 'no'} hypervisor flag in {flags.source}")
    if isinstance(vendor := _vendor(proc, sys, ()), Known):
        return Known(True, vendor.source)
    if maker := _dmi(sys):
        return Known(False, f"DMI names a maker of hardware, {maker!r}, and no hypervisor")
    return Unknown("no flag, DMI string or device tree that tells of a hypervisor")


def _vendor(proc: Path, sys: Path, clocks: tuple[str, ...]) -> Fact[str]:
    dmi = _dmi(sys)
    for word, vendor in _DMI_WORDS.items():
        if word in dmi.lower() and _METAL not in dmi:
            return Known(vendor, f"DMI says {dmi!r}")
    if value_of(kind := text(sys / "hypervisor/type")) == "xen":
        return convert(kind, lambda _: XEN)
    tree = value_of(text(proc / "device-tree/hypervisor/compatible")) or ""
    for word, vendor in {"linux,kvm": KVM, "xen,": XEN}.items():
        if word in tree:
            return Known(vendor, f"the device tree says {tree!r}")
    for word, vendor in _CLOCK_WORDS.items():
        if offered := next((clock for clock in clocks if clock.startswith(word)), None):
            return Known(vendor, f"it offers the clock {offered!r}")
    return Unknown("neither DMI, device tree nor clocks name it")


def _dmi(sys: Path) -> str:
    """Who says to have made this machine; empty when it has no such table."""
    found = (value_of(text(sys / "class/dmi/id" / file)) for file in _DMI_FILES)
    return " ".join(filter(None, dict.fromkeys(found)))


def _stolen_ticks(proc: Path) -> int | None:
    """Of all CPUs since boot, in units of 10 ms."""
    total = convert(text(proc / "stat"), lambda stat: int(stat.split("\n", 1)[0].split()[8]))
    return value_of(total)


def _steal_clock(proc: Path, virtual: Fact[bool], vendor: Fact[str]) -> Fact[bool]:
    if _stolen_ticks(proc):
        return Known(True, "time has been stolen since boot")
    if value_of(virtual) is False:
        return Known(False, "no hypervisor that could steal")
    words = (value_of(text(proc / "cmdline")) or "").split()
    if off := next((word for word in _SWITCHED_OFF if word in words), None):
        return Known(False, f"the kernel was booted with {off}")
    if value_of(vendor) == HYPERV:
        return Known(False, "Linux knows no steal clock of Hyper-V")
    if value_of(vendor) == VMWARE:
        return Unknown("none since boot, and VMware's is off unless it is asked for")
    return Unknown("none since boot: no telling whether the hypervisor has a steal clock")
