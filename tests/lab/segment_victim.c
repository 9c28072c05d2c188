/* SPDX-License-Identifier: Apache-2.0
 *
 * segment_victim.c - computes in steps on a shared segment that is on the other node, until NUMA
 * balancing has moved it, in the time of a step. Prints which that was, as a line of JSON.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "stepmark.h"
#include "two_nodes.h"

#define MPOL_BIND 2
#define MPOL_F_NUMA_BALANCING (1 << 13)

enum { PAGES = 16384, SAMPLE = 256, ROUNDS = 512, QUIET = 20, PATIENCE_S = 60 };

struct step {
	long moved; /* pages of the sample */
	uint64_t begin_ns, end_ns;
};

static char *segment;
static uint32_t compute, tenant;

static void bind_to(unsigned long nodes, int flags)
{
	if (syscall(SYS_mbind, segment, PAGES * PAGE, MPOL_BIND | flags, &nodes, 8 * sizeof(nodes),
		    0))
		exit(1);
}

static long here(void)
{
	return on_node(segment, SAMPLE, PAGES / SAMPLE * PAGE, 1);
}

static struct step step(void)
{
	struct step step = {.moved = -here(), .begin_ns = stepmark_now_ns()};

	stepmark_begin(compute, tenant);
	for (int i = 0; i < ROUNDS; i++)
		touch(segment, PAGES, PAGE);
	stepmark_end();
	step.end_ns = stepmark_now_ns();
	step.moved += here();
	return step;
}

/* An emulated CPU remembers the places of twice as many pages after each switch of processes. */
static void warm_up(void)
{
	for (int i = 0; i < 16; i++) {
		touch(segment, PAGES, PAGE);
		if (!fork())
			_exit(0);
		wait(NULL);
	}
}

static void wait_for_line(void)
{
	while (getchar() != '\n')
		;
}

int main(void)
{
	struct step most = {0};

	run_on(last_cpu());
	segment =
		mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bind_to(1 << 0, 0);
	touch(segment, PAGES, PAGE);
	tenant = stepmark_tenant("moved");
	compute = stepmark_kind("compute");
	stepmark_begin(stepmark_kind("start"), tenant);
	stepmark_end();
	puts("ready");
	fflush(stdout);
	wait_for_line();
	warm_up();
	for (int i = 0; i < QUIET; i++)
		step();
	/* From here on the kernel may move it; until there it was bound to where it is. */
	bind_to(1 << 0 | 1 << 1, MPOL_F_NUMA_BALANCING);
	uint64_t until = stepmark_now_ns() + PATIENCE_S * 1000000000ULL;
	while (here() < SAMPLE * 9 / 10 && stepmark_now_ns() < until) {
		struct step now = step();
		most = now.moved > most.moved ? now : most;
	}
	bind_to(1 << 0 | 1 << 1, 0);
	for (int i = 0; i < QUIET; i++)
		step();
	printf("{\"share\": %.3f, \"begin_ns\": %lu, \"end_ns\": %lu}\n",
	       (double)most.moved / SAMPLE, (unsigned long)most.begin_ns,
	       (unsigned long)most.end_ns);
	fflush(stdout);
	wait_for_line();
	return 0;
}
