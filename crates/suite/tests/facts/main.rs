//! The facts of five boards, and what is suspect about each.

mod documented;
mod fixtures;
mod foreign;

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;

use fixtures::Board;
use punctual_core::preemption::Model;
use punctual_core::schema::{BoardIdentity, IdentityKind};
use punctual_suite::facts::identity::identity;
use punctual_suite::facts::{
    CpuTimes, Facts, FactsRoot, Interrupts, Measurement, Native, conditions, cpu, cpu_times,
};
use punctual_sys::affinity::CpuSet;

/// A measurement that is set up as it should be.
const GOOD: Measurement = Measurement {
    privileged: true,
    spins: true,
    memory_locked: true,
    dma_latency_us: Some(0),
    reachable: None,
    all_cpus: false,
};

fn ids(facts: &Facts, measurement: &Measurement) -> Vec<String> {
    let found = conditions(facts, measurement).into_iter();
    found.map(|condition| condition.id).collect()
}

fn text(facts: &Facts, measurement: &Measurement, id: &str) -> String {
    let found = conditions(facts, measurement).into_iter();
    let mut texts = found.filter(|condition| condition.id == id);
    texts.next().map_or_else(String::new, |found| found.text)
}

fn write_config(board: &Board, text: &str) {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    board.write("proc/config.gz", packed.finish().unwrap());
}

#[test]
fn firecracker_guest() {
    let board = Board::new("firecracker");
    let facts = Facts::read(&board.root_with(Some("KVMKVMKVM")));
    assert_eq!(facts.cpu.model, "Intel(R) Xeon(R) Processor");
    assert_eq!(facts.cpu.online_count(), 2);
    assert_eq!(facts.cpu.topology[&1].core, Some(1));
    assert_eq!(facts.kernel.machine, "x86_64");
    assert_eq!(facts.board().hypervisor.as_deref(), Some("Firecracker on KVM"));
    assert!(facts.is_virtual());
    assert_eq!(facts.clock.source.as_deref(), Some("tsc"));
    assert_eq!(facts.memory.total_bytes, Some(24_684_084 * 1024));
    assert_eq!(facts.scheduler.cgroups["cpu"], "/");
    // The file is there with RT_GROUP_SCHED alone.
    assert!(facts.scheduler.group_rt_runtime_us.is_some());
    // preempt=full stands behind "--": it is for init.
    assert_eq!(facts.kernel.preemption, Model::Unknown);
    assert_eq!(facts.kernel.config_sha256, None);
    assert_eq!(
        ids(&facts, &GOOD),
        ["virtual-machine", "rt-group-sched", "rt-throttling", "fair-server"]
    );
    let waits = Measurement { spins: false, ..GOOD };
    assert_eq!(ids(&facts, &waits), ["virtual-machine", "rt-group-sched", "spinning-threads"]);
    let said = text(&facts, &waits, "spinning-threads");
    assert!(said.contains("kernel.sched_rt_runtime_us=-1") && said.contains("fair_server"));
}

#[test]
fn preemption_of_a_dynamic_kernel() {
    let board = Board::new("firecracker");
    let model = |board: &Board| Facts::read(&board.root()).preemption.model;
    write_config(
        &board,
        "CONFIG_PREEMPT_BUILD=y\nCONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPT_DYNAMIC=y\n",
    );
    assert_eq!(model(&board), Model::None);
    board.write("proc/cmdline", "quiet preempt=full preempt=bogus");
    assert_eq!(model(&board), Model::Full);
    board.write("sys/kernel/debug/sched/preempt", "none voluntary full (lazy)\n");
    let facts = Facts::read(&board.root());
    assert_eq!(facts.preemption.model, Model::Lazy);
    assert_eq!(facts.preemption.found, "/sys/kernel/debug/sched/preempt");
    assert_eq!(facts.preemption.ordinary, None);
    board.write("sys/kernel/realtime", "1\n");
    let facts = Facts::read(&board.root());
    assert_eq!(facts.preemption.model, Model::Rt);
    assert_eq!(facts.preemption.ordinary, Some(Model::Lazy));
}

