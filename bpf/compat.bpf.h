/* SPDX-License-Identifier: GPL-2.0-only
 *
 * compat.bpf.h - where kernels differ. Each function asks the type, never the version, because
 * distributions backport. What only the agent can find out arrives in a constant.
 */
#ifndef TAILTRACE_COMPAT_BPF_H
#define TAILTRACE_COMPAT_BPF_H

#include "kernel.h"

/* set before load: sched_switch passes the state in which prev left (9c2136be0878) */
const volatile bool has_prev_state = true;

/* set before load: whether this machine has a steal clock at all */
const volatile bool has_steal_clock = false;

static __always_inline u32 cpu_of(struct task_struct *task)
{
	if (bpf_core_field_exists(task->thread_info.cpu))
		return task->thread_info.cpu;
	return ((struct task_struct___with_cpu *)task)->cpu;
}

static __always_inline struct rq *rq_of(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->se.cfs_rq))
		return NULL;
	/* The entity of a real-time task keeps the pointer, too (set_task_rq). */
	struct cfs_rq *cfs_rq = task->se.cfs_rq;
	return cfs_rq ? cfs_rq->rq : NULL;
}

/* The queue of its group on another CPU. The verifier does not know the pointer. */
static __always_inline struct cfs_rq *queue_on(struct task_struct *task, u32 cpu)
{
	struct cfs_rq *queue = NULL;

	if (bpf_core_field_exists(task->sched_task_group->cfs_rq))
		bpf_probe_read_kernel(&queue, sizeof(queue), &task->sched_task_group->cfs_rq[cpu]);
	return queue;
}

#ifdef STEAL_FROM_CPUSTAT
extern const struct kernel_cpustat kernel_cpustat __ksym;
#endif

/* The steal clock of the CPU that `task` is on or queued for, in ns. The kernel advances it when it
 * looks: the run queue's at most switches and in every tick, kernel_cpustat in ticks only. What was
 * stolen since then is booked to the thread that runs when it looks. */
static __always_inline u64 steal_clock(struct task_struct *task)
{
	if (!has_steal_clock)
		return 0;
#ifdef STEAL_FROM_CPUSTAT
	/* Per-CPU variables can be addressed only where the kernel lists all of its symbols
	 * (CONFIG_KALLSYMS_ALL); elsewhere the mere mention fails to load. So this is another
	 * object. */
	const struct kernel_cpustat *there = bpf_per_cpu_ptr(&kernel_cpustat, cpu_of(task));
	return there ? there->cpustat[CPUTIME_STEAL] : 0;
#else
	struct rq *rq = rq_of(task);
	return rq && bpf_core_field_exists(rq->prev_steal_time_rq) ? rq->prev_steal_time_rq : 0;
#endif
}

/* Of another CPU, to whose queue `task` is about to be moved. */
static __always_inline u64 steal_clock_on(struct task_struct *task, u32 cpu)
{
	if (!has_steal_clock)
		return 0;
#ifdef STEAL_FROM_CPUSTAT
	const struct kernel_cpustat *there = bpf_per_cpu_ptr(&kernel_cpustat, cpu);
	return there ? there->cpustat[CPUTIME_STEAL] : 0;
#else
	struct cfs_rq *queue = queue_on(task, cpu);
	if (!queue || !bpf_core_field_exists(queue->rq->prev_steal_time_rq))
		return 0;
	return BPF_CORE_READ(queue, rq, prev_steal_time_rq);
#endif
}

static __always_inline bool is_real_time(struct task_struct *task)
{
	return task->prio < MAX_RT_PRIO;
}

/* Whether `task` may not run because its group has used up its CFS quota. Real-time tasks do not
 * draw on that. Where tasks are stopped, not queues, the others of such a group still compete. */
static __always_inline bool is_throttled(struct task_struct *task)
{
	if (is_real_time(task))
		return false;
	if (bpf_core_field_exists(task->throttled))
		return task->throttled;
	if (!bpf_core_field_exists(task->se.cfs_rq) ||
	    !bpf_core_field_exists(task->se.cfs_rq->throttle_count))
		return false;
	return task->se.cfs_rq->throttle_count > 0;
}

