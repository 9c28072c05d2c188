/* faults.c - marks STEPS steps, one right after the other. The i-th touches 3 * i pages that are
 * new, and each fourth one more page of a file that is not in memory. Prints what the kernel counted
 * of each. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "ready.h"
#include "stepmark.h"

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
	wait_to_go();
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
