// SPDX-License-Identifier: GPL-2.0
/*
 * A known delay: a hard interrupt that keeps its CPU for `us` microseconds, every `period_us`.
 * Tests load it into virtual boards to see whether a measurement finds it.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/module.h>

static unsigned int us = 300;
module_param(us, uint, 0444);
MODULE_PARM_DESC(us, "length of the delay, microseconds");

static unsigned int period_us = 97000;
module_param(period_us, uint, 0444);
MODULE_PARM_DESC(period_us, "time between two delays, microseconds");

static struct hrtimer timer;

static enum hrtimer_restart late(struct hrtimer *expired)
{
	u64 until = ktime_get_ns() + us * 1000ULL;

	while (ktime_get_ns() < until)
		cpu_relax();
	hrtimer_forward(expired, hrtimer_get_expires(expired), ns_to_ktime(period_us * 1000ULL));
	return HRTIMER_RESTART;
}

static int __init late_init(void)
{
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	timer.function = late;
	hrtimer_start(&timer, ns_to_ktime(period_us * 1000ULL), HRTIMER_MODE_REL_PINNED_HARD);
	return 0;
}

static void __exit late_exit(void)
{
	hrtimer_cancel(&timer);
}

module_init(late_init);
module_exit(late_exit);
MODULE_DESCRIPTION("A hard interrupt of a known length");
MODULE_LICENSE("GPL");
