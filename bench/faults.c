/* SPDX-License-Identifier: Apache-2.0
 *
 * faults.c - touches new memory without pause, in marked steps of so many page faults.
 *
 * Prints "ready"; ends when it is killed.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "stepmark.h"

enum { PAGE = 4096, PAGES = 64 };

int main(void)
{
	uint32_t kind = stepmark_kind("touch"), tenant = stepmark_tenant("bench");
	int protection = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *memory = mmap(NULL, PAGES * PAGE, protection, flags, -1, 0);

	if (memory == MAP_FAILED || madvise(memory, PAGES * PAGE, MADV_NOHUGEPAGE))
		return 1;
	stepmark_begin(kind, tenant);
	stepmark_end();
	puts("ready");
	fflush(stdout);
	for (;;) {
		stepmark_begin(kind, tenant);
		for (int page = 0; page < PAGES; page++)
			*(volatile char *)(memory + page * PAGE) = 1;
		stepmark_end();
		madvise(memory, PAGES * PAGE, MADV_DONTNEED);
	}
}
