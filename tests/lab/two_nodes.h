/* SPDX-License-Identifier: Apache-2.0
 *
 * two_nodes.h - what the programs have in common that run in a guest of two nodes.
 */
#ifndef TWO_NODES_H
#define TWO_NODES_H

#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096L

static inline void run_on(int cpu)
{
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(cpu, &only);
	if (sched_setaffinity(0, sizeof(only), &only))
		exit(1);
}

/* Of node 1, where the programs run. */
static inline int last_cpu(void)
{
	return (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;
}

static inline void touch(char *at, long count, long stride)
{
	for (long i = 0; i < count; i++)
		*(volatile char *)(at + i * stride) = 1;
}

/* How many of these pages are on a node. */
static inline long on_node(char *at, long count, long stride, int node)
{
	void *pages[count];
	int status[count];
	long found = 0;

	for (long i = 0; i < count; i++)
		pages[i] = at + i * stride;
	if (syscall(SYS_move_pages, 0, count, pages, NULL, status, 0))
		exit(1);
	for (long i = 0; i < count; i++)
		found += status[i] == node;
	return found;
}

#endif
