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

/* Whether an area is of a segment; if so, `who` tells which. */
static __always_inline bool is_segment(struct vm_area_struct *area, struct toucher *who)
{
	struct inode *inode = BPF_CORE_READ(area, vm_file, f_inode);

	if (BPF_CORE_READ(inode, i_sb, s_magic) != TMPFS_MAGIC)
		return false;
	who->inode = BPF_CORE_READ(inode, i_ino);
	who->device = BPF_CORE_READ(inode, i_sb, s_dev);
	return true;
}

static __always_inline void count_pages(struct toucher *who, struct task_struct *task, u32 pages)
{
	who->tgid = task->tgid;
	who->tid = task->pid;
	who->node = bpf_get_numa_node_id();
	struct touched *touched = bpf_map_lookup_elem(&touches, who);
	if (!touched) {
		struct touched none = {};
		bpf_get_current_comm(none.comm, sizeof(none.comm));
		bpf_map_update_elem(&touches, who, &none, BPF_NOEXIST);
		touched = bpf_map_lookup_elem(&touches, who);
	}
	if (touched)
		touched->pages += pages; /* an entry of this thread alone */
	else
		count_lost(LOST_TOUCHES_FULL);
}

/* The area of an address: a segment, or private memory. */
struct found {
	struct toucher who;
	u64 begin;
	u64 private_bytes;
	bool is_segment;
};

static long find_area(struct task_struct *task, struct vm_area_struct *area, struct found *found)
{
	if (area->vm_flags & VM_SHARED) {
		found->is_segment = is_segment(area, &found->who);
	} else {
		found->begin = area->vm_start;
		found->private_bytes = area->vm_end - area->vm_start;
	}
	return 0;
}

/* By where the last fault of user code was; whether the thread is in it still, its registers tell.
 * Finding an area costs as much as all else, so the last one that was private is remembered, as
 * long as the process has as much memory of the kind. */
static __always_inline void count_touch_at(struct thread *t, struct task_struct *task, u32 pages)
{
	struct found found = {};
	u64 address = t->fault_address;
	struct mm_struct *mm = task->mm;

	if (!address || !mm || blocked_syscall(task) != NO_SYSCALL)
		return;
	t->fault_address = 0;
	u64 private_pages = mm->data_vm;
	if (address - t->private_begin < t->private_bytes && private_pages == t->private_pages)
		return;
	if (bpf_find_vma(task, address, find_area, &found, 0) == -EBUSY)
		count_lost(LOST_TOUCH_UNPLACED);
	t->private_begin = found.begin;
	t->private_bytes = found.private_bytes;
	t->private_pages = private_pages;
	if (found.is_segment)
		count_pages(&found.who, task, pages);
}

/* The thread gets new pages. */
static __always_inline void count_touch(struct thread *t, struct task_struct *task, u32 pages)
{
	struct toucher who = {};

	if (t->fault_area && is_segment((struct vm_area_struct *)t->fault_area, &who))
		count_pages(&who, task, pages);
	else if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_find_vma)) /* 7c7e3d31e785 */
		count_touch_at(t, task, pages);
}

#endif
