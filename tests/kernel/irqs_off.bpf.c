/* SPDX-License-Identifier: GPL-2.0-only
 *
 * irqs_off.bpf.c - keeps interrupts off on some CPUs from time to time. To a CPU it is as if it had
 * stood still. Tracepoints of the timer's interrupt run with interrupts off, so a hold begins with
 * the first timer after it should.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#define NR_HOLDS 256
#define NR_CPUS 64

char LICENSE[] SEC("license") = "GPL";

struct hold {
	__u64 from_ns;
	__u64 until_ns;
};

struct hold wanted[NR_HOLDS]; /* in order of time; from_ns 0 behind the last */
struct hold held[NR_CPUS * NR_HOLDS];
__u32 next[NR_CPUS]; /* not static, or clang makes a scalar of it, which its own BTF contradicts */

static long hold_on(__u32 i, __u64 *until_ns)
{
	return bpf_ktime_get_ns() >= *until_ns;
}

SEC("tp_btf/local_timer_exit") int on_local_timer_exit(void *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u64 now = bpf_ktime_get_ns();

	if (cpu >= NR_CPUS || !(CPUS & 1ULL << cpu))
		return 0;
	__u32 i = next[cpu];
	if (i >= NR_HOLDS || !wanted[i].from_ns || now < wanted[i].from_ns)
		return 0;
	__u64 until_ns = wanted[i].until_ns;
	/* A loop has at most that many rounds, which take some 0.2 s. */
	for (int rounds = 0; rounds < 4 && bpf_ktime_get_ns() < until_ns; rounds++)
		bpf_loop(1 << 23, hold_on, &until_ns, 0);
	__u32 at = cpu * NR_HOLDS + i;
	if (at < NR_CPUS * NR_HOLDS) {
		held[at].from_ns = now;
		held[at].until_ns = bpf_ktime_get_ns();
	}
	next[cpu] = i + 1;
	return 0;
}
