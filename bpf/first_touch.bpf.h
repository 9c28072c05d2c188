/* SPDX-License-Identifier: GPL-2.0-only
 *
 * first_touch.bpf.h - who gets the pages of shared memory. A page is on the node of whoever touches
 * it first, in a page fault; or brings it back, once it was swapped out.
 *
 * Counted by segment and thread, in a table that the agent reads: nothing is streamed.
 */
#ifndef TAILTRACE_FIRST_TOUCH_BPF_H
#define TAILTRACE_FIRST_TOUCH_BPF_H

#include <asm/errno.h>
#include "maps.bpf.h"
#include "wait.bpf.h"

#define VM_SHARED 0x08         /* include/linux/mm.h */
#define TMPFS_MAGIC 0x01021994 /* include/uapi/linux/magic.h: all such memory but hugetlbfs */

/* include/linux/gfp_types.h */
#define GFP_RECLAIM 0xc00
#define GFP_THISNODE 0x200000

/* NUMA balancing moves a page in a fault, too: to one from this node and no other, without any
 * effort for it (alloc_misplaced_dst_folio). */
static __always_inline bool is_to_move_to(u32 gfp)
{
	return gfp & GFP_THISNODE && !(gfp & GFP_RECLAIM);
}

static __always_inline void count_pages_in(struct vm_area_struct *area, struct task_struct *task,
					   u32 pages)
{
	struct inode *inode = BPF_CORE_READ(area, vm_file, f_inode);

	if (BPF_CORE_READ(inode, i_sb, s_magic) != TMPFS_MAGIC)
		return;
	struct toucher who = {
		.inode = BPF_CORE_READ(inode, i_ino),
		.device = BPF_CORE_READ(inode, i_sb, s_dev),
		.tgid = task->tgid,
		.tid = task->pid,
		.node = bpf_get_numa_node_id(),
	};
	struct touched *touched = bpf_map_lookup_elem(&touches, &who);
	if (!touched) {
		struct touched none = {};
		bpf_get_current_comm(none.comm, sizeof(none.comm));
		bpf_map_update_elem(&touches, &who, &none, BPF_NOEXIST);
		touched = bpf_map_lookup_elem(&touches, &who);
	}
	if (touched)
		touched->pages += pages; /* an entry of this thread alone */
	else
		count_lost(LOST_TOUCHES_FULL);
}

static long count_found(struct task_struct *task, struct vm_area_struct *area, u32 *pages)
{
	if (area->vm_flags & VM_SHARED)
		count_pages_in(area, task, *pages);
	return 0;
}

/* The thread gets pages: in a fault in `fault_area`, or as the first since one at `fault_address`.
 * That is one of user code; whether the thread is in it still, its registers tell. */
static __always_inline void count_touch(struct thread *t, struct task_struct *task, u32 pages)
{
	if (t->fault_area) {
		count_pages_in((struct vm_area_struct *)t->fault_area, task, pages);
		return;
	}
	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_find_vma)) /* 7c7e3d31e785 */
		return;
	if (!t->fault_address || blocked_syscall(task) != NO_SYSCALL)
		return;
	u64 address = t->fault_address;
	t->fault_address = 0;
	if (bpf_find_vma(task, address, count_found, &pages, 0) == -EBUSY)
		count_lost(LOST_TOUCH_UNPLACED);
}

#endif
