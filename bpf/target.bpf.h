/* SPDX-License-Identifier: GPL-2.0-only
 *
 * target.bpf.h - which threads are tracked: the hooks of their begin and end.
 *
 *   sched_process_fork     a thread of a target starts: it is tracked from birth
 *   sched_process_exit     a thread ends: its last piece is closed
 *   iter/task              the agent tags the threads of a target that run already
 */
#ifndef TAILTRACE_TARGET_BPF_H
#define TAILTRACE_TARGET_BPF_H

#include "ledger.bpf.h"
#include "wait.bpf.h"

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

#endif
