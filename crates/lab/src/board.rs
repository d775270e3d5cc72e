//! Virtual boards, as QEMU's options and the kernel's parameters.
//!
//! With counted time every instruction takes 2^shift ns of the board's clock, and idle time is
//! skipped (`-icount shift=N,sleep=off`, docs/devel/tcg-icount.rst of QEMU). Every other way
//! for the host's time or randomness to get in is closed here; docs/lab.md lists them.

use punctual_core::channel::VirtualBoard;

use crate::arch::Arch;
use crate::device::Device;
use crate::emulator::{Emulator, Version};

/// Possible instructions per microsecond, each with its shift.
pub const RATES: [(u32, u32); 4] = [(125, 3), (250, 2), (500, 1), (1000, 0)];

/// The default rate.
pub const DEFAULT_MIPS: u32 = 250;

/// Default memory, MiB.
pub const DEFAULT_MEMORY_MIB: u32 = 256;

/// Start date of every board, late enough for file times and certificates to make sense.
const DATE: &str = "2020-01-01";

/// The oldest QEMU that starts a second x86 CPU with counted time. 7.2 never leaves the loop in
/// which the first CPU waits for it.
const SEVERAL_X86: Version = (10, 0);

/// Why a board with several CPUs may not repeat: where one's turn ends depends on when QEMU's
/// main loop looks at the guest's clock, and only the turns of one CPU can be recorded.
const TURNS: &str = "QEMU cannot record how several CPUs take turns: a repeat may differ";

/// A board that can be booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardSpec {
    /// Architecture of its CPUs.
    pub arch: Arch,
    /// Number of CPUs.
    pub cpus: u32,
    /// Memory, MiB.
    pub memory_mib: u32,
    /// Instructions per microsecond; `None` lets the guest run freely.
    pub mips: Option<u32>,
    /// Devices in addition to the board's own.
    pub devices: Vec<&'static Device>,
    /// Devices that the plan's probes measure. If the kernel has no driver for one, the probe
    /// is SKIPPED and says so.
    pub measured: Vec<&'static Device>,
}

impl Default for BoardSpec {
    fn default() -> Self {
        Self {
            arch: Arch::X86_64,
            cpus: 1,
            memory_mib: DEFAULT_MEMORY_MIB,
            mips: Some(DEFAULT_MIPS),
            devices: Vec::new(),
            measured: Vec::new(),
        }
    }
}

impl BoardSpec {
    /// Checks that such a board exists.
    ///
    /// # Errors
    /// The first thing that it cannot have, and what it can have instead.
    pub fn check(&self) -> Result<(), String> {
        let most = match (self.arch, self.mips) {
            (Arch::Aarch64, _) | (Arch::X86_64, Some(_)) => 4,
            (Arch::X86_64, None) => 8,
        };
        if self.cpus == 0 || self.cpus > most {
            return Err(format!(
                "--cpus {}: the board {} has 1 to {most} CPUs",
                self.cpus,
                self.arch.name(),
            ));
        }
        if !(16..=65_536).contains(&self.memory_mib) {
            return Err(format!("--memory {} MiB: must be from 16 to 65536", self.memory_mib));
        }
        if self.mips.is_some_and(|mips| shift(mips).is_none()) {
            let rates: Vec<_> = RATES.iter().map(|(mips, _)| mips.to_string()).collect();
            return Err(format!(
                "--mips {}: must be one of {}, since an instruction takes 2^n ns",
                self.mips.unwrap_or_default(),
                rates.join(", ")
            ));
        }
        if let Some(device) = self.devices.iter().find(|d| !d.boards.contains(&self.arch)) {
            let boards: Vec<_> = device.boards.iter().map(|arch| arch.name()).collect();
            return Err(format!(
                "the board {} has no {}; boards that have it: {}",
                self.arch.name(),
                device.name,
                boards.join(", ")
            ));
        }
        Ok(())
    }

    /// Checks that this QEMU has such a board.
    ///
    /// # Errors
    /// What it cannot do, which QEMU can, and how to name that one.
    pub fn check_on(&self, emulator: &Emulator) -> Result<(), String> {
        let needs_newer = self.has_x86_turns() && emulator.number() < SEVERAL_X86;
        if !needs_newer {
            return Ok(());
        }
        Err(format!(
            "--cpus {}: {} {} never starts a second CPU of the board x86_64 while instructions are \
             counted: install QEMU {}.{} or newer (Debian 12: qemu-system-x86 of \
             bookworm-backports), or name one with --qemu; --board aarch64 has several CPUs with \
             this version too",
            self.cpus,
            emulator.program.display(),
            emulator.version,
            SEVERAL_X86.0,
            SEVERAL_X86.1,
        ))
    }

