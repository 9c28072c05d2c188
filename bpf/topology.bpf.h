/* SPDX-License-Identifier: GPL-2.0-only
 *
 * topology.bpf.h - which CPUs and pages are near each other. What a program cannot ask the kernel
 * arrives in constants.
 */
#ifndef TAILTRACE_TOPOLOGY_BPF_H
#define TAILTRACE_TOPOLOGY_BPF_H

#include "compat.bpf.h"

/* set before load: in the first word of a page, the lowest bit of its node */
const volatile u32 page_node_shift = 0;

/* set before load: of each CPU its node and its last-level cache, from 1; 0: not known */
const volatile u16 node_of_cpu[MAX_CPUS] = {};
const volatile u16 cache_of_cpu[MAX_CPUS] = {};

static __always_inline u32 node_of_page(struct page *page)
{
	return page->flags >> page_node_shift;
}

/* Whether the two are known and not the same. */
static __always_inline bool are_apart(const volatile u16 *of_cpu, u32 a, u32 b)
{
	u16 at_a = of_cpu[a % MAX_CPUS], at_b = of_cpu[b % MAX_CPUS];

	return at_a && at_b && at_a != at_b;
}

/* Counts that a thread which waits is moved to another CPU. */
static __always_inline void count_move(struct thread *t, struct task_struct *task, u32 to)
{
	u32 from = cpu_of(task);

	if (are_apart(node_of_cpu, from, to))
		t->piece.events[EVENT_MOVE_NODE]++;
	else if (are_apart(cache_of_cpu, from, to))
		t->piece.events[EVENT_MOVE_CACHE]++;
}

#endif
