//! `uio`: from a device's interrupt request to its driver in user space.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use punctual_core::schema::Tells;
use punctual_core::units::BareNumber;
use punctual_sys::error::text;
use punctual_sys::uio::{EDU_IDS, Edu, first_edu, is_edu};

use super::pair::{Pair, Posts, Waits};
use crate::knobs::Journal;
use crate::registry::need::EDU;
use crate::registry::probe::{
    By, Closed, Companion, CounterEntry, Pace, Primary, ProbeEntry, ProbeThread, Session, Stage,
    State,
};
use crate::registry::{Choice, Default, Kind, Param, Values};

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "uio",
    summary: "a device's interrupt to a driver in user space",
    help: "A driver in user space (UIO) waits in a read for the interrupt of a PCI device. Another \
thread, of real-time priority 1 (policy other: none), reads the clock and writes the register with which \
the device raises it; the driver reads the clock when its read returns and records now - request. Then \
it acknowledges the interrupt in the device, lets the next one through, and answers; after a pause the \
next request follows. The device must be able to interrupt on request: QEMU's edu, which lab boards \
have for this probe (elsewhere: qemu -device edu), under uio_pci_generic. A device without a driver is \
bound to it, and given back afterwards.",
    params: &[
        Param {
            name: "device",
            kind: Kind::Or(
                &[Choice::of(AUTO, "the first edu")],
                &Kind::Text { value: "ADDRESS", check: check_address },
            ),
            default: Default::Value(AUTO),
            help: "PCI address, such as 0000:00:04.0",
        },
        Param {
            name: "pause",
            kind: Kind::Time { bare: BareNumber::Microseconds, low: 0, high: 3_600_000_000_000 },
            default: Default::Value("1ms"),
            help: "from an answer to the next request",
        },
    ],
    overrides: &[],
    without: &[],
    check,
    needs: &[EDU],
    device: Some("edu"),
    pace: Pace::BackToBack,
    dithers: |_| false,
    primary: Primary {
        name: "latency",
        meaning: "the driver's read has returned minus the request of the interrupt",
        nouns: ("interrupt", "interrupts"),
        by: By::Thread,
    },
    series: &[],
    counters: &[
        CounterEntry {
            name: "lost",
            meaning: "interrupts that the kernel counted but no read returned for, with the warm-up",
            tells: Tells::Nothing,
        },
        CounterEntry {
            name: "unanswered",
            meaning: "requests that the driver had not served at the end",
            tells: Tells::Nothing,
        },
    ],
    state: State::There(open),
};

const AUTO: &str = "auto";
const DRIVER: &str = "uio_pci_generic";

/// An address is part of paths.
fn check_address(address: &str) -> Result<(), String> {
    let is_one = !address.is_empty()
        && address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':' || byte == b'.')
        && address.bytes().any(|byte| byte == b':');
    if is_one { Ok(()) } else { Err("needs a PCI address such as 0000:00:04.0".to_owned()) }
}

fn check(values: &Values) -> Result<(), String> {
    if values.known_number("threads") != Some(1) {
        let why = "the probe needs the device for itself, so it has one thread";
        return Err(values.wrong("threads", why));
    }
    Ok(())
}

fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    let (device, pause_ns) = (values.text("device"), values.number("pause"));
    let (policy, priority) = stage.scheduling;
    if policy.is_real_time() && priority < 2 {
        return Err(
            "the driver needs a priority above 1, that of the thread that requests".to_owned()
        );
    }
    let folder = found(Path::new("/sys/bus/pci/devices"), device)?;
    let uio = bound(&folder, stage.journal)?;
    let edu = Edu::open(&folder, &uio).map_err(|error| {
        format!(
            "cannot drive {} through {}: {}; it takes root, a kernel that is not locked down, and no \
             other program that has it",
            folder.display(),
            uio.display(),
            text(&error)
        )
    })?;
    let pair = Pair::new(edu).map_err(|error| text(&error))?;
    // Above the threads that serve interrupts with PREEMPT_RT it would be in their way.
    let below = priority.saturating_sub(1);
    Ok(Box::new(Driven { pair: Arc::new(pair), pause_ns, below, break_ns: stage.break_ns }))
}

/// The folder of the device at an address, or of the first one.
fn found(devices: &Path, address: &str) -> Result<PathBuf, String> {
    if address != AUTO {
        let folder = devices.join(address);
        return if is_edu(&folder) {
            Ok(folder)
        } else {
            Err(format!("{address} is no device edu ({}): see lspci -nn", EDU_IDS.join(":")))
        };
    }
    first_edu(devices).ok_or_else(|| format!("there is no device edu ({})", EDU_IDS.join(":")))
}

/// The UIO device of a PCI device, which is bound to its driver if it has none.
fn bound(folder: &Path, journal: &mut Journal) -> Result<PathBuf, String> {
    let driver = || Some(fs::read_link(folder.join("driver")).ok()?.file_name()?.to_owned());
    match driver() {
        Some(name) if name == DRIVER => {}
        Some(name) => {
            let (folder, name) = (folder.display(), name.display());
            return Err(format!("{folder} has the driver {name}; unbind it from that first"));
        }
        None if !folder.join("subsystem/drivers").join(DRIVER).exists() => {
            return Err(format!("the kernel's driver for UIO is not there: modprobe {DRIVER}"));
        }
        None if is_reserved(folder) => {
            return Err(format!(
                "{} is kept for another driver (driver_override)",
                folder.display()
            ));
        }
        None => journal.bind(folder, DRIVER).map_err(|error| text(&error))?,
    }
    let mut made = fs::read_dir(folder.join("uio")).into_iter().flatten().flatten();
    let made = made.next().ok_or_else(|| format!("{DRIVER} has made no UIO device"))?;
    Ok(Path::new("/dev").join(made.file_name()))
}

