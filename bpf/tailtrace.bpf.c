// SPDX-License-Identifier: GPL-2.0-only
/* tailtrace.bpf.c - the hooks. Each reads its arguments and tells the ledger.
 *
 *   sched_switch           one thread leaves the CPU and says why, another gets it and knows
 *                          what it waited for and who had the CPU meanwhile
 *   sched_wakeup(_new)     a wait is over: from here on the thread wants a CPU
 *   sched_migrate_task     a waiting thread is moved: its wait goes on elsewhere
 *   irq and softirq hooks  time on the CPU that is not the thread's own
 *   page fault hooks       what its memory costs the thread, in memory.bpf.h
 *   sched_process_fork     a thread of a target starts: it is tracked from birth
 *   sched_process_exit     a thread ends: its last piece is closed
 *   hrtimer_expire hooks   a CPU shows a sign of life, or comes back from a stall
 *   iter/task              the agent tags the threads of a target that run already
 */
#include "ledger.bpf.h"
#include "memory.bpf.h"
#include "stall.bpf.h"
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
	t->wanted = limit == NO_LIMIT ? CAUSE_PREEMPTED : CAUSE_RUNQUEUE;
	t->cause = t->wanted;
	t->woken_ns = now;
	begin_limit(t, prev, limit);
	wait_for(t, bpf_get_smp_processor_id(), now);
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
	if (leaving && leaving->at_ns && leaving->cause != CAUSE_RUNNING)
		gets_cpu(leaving, prev, cpu, got_cpu_unseen(leaving, cpu, now), steal_now);
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
	t->woken_ns = bpf_ktime_get_ns();
	t->wanted = CAUSE_RUNQUEUE;
	begin_limit(t, task, limit_of(task));
	wait_for(t, cpu_of(task), t->woken_ns);
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
	if (t->queued_on) {
		wait_no_more(t);
		move_limit(t, task, dest_cpu);
		wait_for(t, dest_cpu, bpf_ktime_get_ns());
	}
	return 0;
}

/* Interrupts. On a CPU whose thread is not tracked they cost one look-up. */

static __always_inline int irq_begins(void)
{
	struct thread *t = thread_of(bpf_get_current_task_btf());
	struct cpu *cpu = t ? this_cpu() : NULL;

	if (cpu)
		cpu->irq_ns = bpf_ktime_get_ns();
	return 0;
}

/* Only now is the time before the interrupt booked: if the hypervisor had stopped the CPU, the
 * kernel found it out in this interrupt (steal_clock). */
static __always_inline int irq_ends(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);
	struct cpu *cpu = t ? this_cpu() : NULL;

	if (!cpu || !cpu->irq_ns)
		return 0;
	u64 now = bpf_ktime_get_ns(), steal_now = steal_clock(task), began_ns = cpu->irq_ns;
	cpu->irq_ns = 0;
	if (!is_running(t, task, began_ns, steal_now))
		return 0;
	settle(t, task, began_ns, steal_now);
	book(t, CAUSE_IRQ, since(began_ns, now));
	t->at_ns = t->piece.until_ns = now;
	cpu->irq_from_ns = began_ns;
	cpu->irq_until_ns = now;
	return 0;
}

static __always_inline int softirq(enum cause from_here_on)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);

	if (!t)
		return 0;
	u64 now = bpf_ktime_get_ns(), steal_now = steal_clock(task);
	if (is_running(t, task, now, steal_now))
		settle(t, task, now, steal_now);
	t->on_cpu = from_here_on;
	return 0;
}

SEC("tp_btf/softirq_entry") int on_softirq_entry(void *ctx)
{
	return softirq(CAUSE_SOFTIRQ);
}

SEC("tp_btf/softirq_exit") int on_softirq_exit(void *ctx)
{
	return softirq(CAUSE_RUNNING);
}

#define IRQ_HOOKS(name)                                                                            \
	SEC("tp_btf/" #name "_entry") int on_##name##_entry(void *ctx)                             \
	{                                                                                          \
		return irq_begins();                                                               \
	}                                                                                          \
	SEC("tp_btf/" #name "_exit") int on_##name##_exit(void *ctx)                               \
	{                                                                                          \
		return irq_ends();                                                                 \
	}

IRQ_HOOKS(irq_handler)          /* devices; on arm64 the timer, too */
IRQ_HOOKS(local_timer)          /* x86: the tick */
IRQ_HOOKS(call_function)        /* x86: TLB shootdowns and other work for many CPUs */
IRQ_HOOKS(call_function_single) /* x86 */
IRQ_HOOKS(ipi)                  /* arm64 */

/* Timers. */

SEC("tp_btf/hrtimer_expire_entry") int BPF_PROG(on_timer_expiry, struct hrtimer *timer)
{
	return timer_expires(timer);
}

SEC("tp_btf/hrtimer_expire_exit") int on_timer_expired(void *ctx)
{
	return timer_expired();
}

/* Targets. */

static __always_inline void untrack(struct thread *t, struct task_struct *task)
{
	t->piece.process = 0;
	wait_no_more(t);
	/* Its exit and the agent may untrack it at once. */
	if (!bpf_task_storage_delete(&threads, task))
		__sync_fetch_and_add(&tracked, -1);
}

static __always_inline struct thread *track(struct task_struct *task, u32 process)
{
	struct thread *t =
		bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!t) {
		count_lost(LOST_THREAD_STORAGE);
		return NULL;
	}
	if (t->piece.process == process)
		return t;
	if (!t->piece.process)
		__sync_fetch_and_add(&tracked, 1);
	struct process *target = bpf_map_lookup_elem(&processes, &process);
	t->piece.slot = STEPMARK_SLOTS;
	t->piece.tgid = task->tgid;
	t->piece.tid = task->pid;
	t->tid_inside = tid_inside(task);
	t->tenant_slot = target ? target->tenant : 0;
	t->helper_seen_ns = target ? target->helper_wait_ns : 0;
	t->slot_address = 0;
	t->piece.process = process;
	return t;
}

SEC("tp_btf/sched_process_fork") int BPF_PROG(on_fork, struct task_struct *parent,
					      struct task_struct *child)
{
	struct thread *of_parent = parent->tgid == child->tgid ? thread_of(parent) : NULL;
	struct thread *t = of_parent ? track(child, of_parent->piece.process) : NULL;

	if (!t)
		return 0;
	t->cause = CAUSE_OTHER_WAIT; /* until sched_wakeup_new */
	t->syscall = NO_SYSCALL;
	t->at_ns = t->piece.from_ns = t->piece.until_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sched_process_exit") int BPF_PROG(on_exit, struct task_struct *task)
{
	struct thread *t = thread_of(task);

	if (!t)
		return 0;
	if (t->at_ns) {
		take_faults(t, task);
		close_piece(t); /* its memory may be gone already: no mark is read any more */
	}
	untrack(t, task);
	return 0;
}

SEC("iter/task") int tag_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	/* An exit untracks; a zombie that were tracked after that would stay so for ever. */
	if (!task || task->flags & PF_EXITING)
		return 0;
	u32 tgid = task->tgid;
	u32 *process = bpf_map_lookup_elem(&targets, &tgid);
	struct thread *t = process ? track(task, *process) : thread_of(task);
	if (t && !process) {
		if (t->at_ns) /* what it is in the middle of stays out of the books */
			close_piece(t);
		untrack(t, task);
	}
	return 0;
}
