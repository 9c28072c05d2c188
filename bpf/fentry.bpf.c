// SPDX-License-Identifier: GPL-2.0-only
/* fentry.bpf.c - does nothing when a kernel function is entered: whether the kernel allows that.
 */
#include "kernel.h"

char LICENSE[] SEC("license") = "GPL";

SEC("fentry") int on_entry(void *ctx)
{
	return 0;
}
