// SPDX-License-Identifier: GPL-2.0
/*
 * Known culprits, one after the other, every `period_us`: the first has the CPU for `first_us`,
 * the second for `second_us`. Tests load it into virtual boards to see whether what explains a late
 * wake-up tells each with its own length.
 *
 * kind=softirq   a softirq, then a thread with SCHED_FIFO 98 that was woken before
 * kind=preempt   preemption off, then interrupts too
 * kind=timers    two timers that expire at the same time, called by one interrupt
 */
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irqflags.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <uapi/linux/sched/types.h>
#include <asm/msr.h>
#include <asm/tsc.h>

static char *kind = "softirq";
module_param(kind, charp, 0444);
MODULE_PARM_DESC(kind, "softirq, preempt or timers");

static unsigned int first_us = 1500;
module_param(first_us, uint, 0444);
MODULE_PARM_DESC(first_us, "how long the first keeps its CPU, microseconds");

static unsigned int second_us = 900;
module_param(second_us, uint, 0444);
MODULE_PARM_DESC(second_us, "how long the second keeps its CPU, microseconds");

static unsigned int period_us = 97000;
module_param(period_us, uint, 0444);
MODULE_PARM_DESC(period_us, "time between the beginnings of two of these, microseconds");

/* A part of the functions below, and makes no call: all of the time is theirs. */
static __always_inline void spin(unsigned int us)
{
	u64 ticks = div_u64((u64)us * tsc_khz, 1000);
	u64 start = rdtsc_ordered();

	while (rdtsc_ordered() - start < ticks)
		;
}

/* These keep their names in the table of symbols. */
static noinline __noclone __used void compound_flood(struct tasklet_struct *unused)
{
	spin(first_us);
}

static noinline __noclone __used void compound_spin(void)
{
	spin(second_us);
}

static noinline __noclone __used void compound_irqs_off(void)
{
	local_irq_disable();
	spin(second_us);
	local_irq_enable();
}

static noinline __noclone __used void compound_preempt_off(void)
{
	preempt_disable();
	spin(first_us);
	compound_irqs_off();
	preempt_enable();
}

static DECLARE_TASKLET(flood, compound_flood);
static struct task_struct *thread;
static bool is_due;
static struct hrtimer timers[2];

static enum hrtimer_restart again(struct hrtimer *expired)
{
	hrtimer_forward(expired, hrtimer_get_expires(expired), ns_to_ktime(period_us * 1000ULL));
	return HRTIMER_RESTART;
}

static noinline __noclone __used enum hrtimer_restart compound_first(struct hrtimer *expired)
{
	spin(first_us);
	return again(expired);
}

static noinline __noclone __used enum hrtimer_restart compound_second(struct hrtimer *expired)
{
	spin(second_us);
	return again(expired);
}

/* Its softirq runs on the way out of this interrupt, before the thread. */
static enum hrtimer_restart compound_begin(struct hrtimer *expired)
{
	WRITE_ONCE(is_due, true);
	wake_up_process(thread);
	tasklet_schedule(&flood);
	return again(expired);
}

static int spin_all(void *unused)
{
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		if (READ_ONCE(is_due)) {
			__set_current_state(TASK_RUNNING);
			WRITE_ONCE(is_due, false);
			compound_spin();
			continue;
		}
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static int hold_all(void *unused)
{
	ktime_t next = ktime_get();

	for (;;) {
		next = ktime_add_us(next, period_us);
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		schedule_hrtimeout(&next, HRTIMER_MODE_ABS);
		if (kthread_should_stop())
			break;
		compound_preempt_off();
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

/* Modules may only ask for a priority of 50: the function that sets another is not exported. */
static int set_priority(struct task_struct *thread)
{
	struct kprobe there = { .symbol_name = "sched_setscheduler_nocheck" };
	struct sched_param wanted = { .sched_priority = 98 };
	int (*set)(struct task_struct *thread, int policy, const struct sched_param *wanted);
	int error = register_kprobe(&there);

	if (error)
		return error;
	set = (void *)there.addr;
	unregister_kprobe(&there);
	return set(thread, SCHED_FIFO, &wanted);
}

static int begin(int (*all)(void *unused), const char *name, bool is_first)
{
	int error = 0;

	thread = kthread_create(all, NULL, name);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	if (is_first)
		error = set_priority(thread);
	if (error) {
		kthread_stop(thread);
		return error;
	}
	wake_up_process(thread);
	return 0;
}

static void set(size_t number, enum hrtimer_restart (*function)(struct hrtimer *), ktime_t at)
{
	hrtimer_init(&timers[number], CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	timers[number].function = function;
	hrtimer_start(&timers[number], at, HRTIMER_MODE_ABS_PINNED_HARD);
}

static int __init compound_init(void)
{
	ktime_t at = ktime_add_us(ktime_get(), period_us);
	int error;

	if (!strcmp(kind, "softirq")) {
		error = begin(spin_all, "fifo98", true);
		if (error)
			return error;
		set(0, compound_begin, at);
		return 0;
	}
	if (!strcmp(kind, "preempt"))
		return begin(hold_all, "hold", false);
	if (strcmp(kind, "timers")) {
		pr_err("compound: kind=%s is not one of softirq, preempt and timers\n", kind);
		return -EINVAL;
	}
	set(0, compound_first, at);
	set(1, compound_second, at);
	return 0;
}

static void __exit compound_exit(void)
{
	size_t number;

	for (number = 0; number < ARRAY_SIZE(timers); number++)
		if (timers[number].function)
			hrtimer_cancel(&timers[number]);
	tasklet_kill(&flood);
	if (thread)
		kthread_stop(thread);
}

module_init(compound_init);
module_exit(compound_exit);
MODULE_DESCRIPTION("Known culprits one after the other");
MODULE_LICENSE("GPL");
