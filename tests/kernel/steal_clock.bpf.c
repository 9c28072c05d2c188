/* SPDX-License-Identifier: GPL-2.0-only
 *
 * steal_clock.bpf.c - the steal clock of each CPU, as the ledger reads it.
 */
#include "compat.bpf.h"

char LICENSE[] SEC("license") = "GPL";

u64 clocks[MAX_CPUS];

SEC("tp_btf/sched_switch") int on_switch(u64 *ctx)
{
	u32 cpu = bpf_get_smp_processor_id();

	if (cpu < MAX_CPUS)
		clocks[cpu] = steal_clock((struct task_struct *)ctx[2]);
	return 0;
}
