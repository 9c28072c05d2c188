/* SPDX-License-Identifier: GPL-2.0-only
 *
 * syscalls.bpf.h - what a thread waits for that blocked in a system call and is not in storage I/O
 * (the kernel marks that itself, task_struct.in_iowait).
 */
#ifndef TAILTRACE_SYSCALLS_BPF_H
#define TAILTRACE_SYSCALLS_BPF_H

#include <asm/unistd.h>
#include "wire.h"

#define NR_SYSCALLS 512 /* a power of two beyond every number in use */

/* Numbers that newer headers than the builder's have; the same on all architectures. */
#ifndef __NR_futex_wait
#define __NR_futex_wait 455
#endif
#ifndef __NR_futex_waitv
#define __NR_futex_waitv 449
#endif
#ifndef __NR_epoll_pwait2
#define __NR_epoll_pwait2 441
#endif

/* 0 stands for CAUSE_OTHER_WAIT. The read and write families wait for a peer when they block
 * without I/O: a socket, a pipe, a terminal. */
static const volatile u8 syscall_cause[NR_SYSCALLS] = {
	[__NR_futex] = CAUSE_LOCK,
	[__NR_futex_wait] = CAUSE_LOCK,
	[__NR_futex_waitv] = CAUSE_LOCK,
	[__NR_flock] = CAUSE_LOCK,
	[__NR_fcntl] = CAUSE_LOCK,
	[__NR_semop] = CAUSE_LOCK,
	[__NR_semtimedop] = CAUSE_LOCK,

	[__NR_nanosleep] = CAUSE_SLEEP,
	[__NR_clock_nanosleep] = CAUSE_SLEEP,

	[__NR_ppoll] = CAUSE_NET,
	[__NR_pselect6] = CAUSE_NET,
	[__NR_epoll_pwait] = CAUSE_NET,
	[__NR_epoll_pwait2] = CAUSE_NET,
	[__NR_read] = CAUSE_NET,
	[__NR_readv] = CAUSE_NET,
	[__NR_write] = CAUSE_NET,
	[__NR_writev] = CAUSE_NET,
	[__NR_recvfrom] = CAUSE_NET,
	[__NR_recvmsg] = CAUSE_NET,
	[__NR_recvmmsg] = CAUSE_NET,
	[__NR_sendto] = CAUSE_NET,
	[__NR_sendmsg] = CAUSE_NET,
	[__NR_sendmmsg] = CAUSE_NET,
	[__NR_accept] = CAUSE_NET,
	[__NR_accept4] = CAUSE_NET,
	[__NR_connect] = CAUSE_NET,
	[__NR_splice] = CAUSE_NET,
	[__NR_mq_timedreceive] = CAUSE_NET,
	[__NR_msgrcv] = CAUSE_NET,

	[__NR_pread64] = CAUSE_IO,
	[__NR_preadv] = CAUSE_IO,
	[__NR_pwrite64] = CAUSE_IO,
	[__NR_pwritev] = CAUSE_IO,
	[__NR_fsync] = CAUSE_IO,
	[__NR_fdatasync] = CAUSE_IO,
	[__NR_msync] = CAUSE_IO,
	[__NR_sync_file_range] = CAUSE_IO,
	[__NR_io_getevents] = CAUSE_IO,
	[__NR_io_uring_enter] = CAUSE_IO,
#ifdef __NR_poll /* newer architectures have only the p- variants */
	[__NR_poll] = CAUSE_NET,
	[__NR_select] = CAUSE_NET,
	[__NR_epoll_wait] = CAUSE_NET,
#endif
};

#endif
