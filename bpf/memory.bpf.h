/* SPDX-License-Identifier: GPL-2.0-only
 *
 * memory.bpf.h - what a thread's memory costs it: the hooks.
 *
 *   handle_mm_fault          a page fault begins and ends: its time on the CPU is `fault`
 *   page_fault_user, kernel  x86, where functions cannot be traced: a page fault begins
 *   mm_page_alloc            it gets pages, on the node of its CPU or on another
 *   task_numa_fault          NUMA balancing made it fault, to see where it needs the page
 *   migrate_misplaced_*      in such a fault it moves the page itself: `numa_migrate`
 *   mm_migrate_pages         pages were moved, and why
 *   sched_*_numa             NUMA balancing moved the thread, or wanted to
 *
 * These hooks, unlike those of switches and interrupts, can themselves be interrupted.
 */
#ifndef TAILTRACE_MEMORY_BPF_H
#define TAILTRACE_MEMORY_BPF_H

#include "first_touch.bpf.h"
#include "ledger.bpf.h"
#include "topology.bpf.h"

#define GFP_MOVABLE 0x08     /* include/linux/gfp_types.h: user memory and page cache */
#define TNF_FAULT_LOCAL 0x08 /* include/linux/sched/numa_balancing.h */

/* settle() at a place where an interrupt may come in between. That interrupt's time is booked as
 * what the thread itself does. */
static __always_inline void settle_here(struct thread *t, struct task_struct *task)
{
	if (t->settling)
		return;
	t->settling = true;
	barrier();
	if (t->at_ns && t->cause == CAUSE_RUNNING)
		settle(t, task, bpf_ktime_get_ns(), steal_clock(task));
	barrier();
	t->settling = false;
}

/* What the thread does from here on is counted for the mark that it has here, which may be another
 * than at the last event. While it writes a mark, it still is the one before. */
static __always_inline void catch_up(struct thread *t, struct task_struct *task)
{
	if (peek_mark(t) == MARK_NEW)
		settle_here(t, task);
}

static __always_inline struct thread *fault_begins(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);

	if (t && !task->pagefault_disabled)
		catch_up(t, task);
	return t;
}

SEC("tp_btf/page_fault_user") int BPF_PROG(on_fault_user, unsigned long address)
{
	struct thread *t = fault_begins();

	if (t)
		t->fault_address = address;
	return 0;
}

SEC("tp_btf/page_fault_kernel") int on_fault_kernel(void *ctx)
{
	fault_begins();
	return 0;
}

static __always_inline int count_for(struct thread *t, struct task_struct *task, enum event event,
				     u32 n)
{
	catch_up(t, task);
	t->piece.events[event] += n;
	return 0;
}

static __always_inline int count_here(enum event event, u32 n)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);

	return t ? count_for(t, task, event, n) : 0;
}

/* Every allocation is looked at, so the shares have no sampling error. */
SEC("tp_btf/mm_page_alloc") int BPF_PROG(on_page_alloc, struct page *page, unsigned int order,
					 unsigned int gfp)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);

	if (!t || !page || !(gfp & GFP_MOVABLE))
		return 0;
	u32 pages = 1 << (order & 31);
	if (!is_to_move_to(gfp))
		count_touch(t, task, pages);
	bool local = node_of_page(page) == bpf_get_numa_node_id();
	return count_for(t, task, local ? EVENT_ALLOC_LOCAL : EVENT_ALLOC_REMOTE, pages);
}

SEC("fentry/task_numa_fault") int BPF_PROG(on_hint_fault, int last_cpupid, int node, int pages,
					   int flags)
{
	return count_here(flags & TNF_FAULT_LOCAL ? EVENT_HINT_LOCAL : EVENT_HINT_REMOTE, 1);
}

static __always_inline int pages_moved(u32 succeeded, u32 reason)
{
	enum event event = EVENT_MIGRATE_OTHER;

	if (reason == bpf_core_enum_value(enum migrate_reason, MR_NUMA_MISPLACED))
		event = EVENT_MIGRATE_BALANCER;
	if (reason == bpf_core_enum_value(enum migrate_reason, MR_SYSCALL) ||
	    reason == bpf_core_enum_value(enum migrate_reason, MR_MEMPOLICY_MBIND))
		event = EVENT_MIGRATE_REQUEST;
	return count_here(event, succeeded);
}

SEC("tp_btf/mm_migrate_pages") int on_migrate_pages(u64 *ctx)
{
	return pages_moved(ctx[0], ctx[7]);
}

/* As it was before it counted splits of large folios, too (a259945efe6a). */
SEC("tp_btf/mm_migrate_pages") int on_migrate_pages_7(u64 *ctx)
{
	return pages_moved(ctx[0], ctx[6]);
}

/* NUMA balancing moves the thread that faults, so it is the current one. */

SEC("tp_btf/sched_move_numa") int on_balance_move(void *ctx)
{
	return count_here(EVENT_BALANCE_MOVE, 1);
}

SEC("tp_btf/sched_swap_numa") int on_balance_swap(void *ctx)
{
	return count_here(EVENT_BALANCE_SWAP, 1);
}

SEC("tp_btf/sched_stick_numa") int on_balance_stick(void *ctx)
{
	return count_here(EVENT_BALANCE_STICK, 1);
}

/* Kernel functions whose time on the CPU has a cause of its own. What is inside of another has its
 * time for itself. */

static __always_inline struct inside *inside_of(struct thread *t, enum cause cause)
{
	return cause == CAUSE_FAULT ? &t->fault : &t->migration;
}

static __always_inline int enters(struct thread *t, struct task_struct *task, enum cause cause)
{
	if (peek_mark(t) == MARK_TORN)
		return 0;
	settle_here(t, task);
	inside_of(t, cause)->piece_ns = t->piece.from_ns;
	inside_of(t, cause)->running_ns = t->piece.ns[CAUSE_RUNNING];
	return 0;
}

/* The time is taken out of `running`. What interrupts, other threads and the hypervisor had of it
 * is not in there, nor what the thread waited. */
static __always_inline int leaves(struct thread *t, struct task_struct *task, enum cause cause)
{
	if (!inside_of(t, cause)->piece_ns) /* it was inside already when tracing began */
		return 0;
	settle_here(t, task);
	struct inside *inside = inside_of(t, cause);
	u64 before = inside->piece_ns == t->piece.from_ns ? inside->running_ns : 0;
	u64 *running = &t->piece.ns[CAUSE_RUNNING];
	if (*running > before) {
		t->piece.ns[cause] += *running - before;
		*running = before;
	}
	inside->piece_ns = 0;
	return 0;
}

SEC("fentry/handle_mm_fault") int BPF_PROG(on_fault_begin, struct vm_area_struct *area)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);

	if (!t)
		return 0;
	bool is_shared = area->vm_flags & VM_SHARED;
	barrier_var(is_shared); /* or clang makes a mask of it, for a pointer that allows none */
	t->fault_area = 0;
	if (is_shared)
		t->fault_area = (u64)area;
	return enters(t, task, CAUSE_FAULT);
}

SEC("fexit/handle_mm_fault") int on_fault_end(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);

	if (!t)
		return 0;
	t->fault_area = 0;
	return leaves(t, task, CAUSE_FAULT);
}

/* migrate_misplaced_folio, which was migrate_misplaced_page before 73eab3ca481e: the agent names
 * the function. */
SEC("fentry") int on_migration_begin(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);

	return t ? enters(t, task, CAUSE_NUMA_MIGRATE) : 0;
}

SEC("fexit") int on_migration_end(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);

	return t ? leaves(t, task, CAUSE_NUMA_MIGRATE) : 0;
}

#endif
