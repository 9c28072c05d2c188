"""
Small C programs for what Python is too slow or too noisy for, and BPF programs that stand beside
the tests, built in a folder of the test.
"""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

from tracer.kernel.libbpf import BpfObject

CHECKOUT = Path(__file__).parents[2]
INCLUDE = CHECKOUT / "stepmark/stepmark/include"
_ARCHITECTURE = {"x86_64": "x86", "aarch64": "arm64"}


def build(source: str, folder: Path) -> Path:
    """Compile a program that waits for a line on its standard input after it printed ``ready``."""
    code = folder / "program.c"
    code.write_text(source)
    program = folder / "program"
    command = ["gcc", "-O2", "-pthread", f"-I{INCLUDE}", "-o", str(program), str(code)]
    subprocess.run(command, check=True)
    return program


def bpf(name: str, folder: Path, **limits: int) -> BpfObject:
    """Compile ``name.bpf.c``, for this machine and with these constants; not loaded yet."""
    machine, built = platform.machine(), folder / f"{name}.bpf.o"
    command = [
        *("clang", "-g", "-O2", "-target", "bpf", "-mcpu=v3", f"-I{CHECKOUT / 'bpf'}"),
        *("-idirafter", f"/usr/include/{machine}-linux-gnu"),
        f"-D__TARGET_ARCH_{_ARCHITECTURE[machine]}",
        *(f"-D{limit}={value}" for limit, value in limits.items()),
        *("-c", str(Path(__file__).with_name(f"{name}.bpf.c")), "-o", str(built)),
    ]
    subprocess.run(command, check=True)
    return BpfObject(built)


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

FAULTS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "stepmark.h"

/* Marks STEPS steps, one right after the other. The i-th touches 3 * i pages that are new, and each
 * fourth one more page of a file that is not in memory. Prints what the kernel counted of each. */
#define STEPS 64
#define PAGE 4096
#define APART (64 * PAGE) /* of touched pages of the file */

static struct rusage before[STEPS], after[STEPS];

static volatile char *cold_file(size_t size)
{
	char name[] = "/var/tmp/tailtrace.XXXXXX", block[PAGE];
	int fd = mkstemp(name);

	unlink(name);
	for (size_t at = 0; at < size; at += PAGE) {
		memset(block, at / PAGE, PAGE);
		if (write(fd, block, PAGE) != PAGE)
			exit(1);
	}
	fsync(fd);
	posix_fadvise(fd, 0, size, POSIX_FADV_DONTNEED);
	char *file = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	madvise(file, size, MADV_RANDOM); /* no read-ahead */
	return file;
}

static volatile char *new_pages(size_t size)
{
	char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(pages, size, MADV_NOHUGEPAGE);
	return pages;
}

int main(void)
{
	volatile char *file = cold_file((size_t)STEPS * APART);
	volatile char *fresh = new_pages((size_t)3 * STEPS * STEPS * PAGE);
	unsigned kind = stepmark_kind("touch"), tenant = stepmark_tenant("victim");

	memset(before, 1, sizeof(before));
	memset(after, 1, sizeof(after));
	for (int i = 0; i < STEPMARK_RING; i++) { /* no later mark touches new memory */
		stepmark_begin(kind, tenant);
		getrusage(RUSAGE_THREAD, &before[0]);
		stepmark_end();
	}
	puts("ready");
	fflush(stdout);
	getchar();
	for (int i = 0; i < STEPS; i++) {
		stepmark_begin(kind, tenant);
		getrusage(RUSAGE_THREAD, &before[i]);
		for (int page = 0; page < 3 * i; page++, fresh += PAGE)
			*fresh = 1;
		if (i % 4 == 3)
			(void)file[i * APART];
		getrusage(RUSAGE_THREAD, &after[i]);
		stepmark_end();
	}
	for (int i = 0; i < STEPS; i++)
		printf("%d %ld %ld\n", STEPMARK_RING + i + 1,
			after[i].ru_minflt - before[i].ru_minflt,
			after[i].ru_majflt - before[i].ru_majflt);
	return 0;
}
"""
