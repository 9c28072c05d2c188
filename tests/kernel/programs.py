"""Small C programs for what Python is too slow or too noisy for, built in a folder of the test."""

from __future__ import annotations

import subprocess
from pathlib import Path

INCLUDE = Path(__file__).parents[2] / "stepmark/stepmark/include"


def build(source: str, folder: Path) -> Path:
    """Compile a program that waits for a line on its standard input after it printed ``ready``."""
    code = folder / "program.c"
    code.write_text(source)
    program = folder / "program"
    command = ["gcc", "-O2", "-pthread", f"-I{INCLUDE}", "-o", str(program), str(code)]
    subprocess.run(command, check=True)
    return program


LATE_THREAD = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "stepmark.h"

/* Has a helper on a CPU for a second. After that, a thread marks a step as the first it does. */
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
	puts("ready");
	fflush(stdout);
	getchar();
	pthread_create(&helper, NULL, help, &cpu);
	sleep(1);
	over = 1;
	pthread_join(helper, NULL);
	pthread_create(&late, NULL, work, NULL);
	pthread_join(late, NULL);
	return argc < 2;
}
"""

SHORT_THREADS = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "stepmark.h"

/* Starts threads one after the other, so many a second; each marks two steps and ends. */
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
	puts("ready");
	fflush(stdout);
	getchar();
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
"""
