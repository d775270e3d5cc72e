//! What a probe, load or cost needs of the board, each need with its test.

use std::path::Path;
use std::time::Duration;

use crate::cgroups::may_limit_memory;
use punctual_sys::affinity;
use punctual_sys::clock::tsc;
use punctual_sys::process::effective_uid;
use punctual_sys::socket::LoopbackEcho;
use punctual_sys::timer::RingTimeout;
use punctual_sys::token::{MessageQueue, system_v};
use punctual_sys::uio::first_edu;

/// A need. If the board does not meet it, the cell is SKIPPED and says why.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    /// The need in words, such as "an invariant TSC (x86)".
    pub what: &'static str,
    /// Whether this board meets it.
    pub met: fn() -> bool,
}

/// An x86 CPU with a constant, invariant time stamp counter.
pub const TSC: Need = Need { what: "an invariant TSC (x86)", met: tsc::is_invariant };

/// Threads that can run at the same time.
pub const TWO_CPUS: Need = Need {
    what: "two CPUs that punctual may run on (taskset, cpuset)",
    met: || affinity::get().is_ok_and(|cpus| cpus.iter().nth(1).is_some()),
};

/// A raw or ping socket for ICMP.
pub const ICMP_SOCKET: Need = Need {
    what: "a raw or ping socket (root, or net.ipv4.ping_group_range)",
    met: || LoopbackEcho::open(Duration::from_secs(1)).is_ok(),
};

/// POSIX message queues.
pub const MESSAGE_QUEUES: Need = Need {
    what: "POSIX message queues: a kernel with CONFIG_POSIX_MQUEUE, and room for one more \
           (ulimit -q, fs.mqueue.queues_max)",
    met: || MessageQueue::new().is_ok(),
};

/// System V semaphores.
pub const SYSTEM_V: Need =
    Need { what: "System V semaphores: a kernel with CONFIG_SYSVIPC", met: system_v::is_supported };

/// Futexes with priority inheritance.
pub const PI_FUTEXES: Need = Need {
    what: "futexes with priority inheritance: a kernel with CONFIG_FUTEX_PI",
    met: punctual_sys::futex::has_pi,
};

/// The kernel's trace.
pub const TRACE: Need = Need {
    what: "tracefs that this user may write to (as root: mount -t tracefs nodev \
           /sys/kernel/tracing; a kernel with CONFIG_EVENT_TRACING)",
    met: || {
        let folders = ["/sys/kernel/tracing/instances", "/sys/kernel/debug/tracing/instances"];
        effective_uid() == 0 && folders.iter().any(|folder| Path::new(folder).is_dir())
    },
};

/// The kernel's log, to write to and to read from.
pub const KERNEL_LOG: Need = Need {
    what: "/dev/kmsg that this user may read and write (root with CAP_SYSLOG), and a \
           kernel.printk_devkmsg that is not off",
    met: || {
        let log = std::fs::OpenOptions::new().read(true).write(true).open("/dev/kmsg");
        let off = std::fs::read("/proc/sys/kernel/printk_devkmsg");
        log.is_ok() && !off.is_ok_and(|set| set.starts_with(b"off"))
    },
};

/// A control group with a limit of memory.
pub const MEMORY_GROUP: Need = Need {
    what: "a control group with the memory controller in which this user may make another (as root: \
           version 2 with memory in its cgroup.subtree_control, or version 1; a kernel with \
           CONFIG_MEMCG)",
    met: may_limit_memory,
};

/// A kernel that survives what the OOM killer is for.
pub const NO_PANIC_ON_OOM: Need = Need {
    what: "a vm.panic_on_oom other than 2",
    met: || !std::fs::read("/proc/sys/vm/panic_on_oom").is_ok_and(|set| set.starts_with(b"2")),
};

/// io_uring.
pub const IO_URING: Need = Need {
    what: "io_uring: Linux 5.5 or later with CONFIG_IO_URING, and kernel.io_uring_disabled=0",
    met: || RingTimeout::new().is_ok(),
};

/// A real-time clock.
pub const REAL_TIME_CLOCK: Need = Need {
    what: "a real-time clock: its driver, and a kernel with CONFIG_RTC_INTF_DEV",
    met: || std::fs::read_dir("/sys/class/rtc").is_ok_and(|mut clocks| clocks.next().is_some()),
};

/// A device that interrupts on request.
pub const EDU: Need = Need {
    what: "a PCI device that interrupts on request: QEMU's edu (-device edu, or punctual lab run)",
    met: || first_edu(Path::new("/sys/bus/pci/devices")).is_some(),
};

/// The first need that this board does not meet, as the reason for a SKIPPED cell.
pub fn unmet(mut needs: impl Iterator<Item = Need>) -> Option<String> {
    needs.find(|need| !(need.met)()).map(|need| format!("needs {}", need.what))
}
