// SPDX-License-Identifier: GPL-2.0-only
/* tailtrace.bpf.c - the hooks. Each reads its arguments and tells the ledger.
 *
 *   sched_switch         one thread leaves the CPU and says why, another gets it and knows
 *                        what it waited for and who had the CPU meanwhile
 *   sched_wakeup(_new)   a wait is over: from here on the thread wants a CPU
 *   sched_migrate_task   a waiting thread is moved: its wait goes on elsewhere
 *
 * irq.bpf.h, memory.bpf.h, stall.bpf.h and target.bpf.h have the others.
 */
#include "irq.bpf.h"
#include "ledger.bpf.h"
#include "memory.bpf.h"
#include "stall.bpf.h"
#include "target.bpf.h"
#include "topology.bpf.h"
#include "wait.bpf.h"

char LICENSE[] SEC("license") = "GPL";

static __always_inline void leaves_cpu(struct thread *t, struct task_struct *prev, bool runnable,
				       u32 state, enum cause limit, u64 now, u64 steal_now)
{
	if (is_running(t, prev, now, steal_now))
		settle(t, prev, now, steal_now);
	t->piece.switches++;
	if (!runnable) {
		t->syscall = blocked_syscall(prev);
		t->cause = blocked_on(prev, t->syscall, state);
		t->woken_ns = 0;
		return;
	}
	t->piece.involuntary++;
	t->syscall = NO_SYSCALL;
	/* Once the limit lets go of it, it queues like one that was woken. */
	t->cause = limit == NO_LIMIT ? CAUSE_PREEMPTED : CAUSE_RUNQUEUE;
	begin_want(t, prev, t->cause, limit, steal_now, now);
}

/* The limit that makes a thread leave that would go on. */
static __always_inline enum cause limit_that_stops(struct task_struct *prev,
						   struct task_struct *next)
{
	return is_real_time(prev) && is_served(next) ? CAUSE_RT_LIMIT : limit_of(prev);
}

SEC("tp_btf/sched_switch") int on_switch(u64 *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1];
	struct task_struct *next = (struct task_struct *)ctx[2];
	struct thread *leaving = thread_of(prev), *coming = thread_of(next);
	struct cpu *cpu = this_cpu();

	bool is_leaving = leaving, is_coming = coming;

	/* Or clang tests the two pointers with one `|`, which no verifier allows. */
	barrier_var(is_leaving);
	barrier_var(is_coming);
	if (!cpu || !(is_leaving || is_coming || cpu->waiting))
		return 0;
	u64 now = bpf_ktime_get_ns(), steal_now = steal_clock(next);
	if (leaving && is_running_unseen(leaving))
		gets_cpu_unseen(leaving, prev, cpu, now, steal_now);
	if (cpu->waiting)
		record_run(cpu, prev, now);
	/* The state captured at the switch, because a waker may have changed it since. A thread
	 * that was preempted on its way to sleep is preempted, whatever it says. */
	u32 state = has_prev_state ? (u32)ctx[3] : prev->__state;
	bool runnable = ctx[0] || !state;
	enum cause limit = runnable ? limit_that_stops(prev, next) : NO_LIMIT;
	note_limit(cpu, limit, now);
	if (leaving)
		leaves_cpu(leaving, prev, runnable, state, limit, now, steal_now);
	if (coming)
		gets_cpu(coming, next, cpu, now, steal_now);
	return 0;
}

static __always_inline int woken(struct task_struct *task)
{
	struct thread *t = thread_of(task);

	/* A thread that has not left the CPU yet is only told not to; one that is runnable already
	 * wants nothing new. */
	if (!t || !t->at_ns || t->cause == CAUSE_RUNNING || t->woken_ns)
		return 0;
	begin_want(t, task, CAUSE_RUNQUEUE, limit_of(task), steal_clock(task), bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/sched_wakeup") int BPF_PROG(on_wakeup, struct task_struct *task)
{
	return woken(task);
}

SEC("tp_btf/sched_wakeup_new") int BPF_PROG(on_wakeup_new, struct task_struct *task)
{
	return woken(task);
}

SEC("tp_btf/sched_migrate_task") int BPF_PROG(on_migrate, struct task_struct *task, int dest_cpu)
{
	struct thread *t = thread_of(task);

	if (!t)
		return 0;
	t->piece.migrations++;
	count_move(t, task, dest_cpu);
	if (t->queued_on)
		move_want(t, task, dest_cpu);
	return 0;
}
