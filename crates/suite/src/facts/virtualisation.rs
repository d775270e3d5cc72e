//! Whether the machine is virtual, and whether this process is in a container.

use serde::Serialize;

use super::cpu::Cpu;
use super::root::FactsRoot;
use crate::procfs::values;

/// What the hardware reports about itself.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Hardware {
    /// DMI system vendor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// DMI product name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// DMI board vendor and name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
    /// DMI version of the firmware, which determines what SMIs steal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// Model in the device tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_tree_model: Option<String>,
}

/// What is between this process and the hardware.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Virtualisation {
    /// Name of the hypervisor; absent on bare hardware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<String>,
    /// How the hypervisor was recognised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The machine monitor that runs the virtual machine, if known in addition to the
    /// hypervisor (`Firecracker` on KVM).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitor: Option<String>,
    /// Kind of container, or `user namespace`; absent outside containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
}

impl Hardware {
    /// Reads DMI and the device tree.
    #[must_use]
    pub fn read(root: &FactsRoot) -> Self {
        let dmi = |name: &str| root.text(&format!("sys/class/dmi/id/{name}"));
        let board = [dmi("board_vendor"), dmi("board_name")];
        let board = board.into_iter().flatten().collect::<Vec<_>>().join(" ");
        Self {
            vendor: dmi("sys_vendor"),
            product: dmi("product_name"),
            board: (!board.is_empty()).then_some(board),
            firmware: dmi("bios_version"),
            device_tree_model: root.text("proc/device-tree/model"),
        }
    }
}

/// Signatures in CPUID leaf 0x4000_0000 and the hypervisors that use them.
const SIGNATURES: [(&str, &str); 12] = [
    ("KVMKVMKVM", "KVM"),
    ("TCGTCGTCGTCG", "QEMU, emulated"),
    ("VMwareVMware", "VMware"),
    ("Microsoft Hv", "Hyper-V"),
    ("XenVMMXenVMM", "Xen"),
    ("VBoxVBoxVBox", "VirtualBox"),
    ("bhyve bhyve", "bhyve"),
    ("ACRNACRNACRN", "ACRN"),
    ("Jailhouse", "Jailhouse"),
    ("QNXQVMBSQG", "QNX"),
    ("lrpepyh  vr", "Parallels"),
    ("UnisysSpar64", "Unisys"),
];

/// Vendors and products found only in the DMI or device tree of virtual machines, each with
/// its hypervisor. Monitors that run on several hypervisors are not listed.
const PRODUCTS: [(&str, &str); 12] = [
    ("QEMU", "QEMU"),
    ("KVM", "KVM"),
    ("linux,dummy-virt", "QEMU"),
    ("OpenStack", "KVM"),
    ("Amazon EC2", "Amazon EC2"),
    ("Google Compute Engine", "KVM"),
    ("VMware", "VMware"),
    ("VirtualBox", "VirtualBox"),
    ("innotek GmbH", "VirtualBox"),
    ("Xen", "Xen"),
    ("Parallels", "Parallels"),
    ("BHYVE", "bhyve"),
];

/// Monitors by the OEM ID in their ACPI tables.
const MONITORS: [(&str, &str); 4] = [
    ("FIRECK", "Firecracker"),
    ("BOCHS", "QEMU"),
    ("CLOUDH", "Cloud Hypervisor"),
    ("CROSVM", "crosvm"),
];

impl Virtualisation {
    /// Finds the hypervisor and the container.
    ///
    /// The CPUID signature takes precedence, then the hypervisor's drivers, then the names on
    /// the hardware; `systemd-detect-virt` does the same.
    #[must_use]
    pub fn read(root: &FactsRoot, cpu: &Cpu, hardware: &Hardware) -> Self {
        let monitor =
            acpi_maker(root).and_then(|maker| named(&maker, &MONITORS)).map(str::to_owned);
        let found = by_signature(root)
            .or_else(|| by_drivers(root))
            .or_else(|| by_product(hardware))
            .or_else(|| {
                let flag = cpu.features.contains("hypervisor");
                let name = monitor.clone().unwrap_or_else(|| "unknown".to_owned());
                flag.then(|| (name, "hypervisor flag in /proc/cpuinfo".to_owned()))
            });
        let (hypervisor, found) = found.unzip();
        Self {
            monitor: monitor.filter(|_| hypervisor.is_some()),
            hypervisor,
            found,
            container: container(root),
        }
    }

