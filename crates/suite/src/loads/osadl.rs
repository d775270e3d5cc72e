//! The mid-range load of OSADL's farm.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use punctual_core::units::BareNumber;
use punctual_sys::region::Region;

use crate::harness::worker::{LoadError, Worker};
use crate::registry::load::{Form, LoadEntry, Machine, Owns, PartForm, SCRATCH_DIR};
use crate::registry::room::{self, RESERVE};
use crate::registry::{Default, Kind, Param, Values};

const NETWORK: usize = 0;
const DISK: usize = 1;
const MEMORY: usize = 2;
/// How often it works: each time as much as the rates allow.
const TICK: Duration = Duration::from_millis(10);
/// What it may be behind, at most: it does not make up for a disk that was slow for long.
const BEHIND_NS: u128 = 100_000_000;
const PACKET: usize = 1250;
/// The file is written from its start again once it has this size.
const FILE: u64 = 4 << 20;

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "osadl",
    summary: "1 Mbit/s of network, 1 MB/s of disk and of memory, in phases",
    help: "The load that OSADL's farm of boards runs to simulate an average machine control program: \
           about 1 Mbit/s of network, 1 MB/s of files and 1 MB/s of memory that is allocated, in \
           phases: idle for 36 % of the time, then busy (2 h and 3.5 h there; 1.8 and 3.2 s here). \
           The rates hold while it is busy. The packets go over the loopback device; the file is \
           written in a scratch folder below dir and synced once a second, which the farm does not \
           tell.",
    main_param: "",
    params: &[
        Param {
            name: "network",
            kind: Kind::Count { low: 100_000, high: 10_000_000_000 },
            default: Default::Value("1000000"),
            help: "bits per second",
        },
        Param {
            name: "disk",
            kind: Kind::Size { low: 10_000 },
            default: Default::Value("1000000"),
            help: "bytes per second that are written to the file",
        },
        Param {
            name: "memory",
            kind: Kind::Size { low: 10_000 },
            default: Default::Value("1000000"),
            help: "bytes per second that are allocated, touched and freed",
        },
        Param {
            name: "busy",
            kind: Kind::Time { bare: BareNumber::Refused, low: 100_000_000, high: DAY_NS },
            default: Default::Value("3200ms"),
            help: "how long it works",
        },
        Param {
            name: "idle",
            kind: Kind::Time { bare: BareNumber::Refused, low: 0, high: IDLE_NS },
            default: Default::Value("1800ms"),
            help: "how long it then does nothing (a load that does nothing for 5 s counts as idle)",
        },
        SCRATCH_DIR,
        RESERVE,
    ],
    counters: &["network-bytes", "disk-bytes", "memory-bytes"],
    needs: &[],
    form: Form::Part(PartForm { resolve, owns: Owns::ScratchFolder, steady_from: None, run }),
};

const DAY_NS: u64 = 86_400_000_000_000;
const IDLE_NS: u64 = 4_000_000_000;

fn resolve(values: &mut Values, machine: &Machine) -> Result<(), String> {
    let parent = machine.resolve_dir(values)?;
    let space = room::space(values, &parent)?;
    room::claim(values, &parent, space, FILE)?;
    let burst = values.number("memory") / 10;
    if burst > machine.memory / 4 {
        return Err(format!(
            "memory: {burst} bytes in 100 ms are more than a quarter of what is free"
        ));
    }
    Ok(())
}

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let folder = worker.enter_scratch()?;
    let values = worker.values();
    let failed = |error| LoadError::io(folder.display(), &error);
    room::keep(worker, folder, FILE)?;
    let (busy, idle) = (values.number("busy"), values.number("idle"));
    let mut network = FixedRate::new(values.number("network") / 8);
    let mut disk = FixedRate::new(values.number("disk"));
    let mut memory = FixedRate::new(values.number("memory"));
    let mut target = Target::open().map_err(failed)?;
    loop {
        let start = Instant::now();
        for pace in [&mut network, &mut disk, &mut memory] {
            pace.start(start);
        }
        while start.elapsed() < Duration::from_nanos(busy) {
            thread::sleep(TICK);
            let now = Instant::now();
            let bytes = network.due(now) / PACKET as u64 * PACKET as u64;
            network.done(bytes);
            target.send(bytes).map_err(failed)?;
            worker.add(NETWORK, bytes);
            let bytes = disk.due(now);
            disk.done(bytes);
            target.write(bytes, now).map_err(failed)?;
            worker.add(DISK, bytes);
            let bytes = memory.due(now);
            memory.done(bytes);
            Target::allocate(bytes).map_err(failed)?;
            worker.add(MEMORY, bytes);
        }
        thread::sleep(Duration::from_nanos(idle));
    }
}

