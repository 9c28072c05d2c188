/* SPDX-License-Identifier: GPL-2.0-only
 *
 * irq.bpf.h - time on the CPU that is not the thread's own: the hooks of interrupts and softirqs.
 *
 * On a CPU whose thread is not tracked they cost one look-up.
 */
#ifndef TAILTRACE_IRQ_BPF_H
#define TAILTRACE_IRQ_BPF_H

#include "ledger.bpf.h"

static __always_inline int irq_begins(void)
{
	struct thread *t = thread_of(bpf_get_current_task_btf());
	struct cpu *cpu = t ? this_cpu() : NULL;

	if (cpu)
		cpu->irq_ns = bpf_ktime_get_ns();
	return 0;
}

/* Only now is the time before the interrupt booked: if the hypervisor had stopped the CPU, the
 * kernel found it out in this interrupt (steal_clock). */
static __always_inline int irq_ends(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);
	struct cpu *cpu = t ? this_cpu() : NULL;

	if (!cpu || !cpu->irq_ns)
		return 0;
	u64 now = bpf_ktime_get_ns(), steal_now = steal_clock(task), began_ns = cpu->irq_ns;
	cpu->irq_ns = 0;
	if (!is_running(t, task, began_ns, steal_now))
		return 0;
	settle(t, task, began_ns, steal_now);
	book(t, CAUSE_IRQ, since(began_ns, now));
	t->at_ns = t->piece.until_ns = now;
	cpu->irq_from_ns = began_ns;
	cpu->irq_until_ns = now;
	return 0;
}

static __always_inline int softirq(enum cause from_here_on)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);

	if (!t)
		return 0;
	u64 now = bpf_ktime_get_ns(), steal_now = steal_clock(task);
	if (is_running(t, task, now, steal_now))
		settle(t, task, now, steal_now);
	t->on_cpu = from_here_on;
	return 0;
}

SEC("tp_btf/softirq_entry") int on_softirq_entry(void *ctx)
{
	return softirq(CAUSE_SOFTIRQ);
}

SEC("tp_btf/softirq_exit") int on_softirq_exit(void *ctx)
{
	return softirq(CAUSE_RUNNING);
}

#define IRQ_HOOKS(name)                                                                            \
	SEC("tp_btf/" #name "_entry") int on_##name##_entry(void *ctx)                             \
	{                                                                                          \
		return irq_begins();                                                               \
	}                                                                                          \
	SEC("tp_btf/" #name "_exit") int on_##name##_exit(void *ctx)                               \
	{                                                                                          \
		return irq_ends();                                                                 \
	}

IRQ_HOOKS(irq_handler)          /* devices; on arm64 the timer, too */
IRQ_HOOKS(local_timer)          /* x86: the tick */
IRQ_HOOKS(call_function)        /* x86: TLB shootdowns and other work for many CPUs */
IRQ_HOOKS(call_function_single) /* x86 */
IRQ_HOOKS(ipi)                  /* arm64 */

#endif