/// Whether somebody has said which driver it may have.
fn is_reserved(folder: &Path) -> bool {
    let text = fs::read_to_string(folder.join("driver_override")).unwrap_or_default();
    !["", "(null)", DRIVER].contains(&text.trim())
}

struct Driven {
    pair: Arc<Pair<Edu>>,
    pause_ns: u64,
    /// By how much the priority of the thread that requests is below that of the driver.
    below: u32,
    break_ns: i64,
}

impl Session for Driven {
    fn thread(&mut self, _: u32) -> Result<Box<dyn ProbeThread>, String> {
        Ok(Box::new(Waits { pair: Arc::clone(&self.pair), break_ns: self.break_ns }))
    }

    fn helpers(&mut self) -> Vec<Companion> {
        let posts = Posts { pair: Arc::clone(&self.pair), pause_ns: self.pause_ns };
        vec![Companion {
            of: 0,
            below: self.below,
            cpu: None,
            name: "requests the interrupts".to_owned(),
            helper: Box::new(posts),
        }]
    }

    fn longest_pause_ns(&self) -> u64 {
        self.pause_ns
    }

    fn close(self: Box<Self>) -> Closed {
        let Pair { token, course, .. } = &*self.pair;
        Closed { counts: vec![token.lost(), course.unanswered()], notes: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{DirBuilderExt, symlink};

    #[test]
    fn an_address_leads_nowhere_else() {
        for address in ["0000:00:04.0", "04:00.1", "10000:e1:00.0"] {
            assert_eq!(check_address(address), Ok(()));
        }
        for wrong in ["", "..", ".", "4", "../0000:00:04.0", "0000:00:04.0/x", "eth0"] {
            assert!(check_address(wrong).is_err(), "{wrong}");
        }
    }

    /// A tree as sysfs has it, with an `edu` without a driver.
    struct Tree {
        folder: PathBuf,
        edu: PathBuf,
    }

    impl Tree {
        fn new(name: &str) -> Self {
            let name = format!("punctual-uio-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let edu = folder.join("devices/0000:00:04.0");
            let other = folder.join("devices/0000:00:03.0");
            for (device, id) in [(&edu, "0x11e8"), (&other, "0x1001")] {
                fs::create_dir_all(device).unwrap();
                fs::write(device.join("vendor"), "0x1234\n").unwrap();
                fs::write(device.join("device"), format!("{id}\n")).unwrap();
            }
            fs::write(edu.join("driver_override"), "(null)\n").unwrap();
            symlink("../..", edu.join("subsystem")).unwrap();
            Self { folder, edu }
        }

        fn add_driver(&self) -> PathBuf {
            let driver = self.folder.join("drivers").join(DRIVER);
            fs::create_dir_all(&driver).unwrap();
            fs::write(driver.join("bind"), "").unwrap();
            fs::write(driver.join("unbind"), "").unwrap();
            driver
        }

        fn journal(&self) -> Journal {
            let folder = self.folder.join("journal");
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).unwrap();
            Journal::in_folder(&folder).unwrap()
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    #[test]
    fn the_first_device_is_found_or_the_one_at_an_address() {
        let tree = Tree::new("found");
        let devices = tree.folder.join("devices");
        assert_eq!(found(&devices, AUTO).as_ref(), Ok(&tree.edu));
        assert_eq!(found(&devices, "0000:00:04.0").as_ref(), Ok(&tree.edu));
        for none in ["0000:00:03.0", "0000:00:05.0"] {
            assert!(found(&devices, none).unwrap_err().contains("no device edu"));
        }
        fs::remove_dir_all(&tree.edu).unwrap();
        assert!(found(&devices, AUTO).unwrap_err().contains("no device edu"));
    }

    #[test]
    fn a_device_without_a_driver_is_bound_and_given_back() {
        let tree = Tree::new("bound");
        let mut journal = tree.journal();
        let refused = bound(&tree.edu, &mut journal).unwrap_err();
        assert!(refused.ends_with("modprobe uio_pci_generic"), "{refused}");
        let driver = tree.add_driver();
        // What the kernel makes of it.
        fs::create_dir_all(tree.edu.join("uio/uio3")).unwrap();
        assert_eq!(bound(&tree.edu, &mut journal).unwrap(), Path::new("/dev/uio3"));
        let text = |path: PathBuf| fs::read_to_string(path).unwrap();
        assert_eq!(text(tree.edu.join("driver_override")), DRIVER);
        assert_eq!(text(driver.join("bind")), "0000:00:04.0");
        symlink(&driver, tree.edu.join("driver")).unwrap();
        // One that is bound already is not bound by this process, nor taken from the driver.
        let mut another = tree.journal();
        assert_eq!(bound(&tree.edu, &mut another).unwrap(), Path::new("/dev/uio3"));
        assert_eq!(another.undo(), [""; 0]);
        assert_eq!(text(driver.join("unbind")), "");
        assert_eq!(journal.undo(), [""; 0]);
        assert_eq!(text(driver.join("unbind")), "0000:00:04.0");
        assert_eq!(text(tree.edu.join("driver_override")).trim(), "");
    }

    #[test]
    fn a_device_of_another_driver_is_left_alone() {
        let tree = Tree::new("other");
        tree.add_driver();
        let mut journal = tree.journal();
        fs::write(tree.edu.join("driver_override"), "vfio-pci\n").unwrap();
        assert!(bound(&tree.edu, &mut journal).unwrap_err().contains("driver_override"));
        symlink("../drivers/vfio-pci", tree.edu.join("driver")).unwrap();
        assert!(bound(&tree.edu, &mut journal).unwrap_err().contains("the driver vfio-pci"));
    }
}
