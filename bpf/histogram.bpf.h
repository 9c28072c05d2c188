/* SPDX-License-Identifier: GPL-2.0-only
 *
 * histogram.bpf.h - count a deschedule under its tenant and cause.
 *
 * Bucket b of octave o holds [2^o * (1 + b/32), 2^o * (1 + (b+1)/32)): at most 3.1 % wide, so its
 * middle is within 1.6 % of every value in it. tracer/ledger/histogram.py is the reader.
 */
#ifndef TAILTRACE_HISTOGRAM_BPF_H
#define TAILTRACE_HISTOGRAM_BPF_H

#include "maps.bpf.h"

static __always_inline u32 log2_of(u64 v)
{
	u32 r = 0;

	for (u32 shift = 32; shift; shift >>= 1) { /* unrolled: six steps */
		if (v >> shift) {
			v >>= shift;
			r += shift;
		}
	}
	return r;
}

__noinline u32 bucket_of(u64 ns)
{
	if (ns < 1ULL << HIST_MIN_SHIFT)
		return 0;
	if (ns >= 1ULL << HIST_MAX_SHIFT)
		return HIST_BUCKETS - 1;
	u32 octave = log2_of(ns);
	u32 sub = ns >> (octave - HIST_SUB_SHIFT) & ((1 << HIST_SUB_SHIFT) - 1);
	return ((octave - HIST_MIN_SHIFT) << HIST_SUB_SHIFT) + sub;
}

static __always_inline void histogram_add(u32 tenant_slot, enum cause cause, u64 ns)
{
	u32 first = (tenant_slot * HIST_CAUSES + cause - CAUSE_STEAL) * HIST_STRIDE;
	u32 key = first + bucket_of(ns);
	u64 *count = bpf_map_lookup_elem(&histograms, &key);

	if (count)
		__sync_fetch_and_add(count, 1);
	key = first + HIST_BUCKETS;
	u64 *sum = bpf_map_lookup_elem(&histograms, &key);
	if (sum)
		__sync_fetch_and_add(sum, ns);
}

#endif
