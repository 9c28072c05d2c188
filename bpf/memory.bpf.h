/* SPDX-License-Identifier: GPL-2.0-only
 *
 * memory.bpf.h - what a thread's memory costs it: the hooks.
 *
 *   handle_mm_fault          a page fault begins and ends: its time on the CPU is `fault`
 *   page_fault_user, kernel  x86, where functions cannot be traced: a page fault begins
 *
 * These hooks, unlike those of switches and interrupts, can themselves be interrupted.
 */
#ifndef TAILTRACE_MEMORY_BPF_H
#define TAILTRACE_MEMORY_BPF_H

#include "ledger.bpf.h"

/* settle() at a place where an interrupt may come in between. That interrupt's time is booked as
 * what the thread itself does. */
static __always_inline void settle_here(struct thread *t, struct task_struct *task)
{
	if (t->settling)
		return;
	t->settling = true;
	barrier();
	if (t->at_ns && t->cause == CAUSE_RUNNING)
		settle(t, task, bpf_ktime_get_ns());
	barrier();
	t->settling = false;
}

/* What the thread does from here on is counted for the mark that it has here: the mark may have
 * changed since the last event. */
static __always_inline void catch_up(struct thread *t, struct task_struct *task)
{
	u64 seq, at = t->slot_address + __builtin_offsetof(struct stepmark_slot, seq);

	if (t->slot_address && !bpf_probe_read_user(&seq, sizeof(seq), (void *)at) && seq == t->seq)
		return;
	settle_here(t, task);
}

static __always_inline int fault_begins(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);

	if (t && !task->pagefault_disabled)
		catch_up(t, task);
	return 0;
}

SEC("tp_btf/page_fault_user") int on_fault_user(void *ctx)
{
	return fault_begins();
}

SEC("tp_btf/page_fault_kernel") int on_fault_kernel(void *ctx)
{
	return fault_begins();
}

static __always_inline int enters(struct thread *t, struct task_struct *task, struct inside *inside)
{
	settle_here(t, task);
	inside->piece_ns = t->piece.from_ns;
	inside->running_ns = t->piece.ns[CAUSE_RUNNING];
	return 0;
}

/* The time is taken out of `running`. What interrupts, other threads and the hypervisor had of it
 * is not in there, nor what the thread waited. */
static __always_inline int leaves(struct thread *t, struct task_struct *task, struct inside *inside,
				  enum cause cause)
{
	if (!inside->piece_ns) /* it was inside already when tracing began */
		return 0;
	settle_here(t, task);
	u64 *running = &t->piece.ns[CAUSE_RUNNING];
	u64 before = inside->piece_ns == t->piece.from_ns ? inside->running_ns : 0;
	if (*running > before) {
		t->piece.ns[cause] += *running - before;
		*running = before;
	}
	inside->piece_ns = 0;
	return 0;
}

SEC("fentry/handle_mm_fault") int on_fault_begin(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);

	return t ? enters(t, task, &t->fault) : 0;
}

SEC("fexit/handle_mm_fault") int on_fault_end(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);

	return t ? leaves(t, task, &t->fault, CAUSE_FAULT) : 0;
}

#endif
