/* SPDX-License-Identifier: GPL-2.0-only
 *
 * blame.bpf.h - who had the CPU while a tracked thread wanted it.
 *
 *   a tracked thread begins to wait for a CPU     the CPU starts to record its runs
 *   a switch there                                one more run: who, until when
 *   the waiting thread is moved                   it waits for the other CPU from then on
 *   it gets the CPU                               each runner is charged its share of the wait
 *
 * Writing every run at every switch would nearly double the cost of a switch between untracked
 * threads; recorded only while somebody waits, it is exactly the span that is needed.
 */
#ifndef TAILTRACE_BLAME_BPF_H
#define TAILTRACE_BLAME_BPF_H

#include "absence.bpf.h"

/* Exchanged, here and there, because the agent may untrack the thread while it leaves the CPU or
 * gets it: whoever comes second sees what the first has done. */
static __always_inline void wait_no_more(struct thread *t)
{
	u32 queued_on = __sync_lock_test_and_set(&t->queued_on, 0);
	struct cpu *cpu = queued_on ? cpu_at(queued_on - 1) : NULL;

	if (cpu)
		__sync_fetch_and_add(&cpu->waiting, -1);
}

static __always_inline void wait_for(struct thread *t, u32 index, u64 steal_now, u64 now)
{
	struct cpu *cpu = cpu_at(index);

	if (!cpu)
		return;
	__sync_fetch_and_add(&cpu->waiting, 1);
	t->queued_ns = now;
	watch_absence(t, cpu, steal_now);
	__sync_lock_test_and_set(&t->queued_on, index + 1);
	if (!t->piece.process)
		wait_no_more(t);
}

static __always_inline void record_run(struct cpu *cpu, struct task_struct *prev, u64 now)
{
	struct run *run = &cpu->runs[cpu->recorded++ % NR_RUNS];

	run->until_ns = now;
	run->who.tid = prev->pid;
	run->who.tgid = prev->tgid;
	run->who.cgroup_id = cgroup_of(prev);
	__builtin_memcpy(run->who.comm, prev->comm, sizeof(run->who.comm));
}

/* Adds to the runner's share in the piece. With more runners than room the smallest gives way; what
 * it had is no longer named. Like charge_runners a global function, so that the verifier goes
 * through it once and not again for each way that leads here. */
__noinline int charge(struct piece *piece, const struct runner *who, u64 ns)
{
	u32 at = 0;

	if (!piece || !who)
		return 0;
	for (u32 i = 0; i < NR_AGGRESSORS; i++) {
		if (piece->aggressors[i].who.tid == who->tid && piece->aggressors[i].ns) {
			piece->aggressors[i].ns += ns;
			return 0;
		}
		if (piece->aggressors[i].ns < piece->aggressors[at].ns)
			at = i;
	}
	if (at >= NR_AGGRESSORS || piece->aggressors[at].ns >= ns) {
		piece->blame_rest_ns += ns;
		return 0;
	}
	piece->blame_rest_ns += piece->aggressors[at].ns;
	piece->aggressors[at].who = *who;
	piece->aggressors[at].ns = ns;
	return 0;
}

/* How far back a kernel without bpf_loop() looks, whose verifier goes through every round. */
#define NR_RUNS_WITHOUT_LOOP 64

/* One walk back through the runs of a CPU. */
struct walk {
	struct thread *t;
	struct cpu *cpu;
	const struct want *want;
	u64 until;    /* what ran from here on is charged */
	u64 left_ns;  /* of what all of them are to be charged */
	u64 own_1024; /* of 1,024 ns, what they had when the CPU was not away */
	u64 longest_ns;
	u32 longest; /* where it stands in cpu->runs; NR_RUNS: none */
};

/* Of the time between, what no limit took. */
static __always_inline u64 unlimited(const struct want *want, u64 from, u64 until)
{
	u64 limited_from = want->limited_from_ns;
	u64 limited_until = limited_from + want->limited_ns;

	if (limited_from < from)
		limited_from = from;
	if (limited_until > until)
		limited_until = until;
	return until - from - (limited_until > limited_from ? limited_until - limited_from : 0);
}

/* Charges the i-th run from the newest on. The idle task is nobody: what it had is the time that a
 * woken CPU takes to switch. Returns 1 when all of the wait is charged. Not inline: clang lets the
 * larger loop fall into its own head, where Linux 6.1 sees a back-edge and refuses it. */
static __noinline long charge_run(u32 i, struct walk *walk)
{
	u32 at = (walk->cpu->recorded - 1 - i) % NR_RUNS;
	struct run *run = &walk->cpu->runs[at];
	u64 from = walk->cpu->runs[(at - 1) % NR_RUNS].until_ns, since = walk->t->queued_ns;

	if (from < since)
		from = since;
	if (from > walk->until)
		from = walk->until;
	u64 ns = unlimited(walk->want, from, walk->until) * walk->own_1024 / 1024;
	walk->until = from;
	if (run->who.tid) {
		ns = take(&walk->left_ns, ns);
		charge(&walk->t->piece, &run->who, ns);
		if (ns > walk->longest_ns) {
			walk->longest_ns = ns;
			walk->longest = at;
		}
	}
	return from <= since;
}

/* Charges the wait to those who ran on `cpu` meanwhile; returns where in cpu->runs the longest run
 * of them stands, NR_RUNS for none. Which of them it was that an absence of the CPU hit is not
 * known: each bears its part. */
__noinline u32 charge_runners(struct thread *t, struct cpu *cpu, const struct want *want)
{
	if (!t || !cpu || !want)
		return NR_RUNS;
	u64 run_ns = want->until_ns - want->from_ns - want->limited_ns, left_ns = blamed_ns(want);
	struct walk walk = {.t = t,
			    .cpu = cpu,
			    .want = want,
			    .until = want->until_ns,
			    .left_ns = left_ns,
			    .own_1024 = run_ns ? left_ns * 1024 / run_ns : 0,
			    .longest = NR_RUNS};

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop)) /* e6f2dd0f8067 */
		bpf_loop(NR_RUNS - 1, charge_run, &walk, 0);
	else
		for (u32 i = 0; i < NR_RUNS_WITHOUT_LOOP && !charge_run(i, &walk); i++)
			;
	if (walk.until > t->queued_ns)
		count_lost(LOST_BLAME_OVERWRITTEN);
	if (want->from_ns < t->queued_ns)
		count_lost(LOST_BLAME_MIGRATED);
	t->piece.blame_rest_ns += walk.left_ns;
	return walk.longest;
}

#endif