/* Whether a quota can run out while a thread waits already. Where tasks are stopped, a thread is
 * only when it has got the CPU. */
static __always_inline bool quota_stops_queues(struct task_struct *task)
{
	return !bpf_core_field_exists(task->throttled);
}

/* A queue that the verifier knows is read by plain loads, any other by a helper. */
#define READ(queue, field) (is_known ? (queue)->field : BPF_CORE_READ(queue, field))

/* For how long until now a used up quota has held the threads that are in a queue, in ns. By
 * throttled_clock_self this is exact; kernels before it have clocks that leave out steal and
 * interrupts and, from 5.19 on, run slower on a CPU below its full frequency. */
static __always_inline u64 quota_clock_of(struct cfs_rq *queue, bool is_known)
{
	struct cfs_rq___with_clock_task *old = (void *)queue;
	struct rq *rq = READ(queue, rq);
	u64 before = 0, since = 0, now = 0;

	if (bpf_core_field_exists(queue->throttled_clock_self_time)) {
		before = READ(queue, throttled_clock_self_time);
		since = READ(queue, throttled_clock_self);
		now = since ? READ(rq, clock) : 0;
	} else if (bpf_core_field_exists(queue->throttled_clock_pelt_time)) {
		before = READ(queue, throttled_clock_pelt_time);
		if (READ(queue, throttle_count)) {
			since = READ(queue, throttled_clock_pelt);
			now = READ(rq, clock_pelt) - READ(rq, lost_idle_time);
		}
	} else if (bpf_core_field_exists(old->throttled_clock_task_time)) {
		before = READ(old, throttled_clock_task_time);
		if (READ(queue, throttle_count)) {
			since = READ(old, throttled_clock_task);
			now = READ(rq, clock_task);
		}
	}
	return before + (now > since ? now - since : 0);
}

#undef READ

/* Of the queue that `task` is in. */
static __always_inline u64 quota_clock(struct task_struct *task)
{
	return bpf_core_field_exists(task->se.cfs_rq) ? quota_clock_of(task->se.cfs_rq, true) : 0;
}

/* Of its group's queue on another CPU. */
static __always_inline u64 quota_clock_on(struct task_struct *task, u32 cpu)
{
	struct cfs_rq *queue = queue_on(task, cpu);

	return queue ? quota_clock_of(queue, false) : 0;
}

/* Whether the real-time budget of its group, or that of the whole CPU, is used up. Both occur. */
static __always_inline bool is_rt_throttled(struct task_struct *task)
{
	if (!is_real_time(task))
		return false;
	if (bpf_core_field_exists(task->rt.rt_rq) && task->rt.rt_rq->rt_throttled)
		return true;
	struct rq *rq = rq_of(task);
	return rq && bpf_core_field_exists(rq->rt.rt_throttled) && rq->rt.rt_throttled;
}

/* Whether `next` is a starved fair task that a deadline server runs instead of a real-time one. */
static __always_inline bool is_served(struct task_struct *next)
{
	return bpf_core_field_exists(next->dl_server) && next->dl_server;
}

/* The inode of the CPU controller's group, which tells containers apart on v1, v2 and hybrid hosts
 * alike; bpf_get_current_cgroup_id() knows the v2 hierarchy only. */
static __always_inline u64 cgroup_of(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->sched_task_group))
		return 0;
	/* Plain loads: each link of the chain is known to the verifier, which makes them safe. */
	return task->sched_task_group->css.cgroup->kn->id;
}

/* The thread's number as it sees it itself, in its own pid namespace. */
static __always_inline u32 tid_inside(struct task_struct *task)
{
	struct pid *pid = task->thread_pid;
	u32 level = BPF_CORE_READ(pid, level);
	struct upid *numbers = pid->numbers, upid = {};

	bpf_core_read(&upid.nr, sizeof(upid.nr), &numbers[level].nr);
	return upid.nr;
}

#endif
