//! The set-up of a board that starts with only its initramfs.

use serde::{Deserialize, Serialize};

/// Path of the board's [`Order`](super::Order).
pub const ORDER_PATH: &str = "/punctual/order.json";

/// Name under which a board that goes on from a kept state gets its [`Order`](super::Order) from
/// the emulator. Its init then writes it to [`ORDER_PATH`].
pub const ORDER_FILE: &str = "opt/punctual/order";

/// Path of its [`BoardSetup`].
pub const SETUP_PATH: &str = "/punctual/setup.json";

/// The folder that contains the modules to load.
pub const MODULES_PATH: &str = "/punctual/modules";

/// What to do before the plan runs, in the order of the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardSetup {
    /// Modules to load.
    #[serde(default)]
    pub modules: Vec<ModuleFile>,
    /// Files to write once the modules are loaded, each with its text; for example a PCI ID to
    /// the `new_id` of its driver.
    #[serde(default)]
    pub writes: Vec<(String, String)>,
    /// Files that must then exist, which shows that the requested devices do.
    #[serde(default)]
    pub expects: Vec<String>,
}

/// A module to load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleFile {
    /// Its file name below [`MODULES_PATH`].
    pub file: String,
    /// Its parameters, such as `hrtimer=1`; empty for none.
    #[serde(default)]
    pub parameters: String,
}