    /// The hypervisor and its monitor in one name, such as `Firecracker on KVM`.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        let hypervisor = self.hypervisor.as_deref()?;
        let name = match self.monitor.as_deref() {
            Some(monitor) if !hypervisor.starts_with(monitor) => {
                format!("{monitor} on {hypervisor}")
            }
            _ => hypervisor.to_owned(),
        };
        Some(name)
    }
}

fn named(text: &str, names: &[(&str, &'static str)]) -> Option<&'static str> {
    let (_, name) = names.iter().find(|(start, _)| text.starts_with(start))?;
    Some(name)
}

fn by_signature(root: &FactsRoot) -> Option<(String, String)> {
    let signature = root.native().hypervisor_signature.as_deref()?;
    let name = named(signature, &SIGNATURES).unwrap_or(signature);
    let name = if name.is_empty() { "unknown" } else { name };
    Some((name.to_owned(), "CPUID leaf 0x40000000".to_owned()))
}

fn by_drivers(root: &FactsRoot) -> Option<(String, String)> {
    let xen = || {
        let path = "/sys/hypervisor/type";
        let name = root.text(path).filter(|kind| kind == "xen")?;
        Some((name.replace("xen", "Xen"), path.to_owned()))
    };
    let device_tree = || {
        let path = "/proc/device-tree/hypervisor/compatible";
        let compatible = root.text(path)?;
        let name = match compatible.split('\0').next()? {
            "linux,kvm" => "KVM",
            compatible if compatible.contains("xen") => "Xen",
            compatible => compatible,
        };
        Some((name.to_owned(), path.to_owned()))
    };
    let z = || {
        let path = "/proc/sysinfo";
        let text = root.text(path)?;
        let program = values(&text, "VM00 Control Program").next()?;
        Some((program.to_owned(), path.to_owned()))
    };
    xen().or_else(device_tree).or_else(z)
}

fn by_product(hardware: &Hardware) -> Option<(String, String)> {
    [
        (&hardware.product, "DMI product name"),
        (&hardware.vendor, "DMI system vendor"),
        (&hardware.board, "DMI board"),
        (&hardware.device_tree_model, "model in the device tree"),
    ]
    .into_iter()
    .find_map(|(text, found)| {
        // Amazon's bare-metal machines say so at the end of the type.
        let text = text.as_deref().filter(|text| !text.ends_with(".metal"))?;
        Some((named(text, &PRODUCTS)?.to_owned(), found.to_owned()))
    })
}

/// Bytes 10 to 15 of every ACPI table: the OEM ID. Readable by root only.
fn acpi_maker(root: &FactsRoot) -> Option<String> {
    let table = root.bytes("sys/firmware/acpi/tables/FACP")?;
    let maker = String::from_utf8_lossy(table.get(10..16)?).into_owned();
    Some(maker.trim_matches(['\0', ' ']).to_owned())
}

/// Parts of cgroup paths that container managers create.
const CONTAINER_CGROUPS: [(&str, &str); 5] = [
    ("kubepods", "kubernetes"),
    ("/docker", "docker"),
    ("libpod", "podman"),
    ("/lxc", "lxc"),
    ("containerd", "containerd"),
];

/// Inode numbers of the initial namespaces (`include/linux/proc_ns.h`), as links in
/// `/proc/self/ns` show them.
const INITIAL_NAMESPACES: [(&str, &str); 2] =
    [("pid", "pid:[4026531836]"), ("cgroup", "cgroup:[4026531835]")];

fn container(root: &FactsRoot) -> Option<String> {
    // A virtual machine whose disk was made from a container image has the markers too, but
    // runs in the kernel's initial namespaces.
    let separate = INITIAL_NAMESPACES.iter().any(|(name, initial)| {
        let link = root.link(&format!("proc/self/ns/{name}"));
        link.is_some_and(|link| link != *initial)
    });
    let marked = |path: &str, name: &str| {
        let is_there = separate && root.exists(path);
        is_there.then(|| name.to_owned())
    };
    let by_cgroup = || {
        let groups = root.text("proc/self/cgroup")?;
        let (_, name) = CONTAINER_CGROUPS.iter().find(|(part, _)| groups.contains(part))?;
        Some((*name).to_owned())
    };
    let by_user_namespace = || {
        let map = root.text("proc/self/uid_map")?;
        // Outside a user namespace all 2^32 - 1 user IDs map to themselves.
        let outside = map.split_whitespace().eq(["0", "0", "4294967295"]);
        (!outside).then(|| "user namespace".to_owned())
    };
    root.text("run/systemd/container")
        .or_else(|| marked(".dockerenv", "docker"))
        .or_else(|| marked("run/.containerenv", "podman"))
        .or_else(by_cgroup)
        .or_else(by_user_namespace)
}
