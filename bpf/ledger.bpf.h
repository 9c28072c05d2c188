/* SPDX-License-Identifier: GPL-2.0-only
 *
 * ledger.bpf.h - the books of one thread: every nanosecond since the last event goes to one cause
 * of the step that it belongs to.
 *
 *   settle()    the thread has been on the CPU until now
 *   gets_cpu()  it has waited until now
 *
 * A step is closed at the first settle() after its mark changed, not when it ends: a mark costs the
 * engine no system call.
 */
#ifndef TAILTRACE_LEDGER_BPF_H
#define TAILTRACE_LEDGER_BPF_H

#include "compat.bpf.h"
#include "deschedule.bpf.h"
#include "event.bpf.h"
#include "mark.bpf.h"
#include "piece.bpf.h"

/* Deschedules of the process's unmarked threads count for the steps that are under way meanwhile.
 * With several marked threads in one process each sees their sum, and one of them the longest. */
static __always_inline void note_helpers(struct thread *t)
{
	struct process *process = process_of(t);

	if (!process || !process->page)
		return;
	u64 total = process->helper_wait_ns;
	if (total > t->helper_seen_ns && t->slot_address) {
		u64 worst = __sync_lock_test_and_set(&process->helper_worst_ns, 0);
		if (t->piece.step) {
			t->piece.helper_wait_ns += total - t->helper_seen_ns;
			if (worst > t->piece.helper_worst_ns)
				t->piece.helper_worst_ns = worst;
		}
	}
	t->helper_seen_ns = total;
}

/* Books the time from the last event to `until`, all of it on the CPU, and moves on to the mark
 * that the thread has now. Call it on the thread's own CPU only: the mark is in its memory. */
static __always_inline void settle(struct thread *t, struct task_struct *task, u64 until,
				   u64 steal_now)
{
	struct stepmark_slot mark;
	u64 steal_ns = 0, stall_ns = t->stall_ns;

	if (steal_now >= t->steal_ns)
		steal_ns = steal_now - t->steal_ns;
	else
		count_lost(LOST_STEAL_BACKWARDS);
	t->steal_ns = steal_now;
	t->stall_ns = 0;
	take_faults(t, task);

	switch (read_mark(t, task, until, &mark)) {
	case MARK_NEW:
		turn_page(t, &mark, until, steal_ns, stall_ns);
		break;
	case MARK_TORN:
		if (t->torn_seq != mark.seq) {
			close_piece(t);
			open_piece(t, STEP_UNKNOWN, t->at_ns);
			t->torn_seq = mark.seq;
		}
		/* fall through */
	default:
		book(t, t->on_cpu, since(t->at_ns, until));
		take_lost(t, steal_ns, stall_ns);
	}
	if (steal_ns && is_counted(t, process_of(t)))
		histogram_add(t->tenant_slot, CAUSE_STEAL, steal_ns);
	t->at_ns = t->piece.until_ns = until;
	note_helpers(t);
	if (!t->piece.step && until - t->piece.from_ns > OUTSIDE_NS) {
		close_piece(t);
		open_piece(t, 0, until);
	}
}

/* `now` is the first that we see of the thread. */
static __always_inline void begin_books(struct thread *t, struct task_struct *task, u64 now,
					u64 steal_now)
{
	t->at_ns = t->piece.from_ns = t->piece.until_ns = now;
	t->steal_ns = steal_now;
	t->minor_faults = task->min_flt;
	t->major_faults = task->maj_flt;
}

/* The thread has the CPU from `now` on. */
static __always_inline void gets_cpu(struct thread *t, struct task_struct *task, struct cpu *cpu,
				     u64 now, u64 steal_now)
{
	if (!t->at_ns) /* the first that we see of it */
		begin_books(t, task, now, steal_now);
	else if (t->cause == CAUSE_RUNNING) /* it left unseen: that time stays unexplained */
		count_lost(LOST_SWITCH_UNSEEN);
	else
		end_wait(t, task, cpu, steal_now, now);
	t->cause = t->on_cpu = CAUSE_RUNNING;
	t->woken_ns = 0;
	t->at_ns = t->piece.until_ns = now;
	t->steal_ns = steal_now;
	note_helpers(t); /* while it was off the CPU its mark cannot have changed */
}

/* Whether a thread that is on the CPU got there although no event said so. A kernel may keep
 * switches to itself, such as those of a guarded process. */
static __always_inline bool is_running_unseen(const struct thread *t)
{
	return t->at_ns && t->cause != CAUSE_RUNNING;
}

/* It did when the one before it was last seen to leave. */
static __always_inline void gets_cpu_unseen(struct thread *t, struct task_struct *task,
					    struct cpu *cpu, u64 now, u64 steal_now)
{
	u64 waits_since_ns = t->woken_ns ? t->woken_ns : t->at_ns;
	u64 last_switch_ns = cpu->runs[(cpu->recorded - 1) % NR_RUNS].until_ns;
	bool was_then = waits_since_ns < last_switch_ns && last_switch_ns < now;

	count_lost(LOST_SWITCH_UNSEEN);
	gets_cpu(t, task, cpu, was_then ? last_switch_ns : waits_since_ns, steal_now);
}

/* Whether the books know that the thread is on the CPU. If it has none yet, they begin now. */
static __always_inline bool is_running(struct thread *t, struct task_struct *task, u64 now,
				       u64 steal_now)
{
	if (t->at_ns)
		return t->cause == CAUSE_RUNNING && !t->settling;
	begin_books(t, task, now, steal_now);
	return false;
}

#endif
