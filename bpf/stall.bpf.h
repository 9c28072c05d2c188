/* SPDX-License-Identifier: GPL-2.0-only
 *
 * stall.bpf.h - time that a CPU lost while the kernel took it for running, without a steal clock.
 *
 *   a timer expires           a sign of life of its CPU
 *   a hard one expires late   the CPU stood still meanwhile: the hypervisor ran something else, or,
 *                             on bare metal, interrupts were off or the firmware had the CPU
 *   its function has run      the kernel has looked at the steal clock: what is left is a stall
 *
 * Only hard timers are believed. They are the kernel's own, such as that of the tick, and are armed
 * for times to come; a program may ask for a wakeup in the past, or leave the kernel some slack.
 */
#ifndef TAILTRACE_STALL_BPF_H
#define TAILTRACE_STALL_BPF_H

#include "ledger.bpf.h"

/* The slowest tick (CONFIG_HZ=100). A CPU without a sign of life for longer may have slept. */
#define LONGEST_TICK_NS 10000000

static __always_inline struct pulse *pulse_of(u32 cpu)
{
	return bpf_map_lookup_elem(&pulses, &cpu);
}

/* For how long a CPU, or several together, may take to come back. A sign of life so close to the
 * end of a stall proves nothing. */
#define LONGEST_RETURN_NS 1000000

static __always_inline u64 return_ns(u64 late_ns)
{
	return late_ns / 4 < LONGEST_RETURN_NS ? late_ns / 4 : LONGEST_RETURN_NS;
}

/* Other timers may have expired before this one in the same interrupt. What expired well before it,
 * but after it was due, shows that it was armed too late: nothing stood still up to then. */
static __always_inline void comes_back(struct pulse *pulse, u64 due_ns, u64 now)
{
	u64 before_ns = now - return_ns(now - due_ns), alive_ns = 0;

	pulse->steal_ns = steal_clock(bpf_get_current_task_btf());
	for (u32 i = 0; i < NR_BEATS; i++)
		if (pulse->beats[i] < before_ns && pulse->beats[i] > alive_ns)
			alive_ns = pulse->beats[i];
	pulse->due_ns = alive_ns > due_ns ? alive_ns : due_ns;
	pulse->end_ns = now;
	pulse->alive_ns = alive_ns + LONGEST_TICK_NS < due_ns ? 0 : alive_ns;
}

SEC("tp_btf/hrtimer_expire_entry") int BPF_PROG(on_timer_expiry, struct hrtimer *timer)
{
	struct pulse *pulse = pulse_of(bpf_get_smp_processor_id());

	if (!pulse)
		return 0;
	u64 now = bpf_ktime_get_ns();

	if (timer->is_hard && timer->base->clockid == CLOCK_MONOTONIC) {
		u64 due_ns = timer->node.expires;
		if (due_ns < pulse->end_ns) /* another timer has told of that already */
			due_ns = pulse->end_ns;
		pulse->expiries++;
		if (now >= due_ns + stall_ns)
			comes_back(pulse, due_ns, now);
		else if (now > due_ns)
			pulse->late_ns += now - due_ns;
	}
	pulse->beats[pulse->count++ % NR_BEATS] = now;
	return 0;
}

/* Whether the CPU showed a sign of life between; 0 too when there is no such CPU. A global
 * function, so that the verifier goes through it once. */
__noinline int is_alive(u32 cpu, u64 from_ns, u64 until_ns)
{
	struct pulse *pulse = pulse_of(cpu);
	int alive = 0;

	for (u32 i = 0; pulse && i < NR_BEATS; i++)
		alive |= pulse->beats[i] > from_ns && pulse->beats[i] < until_ns;
	return alive;
}

/* The time of a stall in which other CPUs showed signs of life, if they were not stopped, too. */
struct search {
	struct stall *stall;
	u64 from_ns;
	u64 until_ns;
};

/* Returns 1 when there is no such CPU. */
static long note_if_running(u32 cpu, struct search *search)
{
	if (cpu >= MAX_CPUS || !pulse_of(cpu))
		return 1;
	if (is_alive(cpu, search->from_ns, search->until_ns))
		search->stall->running[cpu / 64] |= 1ULL << cpu % 64;
	return 0;
}

/* Called when something was lost only, which bears a look at every CPU. Nor does a sign of life
 * close to the begin prove anything: CPUs stop one after the other, too. */
__noinline int note_running(struct stall *stall)
{
	if (!stall)
		return 0;
	u64 late_ns = stall->end_ns - stall->due_ns;
	struct search search = {.stall = stall,
				.from_ns = stall->due_ns + late_ns / 4,
				.until_ns = stall->end_ns - return_ns(late_ns)};

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop)) /* e6f2dd0f8067 */
		bpf_loop(MAX_CPUS, note_if_running, &search, 0);
	else
		for (u32 cpu = 0; cpu < MAX_CPUS && !note_if_running(cpu, &search); cpu++)
			;
	return 0;
}

