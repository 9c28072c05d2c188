/* SPDX-License-Identifier: GPL-2.0-only
 *
 * wire.h - every byte that crosses between the kernel side and the agent. Nothing else does.
 *
 * Python has no second definition: it reads these layouts and names from the object's own debug
 * information (tracer/kernel/btf.py). Times are CLOCK_MONOTONIC nanoseconds.
 */
#ifndef TAILTRACE_WIRE_H
#define TAILTRACE_WIRE_H

#include "../stepmark/stepmark/include/stepmark_page.h"

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define COMM_LEN 16

/* Where a slice of a step's wall time went. tracer/catalog.py gives each its words, in this order.
 */
enum cause {
	CAUSE_RUNNING, /* what is left on the CPU after the six that follow */
	CAUSE_IRQ,
	CAUSE_SOFTIRQ,
	CAUSE_FAULT,
	CAUSE_NUMA_MIGRATE,
	CAUSE_STEAL,
	CAUSE_STALL,
	CAUSE_PREEMPTED, /* from here on the thread wanted a CPU and had none */
	CAUSE_RUNQUEUE,
	CAUSE_QUOTA,
	CAUSE_RT_LIMIT,
	CAUSE_LOCK, /* from here on the thread waited for something else */
	CAUSE_IO,
	CAUSE_FAULT_IO,
	CAUSE_NET,
	CAUSE_GPU,
	CAUSE_SLEEP,
	CAUSE_OTHER_WAIT,
	CAUSE_UNEXPLAINED, /* never counted in the kernel: what the agent's books leave over */
	NR_CAUSES,
};

/* What is counted of a step besides time. tracer/catalog.py gives each its words, in this order. */
enum event {
	EVENT_FAULT_MINOR, /* page faults, as the kernel counts them: min_flt, maj_flt */
	EVENT_FAULT_MAJOR,
	EVENT_ALLOC_LOCAL, /* pages that it got, on the node of its CPU or on another */
	EVENT_ALLOC_REMOTE,
	EVENT_HINT_LOCAL, /* faults that NUMA balancing provokes, by where the page was */
	EVENT_HINT_REMOTE,
	EVENT_MIGRATE_BALANCER, /* pages that it moved between nodes, by why */
	EVENT_MIGRATE_REQUEST,
	EVENT_MIGRATE_OTHER,
	EVENT_MOVE_CACHE, /* it was moved to a CPU with another last-level cache, or node */
	EVENT_MOVE_NODE,
	EVENT_BALANCE_MOVE, /* what NUMA balancing did with the thread */
	EVENT_BALANCE_SWAP,
	EVENT_BALANCE_STICK,
	NR_EVENTS,
};

/* Why something was not counted. The agent exports each by name. */
enum lost {
	LOST_PIECES_RING_FULL,   /* a finished piece of a ledger found no room */
	LOST_OUTLIERS_RING_FULL, /* a long wait found no room */
	LOST_THREAD_STORAGE,     /* no memory for a thread's state */
	LOST_MARK_UNREADABLE,    /* the mark page was not in memory when the thread left the CPU */
	LOST_MARK_IMPLAUSIBLE,   /* a mark from the future, or a slot that another thread holds */
	LOST_SWITCH_UNSEEN,      /* a thread got or left the CPU without an event that said so */
	LOST_CLOCK_BACKWARDS,    /* a stamp older than the one before it on the same thread */
	LOST_BLAME_OVERWRITTEN,  /* a wait longer than what its CPU remembers of its runners */
	LOST_BLAME_MIGRATED,     /* a waiting thread was moved: who ran before that is not known */
	LOST_STEAL_BACKWARDS,    /* a steal clock that ran backwards */
	LOST_STALLS_RING_FULL,   /* a stall of a CPU found no room */
	LOST_TOUCHES_FULL,       /* no room for one more thread that touches a segment first */
	LOST_TOUCH_UNPLACED, /* a new page of which areas being mapped hid whether it is shared */
	NR_LOST,
};

enum limits {
	MAX_PROCESSES = 1024, /* target processes at the same time; number 0 is nobody */
	MAX_CPUS = 1024,
	NR_RUNS = 1024,    /* runs that a CPU remembers while a tracked thread waits for it */
	NR_AGGRESSORS = 6, /* per piece; what the smallest of more took goes to blame_rest_ns */

	/* A histogram has 32 buckets an octave, each at most 1/32 = 3.1 % wide, from 2^10 ns (1 us)
	 * to 2^36 ns (69 s); the first bucket also holds what is shorter, the last what is longer.
	 * (36 - 10) * 32 = 832. */
	HIST_MIN_SHIFT = 10,
	HIST_MAX_SHIFT = 36,
	HIST_SUB_SHIFT = 5,
	HIST_BUCKETS = 832,
	/* One histogram per tenant slot and cause of HIST_CAUSES; slot 0 is `other`. */
	HIST_CAUSES = 6,   /* from CAUSE_STEAL to CAUSE_RT_LIMIT, in the order of the causes */
	HIST_STRIDE = 833, /* the buckets, then the sum in ns */

