//! What a board that starts with nothing but its initramfs needs before it can measure.

use serde::{Deserialize, Serialize};

/// Where such a board finds its [`Order`](super::Order).
pub const ORDER_PATH: &str = "/punctual/order.json";

/// Where it finds its [`BoardSetup`].
pub const SETUP_PATH: &str = "/punctual/setup.json";

/// The folder that holds the modules it is to load.
pub const MODULES_PATH: &str = "/punctual/modules";

/// What to do before the plan runs, in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardSetup {
    /// Modules to load.
    #[serde(default)]
    pub modules: Vec<ModuleFile>,
    /// What to write to which file once the modules are loaded, such as a PCI ID to the
    /// `new_id` of its driver: path and text.
    #[serde(default)]
    pub writes: Vec<(String, String)>,
    /// Files that must then exist: the devices that were asked for.
    #[serde(default)]
    pub expects: Vec<String>,
}

/// A module to load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleFile {
    /// Name of its file below [`MODULES_PATH`].
    pub file: String,
    /// Its parameters, such as `hrtimer=1`; empty for none.
    #[serde(default)]
    pub parameters: String,
}
