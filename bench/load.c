/* SPDX-License-Identifier: Apache-2.0
 *
 * load.c - pairs of threads that play ping-pong over pipes, in marked steps.
 *
 *	load PAIRS TENANTS TRIPS HZ
 *
 * Both threads of a pair are pinned to one CPU, pair by pair to the CPUs that the program may use,
 * so a round trip is two switches and two wake-ups. A step is TRIPS round trips; each thread begins
 * HZ steps a second, or one after the other when HZ is 0. Pair i works for tenant i % TENANTS.
 *
 * Prints "ready" when the threads are about to start; ends when its standard input is closed.
 */
#define _GNU_SOURCE /* the CPU_ macros */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "stepmark.h"

static unsigned pairs, tenants, trips, hz;
static cpu_set_t allowed;
static uint64_t start_ns;

struct player {
	unsigned pair;
	int serves;
	int from, to;
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void pin(unsigned pair)
{
	unsigned nth = pair % (unsigned)CPU_COUNT(&allowed);
	cpu_set_t only;
	int cpu = 0;

	while (!CPU_ISSET(cpu, &allowed) || nth--)
		cpu++;
	CPU_ZERO(&only);
	CPU_SET(cpu, &only);
	if (sched_setaffinity(0, sizeof(only), &only))
		fail("sched_setaffinity");
}

static void sleep_until(uint64_t ns)
{
	struct timespec at = {.tv_sec = ns / 1000000000u, .tv_nsec = ns % 1000000000u};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static void hit(int pipe)
{
	if (write(pipe, "x", 1) != 1)
		fail("write");
}

static void wait_for_ball(int pipe)
{
	char ball;

	if (read(pipe, &ball, 1) != 1)
		fail("read");
}

static void play_step(const struct player *p)
{
	for (unsigned i = 0; i < trips; i++) {
		if (p->serves)
			hit(p->to);
		wait_for_ball(p->from);
		if (!p->serves)
			hit(p->to);
	}
}

static void *play(void *argument)
{
	const struct player *p = argument;
	uint64_t period_ns = hz ? 1000000000u / hz : 0;
	uint64_t next_ns = start_ns + period_ns * p->pair / pairs;
	uint32_t kind = stepmark_kind("play");
	char tenant[32];

	snprintf(tenant, sizeof(tenant), "tenant-%u-%d", p->pair % tenants, getpid());
	uint32_t whose = stepmark_tenant(tenant);
	pin(p->pair);
	for (;;) {
		if (hz)
			sleep_until(next_ns);
		next_ns += period_ns;
		stepmark_begin(kind, whose);
		play_step(p);
		stepmark_end();
	}
	return NULL;
}

static void start_pair(unsigned pair)
{
	struct player *p = calloc(2, sizeof(*p));
	int there[2], back[2];
	pthread_t thread;

	if (!p || pipe(there) || pipe(back))
		fail("pipe");
	p[0] = (struct player){pair, 1, back[0], there[1]};
	p[1] = (struct player){pair, 0, there[0], back[1]};
	for (int i = 0; i < 2; i++) {
		if (pthread_create(&thread, NULL, play, &p[i]))
			fail("pthread_create");
	}
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	pairs = (unsigned)atoi(argv[1]);
	tenants = (unsigned)atoi(argv[2]);
	trips = (unsigned)atoi(argv[3]);
	hz = (unsigned)atoi(argv[4]);
	if (stepmark_init())
		fail("stepmark");
	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		fail("sched_getaffinity");
	start_ns = stepmark_now_ns();
	for (unsigned pair = 0; pair < pairs; pair++)
		start_pair(pair);
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