#[test]
fn preemption_of_other_kernels() {
    let model = |version: &str, config: &str| {
        let board = Board::new("rpi4");
        board.write("proc/sys/kernel/version", version);
        write_config(&board, config);
        Facts::read(&board.root()).preemption.model
    };
    assert_eq!(model("#1 SMP PREEMPT_RT Debian 6.1", ""), Model::Rt);
    assert_eq!(model("#1 SMP PREEMPT RT Debian 4.19", ""), Model::Rt);
    assert_eq!(model("#1 SMP PREEMPT Debian", ""), Model::Full);
    assert_eq!(model("#1 SMP PREEMPT", "CONFIG_PREEMPT_LAZY=y"), Model::Lazy);
    assert_eq!(model("#1 SMP", "CONFIG_PREEMPT_VOLUNTARY=y"), Model::Voluntary);
    assert_eq!(model("#1", "CONFIG_PREEMPT_NONE=y"), Model::None);
    assert_eq!(model("#1 SMP", ""), Model::Unknown);
    // Linux 5.12 to 5.16 do not name PREEMPT_DYNAMIC in the version.
    let early = "CONFIG_PREEMPT_DYNAMIC=y\nCONFIG_PREEMPT_VOLUNTARY=y";
    assert_eq!(model("#1 SMP PREEMPT", early), Model::Voluntary);
}

#[test]
fn raspberry_pi() {
    let board = Board::new("rpi4");
    let facts = Facts::read(&board.root());
    assert_eq!(facts.cpu.model, "arm,cortex-a72");
    let tree = facts.hardware.device_tree_model.as_deref();
    assert_eq!(tree, Some("Raspberry Pi 4 Model B Rev 1.4"));
    assert_eq!(facts.cpu.topology[&3].capacity, Some(1024));
    assert_eq!(facts.limits.rt_priority.as_deref(), Some("95"));
    assert_eq!(facts.limits.cap_sys_nice, Some(false));
    assert!(!facts.is_virtual());
    let user =
        Measurement { privileged: false, memory_locked: false, dma_latency_us: None, ..GOOD };
    assert_eq!(
        ids(&facts, &user),
        [
            "unprivileged",
            "memory-not-locked",
            "load-average",
            "frequency-scaling",
            "rt-throttling",
            "swap-used",
            "nohz-full-ignored",
        ]
    );
    assert_eq!(
        text(&facts, &user, "frequency-scaling"),
        "governor \"ondemand\": wake-ups after idle will be late (use \"performance\")"
    );
    let interrupts = Interrupts::read(&board.root());
    assert_eq!(interrupts.lines["11"].cpus[&3], 500);
    assert_eq!(interrupts.lines["IPI0"].total, 3_910);
}

#[test]
fn desktop_without_smt() {
    let board = Board::new("nosmt");
    let facts = Facts::read(&board.root());
    assert_eq!(facts.cpu.online.as_ref().unwrap().to_string(), "0-5");
    assert_eq!(facts.kernel.preemption, Model::Lazy);
    assert_eq!(facts.config.as_ref().unwrap().options["HZ"], "1000");
    assert_eq!(facts.power.boost, Some(false));
    assert_eq!(facts.power.idle[0].cpus.to_string(), "0-5");
    let free = Measurement { dma_latency_us: None, ..GOOD };
    assert_eq!(
        ids(&facts, &free),
        [
            "clock-source",
            "frequency-scaling",
            "idle-states",
            "debug-kernel",
            "tracing",
            "fair-server",
            "offline-cpus",
            "tainted",
        ]
    );
    // C10 is switched off, and the policy of the offline CPU governs nothing.
    assert!(text(&facts, &free, "idle-states").contains("C6 is allowed"));
    assert!(text(&facts, &free, "idle-states").contains("up to 85 us later"));
    assert!(text(&facts, &free, "frequency-scaling").contains("on CPU 4-5"));
    assert!(text(&facts, &free, "fair-server").contains("for 50 ms of every 1 s"));
    assert!(text(&facts, &free, "debug-kernel").contains("PROVE_LOCKING"));
    assert!(text(&facts, &free, "offline-cpus").contains("6-11"));
    // C1 remains, which cannot be told from the rest of a wake-up.
    for held in [0, 84] {
        let measurement = Measurement { dma_latency_us: Some(held), ..GOOD };
        assert_eq!(text(&facts, &measurement, "idle-states"), "");
    }
}