    /// Whether several x86 CPUs take turns by counted instructions.
    fn has_x86_turns(&self) -> bool {
        self.arch == Arch::X86_64 && self.cpus > 1 && self.mips.is_some()
    }

    /// The devices that it has in addition to its built-in ones.
    pub fn all_devices(&self) -> impl Iterator<Item = &'static Device> + '_ {
        self.devices.iter().chain(&self.measured).copied()
    }

    /// QEMU's options except those that name files, for its CPU `cpu`. All of them are recorded.
    #[must_use]
    pub fn options(&self, cpu: &str, seed: u64) -> Vec<String> {
        let mut options: Vec<String> = Vec::new();
        let mut add = |texts: &[&str]| options.extend(texts.iter().map(|text| (*text).to_owned()));
        match self.arch {
            Arch::X86_64 => add(&["-machine", "pc"]),
            Arch::Aarch64 => add(&["-machine", "virt,gic-version=3"]),
        }
        add(&["-cpu", cpu]);
        // One host thread for all CPUs: QEMU has no other mode with counted time.
        add(&["-accel", "tcg,thread=single", "-nodefaults", "-display", "none", "-no-reboot"]);
        add(&["-rtc", &format!("base={DATE},clock=vm")]);
        add(&["-m", &self.memory_mib.to_string(), "-smp", &self.cpus.to_string()]);
        if let Some(shift) = self.mips.and_then(shift) {
            let record = if self.is_recorded() { ",rr=record,rrfile=/dev/null" } else { "" };
            add(&["-icount", &format!("shift={shift},sleep=off{record}")]);
            add(&["-seed", &seed.to_string()]);
        }
        match self.arch {
            Arch::X86_64 => add(&["-device", "isa-debugcon,iobase=0xe9,chardev=channel"]),
            Arch::Aarch64 => add(&[
                "-semihosting-config",
                "enable=on,userspace=on,target=native,chardev=channel",
            ]),
        }
        self.all_devices().for_each(|device| add(device.options));
        options
    }

    /// Whether QEMU records, although nobody replays. Recording keeps its main loop from
    /// reading the guest's clock in the middle of a stretch of instructions; otherwise the
    /// main loop may find a CPU idle whose last instructions are not counted yet, and skip
    /// them twice. The price: while QEMU records, it never completes requests to a disk that
    /// the host serves.
    fn is_recorded(&self) -> bool {
        self.cpus == 1 && self.all_devices().all(|device| device.not_exact.is_none())
    }

    /// Whether QEMU must stay on one host CPU. It cannot record a board with several CPUs, but
    /// on one host CPU its main loop is usually idle again when the guest goes on.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.mips.is_some() && !self.is_recorded()
    }

    /// The kernel's command line, with `extra` appended.
    #[must_use]
    pub fn parameters(&self, extra: &[String]) -> String {
        let console = match self.arch {
            Arch::X86_64 => "ttyS0",
            Arch::Aarch64 => "ttyAMA0",
        };
        // Addresses are not randomised, so that only the seed varies. A panic ends QEMU after
        // one second. Only warnings and worse go to the console, because its interrupts would
        // be part of the measurement.
        let mut text = format!("console={console} loglevel=4 nokaslr norandmaps panic=1");
        // Linux does not trust the TSCs of several such CPUs to agree, and would read the HPET,
        // a device. Here all of them count the board's time.
        if self.has_x86_turns() {
            text.push_str(" tsc=reliable");
        }
        for parameter in extra {
            text.push(' ');
            text.push_str(parameter);
        }
        text
    }

    /// What the guest must know about its board.
    #[must_use]
    pub fn virtual_board(&self) -> VirtualBoard {
        VirtualBoard {
            mips: self.mips.map(u64::from),
            cpus: u64::from(self.cpus),
            turn_wait_ns: None,
        }
    }

    /// Why a repeated run may not give the same nanoseconds.
    #[must_use]
    pub fn not_exact(&self) -> Vec<String> {
        let free = self.mips.is_none().then(|| "time is not counted".to_owned());
        let turns = (self.mips.is_some() && self.cpus > 1).then(|| TURNS.to_owned());
        let devices = self.all_devices().filter_map(|device| device.not_exact.map(str::to_owned));
        free.into_iter().chain(turns).chain(devices).collect()
    }

    /// The board in words, such as `x86_64, 1 CPU, 256 MiB, 250 instructions/us`.
    #[must_use]
    pub fn words(&self) -> String {
        let cpus = if self.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", self.cpus) };
        let time = match self.mips {
            Some(mips) => format!("{mips} instructions/us"),
            None => "free-running".to_owned(),
        };
        let mut text = format!("{}, {cpus}, {} MiB, {time}", self.arch.name(), self.memory_mib);
        for device in self.all_devices() {
            text.push_str(", ");
            text.push_str(device.name);
        }
        text
    }
}

