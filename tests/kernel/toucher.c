/* toucher.c - touches pages of a file, which is shared memory, from the BEGIN-th on; and as many
 * that are its own, and as many of the file of which it has a copy. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include "ready.h"

#define PAGE 4096L

static void touch(char *at, long count)
{
	for (long i = 0; i < count; i++)
		*(volatile char *)(at + i * PAGE) = 1;
}

int main(int argc, char **argv)
{
	long begin = atol(argv[2]) * PAGE, count = atol(argv[3]), size = count * PAGE;
	int fd = open(argv[1], O_RDWR), access = PROT_READ | PROT_WRITE;

	prctl(PR_SET_NAME, argv[4]);
	wait_to_go();
	touch(mmap(NULL, size, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), count);
	touch(mmap(NULL, size, access, MAP_SHARED, fd, begin), count);
	touch(mmap(NULL, size, access, MAP_PRIVATE, fd, begin), count);
	return 0;
}