#[test]
fn server_of_96_cpus() {
    let board = Board::new("server");
    let facts = Facts::read(&board.root());
    assert_eq!(facts.cpu.online_count(), 95);
    assert!(facts.cpu.online.as_ref().unwrap().contains(95));
    let place = &facts.cpu.topology[&30];
    assert_eq!((place.package, place.node), (Some(1), Some(1)));
    let siblings = facts.cpu.topology[&95].siblings.as_ref().unwrap();
    assert_eq!(siblings.to_string(), "47,95");
    assert_eq!(ids(&facts, &GOOD), ["smt", "offline-cpus", "numa-balancing"]);
    assert!(text(&facts, &GOOD, "offline-cpus").starts_with("CPU 64 is offline"));
}

#[test]
fn tuned_real_time_board() {
    let board = Board::new("debian-rt");
    let facts = Facts::read(&board.root());
    assert_eq!(facts.kernel.preemption, Model::Rt);
    assert_eq!(facts.kernel.config_sha256.as_ref().unwrap().len(), 64);
    assert_eq!(ids(&facts, &GOOD), ["rt-throttling"]);
    assert!(
        text(&facts, &GOOD, "rt-throttling")
            .contains("more than 950 ms of any 1 s are stopped for up to 50 ms")
    );
    board.write("proc/sys/kernel/sched_rt_runtime_us", "-1");
    assert_eq!(ids(&Facts::read(&board.root()), &GOOD), Vec::<String>::new());
}

#[test]
fn containers_and_cgroups_without_a_budget() {
    let board = Board::new("firecracker");
    board.write(".dockerenv", "");
    board.write("proc/self/ns/", "");
    let namespace = board.folder.join("proc/self/ns/pid");
    symlink("pid:[4026531836]", &namespace).unwrap();
    // A disk made from a container image, in the kernel's first namespaces.
    let facts = Facts::read(&board.root());
    assert_eq!(facts.virtualisation.container, None);
    board.remove("proc/self/ns/pid");
    symlink("pid:[4026532201]", &namespace).unwrap();
    let facts = Facts::read(&board.root());
    assert_eq!(facts.virtualisation.container.as_deref(), Some("docker"));

    board.write("proc/self/cgroup", "1:cpu,cpuacct:/docker/abc\n0::/\n");
    board.write(
        "proc/self/mountinfo",
        "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n",
    );
    board.write("sys/fs/cgroup/cpu/cpu.rt_runtime_us", "0\n");
    let facts = Facts::read(&board.root());
    assert_eq!(facts.virtualisation.container.as_deref(), Some("docker"));
    assert_eq!(facts.scheduler.group_rt_runtime_us, Some(0));
    assert!(text(&facts, &GOOD, "rt-group-sched").contains("even to root"));
    assert!(ids(&facts, &GOOD).contains(&"container".to_owned()));
}

#[test]
fn boards_have_fingerprints_of_their_own() {
    let names = ["firecracker", "rpi4", "nosmt", "server", "debian-rt"];
    let mut prints: Vec<_> = names
        .iter()
        .map(|name| Facts::read(&Board::new(name).root()).board().fingerprint)
        .collect();
    let board = Board::new("rpi4");
    board.write("proc/sys/kernel/osrelease", "6.12.1-rt");
    board.write("proc/meminfo", "MemTotal:       3820000 kB\n");
    board.write("sys/devices/system/cpu/online", "0-2");
    // Another kernel on the same board.
    assert_eq!(Facts::read(&board.root()).board().fingerprint, prints[1]);
    prints.sort();
    prints.dedup();
    assert_eq!(prints.len(), names.len());
}

