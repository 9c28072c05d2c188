/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * stepmark_page.h - the mark page: what an engine writes so that a tracer knows its steps.
 *
 * One memfd named "stepmark" per process, mapped shared by the engine. A tracer finds it in
 * /proc/PID/maps, reads it through /proc/PID/map_files or /proc/PID/fd, and reads the current mark
 * of a thread from inside the kernel. The engine makes no system call per step and never waits for
 * the tracer.
 *
 *   header | kind names | tenant names | slots, one a thread | rings of finished marks, one a slot
 *
 * Every number is in the byte order of the machine. Times are CLOCK_MONOTONIC nanoseconds.
 * This file is the one definition of the layout: the BPF programs include it, and readers in other
 * languages take offsets and sizes from its debug information.
 */
#ifndef STEPMARK_PAGE_H
#define STEPMARK_PAGE_H

#ifdef __bpf__ /* no C library there */
typedef unsigned int stepmark_u32;
typedef unsigned long long stepmark_u64;
#else
#include <stdint.h>
typedef uint32_t stepmark_u32;
typedef uint64_t stepmark_u64;
#endif

#define STEPMARK_MAGIC 0x6b72616d70657473ULL /* "stepmark", little endian */

enum stepmark_limits {
	STEPMARK_VERSION = 1,
	STEPMARK_KINDS = 256,   /* step kinds a process may name */
	STEPMARK_TENANTS = 256, /* tenants a process may name */
	STEPMARK_NAME_LEN = 64, /* bytes of UTF-8, NUL padded */
	STEPMARK_SLOTS = 256,   /* threads that mark at the same time */
	STEPMARK_PROBES = 8,    /* slots tried from tid % STEPMARK_SLOTS on */
	STEPMARK_RING = 2048,   /* finished marks kept per slot */
	STEPMARK_SHARES = 8,    /* tenants that one step can serve */
};

/* Names are written once and never change. Entry 0 of either table means "no name given" and is
 * empty; a name that found its table full is marked as 0 and counted in the header. */
struct stepmark_name {
	char text[STEPMARK_NAME_LEN];
};

/* The current mark of one thread, on a cache line of its own.
 *
 * A thread takes the first slot of STEPMARK_PROBES, from tid % STEPMARK_SLOTS on, whose tid is 0
 * or that of a thread which is gone; so the kernel finds a thread's slot by its number alone. The
 * tid is the one the thread sees itself, in its own pid namespace.
 *
 * A mark is whole when `seq` equals `seq_end`; a writer stores `seq` first, before it reads the
 * clock, and `seq_end` last, each mark one higher than the mark before it. So a thread that loses
 * the CPU between the time of a mark and the mark is seen to be writing it.
 *
 * `step` numbers count up from 1 in each slot and are never used twice; 0 means that the thread is
 * in no step. Entering a stage inside a step is a mark with the stage's own number; leaving it is
 * a mark with the number of the step again.
 *
 * Who takes over a slot goes on with its `seq`, its ring and, from `seq` on, its numbers: a thread
 * uses at most one a mark. If the slot says that its last thread was in a step, the first mark of
 * the next one says 0, and its tid is stored after that. */
struct stepmark_slot {
	stepmark_u64 seq;
	stepmark_u64 step;
	stepmark_u64 since_ns; /* when this mark was written */
	stepmark_u32 kind;
	stepmark_u32 tenant; /* the tenant with the largest share */
	stepmark_u64 seq_end;
	stepmark_u64 finished; /* marks ever written to the ring of this slot */
	stepmark_u32 tid;
	stepmark_u32 reserved[3];
};

enum stepmark_what {
	STEPMARK_STEP = 1,   /* a step, or a stage inside one when `parent` is not 0 */
	STEPMARK_QUEUED = 2, /* a request's wait for the engine: begin = queued, end = taken up */
};

struct stepmark_share {
	stepmark_u32 tenant;
	stepmark_u32 weight;
};

/* A finished mark. `number` is written first and `number_end` last: equal when the entry is whole.
 * For STEPMARK_QUEUED the number is 0 and the only share names the tenant.
 *
 * Entry i of a ring stands at i % STEPMARK_RING, and `finished` of the slot is raised after it is
 * whole. The next one may be being written already, over the oldest: what a reader copied is good
 * where i > finished - STEPMARK_RING by a `finished` that it read afterwards. */
struct stepmark_done {
	stepmark_u64 number;
	stepmark_u64 parent; /* the step that this stage belongs to; 0 for a step */
	stepmark_u64 begin_ns;
	stepmark_u64 end_ns;
	stepmark_u32 what;
	stepmark_u32 kind;
	stepmark_u32 nr_shares;
	stepmark_u32 reserved;
	struct stepmark_share shares[STEPMARK_SHARES];
	stepmark_u64 number_end;
	stepmark_u64 reserved_end;
};

struct stepmark_header {
	stepmark_u64 magic; /* written last: a page without it is not ready */
	stepmark_u32 version;
	stepmark_u32 header_size; /* the offset of the kind names */
	stepmark_u64 page_size;   /* bytes of the whole memfd */
	stepmark_u32 kinds, tenants, name_len, slots,
		ring;          /* the limits above, as the writer knew them */
	stepmark_u32 pid;      /* of the writer, in its own pid namespace */
	stepmark_u32 nr_kinds; /* names written, entry 0 included; stored after the text */
	stepmark_u32 nr_tenants;
	/* What the engine could not mark, and why. */
	stepmark_u64 lost_slots_full;   /* threads that found no slot */
	stepmark_u64 lost_kinds_full;   /* step kinds that found the table full */
	stepmark_u64 lost_tenants_full; /* tenants that found the table full */
	stepmark_u64 lost_shares_full;  /* tenants of a step beyond STEPMARK_SHARES */
};

/* The header has a page of its own. */
#define STEPMARK_HEADER_SIZE 4096u

struct stepmark_page {
	union {
		struct stepmark_header header;
		char header_page[STEPMARK_HEADER_SIZE];
	};
	struct stepmark_name kinds[STEPMARK_KINDS];
	struct stepmark_name tenants[STEPMARK_TENANTS];
	struct stepmark_slot slots[STEPMARK_SLOTS];
	struct stepmark_done rings[STEPMARK_SLOTS]
				  [STEPMARK_RING]; /* sparse: memory only where used */
};

#ifdef __cplusplus
#define STEPMARK_STATIC_ASSERT static_assert
#else
#define STEPMARK_STATIC_ASSERT _Static_assert
#endif
STEPMARK_STATIC_ASSERT(sizeof(struct stepmark_slot) == 64, "a slot is one cache line");
STEPMARK_STATIC_ASSERT(sizeof(struct stepmark_done) == 128, "a finished mark is two cache lines");
STEPMARK_STATIC_ASSERT(sizeof(struct stepmark_page) == 4096 + 2 * 16384 + 16384 + 67108864,
		       "header, names, slots, 64 MiB of sparse rings");

#endif