	NR_BEATS = 8,       /* expiries of timers that a CPU remembers */
	MAX_TOUCHES = 4096, /* threads that touch a segment first, by segment and node */
	CPU_WORDS = MAX_CPUS / 64,
};
_Static_assert(HIST_BUCKETS == (HIST_MAX_SHIFT - HIST_MIN_SHIFT) << HIST_SUB_SHIFT, "buckets");
_Static_assert(HIST_CAUSES == CAUSE_RT_LIMIT - CAUSE_STEAL + 1, "deschedules stand side by side");

/* Who ran, or held, while a tracked thread waited. */
struct runner {
	u64 cgroup_id; /* of the CPU controller's group: the inode of its directory */
	u32 tgid;
	u32 tid;
	char comm[COMM_LEN];
};

struct aggressor {
	struct runner who;
	u64 ns;
};

struct wait {
	u64 at_ns; /* when it ended */
	u64 ns;
	u32 cause;
	s32 syscall; /* that it blocked in; -1: an exception such as a page fault, or not blocked */
	struct runner by;
};

/* A piece of one thread's ledger: what happened between two changes of its mark, as far as kernel
 * events saw it. A step has one piece, or several when stages interrupt it; a mark that no kernel
 * event fell into has none. Time outside of steps comes in pieces with step 0, one at least every
 * OUTSIDE_NS while there are events. STEP_UNKNOWN: the thread was interrupted while it wrote a
 * mark, and no event told which one it was.
 *
 * From `until_ns` to the next mark the thread was on the CPU with no event but `tail_steal_ns` and
 * `tail_stall_ns` that surfaced later: the agent, which knows the marks, adds that tail. */
#define STEP_UNKNOWN (~0ULL)
#define OUTSIDE_NS 1000000000ULL

struct piece {
	u64 step;
	u64 from_ns;
	u64 until_ns;
	u64 tail_steal_ns;
	u64 tail_stall_ns;
	u64 ns[NR_CAUSES];
	u32 process; /* index that the agent gave */
	u32 slot;    /* of the mark page; STEPMARK_SLOTS: the thread has none */
	u32 tgid;
	u32 tid;
	u32 kind;
	u32 tenant;      /* as numbered in the mark page */
	u32 switches;    /* times the thread left the CPU */
	u32 involuntary; /* of these, wanting to stay */
	u32 migrations;
	u32 reserved;
	u32 events[NR_EVENTS];
	u64 helper_wait_ns; /* deschedules of the process's unmarked threads meanwhile */
	u64 helper_worst_ns;
	u64 absent_ns;     /* of steal and stall, what the thread waited for a CPU meanwhile */
	struct wait worst; /* the longest deschedule */
	u64 blame_rest_ns; /* deschedules whose aggressor is not among the following */
	struct aggressor aggressors[NR_AGGRESSORS];
};

/* A single deschedule of at least outlier_ns. */
struct outlier {
	u64 step;
	u32 process;
	u32 slot;
	u32 tgid;
	u32 tid;
	u32 cpu;
	u32 tenant;
	struct wait wait;
};

/* A CPU whose hard timers expired late by stall_ns or more: it stood still from some moment between
 * `alive_ns` and `due_ns` to `end_ns`. The thread that was on it is charged `lost_ns`; `process` is
 * 0 when that is nobody's. */
struct stall {
	u64 alive_ns;  /* the last sign of life before; 0: none for long, as of a CPU that sleeps */
	u64 due_ns;    /* of the timer */
	u64 end_ns;    /* when it expired */
	u64 stolen_ns; /* what the steal clock tells of it */
	u64 lost_ns;   /* what nothing else tells: without steal and interrupts */
	u64 step;
	u32 process;
	u32 slot;
	u32 tgid;
	u32 tid;
	u32 cpu;
	u32 tenant;
	u64 running[CPU_WORDS]; /* CPUs that showed a sign of life meanwhile, a bit each */
};

/* What a CPU's timers tell of it. */
struct pulse {
	u64 beats[NR_BEATS]; /* when timers expired, the newest at (count - 1) % NR_BEATS */
	u64 count;
	u64 expiries; /* of hard timers */
	u64 late_ns;  /* by which they were late when that was no stall */
	/* Of a timer that is late, while its function runs. */
	u64 due_ns; /* 0: none is */
	u64 end_ns; /* kept: what is up to then has been told */
	u64 alive_ns;
	u64 steal_ns; /* the steal clock before the kernel looks at it */
	u64 reserved;
};

/* A thread that gets new pages of a segment of shared memory, and how many it got so far. */
struct toucher {
	u64 inode; /* of the segment, which is a file of tmpfs */
	u32 device;
	u32 tgid;
	u32 tid;
	u32 node; /* of the CPU that the thread was on */
};

struct touched {
	u64 pages;
	char comm[COMM_LEN];
};

/* What the agent tells about a target process, under the index it gave. */
struct process {
	u64 page; /* user address of the mark page; 0: none */
	u32 tgid;
	u32 tenant;                        /* tenant slot of threads outside of marks */
	u16 tenant_slot[STEPMARK_TENANTS]; /* tenant slot per tenant of the mark page */
	/* written by the kernel side */
	u64 helper_wait_ns;
	u64 helper_worst_ns;
};

#endif
