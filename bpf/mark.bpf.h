/* SPDX-License-Identifier: GPL-2.0-only
 *
 * mark.bpf.h - read the current mark of the thread that is on the CPU, from its own memory.
 */
#ifndef TAILTRACE_MARK_BPF_H
#define TAILTRACE_MARK_BPF_H

#include "compat.bpf.h"
#include "maps.bpf.h"

/* A thread without a slot looks for one again and again, because its first mark may come at any
 * time: after 16 us, then twice as long each time, up to 1 ms. */
#define FIRST_RETRY_NS (1 << 14)
#define LAST_RETRY_NS (1 << 20)

enum mark { MARK_NONE, MARK_SAME, MARK_NEW, MARK_TORN };

/* A thread takes one of STEPMARK_PROBES slots from tid % STEPMARK_SLOTS on (stepmark_page.h). A
 * global function, so that the verifier goes through the loop once. */
__noinline int find_slot(struct thread *t, u64 page)
{
	if (!t)
		return 0;
	u64 slots = page + __builtin_offsetof(struct stepmark_page, slots);

	for (u32 i = 0; i < STEPMARK_PROBES; i++) {
		u32 index = (t->tid_inside + i) % STEPMARK_SLOTS, tid = 0;
		u64 slot = slots + index * sizeof(struct stepmark_slot);

		if (bpf_probe_read_user(
			    &tid, sizeof(tid),
			    (void *)(slot + __builtin_offsetof(struct stepmark_slot, tid))))
			return 0;
		if (tid == t->tid_inside) {
			t->slot_address = slot;
			t->slot_pause_ns = 0;
			t->piece.slot = index;
			return 0;
		}
	}
	return 0;
}

/* Fills `mark` when it is new. A writer stores `seq` first and `seq_end` last: while the
 * two differ, the thread is writing a mark. */
static __always_inline enum mark read_mark(struct thread *t, struct task_struct *task, u64 now,
					   struct stepmark_slot *mark)
{
	if (!task->mm)
		return MARK_NONE;
	if (!t->slot_address) {
		struct process *process = process_of(t);

		if (!process || !process->page || now < t->slot_retry_ns)
			return MARK_NONE;
		t->slot_pause_ns = t->slot_pause_ns ? 2 * t->slot_pause_ns : FIRST_RETRY_NS;
		if (t->slot_pause_ns > LAST_RETRY_NS)
			t->slot_pause_ns = LAST_RETRY_NS;
		t->slot_retry_ns = now + t->slot_pause_ns;
		find_slot(t, process->page);
		if (!t->slot_address)
			return MARK_NONE;
	}
	if (bpf_probe_read_user(mark, sizeof(*mark), (void *)t->slot_address)) {
		if (t->piece.step) /* between steps nothing is lost: an engine may close its page */
			count_lost(LOST_MARK_UNREADABLE);
		t->slot_address = 0;
		return MARK_NONE;
	}
	if (mark->tid != t->tid_inside) {
		count_lost(LOST_MARK_IMPLAUSIBLE);
		t->slot_address = 0;
		return MARK_NONE;
	}
	if (mark->seq == t->seq && mark->seq_end == t->seq)
		return MARK_SAME;
	return mark->seq == mark->seq_end ? MARK_NEW : MARK_TORN;
}

/* The same without looking for a slot: MARK_NEW also where only read_mark() can tell. */
static __always_inline enum mark peek_mark(struct thread *t)
{
	struct stepmark_slot mark;

	if (!t->slot_address || bpf_probe_read_user(&mark, sizeof(mark), (void *)t->slot_address))
		return MARK_NEW;
	if (mark.seq != mark.seq_end)
		return MARK_TORN;
	return mark.seq == t->seq ? MARK_SAME : MARK_NEW;
}

#endif
