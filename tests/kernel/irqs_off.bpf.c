/* SPDX-License-Identifier: GPL-2.0-only
 *
 * irqs_off.bpf.c - keeps interrupts off on a CPU for HOLD_NS, every EVERY_NS. To that CPU it is as if
 * it had stood still. Tracepoints of the timer's interrupt run with interrupts off.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

static __u64 next_ns;

static long hold(__u32 i, __u64 *until_ns)
{
	return bpf_ktime_get_ns() >= *until_ns;
}

SEC("tp_btf/local_timer_exit") int on_local_timer_exit(void *ctx)
{
	__u64 now = bpf_ktime_get_ns(), until_ns = now + HOLD_NS;

	if (bpf_get_smp_processor_id() != CPU || now < next_ns)
		return 0;
	if (next_ns) /* not before the first pause */
		bpf_loop(1 << 23, hold, &until_ns, 0);
	next_ns = now + EVERY_NS;
	return 0;
}
