"""What a recording says about the machine that it was made on."""

from __future__ import annotations

import os

from tracer.host.facts import value_of
from tracer.host.machine import Machine
from tracer.record import meta
from tracer.record.meta import MachineKind

_KINDS = {True: MachineKind.VIRTUAL, False: MachineKind.BARE_METAL, None: MachineKind.UNKNOWN}


def recorded_machine(here: Machine) -> meta.Machine:
    return meta.Machine(
        kind=_KINDS[value_of(here.hypervisor.virtual)],
        kernel=os.uname().release,
        cpu_model=value_of(here.processor.name) or "unknown",
        cpus=here.cpu_count,
        numa_nodes=here.node_count or None,
    )
