/* late_thread.c - has a helper on a CPU for a second. After that, a thread marks a step as the
 * first it does. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "ready.h"
#include "stepmark.h"

static unsigned kind, tenant;
static volatile int over;

static void *help(void *cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(*(int *)cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	while (!over)
		;
	return cpu;
}

static void *work(void *unused)
{
	stepmark_begin(kind, tenant);
	usleep(1000);
	stepmark_end();
	return unused;
}

int main(int argc, char **argv)
{
	int cpu = atoi(argv[1]);
	pthread_t helper, late;

	kind = stepmark_kind("late");
	tenant = stepmark_tenant("victim");
	stepmark_begin(kind, tenant);
	stepmark_end();
	wait_to_go();
	pthread_create(&helper, NULL, help, &cpu);
	sleep(1);
	over = 1;
	pthread_join(helper, NULL);
	pthread_create(&late, NULL, work, NULL);
	pthread_join(late, NULL);
	return argc < 2;
}