fn shift(mips: u32) -> Option<u32> {
    RATES.iter().find(|(rate, _)| *rate == mips).map(|(_, shift)| *shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{DEVICES, find};
    use crate::testing::emulator;

    fn board() -> BoardSpec {
        BoardSpec::default()
    }

    #[test]
    fn boards_have_what_they_can_have() {
        board().check().unwrap();
        let wrong = |board: BoardSpec, text: &str| {
            let error = board.check().unwrap_err();
            assert!(error.contains(text), "{error}");
        };
        BoardSpec { cpus: 4, ..board() }.check().unwrap();
        wrong(BoardSpec { cpus: 5, ..board() }, "the board x86_64 has 1 to 4 CPUs");
        BoardSpec { cpus: 8, mips: None, ..board() }.check().unwrap();
        BoardSpec { cpus: 4, arch: Arch::Aarch64, ..board() }.check().unwrap();
        wrong(BoardSpec { cpus: 5, arch: Arch::Aarch64, ..board() }, "1 to 4 CPUs");
        wrong(BoardSpec { cpus: 0, ..board() }, "--cpus 0");
        wrong(BoardSpec { mips: Some(300), ..board() }, "125, 250, 500, 1000");
        wrong(BoardSpec { memory_mib: 8, ..board() }, "must be from 16");
        let parport = vec![find("parport").unwrap()];
        wrong(
            BoardSpec { arch: Arch::Aarch64, devices: parport, ..board() },
            "has no parport; boards that have it: x86_64",
        );
        assert!(find("modem").unwrap_err().contains("parport, edu"));
    }

    #[test]
    fn several_x86_cpus_need_a_newer_qemu_and_their_tsc() {
        let on = |version: &str, board: &BoardSpec| {
            board.check_on(&Emulator { program: "/opt/qemu".into(), ..emulator(version) })
        };
        let two = BoardSpec { cpus: 2, ..board() };
        let error = on("7.2.22 (Debian)", &two).unwrap_err();
        assert!(error.contains("/opt/qemu 7.2.22 (Debian) never starts"), "{error}");
        assert!(error.contains("QEMU 10.0 or newer") && error.contains("--qemu"), "{error}");
        on("9.2.4", &two).unwrap_err();
        on("10.0.2 (Debian)", &two).unwrap();
        assert!(two.parameters(&[]).ends_with("panic=1 tsc=reliable"));
        let free = BoardSpec { mips: None, ..two.clone() };
        let arm = BoardSpec { arch: Arch::Aarch64, ..two };
        for other in [board(), free, arm] {
            on("7.2.22", &other).unwrap();
            assert!(!other.parameters(&[]).contains("tsc="));
        }
    }

    #[test]
    fn the_seed_and_the_rate_are_options() {
        let text = board().options("max", 7).join(" ");
        assert!(
            text.contains("-icount shift=2,sleep=off,rr=record,rrfile=/dev/null -seed 7"),
            "{text}"
        );
        let free = BoardSpec { mips: None, ..board() };
        assert!(!free.options("max", 7).join(" ").contains("icount"));
        assert_eq!(free.not_exact(), ["time is not counted"]);
        let several = BoardSpec { arch: Arch::Aarch64, cpus: 2, ..board() };
        assert_eq!(several.not_exact(), [TURNS]);
    }

    #[test]
    fn devices_that_break_exactness_say_so() {
        for device in DEVICES {
            let with = BoardSpec { devices: vec![device], ..board() };
            assert_eq!(with.not_exact().is_empty(), device.not_exact.is_none());
            let recorded = with.options("max", 1).join(" ").contains("rr=record");
            assert_eq!(recorded, device.not_exact.is_none());
            // Requests of a virtual disk are served by the host.
            assert_eq!(
                device.options.iter().any(|o| o.contains("virtio")),
                device.not_exact.is_some()
            );
        }
    }
}
