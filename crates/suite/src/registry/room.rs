//! The free space and the memory that a load may use.

use std::path::Path;

use punctual_sys::error;
use punctual_sys::storage::{self, Room};

use crate::harness::worker::{LoadError, Worker};

use super::load::Machine;
use super::param::{Default, Kind, Param, Value};
use super::values::Values;

/// Default free space to keep, or a twentieth of the file system if that is larger, or half of
/// it if that is smaller, such as the memory of a virtual board.
const SPACE: u64 = 256 << 20;

/// The parameter `reserve` of loads that write files.
pub const RESERVE: Param = Param {
    name: "reserve",
    kind: Kind::Size { low: 0 },
    default: Default::OfMachine(
        "256M or a twentieth of the file system, whichever is larger, but at most half",
    ),
    help: "space that is kept free",
};

/// The space below `parent` and what of it is to stay free, by default or as the parameter
/// `reserve` says, which it sets if there is one.
///
/// # Errors
/// Why the space is not known.
pub fn space(values: &mut Values, parent: &Path) -> Result<(Room, u64), String> {
    let room = storage::room(parent)
        .map_err(|error| format!("{}: {}", parent.display(), error::text(&error)))?;
    let reserve = values.known_number("reserve").unwrap_or(default_reserve(room.total));
    Ok((room, reserve))
}

/// Free space to keep of a file system of this size.
#[must_use]
pub fn default_reserve(total: u64) -> u64 {
    SPACE.max(total / 20).min(total / 2)
}

/// How much of the room files of a load may take by default: if they are in memory, an eighth of
/// that at most, since other loads may run beside it.
#[must_use]
pub fn by_default(room: Room, reserve: u64, machine: &Machine) -> u64 {
    let free = room.free.saturating_sub(reserve);
    if room.in_memory { free.min(machine.memory / 8) } else { free }
}

/// Refuses to use more than what is free besides the reserve.
///
/// # Errors
/// What is free, and what to do.
pub fn check(room: Room, reserve: u64, bytes: u64) -> Result<(), String> {
    if bytes <= room.free.saturating_sub(reserve) {
        return Ok(());
    }
    Err(full(room, reserve))
}

/// Refuses to use more than what is free in the parent of the scratch folder besides the reserve,
/// else sets the parameter `reserve`.
///
/// # Errors
/// What is free, and what to do.
pub fn claim(
    values: &mut Values,
    parent: &Path,
    (room, reserve): (Room, u64),
    bytes: u64,
) -> Result<(), String> {
    check(room, reserve, bytes).map_err(|short| format!("{}: {short}", parent.display()))?;
    values.set("reserve", Value::Number(reserve));
    Ok(())
}

/// Refuses to use more than what is free in the scratch folder, which was entered, besides the
/// parameter `reserve`: others may have filled the disk since the load was asked for.
///
/// # Errors
/// What is free, and what to do.
pub fn keep(worker: &Worker<'_>, folder: &Path, bytes: u64) -> Result<(), LoadError> {
    let room =
        storage::room(Path::new(".")).map_err(|error| LoadError::io(folder.display(), &error))?;
    check(room, worker.values().number("reserve"), bytes)
        .map_err(|short| LoadError::Failed(format!("{}: {short}", folder.display())))
}

/// That there is not enough space besides the reserve, and what to do.
#[must_use]
pub fn full(room: Room, reserve: u64) -> String {
    format!(
        "No space left on device besides the reserve: {} bytes are free, {reserve} of them are \
         reserved; free some, or choose another dir, a smaller size or a smaller reserve",
        room.free
    )
}

/// Sets the parameters `jobs` and `size`, of which each job takes one: `most`, or less if all
/// exceed an eighth of the memory. Returns all of it.
///
/// # Errors
/// If the given ones exceed half of the memory.
pub fn size_of_jobs(values: &mut Values, machine: &Machine, most: u64) -> Result<u64, String> {
    const LEAST: u64 = 1 << 16;
    let jobs = machine.resolve_jobs(values);
    let fitting = (machine.memory / 8 / jobs) >> 16 << 16;
    let size = values.known_number("size").unwrap_or(most.min(fitting).max(LEAST));
    let all = size.saturating_mul(jobs);
    if all > machine.memory / 2 {
        return Err(format!("{jobs} x {size} bytes are more than half of the available memory"));
    }
    values.set("size", Value::Number(size));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_file_system_has_room_for_a_load_too() {
        let of_mib = |total: u64| default_reserve(total << 20) >> 20;
        assert_eq!([112, 512, 5_120, 10_240].map(of_mib), [56, 256, 256, 512]);
        let room = Room { total: 100, free: 60, in_memory: false };
        assert!(check(room, 50, 10).is_ok() && check(room, 50, 11).is_err());
        assert!(check(room, 70, 0).is_ok(), "nothing always fits");
        let machine = Machine { cpus: 1, memory: 80, scratch_parent: "/".into() };
        assert_eq!(by_default(room, 20, &machine), 40);
        assert_eq!(by_default(Room { in_memory: true, ..room }, 20, &machine), 10);
    }
}
