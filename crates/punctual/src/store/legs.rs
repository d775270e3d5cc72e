//! Reads `legs.json`.

use std::io;
use std::path::Path;

use punctual_core::layout::LEGS_JSON;
use punctual_core::legs::Legs;
use punctual_core::schema::Run;
use punctual_sys::file;

/// The largest file that is read, bytes: some 50 cells with all the samples that a board keeps.
const MAX_LEGS_JSON: u64 = 64 << 20;

/// The legs of a run's samples; none if nobody has looked for them. Adds to `damage` if they cannot
/// be read, or are those of another run.
pub fn read_legs(dir: &Path, run: &Run, damage: &mut Vec<String>) -> Option<Legs> {
    let bytes = match file::read(&dir.join(LEGS_JSON), MAX_LEGS_JSON) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            damage.push(format!("{LEGS_JSON} cannot be read ({error}): no legs are shown"));
            return None;
        }
    };
    match serde_json::from_slice::<Legs>(&bytes) {
        Ok(legs) if legs.run_id == run.run_id => Some(legs),
        Ok(_) => {
            damage.push(format!("{LEGS_JSON} is of another run: no legs are shown"));
            None
        }
        Err(error) => {
            damage.push(format!("{LEGS_JSON} is damaged ({error}): no legs are shown"));
            None
        }
    }
}
