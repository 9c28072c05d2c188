/* ready.h - how a program of the tests waits until it may go. */
#include <stdio.h>

static void wait_to_go(void)
{
	puts("ready");
	fflush(stdout);
	getchar();
}
