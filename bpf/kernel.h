/* SPDX-License-Identifier: GPL-2.0-only
 *
 * kernel.h - exactly the kernel fields that we read. This is the list of what we depend on.
 *
 * Offsets are filled in for the running kernel when the object is loaded (CO-RE), so the members
 * stand here without their neighbours. A type or member that only some kernels have carries the
 * commit that made it; bpf/compat.bpf.h asks for it.
 */
#ifndef TAILTRACE_KERNEL_H
#define TAILTRACE_KERNEL_H

#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "wire.h"

#define PF_EXITING 0x00000004 /* include/linux/sched.h */
#define PF_IO_WORKER 0x00000010
#define TASK_UNINTERRUPTIBLE 0x0002 /* include/linux/sched.h, as in task_struct.__state */
#define TASK_STOPPED 0x0004
#define TASK_TRACED 0x0008
#define MAX_RT_PRIO 100 /* include/linux/sched/prio.h */
#define CLOCK_MONOTONIC 1
#define CPUTIME_STEAL 7 /* include/linux/kernel_stat.h, enum cpu_usage_stat */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	u64 id; /* the inode of the cgroup's directory */
};

struct cgroup {
	struct kernfs_node *kn;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct rt_rq {
	int rt_throttled;
};

struct rq {
	struct rt_rq rt;
	u64 clock;              /* sched_clock() at the last update, which each switch brings */
	u64 clock_task;         /* less what interrupts and the hypervisor took */
	u64 clock_pelt;         /* scaled by frequency, made up for when the CPU is idle */
	u64 lost_idle_time;     /* of clock_pelt */
	u64 prev_steal_time_rq; /* CONFIG_PARAVIRT_TIME_ACCOUNTING */
};

struct cfs_rq {
	struct rq *rq;            /* CONFIG_FAIR_GROUP_SCHED, like sched_entity.cfs_rq */
	int throttle_count;       /* CONFIG_CFS_BANDWIDTH; counts throttled ancestors too */
	u64 throttled_clock_self; /* 677ea015f231: since when threads in it are held; 0: not now */
	u64 throttled_clock_self_time; /* for how long before that */
	u64 throttled_clock_pelt;      /* 64eaf50731ac renamed them from _task */
	u64 throttled_clock_pelt_time;
};

struct cfs_rq___with_clock_task {
	u64 throttled_clock_task;
	u64 throttled_clock_task_time;
};

struct task_group {
	struct cgroup_subsys_state css;
	struct cfs_rq **cfs_rq; /* one for each CPU */
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

struct sched_rt_entity {
	struct rt_rq *rt_rq; /* CONFIG_RT_GROUP_SCHED */
};

struct sched_dl_entity;

struct mm_struct {
	unsigned long data_vm; /* pages of private memory that may be written, touched or not */
};

struct bpf_local_storage;

struct super_block {
	u32 s_dev;
	unsigned long s_magic; /* the kind of filesystem */
};

struct inode {
	u32 i_rdev;
	u64 i_ino;
	struct super_block *i_sb;
};

struct file {
	struct inode *f_inode;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_flags;
	struct file *vm_file;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct thread_info {
	u32 cpu; /* bcf9033e5449 moved it here from task_struct for all with THREAD_INFO_IN_TASK */
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state; /* 2f064a59a11f renamed it from `state` */
	unsigned int flags;
	int prio;
	struct mm_struct *mm; /* NULL once the thread has begun to exit */
	unsigned long min_flt;
	unsigned long maj_flt;
	int pagefault_disabled; /* not 0: a fault now is none that the kernel handles or counts */
	struct sched_entity se;
	struct sched_rt_entity rt;
	struct sched_dl_entity *dl_server;   /* 63ba8422f876: set while a deadline server runs it */
	struct task_group *sched_task_group; /* CONFIG_CGROUP_SCHED */
	bool throttled; /* e1fad12dcb66 and neighbours: CFS bandwidth stops tasks, not queues */
	unsigned in_iowait : 1;
	int pid;
	int tgid;
	struct pid *thread_pid;
	struct files_struct *files;
	struct bpf_local_storage *bpf_storage; /* NULL: no BPF program keeps state of this task */
	char comm[COMM_LEN];
};

struct task_struct___with_cpu {
	u32 cpu;
};

struct kernel_cpustat {
	u64 cpustat[CPUTIME_STEAL + 1];
};

struct hrtimer_clock_base {
	int clockid;
};

struct timerqueue_node { /* in newer kernels of another name */
	s64 expires;
};

struct hrtimer {
	struct timerqueue_node node;
	struct hrtimer_clock_base *base;
	u8 is_hard; /* 0ab6a3ddbaf4: expires in the interrupt itself, even with CONFIG_PREEMPT_RT */
};

struct bpf_iter_meta;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long orig_ax;
	unsigned long di;
};
#define SYSCALL_OF(regs) ((s32)(regs)->orig_ax)
#define FIRST_ARGUMENT_OF(regs) ((regs)->di)
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	s32 syscallno;
	u64 orig_x0;
};
#define SYSCALL_OF(regs) ((regs)->syscallno)
#define FIRST_ARGUMENT_OF(regs) ((regs)->orig_x0)
#else
#error "kernel.h: this architecture's system call number is not known"
#endif

enum migrate_reason {
	MR_SYSCALL,
	MR_MEMPOLICY_MBIND,
	MR_NUMA_MISPLACED,
};

#pragma clang attribute pop

/* The first word of a page has its node in the highest bits (include/linux/page-flags-layout.h).
 * It is read without its name, whose type is not the same on all kernels (memdesc_flags_t). */
struct page {
	unsigned long flags;
};

#endif
