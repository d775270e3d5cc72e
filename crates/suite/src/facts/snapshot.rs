//! All facts together, in the forms of `run.json`.

use std::collections::BTreeMap;

use punctual_core::schema::{Board, BoardKind, Kernel};
use punctual_sys::system::Uname;
use serde::Serialize;
use serde_json::Value;

use super::cpu::Cpu;
use super::fingerprint::fingerprint;
use super::kernel_config::KernelConfig;
use super::kernel_image::KernelImage;
use super::power::Power;
use super::preemption::{Preemption, preemption};
use super::root::FactsRoot;
use super::scheduler::{Limits, Scheduler};
use super::state::{Activity, Clock, Memory};
use super::unread::{Unread, unread};
use super::virtualisation::{Hardware, Virtualisation};

/// Everything that is read once, before the first cell.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Host name.
    pub name: String,
    /// The kernel, in the form of `run.json`.
    pub kernel: Kernel,
    /// The preemption model, and how it was found.
    pub preemption: Preemption,
    /// The kernel's configuration, if it can be read.
    pub config: Option<KernelConfig>,
    /// Which build of the kernel it is.
    pub image: KernelImage,
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
    /// What the hardware reports about itself.
    pub hardware: Hardware,
    /// Hypervisor and container.
    pub virtualisation: Virtualisation,
    /// Load average, uptime, tracing.
    pub activity: Activity,
    /// What could not be read although every kernel has it; in no group.
    pub unread: Vec<Unread>,
}

impl Facts {
    /// Reads all facts: several thousand small files on a large machine.
    #[must_use]
    pub fn read(root: &FactsRoot) -> Self {
        let uname = root.native().uname.clone();
        let named = |file: &str, native: fn(&Uname) -> &String| {
            root.text(&format!("proc/sys/kernel/{file}"))
                .or_else(|| uname.as_ref().map(|names| native(names).clone()))
                .unwrap_or_else(|| "unknown".to_owned())
        };
        let release = named("osrelease", |names| &names.release);
        let version = named("version", |names| &names.version);
        let command_line = root.text("proc/cmdline").unwrap_or_default();
        let config = KernelConfig::read(root, &release);
        let preemption = preemption(root, &version, &command_line, config.as_ref());
        let cpu = Cpu::read(root);
        let hardware = Hardware::read(root);
        let unread = unread(root, config.is_some());
        Self {
            name: named("hostname", |names| &names.node),
            kernel: Kernel {
                machine: named("arch", |names| &names.machine),
                preemption: preemption.model,
                config_sha256: config.as_ref().map(|config| config.sha256.clone()),
                release,
                version,
                command_line,
            },
            preemption,
            config,
            image: KernelImage::read(root),
            power: Power::read(root),
            clock: Clock::read(root),
            scheduler: Scheduler::read(root),
            limits: Limits::read(root),
            memory: Memory::read(root),
            virtualisation: Virtualisation::read(root, &cpu, &hardware),
            cpu,
            hardware,
            activity: Activity::read(root),
            unread,
        }
    }

    /// The board in the form of `run.json`: this machine under its host name.
    #[must_use]
    pub fn board(&self) -> Board {
        Board {
            name: self.name.clone(),
            kind: BoardKind::Local,
            fingerprint: fingerprint(&self.kernel.machine, &self.cpu, &self.hardware, &self.memory),
            identity: Vec::new(),
            cpu_model: self.cpu.model.clone(),
            cpus: self.cpu.online_count(),
            hypervisor: self.virtualisation.name(),
            turn_wait_ns: None,
            marks: None,
            modules: Vec::new(),
            lab: None,
        }
    }

    /// Whether a hypervisor runs this machine.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        self.virtualisation.hypervisor.is_some()
    }

    /// The facts by group, as in `facts` of `run.json`.
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
        add("kernel", group(&self.image));
        add("limits", group(&self.limits));
        add("memory", group(&self.memory));
        add("power", group(&self.power));
        add("preemption", group(&self.preemption));
        add("scheduler", group(&self.scheduler));
        add("virtualisation", group(&self.virtualisation));
        groups
    }
}

/// A group as a JSON value; `None` if nothing in it is known.
fn group(facts: &impl Serialize) -> Option<Value> {
    serde_json::to_value(facts)
        .ok()
        .filter(|value| value.as_object().is_some_and(|keys| !keys.is_empty()))
}
