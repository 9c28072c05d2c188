/* SPDX-License-Identifier: GPL-2.0-only
 *
 * event.bpf.h - what is counted of a step besides time.
 */
#ifndef TAILTRACE_EVENT_BPF_H
#define TAILTRACE_EVENT_BPF_H

#include "maps.bpf.h"

/* Page faults come from the task's own counts, so they are exactly those of getrusage(2). What came
 * since the last look belongs to the piece that is open still: a fault looks when it begins, before
 * it is counted (memory.bpf.h). Call it on the thread's own CPU only. */
static __always_inline void take_faults(struct thread *t, struct task_struct *task)
{
	u64 minor = task->min_flt, major = task->maj_flt;

	t->piece.events[EVENT_FAULT_MINOR] += minor - t->minor_faults;
	t->piece.events[EVENT_FAULT_MAJOR] += major - t->major_faults;
	t->minor_faults = minor;
	t->major_faults = major;
}

#endif
