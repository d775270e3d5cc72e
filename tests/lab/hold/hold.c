// SPDX-License-Identifier: GPL-2.0
/*
 * Known sections: a thread of the kernel that holds off interrupts, holds off preemption, and
 * holds a raw spinlock, for 50, 200 and 800 us each, and all nine of them in every `period_ms`.
 * Tests load it into virtual boards of x86_64 to see whether what watches them finds the
 * sections, their lengths and their functions.
 *
 * The module measures each section itself, from within. It shows this in its parameter `held`,
 * and prints it when it is unloaded and when the machine goes down.
 */
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/reboot.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#define LEAST_PERIOD_MS 10
#define MOST_US 500000

static unsigned int period_ms = 97;
module_param(period_ms, uint, 0444);
MODULE_PARM_DESC(period_ms, "time in which each section comes once, milliseconds (at least 10)");

static char *only = "";
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "hold only this: irqs_off, preempt_off or spinlock");

static unsigned int longest_us = 800;
module_param(longest_us, uint, 0444);
MODULE_PARM_DESC(longest_us, "length of the longest section of each kind, microseconds (1 to 500000)");

static DEFINE_RAW_SPINLOCK(lock);

/*
 * Reads the clock until so many ticks have passed, and returns how many have. It makes no call,
 * and is a part of the functions below.
 */
static __always_inline u64 spin(u64 ticks)
{
	u64 start = rdtsc_ordered();
	u64 passed;

	do
		passed = rdtsc_ordered() - start;
	while (passed < ticks);
	return passed;
}

static __always_inline u64 ticks_of(unsigned int us)
{
	return div_u64((u64)us * tsc_khz, 1000);
}

/*
 * These keep their names in the table of symbols: neither inlined nor copied for a constant. Each
 * returns the ticks between its first and its last reading of the clock.
 */
static noinline __noclone __used u64 hold_irqs_off(unsigned int us)
{
	u64 ticks = ticks_of(us);

	local_irq_disable();
	ticks = spin(ticks);
	local_irq_enable();
	return ticks;
}

/* Interrupts that arrive are part of it: it ends by the clock. */
static noinline __noclone __used u64 hold_preempt_off(unsigned int us)
{
	u64 ticks = ticks_of(us);

	preempt_disable();
	ticks = spin(ticks);
	preempt_enable();
	return ticks;
}

static noinline __noclone __used u64 hold_spinlock(unsigned int us)
{
	u64 ticks = ticks_of(us);
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	ticks = spin(ticks);
	raw_spin_unlock_irqrestore(&lock, flags);
	return ticks;
}

static const struct kind {
	const char *name;
	u64 (*hold)(unsigned int us);
} kinds[] = {
	{ "irqs_off", hold_irqs_off },
	{ "preempt_off", hold_preempt_off },
	{ "spinlock", hold_spinlock },
};

static unsigned int lengths[] = { 50, 200, 800 };

#define SECTIONS (ARRAY_SIZE(kinds) * ARRAY_SIZE(lengths))

/* What was held, in ticks. Only the thread writes it. */
static struct {
	u64 last;
	u64 most;
	u64 count;
} held[SECTIONS];

static const struct kind *kind_of(size_t section)
{
	return &kinds[section / ARRAY_SIZE(lengths)];
}

static unsigned int length_of(size_t section)
{
	return lengths[section % ARRAY_SIZE(lengths)];
}

static bool chosen(const struct kind *kind)
{
	return !*only || !strcmp(only, kind->name);
}

static u64 ns_of(u64 ticks)
{
	return div_u64(ticks * 1000000, tsc_khz);
}

/* The row of a section, such as "irqs_off 50 us: 20 times, last 50036 ns, most 50044 ns". */
static int row(char *text, size_t size, size_t section)
{
	return scnprintf(text, size, "%s %u us: %llu times, last %llu ns, most %llu ns\n",
			 kind_of(section)->name, length_of(section),
			 READ_ONCE(held[section].count), ns_of(READ_ONCE(held[section].last)),
			 ns_of(READ_ONCE(held[section].most)));
}

