//! The probes: one file each, and one line each in [`PROBES`].

use crate::registry::near;
use crate::registry::probe::ProbeEntry;

mod audio;
mod burst;
mod clock;
mod counts;
mod cpumap;
mod deadline;
#[cfg(test)]
mod exercise;
mod followed;
mod handoff;
mod handover;
mod inherit;
mod margin;
mod migrate;
mod noise;
mod pair;
mod pulse;
mod rtc;
mod rtc_irq;
mod serve;
mod sim;
mod timer_irq;
mod traced;
mod tracer;
mod uio;
mod wakeup;

/// Every probe; planned ones come last.
pub static PROBES: &[ProbeEntry] = &[
    wakeup::ENTRY,
    clock::ENTRY,
    handoff::ENTRY,
    inherit::ENTRY,
    migrate::ENTRY,
    deadline::ENTRY,
    burst::ENTRY,
    timer_irq::ENTRY,
    noise::ENTRY,
    audio::ENTRY,
    pulse::ENTRY,
    rtc::ENTRY,
    rtc_irq::ENTRY,
    uio::ENTRY,
    cpumap::ENTRY,
    sim::ENTRY,
    ProbeEntry::planned(
        "respond-serial",
        Some("serial"),
        "answers on a serial line, timed by another machine",
    ),
    ProbeEntry::planned(
        "respond-parport",
        Some("parport"),
        "answers on a parallel port (as lpptest)",
    ),
    ProbeEntry::planned("respond-gpio", None, "answers on a GPIO line (as latmus)"),
    ProbeEntry::planned("respond-net", None, "answers over the network, UDP or raw frames"),
    #[cfg(test)]
    exercise::ENTRY,
    #[cfg(test)]
    exercise::STAMPED,
];

/// The probe of that name, planned ones included.
///
/// # Errors
/// A message that lists the known probes and suggests the one that may have been meant.
pub fn find(name: &str) -> Result<&'static ProbeEntry, String> {
    PROBES.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let known: Vec<_> = there().map(|entry| entry.name).collect();
        near::unknown("probe", name, &known)
    })
}

/// The probes of this version.
pub fn there() -> impl Iterator<Item = &'static ProbeEntry> {
    PROBES.iter().filter(|entry| !entry.is_planned())
}

/// The probes planned for a later version.
pub fn planned() -> impl Iterator<Item = &'static ProbeEntry> {
    PROBES.iter().filter(|entry| entry.is_planned())
}
