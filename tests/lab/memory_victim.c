/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_victim.c - does to its memory what the tests of tests/lab/test_memory_events.py look for.
 *
 * Runs on the last CPU of a machine with two nodes, one marked step after the other, and prints of
 * each what it did, or what the kernel counted of the whole machine meanwhile: a line of JSON.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "stepmark.h"
#include "two_nodes.h"

#define HUGE (2L << 20)
#define MPOL_DEFAULT 0
#define MPOL_BIND 2
#define MPOL_MF_MOVE 2

enum { PAGES = 4000, HUGE_PAGES = 24, MOVES = 10, BALANCE_ROUNDS = 400 };

static uint32_t tenant;
static unsigned long begun;

static void begin(const char *kind)
{
	begun++;
	stepmark_begin(stepmark_kind(kind), tenant);
}

static void allocate_on(int node)
{
	unsigned long mask = 1UL << node;

	if (syscall(SYS_set_mempolicy, MPOL_BIND, &mask, 8 * sizeof(mask)))
		exit(1);
}

static void allocate_anywhere(void)
{
	if (syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0))
		exit(1);
}

static char *area(long size, int advice)
{
	char *at =
		mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	at = (char *)(((uintptr_t)at + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	madvise(at, size, advice);
	return at;
}

static void move_to(char *at, long count, int node)
{
	static void *pages[PAGES];
	static int nodes[PAGES], status[PAGES];

	for (long i = 0; i < count; i++) {
		pages[i] = at + i * PAGE;
		nodes[i] = node;
	}
	syscall(SYS_move_pages, 0, count, pages, nodes, status, MPOL_MF_MOVE);
}

static long vmstat(const char *name)
{
	char key[64];
	long value, found = -1;
	FILE *file = fopen("/proc/vmstat", "r");

	while (fscanf(file, "%63s %ld", key, &value) == 2)
		if (!strcmp(key, name))
			found = value;
	fclose(file);
	return found;
}

static void balancing(const char *on)
{
	FILE *file = fopen("/proc/sys/kernel/numa_balancing", "w");

	fputs(on, file);
	fclose(file);
}

static char *allocate(const char *kind, int remote, int local)
{
	char *at = area(PAGES * PAGE, MADV_NOHUGEPAGE);

	begin(kind);
	allocate_on(0);
	touch(at, remote, PAGE);
	allocate_on(1);
	touch(at + remote * PAGE, local, PAGE);
	stepmark_end();
	allocate_anywhere();
	printf("{\"kind\": \"%s\", \"step\": %lu, \"remote\": %ld, \"local\": %ld}\n", kind, begun,
	       on_node(at, remote + local, PAGE, 0), on_node(at, remote + local, PAGE, 1));
	return at;
}

/* Zeroing a huge page takes so long that the rest of a fault does not count. */
static void fault_for_long(const char *kind)
{
	char *at = area(HUGE_PAGES * HUGE, MADV_HUGEPAGE);

	begin(kind);
	uint64_t before = stepmark_now_ns();
	touch(at, HUGE_PAGES, HUGE);
	uint64_t wall = stepmark_now_ns() - before;
	stepmark_end();
	printf("{\"kind\": \"%s\", \"step\": %lu, \"wall_ns\": %lu}\n", kind, begun,
	       (unsigned long)wall);
	munmap(at, HUGE_PAGES * HUGE);
}

static void move_pages_by_request(char *at)
{
	begin("move_pages");
	long before = vmstat("pgmigrate_success");
	move_to(at, PAGES / 2, 1);
	long moved = vmstat("pgmigrate_success") - before;
	stepmark_end();
	printf("{\"kind\": \"move_pages\", \"step\": %lu, \"vmstat\": %ld, \"there\": %ld}\n",
	       begun, moved, on_node(at, PAGES / 2, PAGE, 1));
}

static void migrate_all_by_request(void)
{
	unsigned long from = 1, to = 2;

	begin("migrate_pages");
	long before = vmstat("pgmigrate_success");
	syscall(SYS_migrate_pages, 0, 8 * sizeof(from), &from, &to);
	long moved = vmstat("pgmigrate_success") - before;
	stepmark_end();
	printf("{\"kind\": \"migrate_pages\", \"step\": %lu, \"vmstat\": %ld}\n", begun, moved);
}

static void change_nodes(int here, int there)
{
	begin("move_thread");
	for (int i = 0; i < MOVES; i++)
		run_on(i % 2 ? here : there);
	stepmark_end();
	printf("{\"kind\": \"move_thread\", \"step\": %lu, \"moves\": %d}\n", begun, MOVES);
}

enum { COUNTERS = 3 };
static const char *const counters[COUNTERS] = {"numa_hint_faults", "numa_hint_faults_local",
					       "numa_pages_migrated"};

static void read_counters(long *counts)
{
	for (int i = 0; i < COUNTERS; i++)
		counts[i] = vmstat(counters[i]);
}

/* Uses memory on the other node until NUMA balancing has brought half of it over; then waits until
 * nothing that the rest of the step touches is balanced any more. */
static void be_balanced(void)
{
	char *at = area(PAGES * PAGE, MADV_NOHUGEPAGE);
	long before[COUNTERS], after[COUNTERS], last[COUNTERS];

	allocate_on(0);
	touch(at, PAGES, PAGE);
	allocate_anywhere();
	begin("balance");
	unsigned long first = begun;
	read_counters(before);
	balancing("1");
	for (int i = 0; i < BALANCE_ROUNDS && on_node(at, PAGES, PAGE, 1) < PAGES / 2; i++)
		for (uint64_t end = stepmark_now_ns() + 50000000; stepmark_now_ns() < end;)
			touch(at, PAGES, PAGE);
	balancing("0");
	do {
		begin("again");
		stepmark_end();
		read_counters(last);
		read_counters(after);
	} while (memcmp(last, after, sizeof(last)));
	stepmark_end();
	printf("{\"kind\": \"balance\", \"step\": %lu, \"last\": %lu", first, begun);
	for (int i = 0; i < COUNTERS; i++)
		printf(", \"%s\": %ld", counters[i], after[i] - before[i]);
	printf("}\n");
}

int main(void)
{
	int last = last_cpu();

	tenant = stepmark_tenant("victim");
	run_on(last);
	balancing("0");
	begin("warm-up");
	stepmark_end();
	puts("ready");
	fflush(stdout);
	getchar();
	char *far = allocate("remote", PAGES, 0);
	allocate("local", 0, PAGES);
	allocate("mixed", PAGES * 3 / 4, PAGES / 4);
	fault_for_long("fault");
	move_pages_by_request(far);
	migrate_all_by_request();
	change_nodes(last, 0);
	be_balanced();
	return 0;
}
