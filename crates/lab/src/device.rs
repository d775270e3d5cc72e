//! The devices that a virtual board can have, by name.

use crate::arch::Arch;

/// A device in addition to those that every board has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    /// Its name.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// Boards that can have it.
    pub boards: &'static [Arch],
    /// QEMU's options for it.
    pub options: &'static [&'static str],
    /// Modules that drive it, with their parameters.
    pub modules: &'static [(&'static str, &'static str)],
    /// What to write once the modules are loaded: file and text.
    pub writes: &'static [(&'static str, &'static str)],
    /// The file whose existence shows that the guest has it.
    pub file: &'static str,
    /// Why a repeated run with it may not give the same nanoseconds.
    pub not_exact: Option<&'static str>,
}

const BOTH: &[Arch] = &[Arch::X86_64, Arch::Aarch64];

/// All devices.
pub static DEVICES: &[Device] = &[
    Device {
        name: "parport",
        summary: "a parallel port whose strobe raises interrupt 7",
        boards: &[Arch::X86_64],
        options: &["-chardev", "null,id=parport", "-device", "isa-parallel,chardev=parport"],
        modules: &[("parport", ""), ("parport_pc", "io=0x378 irq=7"), ("ppdev", "")],
        writes: &[],
        file: "/dev/parport0",
        not_exact: None,
    },
    Device {
        name: "edu",
        summary: "a PCI device that raises interrupts on request, driven by UIO",
        boards: BOTH,
        options: &["-device", "edu"],
        modules: &[("uio", ""), ("uio_pci_generic", "")],
        writes: &[("/sys/bus/pci/drivers/uio_pci_generic/new_id", "1234 11e8")],
        file: "/dev/uio0",
        not_exact: None,
    },
    Device {
        name: "serial",
        summary: "a second serial port, with nothing connected",
        boards: &[Arch::X86_64],
        options: &["-chardev", "null,id=serial1", "-device", "isa-serial,chardev=serial1,index=1"],
        modules: &[],
        writes: &[],
        file: "/sys/class/tty/ttyS1/device",
        not_exact: None,
    },
    Device {
        name: "rtc",
        summary: "the real-time clock and its periodic interrupt; part of every board",
        boards: BOTH,
        options: &[],
        modules: &[],
        writes: &[],
        file: "/dev/rtc0",
        not_exact: None,
    },
    Device {
        name: "gpio",
        summary: "a GPIO chip of eight lines, of which line 3 is a button; part of every such board",
        boards: &[Arch::Aarch64],
        options: &[],
        modules: &[],
        writes: &[],
        file: "/dev/gpiochip0",
        not_exact: None,
    },
    Device {
        name: "sound",
        summary: "a dummy sound card (snd-dummy) in the guest",
        boards: BOTH,
        options: &[],
        modules: &[("snd-dummy", "")],
        writes: &[],
        file: "/dev/snd/pcmC0D0p",
        not_exact: None,
    },
    Device {
        name: "disk",
        summary: "a RAM disk in the guest (brd), 32 MiB",
        boards: BOTH,
        options: &[],
        modules: &[("brd", "rd_nr=1 rd_size=32768")],
        writes: &[],
        file: "/dev/ram0",
        not_exact: None,
    },
    Device {
        name: "virtio-disk",
        summary: "a virtio disk, 64 MiB of zeroes; its interrupts depend on the host's speed",
        boards: BOTH,
        options: &[
            "-blockdev",
            "null-co,node-name=disk,size=67108864,read-zeroes=on",
            "-device",
            "virtio-blk-pci,drive=disk",
        ],
        modules: &[("virtio_pci", ""), ("virtio_blk", "")],
        writes: &[],
        file: "/dev/vda",
        not_exact: Some("virtio-disk completes requests in the host's time"),
    },
];

/// The device of that name.
///
/// # Errors
/// A message that lists all devices.
pub fn find(name: &str) -> Result<&'static Device, String> {
    DEVICES.iter().find(|device| device.name == name).ok_or_else(|| {
        let names: Vec<_> = DEVICES.iter().map(|device| device.name).collect();
        format!("no device \"{name}\"; there are: {}", names.join(", "))
    })
}
