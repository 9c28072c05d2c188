/* SPDX-License-Identifier: GPL-2.0-only
 *
 * absence.bpf.h - the part of a wait for the CPU in which the CPU itself was away: the hypervisor
 * ran something else (its steal clock tells), or it stood still. Who had it then did not run
 * either.
 *
 * Both clocks move once the CPU is back. What of an absence was before the wait is not known: it
 * counts as far as it finds room in the wait.
 */
#ifndef TAILTRACE_ABSENCE_BPF_H
#define TAILTRACE_ABSENCE_BPF_H

#include "limits.bpf.h"
#include "piece.bpf.h"

static __always_inline u64 growth(u64 then, u64 now)
{
	return now > then ? now - then : 0;
}

/* What is left of the wait for those who ran instead. */
static __always_inline u64 blamed_ns(const struct want *want)
{
	return want->until_ns - want->from_ns - want->limited_ns - want->stolen_ns -
	       want->stalled_ns;
}

/* The thread begins to wait for `cpu`, or goes on to do so there. */
static __always_inline void watch_absence(struct thread *t, const struct cpu *cpu, u64 steal_now)
{
	t->steal_ns = steal_now;
	t->stall_clock_ns = cpu->stall_clock_ns;
}

static __always_inline void add_absence(struct thread *t, const struct cpu *cpu, u64 steal_now)
{
	t->stolen_ns += growth(t->steal_ns, steal_now);
	t->stood_still_ns += growth(t->stall_clock_ns, cpu->stall_clock_ns);
}

/* Fills in the shares of the wait. What a limit holds would not have run anyway. */
static __always_inline void end_absence(struct thread *t, const struct cpu *cpu, u64 steal_now,
					struct want *want)
{
	u64 left_ns = want->limited_ns ? 0 : want->until_ns - want->from_ns;

	add_absence(t, cpu, steal_now);
	want->stolen_ns = take(&left_ns, t->stolen_ns);
	want->stalled_ns = take(&left_ns, t->stood_still_ns);
}

#endif
