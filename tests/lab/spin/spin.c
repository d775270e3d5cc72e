// SPDX-License-Identifier: GPL-2.0
/*
 * A known rival: a thread of the kernel with SCHED_FIFO that keeps its CPU for `us` microseconds
 * every `period_us`, with interrupts and preemption on. Tests load it into virtual boards to see
 * whether what explains a late wake-up tells that the scheduler has preferred another thread.
 */
#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <uapi/linux/sched/types.h>
#include <asm/msr.h>
#include <asm/tsc.h>

static unsigned int us = 3000;
module_param(us, uint, 0444);
MODULE_PARM_DESC(us, "how long the thread keeps its CPU, microseconds");

static unsigned int period_us = 97000;
module_param(period_us, uint, 0444);
MODULE_PARM_DESC(period_us, "time between the beginnings of two of these, microseconds");

static int priority = 95;
module_param(priority, int, 0444);
MODULE_PARM_DESC(priority, "real-time priority of the thread");

/* Keeps its name in the table of symbols, and makes no call: all of the time is its own. */
static noinline __noclone __used void spin_for(u64 ticks)
{
	u64 start = rdtsc_ordered();

	while (rdtsc_ordered() - start < ticks)
		;
}

static int spin_all(void *unused)
{
	u64 ticks = div_u64((u64)us * tsc_khz, 1000);
	ktime_t next = ktime_get();

	for (;;) {
		next = ktime_add_us(next, period_us);
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		schedule_hrtimeout(&next, HRTIMER_MODE_ABS);
		if (kthread_should_stop())
			break;
		spin_for(ticks);
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

/* Modules may only ask for a priority of 50: the function that sets another is not exported. */
static int set_priority(struct task_struct *thread)
{
	struct kprobe there = { .symbol_name = "sched_setscheduler_nocheck" };
	struct sched_param wanted = { .sched_priority = priority };
	int (*set)(struct task_struct *thread, int policy, const struct sched_param *wanted);
	int error = register_kprobe(&there);

	if (error)
		return error;
	set = (void *)there.addr;
	unregister_kprobe(&there);
	return set(thread, SCHED_FIFO, &wanted);
}

static struct task_struct *thread;

static int __init spin_init(void)
{
	int error;

	thread = kthread_create(spin_all, NULL, "spin");
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	error = set_priority(thread);
	if (error) {
		kthread_stop(thread);
		return error;
	}
	wake_up_process(thread);
	return 0;
}

static void __exit spin_exit(void)
{
	kthread_stop(thread);
}

module_init(spin_init);
module_exit(spin_exit);
MODULE_DESCRIPTION("A thread with a real-time priority that keeps its CPU");
MODULE_LICENSE("GPL");
