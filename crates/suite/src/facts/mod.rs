//! What a reader needs to judge the numbers: readers of /proc and /sys with a
//! root folder.
//!
//! A fact is read and never judged here; `conditions` judges. Nothing
//! fails: what cannot be read is an absent key of `run.json`.

pub mod conditions;
pub mod cpu;
pub mod cpu_list;
pub mod cpu_times;
pub mod fingerprint;
pub mod interrupts;
pub mod kernel_config;
pub mod power;
pub mod preemption;
pub mod root;
pub mod scheduler;
pub mod state;
pub mod virtualisation;

use std::collections::BTreeMap;
use std::io::Read as _;

use punctual_core::hash::Hasher;
use punctual_core::schema::{Board, Kernel, Tool};
use serde::Serialize;
use serde_json::Value;

pub use conditions::{Measurement, conditions, virtual_board};
pub use cpu_times::{CpuTimes, Share, Ticks};
pub use interrupts::Interrupts;
pub use root::{FactsRoot, Native};

use cpu::Cpu;
use kernel_config::KernelConfig;
use power::Power;
use preemption::Preemption;
use scheduler::{Limits, Scheduler};
use state::{Activity, Clock, Memory};
use virtualisation::{Hardware, Virtualisation};

/// Everything that is read once, before the first cell.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Host name.
    pub name: String,
    /// The kernel, in the form of `run.json`.
    pub kernel: Kernel,
    /// The preemption model, and how it was found.
    pub preemption: Preemption,
    /// The kernel's configuration, where it can be read.
    pub config: Option<KernelConfig>,
    /// Model, masks, topology, mitigations.
    pub cpu: Cpu,
    /// Frequency scaling and idle states.
    pub power: Power,
    /// Clock source and timers.
    pub clock: Clock,
    /// Throttling, fair server, cgroups.
    pub scheduler: Scheduler,
    /// What this process may do.
    pub limits: Limits,
    /// Memory and its management.
    pub memory: Memory,
    /// What the hardware says that it is.
    pub hardware: Hardware,
    /// Hypervisor and container.
    pub virtualisation: Virtualisation,
    /// Load average, uptime, tracing.
    pub activity: Activity,
}

impl Facts {
    /// Reads all facts; some thousand small files on a large machine.
    #[must_use]
    pub fn read(root: &FactsRoot) -> Self {
        let uname = root.native().uname.clone();
        let named = |file: &str, native: fn(&punctual_sys::system::Uname) -> &String| {
            root.text(&format!("proc/sys/kernel/{file}"))
                .or_else(|| uname.as_ref().map(|names| native(names).clone()))
                .unwrap_or_else(|| "unknown".to_owned())
        };
        let release = named("osrelease", |names| &names.release);
        let version = named("version", |names| &names.version);
        let command_line = root.text("proc/cmdline").unwrap_or_default();
        let config = KernelConfig::read(root, &release);
        let preemption = preemption::preemption(root, &version, &command_line, config.as_ref());
        let cpu = Cpu::read(root);
        let hardware = Hardware::read(root);
        Self {
            name: named("hostname", |names| &names.node),
            kernel: Kernel {
                machine: named("arch", |names| &names.machine),
                preemption: preemption.model.to_string(),
                config_sha256: config.as_ref().map(|config| config.sha256.clone()),
                release,
                version,
                command_line,
            },
            preemption,
            config,
            power: Power::read(root),
            clock: Clock::read(root),
            scheduler: Scheduler::read(root),
            limits: Limits::read(root),
            memory: Memory::read(root),
            virtualisation: Virtualisation::read(root, &cpu, &hardware),
            cpu,
            hardware,
            activity: Activity::read(root),
        }
    }

    /// The board in the form of `run.json`: this machine under its host name.
    #[must_use]
    pub fn board(&self) -> Board {
        Board {
            name: self.name.clone(),
            kind: "local".to_owned(),
            fingerprint: fingerprint::fingerprint(self),
            cpu_model: self.cpu.model.clone(),
            cpus: self.cpu.online_count(),
            hypervisor: self.virtualisation.name(),
            lab: None,
        }
    }

    /// Whether a hypervisor runs this machine.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        self.virtualisation.hypervisor.is_some()
    }

    /// The facts by group, as `run.json` holds them under `facts`.
    #[must_use]
    pub fn groups(&self) -> BTreeMap<String, Value> {
        let mut groups = BTreeMap::new();
        let mut add = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                groups.insert(name.to_owned(), value);
            }
        };
        add("activity", group(&self.activity));
        add("clock", group(&self.clock));
        add("config", self.config.as_ref().and_then(group));
        add("cpu", group(&self.cpu));
        add("hardware", group(&self.hardware));
        add("limits", group(&self.limits));
        add("memory", group(&self.memory));
        add("power", group(&self.power));
        add("preemption", group(&self.preemption));
        add("scheduler", group(&self.scheduler));
        add("virtualisation", group(&self.virtualisation));
        groups
    }
}

/// A group as a JSON value; `None` where nothing of it is known.
fn group(facts: &impl Serialize) -> Option<Value> {
    serde_json::to_value(facts)
        .ok()
        .filter(|value| value.as_object().is_some_and(|keys| !keys.is_empty()))
}

/// This program and how it was started; `sha256` is that of its executable, if it is known.
#[must_use]
pub fn tool(sha256: Option<&str>) -> Tool {
    let libc = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    Tool {
        name: "punctual".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        target: format!("{}-unknown-linux-{libc}", std::env::consts::ARCH),
        sha256: sha256.map_or_else(|| hash_of_executable().unwrap_or_default(), str::to_owned),
        command: std::env::args_os()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect(),
    }
}

/// Piece by piece: the executable in one piece would be half of the memory that a run takes.
fn hash_of_executable() -> std::io::Result<String> {
    let mut file = std::fs::File::open("/proc/self/exe")?;
    let mut hasher = Hasher::default();
    let mut piece = [0_u8; 16 * 1024];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finish()),
            length => hasher.update(&piece[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_named_and_hashed() {
        let tool = tool(None);
        assert_eq!(tool.sha256.len(), 64);
        assert!(!tool.command.is_empty());
        assert!(tool.target.starts_with(std::env::consts::ARCH));
    }
}
