// SPDX-License-Identifier: GPL-2.0-only
/* empty.bpf.c - does nothing on the hooks that cost most: what bench/ compares our programs with.
 */
#include "kernel.h"

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/sched_switch") int on_switch(void *ctx)
{
	return 0;
}

SEC("tp_btf/sched_wakeup") int on_wakeup(void *ctx)
{
	return 0;
}

SEC("tp_btf/page_fault_user") int on_fault_user(void *ctx)
{
	return 0;
}

SEC("tp_btf/mm_page_alloc") int on_page_alloc(void *ctx)
{
	return 0;
}
