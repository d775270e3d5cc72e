// SPDX-License-Identifier: GPL-2.0
/*
 * A known storm: the interrupt of QEMU's device edu (docs/specs/edu.rst), `times` times back to
 * back, each handled for `us` microseconds, every `period_us`. Tests load it into virtual boards
 * to see whether what explains a late wake-up tells the handler.
 */
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sched.h>
#include <asm/msr.h>
#include <asm/tsc.h>

/* Registers of the device. */
#define STATUS 0x24
#define RAISE 0x60
#define ACKNOWLEDGE 0x64

static unsigned int us = 10;
module_param(us, uint, 0444);
MODULE_PARM_DESC(us, "how long each interrupt is handled, microseconds");

static unsigned int times = 50;
module_param(times, uint, 0444);
MODULE_PARM_DESC(times, "interrupts of a storm");

static unsigned int period_us = 97000;
module_param(period_us, uint, 0444);
MODULE_PARM_DESC(period_us, "time between the beginnings of two storms, microseconds");

static bool fifo;
module_param(fifo, bool, 0444);
MODULE_PARM_DESC(fifo, "whether the thread that begins storms is a real-time one, of priority 50");

static void __iomem *registers;
static struct task_struct *thread;
/* Interrupts that are still to come. Only one handler runs at a time. */
static unsigned int left;

static irqreturn_t storm_handler(int number, void *device)
{
	u64 start = rdtsc_ordered();
	u64 ticks = div_u64((u64)us * tsc_khz, 1000);
	u32 status = readl(registers + STATUS);

	if (!status)
		return IRQ_NONE;
	writel(status, registers + ACKNOWLEDGE);
	while (rdtsc_ordered() - start < ticks)
		;
	if (--left)
		writel(1, registers + RAISE);
	return IRQ_HANDLED;
}

static int storm_all(void *unused)
{
	ktime_t next = ktime_get();

	if (fifo)
		sched_set_fifo(current);
	for (;;) {
		next = ktime_add_us(next, period_us);
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		schedule_hrtimeout(&next, HRTIMER_MODE_ABS);
		if (kthread_should_stop())
			break;
		left = times;
		writel(1, registers + RAISE);
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static int storm_probe(struct pci_dev *device, const struct pci_device_id *id)
{
	int error = pcim_enable_device(device);

	if (error)
		return error;
	registers = pcim_iomap(device, 0, 0);
	if (!registers)
		return -ENOMEM;
	error = devm_request_irq(&device->dev, device->irq, storm_handler, IRQF_SHARED, "storm",
				 device);
	if (error)
		return error;
	thread = kthread_run(storm_all, NULL, "storm");
	return PTR_ERR_OR_ZERO(thread);
}

static void storm_remove(struct pci_dev *device)
{
	kthread_stop(thread);
}

static const struct pci_device_id devices[] = { { PCI_DEVICE(0x1234, 0x11e8) }, {} };
MODULE_DEVICE_TABLE(pci, devices);

static struct pci_driver storm = {
	.name = "storm",
	.id_table = devices,
	.probe = storm_probe,
	.remove = storm_remove,
};

module_pci_driver(storm);
MODULE_DESCRIPTION("Interrupts back to back");
MODULE_LICENSE("GPL");