/* What interrupt handlers had of the time since `from_ns`, as far as is known: of a tracked thread
 * the last one. */
static __always_inline u64 interrupted_ns(const struct cpu *cpu, u64 from_ns)
{
	u64 began_ns = cpu->irq_from_ns > from_ns ? cpu->irq_from_ns : from_ns;

	return cpu->irq_until_ns > began_ns ? cpu->irq_until_ns - began_ns : 0;
}

/* It began between the last sign of life and when the next was due: in the middle, for all that is
 * known, but it is not made more than half longer by that. */
static __always_inline u64 unseen_ns(const struct pulse *pulse)
{
	u64 late_ns = pulse->end_ns - pulse->due_ns;
	u64 gap_ns = pulse->due_ns > pulse->alive_ns ? pulse->due_ns - pulse->alive_ns : 0;

	if (!pulse->alive_ns)
		return 0;
	return (gap_ns < late_ns ? gap_ns : late_ns) / 2;
}

/* Books the stall of the CPU on the thread that was on it, and returns the step that has it. If it
 * stood still inside of the interrupt, that counts as if the interrupt had begun later. */
static __always_inline u64 charge_stall(struct thread *t, struct task_struct *task, struct cpu *cpu,
					const struct pulse *pulse, u64 steal_now, u64 lost_ns)
{
	u64 until_ns = cpu->irq_ns ? cpu->irq_ns : pulse->end_ns, step = t->piece.step;

	if (pulse->alive_ns >= until_ns) {
		until_ns = until_ns + lost_ns < pulse->end_ns ? until_ns + lost_ns : pulse->end_ns;
		cpu->irq_ns = until_ns;
	}
	if (!is_running(t, task, until_ns, steal_now))
		return step;
	t->stall_ns = lost_ns;
	settle(t, task, until_ns, steal_now);
	count_deschedule(t, CAUSE_STALL, lost_ns, pulse->end_ns, NULL);
	return t->piece.ns[CAUSE_STALL] >= lost_ns / 2 ? t->piece.step : step;
}

/* The CPU of `pulse` stood still, and `t` was on it, if anybody's thread. */
static __always_inline void tell_stall(const struct pulse *pulse, struct task_struct *task,
				       struct thread *t, u64 step, u64 stolen_ns, u64 lost_ns)
{
	struct stall *stall = bpf_ringbuf_reserve(&stalls, sizeof(*stall), 0);

	if (!stall) {
		count_lost(LOST_STALLS_RING_FULL);
		return;
	}
	__builtin_memset(stall, 0, sizeof(*stall));
	stall->alive_ns = pulse->alive_ns;
	stall->due_ns = pulse->due_ns;
	stall->end_ns = pulse->end_ns;
	stall->stolen_ns = stolen_ns;
	stall->lost_ns = lost_ns;
	stall->tgid = task->tgid;
	stall->tid = task->pid;
	stall->cpu = bpf_get_smp_processor_id();
	if (t) {
		stall->step = step;
		stall->process = t->piece.process;
		stall->slot = t->piece.slot;
		stall->tenant = t->piece.tenant;
	}
	note_running(stall);
	bpf_ringbuf_submit(stall, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/hrtimer_expire_exit") int on_timer_expired(void *ctx)
{
	struct pulse *pulse = pulse_of(bpf_get_smp_processor_id());
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);
	struct cpu *cpu = this_cpu();

	if (!pulse || !cpu)
		return 0;
	if (t && is_running_unseen(t))
		gets_cpu_unseen(t, task, cpu, bpf_ktime_get_ns(), steal_clock(task));
	if (!pulse->due_ns)
		return 0;
	u64 steal_now = steal_clock(task), late_ns = pulse->end_ns - pulse->due_ns;
	u64 stolen_ns = growth(pulse->steal_ns, steal_now);
	u64 told_ns = stolen_ns + interrupted_ns(cpu, pulse->due_ns);

	if (late_ns >= told_ns + stall_ns) {
		u64 lost_ns = late_ns + unseen_ns(pulse) - told_ns;
		u64 step = t ? charge_stall(t, task, cpu, pulse, steal_now, lost_ns) : 0;
		cpu->stall_clock_ns += lost_ns;
		tell_stall(pulse, task, t, step, stolen_ns, lost_ns);
	} else if (late_ns > told_ns) {
		pulse->late_ns += late_ns - told_ns;
	}
	pulse->due_ns = 0;
	return 0;
}

#endif
