/* SPDX-License-Identifier: GPL-2.0-only
 *
 * deschedule.bpf.h - a thread wanted the CPU and had to wait: how long, for what, because of whom.
 */
#ifndef TAILTRACE_DESCHEDULE_BPF_H
#define TAILTRACE_DESCHEDULE_BPF_H

#include "blame.bpf.h"
#include "histogram.bpf.h"
#include "piece.bpf.h"

/* Whether deschedules of the thread go into its tenant's histograms: those of steps do, and those
 * of processes that mark nothing. */
static __always_inline bool is_counted(struct thread *t, struct process *process)
{
	return t->piece.step || !process || !process->page;
}

/* A thread that wanted the CPU had to wait for it. */
static __always_inline void count_deschedule(struct thread *t, enum cause cause, u64 ns, u64 now,
					     const struct runner *by)
{
	struct process *process = process_of(t);
	struct wait wait = {.at_ns = now, .ns = ns, .cause = cause, .syscall = t->syscall};

	if (is_counted(t, process)) {
		histogram_add(t->tenant_slot, cause, ns);
	} else if (t->piece.slot == STEPMARK_SLOTS) {
		/* A helper: it has no step of its own, but others may wait for it. */
		__sync_fetch_and_add(&process->helper_wait_ns, ns);
		if (ns > process->helper_worst_ns)
			process->helper_worst_ns = ns;
	}
	if (ns <= t->piece.worst.ns && ns < outlier_ns)
		return;
	if (by)
		wait.by = *by;
	if (ns > t->piece.worst.ns)
		t->piece.worst = wait;
	if (ns < outlier_ns)
		return;
	struct outlier *outlier = bpf_ringbuf_reserve(&outliers, sizeof(*outlier), 0);
	if (!outlier) {
		count_lost(LOST_OUTLIERS_RING_FULL);
		return;
	}
	outlier->step = t->piece.step;
	outlier->process = t->piece.process;
	outlier->slot = t->piece.slot;
	outlier->tgid = t->piece.tgid;
	outlier->tid = t->piece.tid;
	outlier->cpu = bpf_get_smp_processor_id();
	outlier->tenant = t->piece.tenant;
	outlier->wait = wait;
	bpf_ringbuf_submit(outlier, BPF_RB_NO_WAKEUP);
}

/* The thread wants the CPU that it is on or queued for. */
static __always_inline void begin_want(struct thread *t, struct task_struct *task,
				       enum cause wanted, enum cause limit, u64 steal_now, u64 now)
{
	t->wanted = wanted;
	t->woken_ns = now;
	t->stolen_ns = t->stood_still_ns = 0;
	begin_limit(t, task, limit);
	wait_for(t, cpu_of(task), steal_now, now);
}

/* It is about to be moved to another CPU and goes on to want that. */
static __always_inline void move_want(struct thread *t, struct task_struct *task, u32 to)
{
	struct cpu *from = cpu_at(t->queued_on - 1);

	if (from)
		add_absence(t, from, steal_clock(task));
	wait_no_more(t);
	move_limit(t, task, to);
	wait_for(t, to, steal_clock_on(task, to), bpf_ktime_get_ns());
}

/* What had the most of the wait. */
static __always_inline enum cause cause_of(const struct thread *t, const struct want *want)
{
	u64 most_ns = blamed_ns(want);
	enum cause cause = t->wanted;

	if (want->limited_ns >= most_ns)
		cause = want->limit, most_ns = want->limited_ns;
	if (want->stolen_ns > most_ns)
		cause = CAUSE_STEAL, most_ns = want->stolen_ns;
	return want->stalled_ns > most_ns ? CAUSE_STALL : cause;
}

/* The thread got the CPU that it wanted: the wait was a limit's, the CPU was away, and the rest is
 * of those who ran instead. For the histograms it is one deschedule. */
static __always_inline void end_want(struct thread *t, struct task_struct *task, struct cpu *cpu,
				     u64 steal_now, u64 now)
{
	struct want want = {.from_ns = t->woken_ns, .until_ns = now};
	u64 wait_ns = since(t->woken_ns, now);
	u32 longest = NR_RUNS;

	if (!wait_ns)
		return;
	end_limit(t, task, cpu, &want);
	end_absence(t, cpu, steal_now, &want);
	book(t, want.limit, want.limited_ns);
	book(t, CAUSE_STEAL, want.stolen_ns);
	book(t, CAUSE_STALL, want.stalled_ns);
	book(t, t->wanted, blamed_ns(&want));
	t->piece.absent_ns += want.stolen_ns + want.stalled_ns;
	if (blamed_ns(&want) >= blame_ns)
		longest = charge_runners(t, cpu, &want);
	else
		t->piece.blame_rest_ns += blamed_ns(&want);
	enum cause cause = cause_of(t, &want);
	if (cause != t->wanted)
		longest = NR_RUNS;
	count_deschedule(t, cause, wait_ns, now,
			 longest < NR_RUNS ? &cpu->runs[longest].who : NULL);
}

/* The wait that the thread was in ends at `now`. */
static __always_inline void end_wait(struct thread *t, struct task_struct *task, struct cpu *cpu,
				     u64 steal_now, u64 now)
{
	if (t->cause != t->wanted)
		book(t, t->cause, since(t->at_ns, t->woken_ns ? t->woken_ns : now));
	if (t->woken_ns)
		end_want(t, task, cpu, steal_now, now);
	wait_no_more(t);
}

#endif