/// How much may be done by now at a fixed rate.
#[derive(Debug)]
struct FixedRate {
    per_second: u64,
    since: Instant,
    done: u64,
}

impl FixedRate {
    fn new(per_second: u64) -> Self {
        Self { per_second, since: Instant::now(), done: 0 }
    }

    fn start(&mut self, now: Instant) {
        (self.since, self.done) = (now, 0);
    }

    /// What is due. What it is behind by beyond [`BEHIND_NS`] is given up.
    fn due(&mut self, now: Instant) -> u64 {
        let of = |ns: u128| u64::try_from(ns * u128::from(self.per_second) / 1_000_000_000);
        let all = of(now.duration_since(self.since).as_nanos()).unwrap_or(u64::MAX);
        let most = of(BEHIND_NS).unwrap_or(u64::MAX);
        self.done = self.done.max(all.saturating_sub(most));
        all.saturating_sub(self.done)
    }

    fn done(&mut self, bytes: u64) {
        self.done += bytes;
    }
}

/// Where packets and blocks go.
#[derive(Debug)]
struct Target {
    sender: UdpSocket,
    receiver: UdpSocket,
    file: File,
    at: u64,
    synced: Instant,
}

impl Target {
    fn open() -> io::Result<Self> {
        let (sender, receiver) = (
            UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?,
            UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?,
        );
        sender.connect(receiver.local_addr()?)?;
        receiver.connect(sender.local_addr()?)?;
        // A packet that was lost would never come.
        receiver.set_read_timeout(Some(Duration::from_secs(1)))?;
        Ok(Self { sender, receiver, file: File::create("file")?, at: 0, synced: Instant::now() })
    }

    /// Sends whole packets, and receives each before the next.
    fn send(&mut self, bytes: u64) -> io::Result<()> {
        let mut packet = [0x5a; PACKET];
        for _ in 0..bytes / PACKET as u64 {
            self.sender.send(&packet)?;
            self.receiver.recv(&mut packet)?;
        }
        Ok(())
    }

    fn write(&mut self, bytes: u64, now: Instant) -> io::Result<()> {
        let block = [0xa5; 4096];
        let mut left = bytes;
        while left > 0 {
            let length = left.min(block.len() as u64);
            self.file.write_all_at(&block[..usize::try_from(length).unwrap_or(0)], self.at)?;
            self.at = (self.at + length) % (FILE - block.len() as u64);
            left -= length;
        }
        if now.duration_since(self.synced) >= Duration::from_secs(1) {
            self.file.sync_data()?;
            self.synced = now;
        }
        Ok(())
    }

    fn allocate(bytes: u64) -> io::Result<()> {
        let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
        if bytes > 0 {
            Region::new(bytes)?.touch();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_holds_and_long_delays_are_not_made_up_for() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut pace = FixedRate::new(1_000_000);
        pace.start(start);
        assert_eq!(pace.due(at(10)), 10_000);
        pace.done(8_000);
        assert_eq!(pace.due(at(20)), 12_000);
        pace.done(12_000);
        assert_eq!(pace.due(at(5_020)), 100_000, "not 5 MB at once");
        pace.done(100_000);
        assert_eq!(pace.due(at(5_030)), 10_000);
    }
}
