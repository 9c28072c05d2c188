// SPDX-License-Identifier: GPL-2.0-only
/* tailtrace_cpustat.bpf.c - the same hooks for kernels that keep steal in kernel_cpustat only. */
#define STEAL_FROM_CPUSTAT
#include "tailtrace.bpf.c"
