/* short_threads.c - starts threads one after the other, so many a second; each marks two steps and
 * ends. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "ready.h"
#include "stepmark.h"

static unsigned kind, tenant;

static void *work(void *unused)
{
	for (int i = 0; i < 2; i++) {
		struct timespec pause = {0, 50000};
		stepmark_begin(kind, tenant);
		nanosleep(&pause, NULL);
		stepmark_end();
	}
	return unused;
}

int main(int argc, char **argv)
{
	long per_second = atol(argv[1]), count = per_second * atol(argv[2]);
	struct timespec next;

	kind = stepmark_kind("short");
	tenant = stepmark_tenant("victim");
	stepmark_begin(kind, tenant);
	stepmark_end();
	wait_to_go();
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (long i = 0; i < count; i++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, work, NULL))
			return 1;
		pthread_join(thread, NULL);
		next.tv_nsec += 1000000000 / per_second;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	printf("%ld\n", count);
	return argc < 3;
}
