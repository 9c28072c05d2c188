/* SPDX-License-Identifier: GPL-2.0-only
 *
 * limits.bpf.h - the part of a wait for the CPU that a limit is to blame for, not those who ran.
 *
 * A quota may hold a thread from the start of its wait, or run out while it waits behind others of
 * its group. The kernel's own clock of the group's queue tells how long; that it happened before
 * the end is told by the thread that had the CPU when the limit was reached.
 */
#ifndef TAILTRACE_LIMITS_BPF_H
#define TAILTRACE_LIMITS_BPF_H

#include "compat.bpf.h"
#include "maps.bpf.h"

/* One wait for the CPU, and the shares in it of those that did not take it away by running. */
struct want {
	u64 from_ns;
	u64 until_ns;
	u64 limited_from_ns;
	u64 limited_ns;
	u64 stolen_ns;
	u64 stalled_ns;
	enum cause limit; /* CAUSE_QUOTA or CAUSE_RT_LIMIT, whose share is limited_ns */
};

static __always_inline enum cause limit_of(struct task_struct *task)
{
	if (is_rt_throttled(task))
		return CAUSE_RT_LIMIT;
	return is_throttled(task) ? CAUSE_QUOTA : NO_LIMIT;
}

/* The thread begins to want the CPU that it is on or queued for. */
static __always_inline void begin_limit(struct thread *t, struct task_struct *task,
					enum cause limit)
{
	t->limit = limit;
	t->limited_ns = 0;
	t->quota_clock_ns = quota_clock(task);
}

/* It is about to be moved to `cpu` and goes on to wait there. */
static __always_inline void move_limit(struct thread *t, struct task_struct *task, u32 cpu)
{
	t->limited_ns += quota_clock(task) - t->quota_clock_ns;
	t->quota_clock_ns = quota_clock_on(task, cpu);
}

/* A thread leaves `cpu` because of its limit. */
static __always_inline void note_limit(struct cpu *cpu, enum cause limit, u64 now)
{
	if (limit == CAUSE_QUOTA)
		cpu->quota_hit_ns = now;
	else if (limit == CAUSE_RT_LIMIT)
		cpu->rt_limit_hit_ns = now;
}

/* Fills in the limit's share. A real-time thread is taken to be held until it runs: no clock tells
 * when the budget was replenished. */
static __always_inline void end_limit(const struct thread *t, struct task_struct *task,
				      const struct cpu *cpu, struct want *want)
{
	u64 wait_ns = want->until_ns - want->from_ns;
	bool held_at_once = t->limit != NO_LIMIT;

	if (t->limit == CAUSE_RT_LIMIT ||
	    (is_real_time(task) && cpu->rt_limit_hit_ns > t->queued_ns)) {
		want->limit = CAUSE_RT_LIMIT;
		want->limited_from_ns = held_at_once ? want->from_ns : cpu->rt_limit_hit_ns;
		want->limited_ns = want->until_ns - want->limited_from_ns;
		return;
	}
	want->limit = CAUSE_QUOTA;
	if (held_at_once || quota_stops_queues(task))
		want->limited_ns = t->limited_ns + quota_clock(task) - t->quota_clock_ns;
	if (want->limited_ns > wait_ns)
		want->limited_ns = wait_ns;
	u64 from_ns = held_at_once ? 0 : cpu->quota_hit_ns;
	u64 latest_ns = want->until_ns - want->limited_ns;

	if (from_ns > latest_ns)
		from_ns = latest_ns;
	want->limited_from_ns = from_ns > want->from_ns ? from_ns : want->from_ns;
}

#endif