#[test]
fn a_board_is_known_by_all_that_can_be_read_of_it() {
    use IdentityKind::{Mac, Name, Serial, Uuid};
    let board = Board::new("rpi4");
    let known = |name: Option<&str>| {
        let found = identity(&board.root(), name);
        found.into_iter().map(|one| (one.by, one.value)).collect::<Vec<_>>()
    };
    let of = |by, content: &str| (by, BoardIdentity::of(by, content).value);
    board.write("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
    assert_eq!(known(None), []);
    assert_eq!(known(Some("Left")), [of(Name, "Left")]);

    let interface = |name: &str, address: &str, assigned: &str, bus: Option<&str>| {
        let folder = format!("sys/class/net/{name}");
        board.write(&format!("{folder}/address"), format!("{address}\n"));
        board.write(&format!("{folder}/addr_assign_type"), format!("{assigned}\n"));
        if let Some(bus) = bus {
            board.write(&format!("{folder}/device/"), "");
            let link = board.folder.join(format!("{folder}/device/subsystem"));
            symlink(format!("../../../bus/{bus}"), link).unwrap();
        }
    };
    interface("eth1", "DC:A6:32:01:02:04", "0", Some("platform"));
    interface("eth0", "dc:a6:32:01:02:03", "0", Some("pci"));
    // Of a dongle, set by someone, of no device, and of a virtual machine.
    interface("usb0", "dc:a6:32:01:02:05", "0", Some("usb"));
    interface("wlan0", "dc:a6:32:01:02:06", "3", Some("platform"));
    interface("br0", "dc:a6:32:01:02:07", "0", None);
    interface("ens3", "52:54:00:12:34:56", "0", Some("virtio"));
    let macs = [of(Mac, "dc:a6:32:01:02:03"), of(Mac, "dc:a6:32:01:02:04")];
    assert_eq!(known(None), macs);

    // Without the right to read it the UUID is as if it were not there.
    board.write("sys/class/dmi/id/product_uuid", "4C4C4544-0042-3510-8057-B4C04F4B5A32\n");
    board.write("proc/device-tree/serial-number", "10000000abcdef01\0");
    let all = known(Some("Left"));
    assert_eq!(all[0], of(Serial, "10000000abcdef01"));
    assert_eq!(all[1], of(Uuid, "4c4c4544-0042-3510-8057-b4c04f4b5a32"));
    assert_eq!(all[2..], [macs[0].clone(), macs[1].clone(), of(Name, "Left")]);
    board.write("proc/device-tree/serial-number", "0000000000000000\0");
    assert_eq!(known(None)[0].0, Uuid);
}

#[test]
fn groups_hold_what_was_read_and_nothing_else() {
    let board = Board::new("nosmt");
    board.remove("proc/meminfo");
    let groups = Facts::read(&board.root()).groups();
    assert!(!groups.contains_key("memory"), "{:?}", groups.keys());
    assert_eq!(groups["cpu"]["online"], "0-5");
    assert_eq!(groups["power"]["idle"][0]["states"][2]["exit_latency_us"], 85);
    assert_eq!(groups["preemption"]["model"], "lazy");
    assert!(groups["cpu"].get("nohz_full").is_none());
    fn has_null(value: &serde_json::Value) -> bool {
        match value {
            serde_json::Value::Null => true,
            serde_json::Value::Array(values) => values.iter().any(has_null),
            serde_json::Value::Object(keys) => keys.values().any(has_null),
            _ => false,
        }
    }
    assert!(!groups.values().any(has_null));
}

#[test]
fn the_build_of_the_kernel_is_told() {
    let board = Board::new("firecracker");
    assert!(!Facts::read(&board.root()).groups().contains_key("kernel"));
    board.write("sys/kernel/notes", include_bytes!("../fixtures/notes.bin"));
    let groups = Facts::read(&board.root()).groups();
    assert_eq!(groups["kernel"]["build_id"], "e4f18d9dc1d0e6fc2b17e93e885a647b3c0a6fc1");
    board.write("sys/kernel/notes", "no notes at all");
    assert!(!Facts::read(&board.root()).groups().contains_key("kernel"));
}

#[test]
fn an_empty_root_has_no_facts_and_says_so() {
    let board = Board::new("debian-rt");
    let root = FactsRoot::new(&board.folder.join("boot"), Default::default());
    let facts = Facts::read(&root);
    assert_eq!(facts.kernel.release, "unknown");
    assert_eq!(facts.board().cpus, 1);
    assert_eq!(ids(&facts, &GOOD), ["unread"]);
    assert!(CpuTimes::open(&root).is_err());
    assert!(cpu_times::per_cpu(&root).is_empty());
}

/// R-A13: what a container hides looked clean.
#[test]
fn what_cannot_be_read_is_one_condition_that_names_what_is_not_known() {
    let board = Board::new("debian-rt");
    let said = |board: &Board| text(&Facts::read(&board.root()), &GOOD, "unread");
    assert_eq!(said(&board), "");
    // As a bind mount of /dev/null leaves it.
    board.write("proc/stat", "");
    let one = said(&board);
    let start = "/proc/stat cannot be read: whether the machine was idle is not known (";
    assert!(one.starts_with(start), "{one}");
    board.remove("proc/loadavg");
    fs::remove_dir_all(board.folder.join("sys/devices")).unwrap();
    let several = said(&board);
    let start = "/proc/stat, /proc/loadavg, /sys/devices/system/cpu and \
                 /sys/devices/system/clocksource cannot be read: whether the machine was idle, how \
                 busy it was before the start, which CPUs are isolated or share a core and the clock \
                 source are not known (";
    assert!(several.starts_with(start), "{several}");
    let found = ids(&Facts::read(&board.root()), &GOOD);
    assert_eq!(found.iter().filter(|id| *id == "unread").count(), 1, "{found:?}");

    // Without a configuration, control groups alone tell of budgets.
    let board = Board::new("rpi4");
    assert_eq!(said(&board), "");
    fs::remove_dir_all(board.folder.join("sys/fs")).unwrap();
    assert!(said(&board).contains("/sys/fs cannot be read: whether control groups limit"));
    // A command line may be blank.
    board.write("proc/cmdline", "\n");
    assert!(!said(&board).contains("/proc/cmdline"));
    board.write("proc/cmdline", "");
    assert!(said(&board).contains("/proc/cmdline"));
}

#[test]
fn cpus_are_counted_although_proc_and_sys_are_masked() {
    let board = Board::new("debian-rt");
    let allowed = CpuSet::parse("0-1,5").unwrap();
    let native = Native { allowed: Some(allowed.clone()), ..Native::default() };
    let facts = Facts::read(&FactsRoot::new(&board.folder.join("boot"), native));
    assert_eq!((facts.board().cpus, facts.cpu.online), (3, None));
    assert_eq!(facts.cpu.allowed, Some(allowed));
    let live = Facts::read(&FactsRoot::live());
    let here = punctual_sys::affinity::get().unwrap();
    assert_eq!(FactsRoot::live().native().allowed, Some(here));
    assert!(live.board().cpus as usize >= live.cpu.allowed.unwrap().len());
}

#[test]
fn cpus_that_are_kept_from_this_process_are_told_and_isolated_ones_are_not() {
    let board = Board::new("debian-rt");
    board.write("sys/devices/system/cpu/online", "0-7");
    board.write("sys/devices/system/cpu/isolated", "2-3");
    board.write("sys/devices/system/cpu/nohz_full", "3-4");
    board.write("proc/self/status", "Cpus_allowed_list:\t0\n");
    assert_eq!(cpu::kept_free(&board.root()).to_string(), "2-4");
    let said = |reachable: &str, all_cpus| {
        let measurement = Measurement { reachable: CpuSet::parse(reachable), all_cpus, ..GOOD };
        text(&Facts::read(&board.root()), &measurement, "restricted-cpus")
    };
    let both = said("0-5", false);
    assert!(both.starts_with("a cpuset keeps this process off CPU 6-7: "), "{both}");
    assert!(both.contains("its affinity keeps this process off CPU 1,5: "), "{both}");
    assert!(both.ends_with("these figures are only those of CPU 0,2-4"), "{both}");
    let all = said("0-5", true);
    assert!(!all.contains("affinity") && all.ends_with("only those of CPU 0-5"), "{all}");
    assert_eq!(said("0-7", true), "");
    board.write("proc/self/status", "Cpus_allowed_list:\t0-1,5-7\n");
    assert_eq!(said("0-7", false), "");
    // An isolated CPU in another cpuset cannot be measured, whoever asks.
    assert!(said("0-2,4-7", false).contains("a cpuset keeps this process off CPU 3"));
}

#[test]
fn this_machine_is_read() {
    let facts = Facts::read(&FactsRoot::live());
    let names = punctual_sys::system::uname().unwrap();
    assert_eq!(facts.kernel.release, names.release);
    assert_eq!(facts.kernel.machine, names.machine);
    assert_eq!(facts.board().fingerprint.len(), 64);
    assert!(facts.memory.total_bytes.unwrap() > 1 << 20);
    let groups = facts.groups();
    for name in ["activity", "clock", "cpu", "limits", "memory", "scheduler"] {
        assert!(groups.contains_key(name), "{name}");
    }
}
