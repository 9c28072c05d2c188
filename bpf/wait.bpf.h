/* SPDX-License-Identifier: GPL-2.0-only
 *
 * wait.bpf.h - what a thread waits for that leaves the CPU by its own will.
 */
#ifndef TAILTRACE_WAIT_BPF_H
#define TAILTRACE_WAIT_BPF_H

#include "kernel.h"
#include "syscalls.bpf.h"

#define NO_SYSCALL (-1) /* an exception, so a page fault */

/* set before load: major numbers of accelerators' device files, 0 behind the last */
#define NR_ACCELERATORS 8
const volatile u32 accelerator_majors[NR_ACCELERATORS] = {};

static __always_inline bool is_accelerator(struct task_struct *task, u32 fd)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files = BPF_CORE_READ(table, fd), *file = NULL;

	if (fd >= BPF_CORE_READ(table, max_fds))
		return false;
	bpf_probe_read_kernel(&file, sizeof(file), &files[fd]);
	u32 major = BPF_CORE_READ(file, f_inode, i_rdev) >> 20; /* include/linux/kdev_t.h */
	for (u32 i = 0; i < NR_ACCELERATORS; i++)
		if (accelerator_majors[i] && accelerator_majors[i] == major)
			return true;
	return false;
}

/* Drivers let a thread wait in an ioctl, or in a poll on their descriptor. */
static __always_inline bool waits_for_accelerator(struct task_struct *task, struct pt_regs *regs)
{
	u64 argument = FIRST_ARGUMENT_OF(regs);
	u32 fd = argument;

	switch (SYSCALL_OF(regs)) {
#ifdef __NR_poll
	case __NR_poll:
#endif
	case __NR_ppoll: /* the first descriptor stands first in the first struct pollfd */
		if (bpf_probe_read_user(&fd, sizeof(fd), (void *)argument))
			return false;
		/* fall through */
	case __NR_ioctl:
		return is_accelerator(task, fd);
	}
	return false;
}

static __always_inline s32 blocked_syscall(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	return regs ? SYSCALL_OF(regs) : NO_SYSCALL;
}

/* A fault waits for its page uninterruptibly. Without a system call, other sleeps are those of a
 * thread that a signal, a debugger or the freezer stops in user mode. */
static __always_inline enum cause blocked_on(struct task_struct *task, s32 syscall, u32 state)
{
	if (state & (TASK_STOPPED | TASK_TRACED))
		return CAUSE_OTHER_WAIT;
	if (task->flags & PF_IO_WORKER) /* io_uring's own threads have no system call */
		return CAUSE_IO;
	if (syscall == NO_SYSCALL)
		return state & TASK_UNINTERRUPTIBLE ? CAUSE_FAULT_IO : CAUSE_OTHER_WAIT;
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		return CAUSE_IO;
	if (accelerator_majors[0] &&
	    waits_for_accelerator(task, (struct pt_regs *)bpf_task_pt_regs(task)))
		return CAUSE_GPU;
	enum cause cause = syscall_cause[syscall & (NR_SYSCALLS - 1)];
	return cause ? cause : CAUSE_OTHER_WAIT;
}

#endif
