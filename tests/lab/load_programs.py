"""Runs in the guest: loads and attaches what the tracer chooses for this kernel, as JSON."""

import json

from tracer.kernel.btf import Btf
from tracer.kernel.hooks import plan
from tracer.kernel.trace import KernelTrace

if __name__ == "__main__":
    chosen = plan(Btf.of_kernel())
    with KernelTrace(chosen, tenant_slots=8, outlier_ns=10_000_000) as trace:
        verified = trace.verified_instructions()
    print(json.dumps({"chosen": sorted(chosen.programs), "verified": verified}))
