/* SPDX-License-Identifier: GPL-2.0-only
 *
 * maps.bpf.h - what the kernel side remembers: threads, processes, CPUs, histograms, losses.
 */
#ifndef TAILTRACE_MAPS_BPF_H
#define TAILTRACE_MAPS_BPF_H

#include "kernel.h"

#define NO_LIMIT CAUSE_RUNNING

/* A kernel function whose time on the CPU has a cause of its own, while a thread is inside. */
struct inside {
	u64 piece_ns;   /* from_ns of the piece that it began in; 0: the thread is not inside */
	u64 running_ns; /* what that piece had as running when it began */
};

/* What is known of one thread of a target. The piece is filled in place and copied out when the
 * thread's mark changes. */
struct thread {
	struct piece piece;
	u64 minor_faults; /* the task's own counts up to which the pieces have them */
	u64 major_faults;
	struct inside fault;
	struct inside migration;
	u64 fault_area;     /* the shared area of its address space that it faults in; 0: none */
	u64 fault_address;  /* of its last fault of user code, until a page came of it */
	u64 private_begin;  /* the private area that such a fault was in last */
	u64 private_bytes;  /* 0: it was in none */
	u64 private_pages;  /* mm_struct.data_vm then */
	u64 at_ns;          /* up to here its time is in the books; 0: nothing is known yet */
	u64 woken_ns;       /* since when it is runnable; 0: it waits for something else */
	u64 steal_ns;       /* steal clock of its CPU up to which steal is in the books; while it
			     * waits for a CPU, that one's since `queued_ns` */
	u64 stall_ns;       /* for how long its CPU stood still, as far as not in the books */
	u64 queued_ns;      /* since when it waits for the CPU `queued_on` */
	u64 quota_clock_ns; /* that CPU's quota_clock() then */
	u64 limited_ns;     /* what a quota had of the wait on CPUs that it was moved from, */
	u64 stolen_ns;      /* the hypervisor, */
	u64 stood_still_ns; /* and stalls */
	u64 stall_clock_ns; /* that CPU's, since `queued_ns` */
	u64 slot_address;   /* user address of its slot in the mark page; 0: not found */
	u64 slot_retry_ns;  /* when to look for it again */
	u64 seq;            /* of the mark that the piece belongs to */
	u64 torn_seq; /* of the mark it was interrupted writing, so piece.step is unknown; else 0 */
	u64 helper_seen_ns; /* process.helper_wait_ns up to which the piece has taken it */
	enum cause cause;   /* of what it does now; CAUSE_RUNNING: it has the CPU */
	enum cause wanted;  /* what it waits for the CPU as: CAUSE_PREEMPTED or CAUSE_RUNQUEUE */
	enum cause limit;   /* that held it when that wait began; NO_LIMIT: none */
	enum cause on_cpu;  /* what time on the CPU counts as: running, or a softirq on top of it */
	s32 syscall;        /* that it blocked in */
	u32 tid_inside;     /* in its own pid namespace */
	u32 tenant_slot;    /* histograms to count its deschedules in */
	u32 queued_on;      /* CPU + 1 that it waits for; 0: none */
	u32 slot_pause_ns;  /* until the look after the next */
	u32 settling;       /* settle_here() is at it: an interrupt keeps off the books */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, struct process);
} processes SEC(".maps");

/* tgid -> index of its process, for the iterator that tags threads. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, u32);
} targets SEC(".maps");

/* A run that ended on a CPU. It began where the one before it ended. */
struct run {
	struct runner who;
	u64 until_ns;
};

struct cpu {
	u32 waiting;     /* tracked threads that wait for this CPU: only then are runs recorded */
	u32 recorded;    /* runs ever recorded; the newest is at (recorded - 1) % NR_RUNS */
	u64 irq_ns;      /* when the interrupt under way began; 0: none on a tracked thread */
	u64 irq_from_ns; /* the last interrupt of a tracked thread */
	u64 irq_until_ns;
	u64 quota_hit_ns;    /* when a thread last left because its group's quota was used up, */
	u64 rt_limit_hit_ns; /* or the real-time budget */
	u64 stall_clock_ns;  /* for how long it has stood still so far */
	struct run runs[NR_RUNS];
} __attribute__((aligned(64)));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS); /* cut to this machine's before load */
	__type(key, u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

/* HIST_STRIDE numbers per tenant slot and deschedule cause, read by the agent in place. Shared by
 * all CPUs, so that memory does not grow with their number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, HIST_STRIDE); /* times slots and causes, set before load */
	__type(key, u32);
	__type(value, u64);
} histograms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} pieces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 19);
} outliers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} stalls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_CPUS); /* cut to this machine's before load */
	__type(key, u32);
	__type(value, struct pulse);
} pulses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_TOUCHES);
	__type(key, struct toucher);
	__type(value, struct touched);
} touches SEC(".maps");

/* set before load: a single deschedule of at least this length is reported by itself */
const volatile u64 outlier_ns = 1000000;

/* set before load: whose fault shorter waits for a CPU are is not asked */
const volatile u64 blame_ns = 20000;

/* set before load: a hard timer that expires so late tells of a stall */
const volatile u64 stall_ns = 1000000;

u64 lost[NR_LOST];
u64 tracked; /* threads with state now */

static __always_inline void count_lost(enum lost reason)
{
	__sync_fetch_and_add(&lost[reason], 1);
}

static __always_inline struct thread *thread_of(struct task_struct *task)
{
	if (!task->bpf_storage) /* most threads, and a load costs less than a helper's call */
		return NULL;
	return bpf_task_storage_get(&threads, task, NULL, 0);
}

static __always_inline struct process *process_of(struct thread *t)
{
	u32 index = t->piece.process;

	return index ? bpf_map_lookup_elem(&processes, &index) : NULL;
}

static __always_inline struct cpu *cpu_at(u32 index)
{
	return bpf_map_lookup_elem(&cpus, &index);
}

static __always_inline struct cpu *this_cpu(void)
{
	return cpu_at(bpf_get_smp_processor_id());
}

#endif