static int held_get(char *text, const struct kernel_param *parameter)
{
	int size = 0;
	size_t section;

	for (section = 0; section < SECTIONS; section++)
		if (chosen(kind_of(section)))
			size += row(text + size, PAGE_SIZE - size, section);
	return size;
}

/* The kernel calls it without asking whether it is there. */
static int held_set(const char *text, const struct kernel_param *parameter)
{
	return -EPERM;
}

static const struct kernel_param_ops held_ops = { .set = held_set, .get = held_get };
module_param_cb(held, &held_ops, NULL, 0444);
MODULE_PARM_DESC(held, "what was held (to be read only)");

static void print(void)
{
	char text[128];
	size_t section;

	for (section = 0; section < SECTIONS; section++) {
		if (!chosen(kind_of(section)))
			continue;
		row(text, sizeof(text), section);
		pr_info("hold: %s", text);
	}
}

static void hold(size_t section)
{
	u64 ticks = kind_of(section)->hold(length_of(section));

	/* Where preemption was asked for and the model has none in the kernel. */
	cond_resched();
	WRITE_ONCE(held[section].last, ticks);
	WRITE_ONCE(held[section].most, max(held[section].most, ticks));
	WRITE_ONCE(held[section].count, held[section].count + 1);
}

static int hold_all(void *unused)
{
	u64 period = period_ms * (u64)NSEC_PER_MSEC;
	u64 between = div_u64(period, *only ? ARRAY_SIZE(lengths) : SECTIONS);
	ktime_t next = ktime_get();
	size_t section = 0;

	for (;;) {
		if (chosen(kind_of(section))) {
			/* What a busy CPU delayed is not made up for. */
			next = ktime_add_ns(next, between);
			if (ktime_before(next, ktime_get()))
				next = ktime_get();
			set_current_state(TASK_INTERRUPTIBLE);
			if (kthread_should_stop())
				break;
			schedule_hrtimeout(&next, HRTIMER_MODE_ABS);
			if (kthread_should_stop())
				break;
			hold(section);
		}
		section = (section + 1) % SECTIONS;
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static int going_down(struct notifier_block *block, unsigned long event, void *unused)
{
	print();
	return NOTIFY_DONE;
}

static struct notifier_block down = { .notifier_call = going_down };
static struct task_struct *thread;

static int __init hold_init(void)
{
	size_t kind;
	int error;

	for (kind = 0; kind < ARRAY_SIZE(kinds); kind++)
		if (chosen(&kinds[kind]))
			break;
	if (kind == ARRAY_SIZE(kinds)) {
		pr_err("hold: only=%s is not one of irqs_off, preempt_off and spinlock\n", only);
		return -EINVAL;
	}
	if (period_ms < LEAST_PERIOD_MS) {
		pr_err("hold: period_ms must be at least %u\n", LEAST_PERIOD_MS);
		return -EINVAL;
	}
	if (longest_us < 1 || longest_us > MOST_US) {
		pr_err("hold: longest_us must be 1 to %u\n", MOST_US);
		return -EINVAL;
	}
	lengths[ARRAY_SIZE(lengths) - 1] = longest_us;
	if (!tsc_khz) {
		pr_err("hold: the time stamp counter is of no use here\n");
		return -ENODEV;
	}
	error = register_reboot_notifier(&down);
	if (error)
		return error;
	thread = kthread_run(hold_all, NULL, "hold");
	if (IS_ERR(thread)) {
		unregister_reboot_notifier(&down);
		return PTR_ERR(thread);
	}
	return 0;
}

static void __exit hold_exit(void)
{
	kthread_stop(thread);
	unregister_reboot_notifier(&down);
	print();
}

module_init(hold_init);
module_exit(hold_exit);
MODULE_DESCRIPTION("Sections of known lengths that hold off interrupts or preemption");
MODULE_LICENSE("GPL");
