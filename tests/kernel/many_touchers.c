/* many_touchers.c - COUNT threads, one after another, each of which touches one page of shared
 * memory that no other has. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "ready.h"

#define PAGE 4096L

static void *touch(void *page)
{
	*(volatile char *)page = 1;
	return NULL;
}

int main(int argc, char **argv)
{
	long count = atol(argv[1]);
	char *segment = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	wait_to_go();
	for (long i = 0; i < count; i++) {
		pthread_create(&thread, NULL, touch, segment + i * PAGE);
		pthread_join(thread, NULL);
	}
	return 0;
}
