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

#include "blame.bpf.h"
#include "compat.bpf.h"
#include "event.bpf.h"
#include "histogram.bpf.h"
#include "maps.bpf.h"
#include "mark.bpf.h"

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
	piece->helper_wait_ns = piece->helper_worst_ns = 0;
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

/* Whether deschedules of the thread go into its tenant's histograms: those of steps do, and those
 * of processes that mark nothing. */
static __always_inline bool is_counted(struct thread *t, struct process *process)
{
	return t->piece.step || !process || !process->page;
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

/* The thread wanted the CPU and got it: the wait is a limit's, or of those who ran instead. For the
 * histograms it is one deschedule, by what had the most of it. */
static __always_inline void end_want(struct thread *t, struct task_struct *task, struct cpu *cpu,
				     u64 now)
{
	struct want want = {.from_ns = t->woken_ns, .until_ns = now};
	u64 wait_ns = since(t->woken_ns, now), blamed_ns;
	u32 longest = NR_RUNS;

	if (!wait_ns)
		return;
	end_limit(t, task, cpu, &want);
	blamed_ns = wait_ns - want.limited_ns;
	book(t, want.limit, want.limited_ns);
	book(t, t->wanted, blamed_ns);
	if (blamed_ns >= blame_ns)
		longest = charge_runners(t, cpu, &want);
	else
		t->piece.blame_rest_ns += blamed_ns;
	if (blamed_ns > want.limited_ns)
		count_deschedule(t, t->wanted, wait_ns, now,
				 longest < NR_RUNS ? &cpu->runs[longest].who : NULL);
	else
		count_deschedule(t, want.limit, wait_ns, now, NULL);
}

/* The wait that the thread was in ends at `now`. */
static __always_inline void end_wait(struct thread *t, struct task_struct *task, struct cpu *cpu,
				     u64 now)
{
	if (t->cause != t->wanted)
		book(t, t->cause, since(t->at_ns, t->woken_ns ? t->woken_ns : now));
	if (t->woken_ns)
		end_want(t, task, cpu, now);
	wait_no_more(t);
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
		end_wait(t, task, cpu, now);
	t->cause = t->on_cpu = CAUSE_RUNNING;
	t->woken_ns = 0;
	t->at_ns = t->piece.until_ns = now;
	t->steal_ns = steal_now;
	note_helpers(t); /* while it was off the CPU its mark cannot have changed */
}

/* When a thread got the CPU that is on it although no event said so: when the one before it was
 * last seen to leave. A kernel may keep switches to itself, such as those of a guarded process. */
static __always_inline u64 got_cpu_unseen(struct thread *t, struct cpu *cpu, u64 now)
{
	u64 waits_since_ns = t->woken_ns ? t->woken_ns : t->at_ns;
	u64 last_switch_ns = cpu->runs[(cpu->recorded - 1) % NR_RUNS].until_ns;

	count_lost(LOST_SWITCH_UNSEEN);
	return waits_since_ns < last_switch_ns && last_switch_ns < now ? last_switch_ns
								       : waits_since_ns;
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
