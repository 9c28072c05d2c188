/* SPDX-License-Identifier: Apache-2.0
 *
 * touch_victim.c - a segment that a loader on node 0 touches first, in most parts, and that is then
 * used on node 1 until told to end.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "stepmark.h"
#include "two_nodes.h"

enum { LOADED = 3000, REST = 1000 };

static char *segment;

static void *load(void *unused)
{
	prctl(PR_SET_NAME, "loader");
	run_on(0);
	touch(segment, LOADED, PAGE);
	return unused;
}

static void *use(void *unused)
{
	for (;;)
		touch(segment, LOADED + REST, PAGE);
	return unused;
}

int main(void)
{
	pthread_t loader, user;

	run_on(last_cpu());
	stepmark_begin(stepmark_kind("start"), stepmark_tenant("touched"));
	stepmark_end();
	segment = mmap(NULL, (LOADED + REST) * PAGE, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	puts("ready");
	fflush(stdout);
	getchar();
	pthread_create(&loader, NULL, load, NULL);
	pthread_join(loader, NULL);
	touch(segment + LOADED * PAGE, REST, PAGE);
	pthread_create(&user, NULL, use, NULL);
	while (getchar() != EOF)
		;
	return 0;
}
