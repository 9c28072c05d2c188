/* SPDX-License-Identifier: GPL-2.0-only
 *
 * piece.bpf.h - the books of one step of one thread: written while it lasts, then sent.
 *
 * What turns out later to have been something else is moved, and no more of it than there is.
 */
#ifndef TAILTRACE_PIECE_BPF_H
#define TAILTRACE_PIECE_BPF_H

#include "maps.bpf.h"

/* Two readings of CLOCK_MONOTONIC, on two CPUs or by two ways into the clock, need not be in order:
 * bpf_ktime_get_ns() is ktime_get_mono_fast_ns(), which may run a little ahead or behind when the
 * clock is adjusted (kernel/time/timekeeping.c). */
#define CLOCK_SKEW_NS 10000

static __always_inline u64 since(u64 then, u64 now)
{
	if (now >= then)
		return now - then;
	count_lost(LOST_CLOCK_BACKWARDS);
	return 0;
}

static __always_inline void book(struct thread *t, enum cause cause, u64 ns)
{
	u32 at = cause;

	barrier_var(at); /* the verifier must see the check on the register that it indexes with */
	if (at < NR_CAUSES)
		t->piece.ns[at] += ns;
}

static __always_inline void close_piece(struct thread *t)
{
	if (bpf_ringbuf_output(&pieces, &t->piece, sizeof(t->piece), BPF_RB_NO_WAKEUP))
		count_lost(LOST_PIECES_RING_FULL);
}

__noinline int open_piece(struct thread *t, u64 step, u64 from_ns)
{
	if (!t)
		return 0;
	struct piece *piece = &t->piece;

	piece->step = step;
	piece->from_ns = piece->until_ns = from_ns;
	piece->tail_steal_ns = piece->tail_stall_ns = 0;
	__builtin_memset(piece->ns, 0, sizeof(piece->ns));
	__builtin_memset(piece->events, 0, sizeof(piece->events));
	piece->switches = piece->involuntary = piece->migrations = 0;
	piece->helper_wait_ns = piece->helper_worst_ns = piece->absent_ns = 0;
	__builtin_memset(&piece->worst, 0, sizeof(piece->worst));
	piece->blame_rest_ns = 0;
	__builtin_memset(piece->aggressors, 0, sizeof(piece->aggressors));
	return 0;
}

static __always_inline void identify(struct thread *t, const struct stepmark_slot *mark)
{
	struct process *process = process_of(t);

	t->seq = mark->seq;
	t->torn_seq = 0;
	t->piece.step = mark->step;
	t->piece.kind = mark->kind;
	t->piece.tenant = mark->tenant;
	if (process)
		t->tenant_slot = process->tenant_slot[mark->tenant % STEPMARK_TENANTS];
}

/* Takes up to `ns` away from a time and returns how much that was. */
static __always_inline u64 take(u64 *from, u64 ns)
{
	u64 taken = ns < *from ? ns : *from;

	*from -= taken;
	return taken;
}

/* Time that is in the books turns out to have been stolen, because the steal clock advances only
 * when the kernel looks at it, which may be an interrupt later; or its CPU stood still meanwhile.
 */
static __always_inline void take_lost(struct thread *t, u64 steal_ns, u64 stall_ns)
{
	u64 *ns = t->piece.ns;
	u64 *on_cpu = &ns[t->on_cpu == CAUSE_SOFTIRQ ? CAUSE_SOFTIRQ : CAUSE_RUNNING];

	ns[CAUSE_STEAL] += take(&ns[CAUSE_RUNNING], steal_ns);
	ns[CAUSE_STALL] += take(on_cpu, stall_ns);
}

/* The mark changed at mark->since_ns, between the last event and this one. A global function, like
 * others that are seldom called: the verifier goes through it once. */
__noinline int turn_page(struct thread *t, const struct stepmark_slot *mark, u64 until,
			 u64 steal_ns, u64 stall_ns)
{
	if (!t || !mark)
		return 0;
	u64 from = mark->since_ns;

	if (t->torn_seq == mark->seq) {
		/* This is the mark during whose writing the last piece was cut off. */
		u64 *running = &t->piece.ns[CAUSE_RUNNING];

		*running += since(t->at_ns, until);
		take(running, from > t->piece.from_ns ? from - t->piece.from_ns : 0);
		t->piece.from_ns = from;
		take_lost(t, steal_ns, stall_ns);
		identify(t, mark);
		return 0;
	}
	if (from < t->at_ns || from > until) {
		/* The first mark we see may be older than our books. */
		if (t->seq && (from + CLOCK_SKEW_NS < t->at_ns || from > until + CLOCK_SKEW_NS))
			count_lost(LOST_MARK_IMPLAUSIBLE);
		from = from < t->at_ns ? t->at_ns : until;
	}
	u64 running = until - from;
	u64 stolen = take(&running, steal_ns), stalled = take(&running, stall_ns);

	t->piece.tail_steal_ns = steal_ns - stolen;
	t->piece.tail_stall_ns = stall_ns - stalled;
	close_piece(t);
	open_piece(t, mark->step, from);
	identify(t, mark);
	t->piece.ns[CAUSE_RUNNING] = running;
	t->piece.ns[CAUSE_STEAL] = stolen;
	t->piece.ns[CAUSE_STALL] = stalled;
	return 0;
}

#endif
