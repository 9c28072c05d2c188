// SPDX-License-Identifier: GPL-2.0-only
/* interrupt.bpf.c - keeps a CPU from its threads as a device does. Only the selftest runs it.
 *
 * Nothing here is attached: BPF_PROG_RUN runs a program once, one of type raw_tracepoint on any
 * CPU, in an inter-processor interrupt (bpf_prog_test_run_raw_tp() in net/bpf/test_run.c). The
 * callback of a timer runs in a soft interrupt (HRTIMER_MODE_REL_SOFT in kernel/bpf/helpers.c).
 */
#include "kernel.h"

char LICENSE[] SEC("license") = "GPL";

#define MAX_LOOKS (1 << 23) /* BPF_MAX_LOOPS */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} taken_ns SEC(".maps"); /* from the victim, by our own clock; one CPU at a time writes */

struct wanted {
	u64 each_ns, gap_ns, times;
	u64 victim; /* process id; on others they happen, too */
};

struct soft_interrupts {
	struct bpf_timer timer;
	struct wanted wanted;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct soft_interrupts);
} timers SEC(".maps");

static const u32 first;

static long is_over(u32 look, u64 *until_ns)
{
	return bpf_ktime_get_ns() >= *until_ns;
}

static __always_inline void take(const struct wanted *wanted)
{
	u64 began_ns = bpf_ktime_get_ns(), until_ns = began_ns + wanted->each_ns;
	u64 *taken = bpf_map_lookup_elem(&taken_ns, &first);

	bpf_loop(MAX_LOOKS, is_over, &until_ns, 0);
	if (taken && bpf_get_current_pid_tgid() >> 32 == wanted->victim)
		*taken += bpf_ktime_get_ns() - began_ns;
}

SEC("raw_tp") int interrupt(struct wanted *wanted)
{
	take(wanted);
	return 0;
}

static int on_timer(void *map, u32 *key, struct soft_interrupts *interrupts)
{
	take(&interrupts->wanted);
	if (--interrupts->wanted.times)
		bpf_timer_start(&interrupts->timer, interrupts->wanted.gap_ns, 0);
	return 0;
}

/* On the CPU of its caller, where the timer stays as long as that is busy. */
SEC("syscall") int interrupt_softly(struct wanted *wanted)
{
	struct soft_interrupts *interrupts = bpf_map_lookup_elem(&timers, &first);

	if (!interrupts)
		return 1;
	interrupts->wanted = *wanted;
	bpf_timer_init(&interrupts->timer, &timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&interrupts->timer, on_timer);
	return bpf_timer_start(&interrupts->timer, wanted->gap_ns, 0);
}
