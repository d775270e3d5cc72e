//! Events on the machine while a cell measures, which make its numbers a mixture: suspend, a
//! step of the clock, hotplug of CPUs, a changed governor, thermal throttling.

use std::collections::BTreeMap;

use punctual_core::schema::Condition;
use punctual_core::units::human_ns;
use punctual_sys::clock_step::{Offsets, StepAlarm};

use super::root::FactsRoot;

const CPUS: &str = "sys/devices/system/cpu";
const THERMAL: &str = "sys/class/thermal";

/// Readings of clocks may be this far apart without an event, ns: whoever reads them can be
/// preempted in between.
const NOISE_NS: u64 = 1_000_000;

/// Without [`StepAlarm`], the change within a second that is a step and no slewing, ns: ten
/// times what the kernel slews at most (500 ppm), with room for chrony's larger rates.
const STEP_NS: u64 = 100_000_000;

/// The events of one kind that a condition tells one by one.
const TOLD: usize = 3;

/// What can happen, in the order of the conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Suspended,
    ClockStep,
    Hotplug,
    Governor,
    Throttled,
}

impl Happening {
    /// Id of the condition, and what the events mean and how they are avoided.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Suspended => (
                "suspended",
                "the machine slept; CLOCK_MONOTONIC stood still meanwhile, but what resumes runs \
                 late: forbid sleep (systemd-inhibit --what=sleep)",
            ),
            Self::ClockStep => (
                "clock-step",
                "timers and probes on CLOCK_REALTIME are wrong there, all others are not: stop \
                 what sets the clock (chronyd, systemd-timesyncd)",
            ),
            Self::Hotplug => {
                ("cpu-hotplug", "threads and interrupts were moved: stop what takes CPUs offline")
            }
            Self::Governor => (
                "governor-changed",
                "the numbers mix both: stop what sets it (tuned, power-profiles-daemon)",
            ),
            Self::Throttled => (
                "throttled",
                "the CPUs ran slower for a while: cool the machine better, or load it less",
            ),
        }
    }
}

/// Reading at an instant, and whether the real-time clock was set since the last look.
#[derive(Debug, Clone, Copy)]
struct Reading {
    offsets: Offsets,
    /// `None` if the kernel does not tell.
    was_set: Option<bool>,
}

/// Follows the machine during a cell. What is read every second is found at the start, which
/// leaves a few files to read.
#[derive(Debug)]
pub struct Watch {
    root: FactsRoot,
    alarm: Option<StepAlarm>,
    clocks: Reading,
    online: Option<String>,
    /// What governs frequencies: name of the policy, file, governor.
    governors: Vec<(String, String, String)>,
    /// Counts of thermal throttling by their file.
    throttles: BTreeMap<String, u64>,
    /// Cooling devices that slow CPUs down: name, type, state.
    coolers: Vec<(String, String, u64)>,
    found: BTreeMap<Happening, Vec<String>>,
}

impl Watch {
    /// Begins with a cell.
    #[must_use]
    pub fn begin(root: FactsRoot) -> Self {
        let alarm = StepAlarm::new().ok();
        let clocks = Reading { offsets: Offsets::read(), was_set: None };
        let mut watch = Self {
            online: online(&root),
            governors: governors(&root),
            throttles: throttles(&root),
            coolers: coolers(&root),
            root,
            alarm,
            clocks,
            found: BTreeMap::new(),
        };
        for (name, kind, state) in watch.coolers.clone() {
            if state > 0 {
                watch.note(
                    Happening::Throttled,
                    format!("{name} ({kind}) at level {state} from the start"),
                );
            }
        }
        watch
    }

    /// Looks for events in the second that is over.
    pub fn look(&mut self, second: u64) {
        let was_set = self.alarm.as_ref().map(StepAlarm::rang);
        self.look_at_clocks(second, Reading { offsets: Offsets::read(), was_set });
        self.look_at_cpus(second);
    }

    fn look_at_clocks(&mut self, second: u64, now: Reading) {
        let before = std::mem::replace(&mut self.clocks, now).offsets;
        let slept = now.offsets.asleep.saturating_sub(before.asleep);
        if slept > 0 && slept.unsigned_abs() > NOISE_NS {
            self.note(Happening::Suspended, format!("for {} at {second} s", human_ns(slept)));
        }
        let step = now.offsets.realtime.saturating_sub(before.realtime);
        let least = if now.was_set == Some(true) { NOISE_NS } else { STEP_NS };
        if now.was_set != Some(false) && step.unsigned_abs() > least {
            let way = if step > 0 { "forward" } else { "back" };
            let by = human_ns(step.saturating_abs());
            self.note(
                Happening::ClockStep,
                format!("CLOCK_REALTIME was set {way} by {by} at {second} s"),
            );
        }
    }

    fn look_at_cpus(&mut self, second: u64) {
        let now = online(&self.root);
        if let (Some(before), Some(now)) = (&self.online, &now)
            && before != now
        {
            let text = format!("CPUs {before} were online, {now} from {second} s on");
            self.note(Happening::Hotplug, text);
        }
        self.online = now.or(self.online.take());
        let mut found = Vec::new();
        for (policy, path, before) in &mut self.governors {
            let Some(now) = self.root.text(path).filter(|now| now != before) else {
                continue;
            };
            let text = format!("{policy} changed from {before} to {now} at {second} s");
            found.push((Happening::Governor, text));
            *before = now;
        }
        for (name, kind, before) in &mut self.coolers {
            let now = state_of(&self.root, name).unwrap_or(*before);
            if now > 0 && *before == 0 {
                let text = format!("{name} ({kind}) at level {now} at {second} s");
                found.push((Happening::Throttled, text));
            }
            *before = now;
        }
        found.into_iter().for_each(|(kind, text)| self.note(kind, text));
    }

    fn note(&mut self, kind: Happening, text: String) {
        self.found.entry(kind).or_default().push(text);
    }

    /// What happened, as conditions of the cell.
    #[must_use]
    pub fn end(mut self) -> Vec<Condition> {
        let now = throttles(&self.root);
        let since = |(file, before): (&String, &u64)| Some(now.get(file)?.saturating_sub(*before));
        // The CPUs of a package, and siblings, all count the same event.
        let times = self.throttles.iter().filter_map(since).max().unwrap_or(0);
        if times > 0 {
            let text = format!("up to {times} times on a CPU (thermal_throttle)");
            self.note(Happening::Throttled, text);
        }
        let condition = |(kind, events): (Happening, Vec<String>)| {
            let (id, meaning) = kind.words();
            let more = events.len().saturating_sub(TOLD);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            let told = events[..events.len().min(TOLD)].join("; ");
            Condition { id: id.to_owned(), text: format!("{told}{more}: {meaning}") }
        };
        self.found.into_iter().map(condition).collect()
    }
}

fn online(root: &FactsRoot) -> Option<String> {
    root.text(&format!("{CPUS}/online"))
}

/// Files with a governor: name of the policy (before Linux 4.3, of the CPU), path, governor.
fn governors(root: &FactsRoot) -> Vec<(String, String, String)> {
    let of = |folder: &str, prefix: &str, below: &str| -> Vec<_> {
        let numbers = root.numbered(folder, prefix).into_iter();
        let governed = numbers.filter_map(|number| {
            let name = format!("{prefix}{number}");
            let path = format!("{folder}/{name}{below}/scaling_governor");
            let governor = root.text(&path)?;
            Some((name, path, governor))
        });
        governed.collect()
    };
    let policies = of(&format!("{CPUS}/cpufreq"), "policy", "");
    if policies.is_empty() { of(CPUS, "cpu", "/cpufreq") } else { policies }
}

/// How often the hardware slowed each core and each package down (x86).
fn throttles(root: &FactsRoot) -> BTreeMap<String, u64> {
    let files = |cpu: u32| {
        ["core", "package"]
            .map(|of| format!("{CPUS}/cpu{cpu}/thermal_throttle/{of}_throttle_count"))
    };
    let cpus = root.numbered(CPUS, "cpu").into_iter();
    cpus.flat_map(files).filter_map(|file| Some((file.clone(), root.number(&file)?))).collect()
}

/// The cooling devices that lower the frequency of CPUs or make them idle.
fn coolers(root: &FactsRoot) -> Vec<(String, String, u64)> {
    let slows = |kind: &str| {
        kind == "Processor"
            || kind == "intel_powerclamp"
            || kind.contains("cpufreq")
            || kind.contains("cpuidle")
    };
    let names = root.list(THERMAL).into_iter().filter(|name| name.starts_with("cooling_device"));
    names
        .filter_map(|name| {
            let kind = root.text(&format!("{THERMAL}/{name}/type")).filter(|kind| slows(kind))?;
            let state = state_of(root, &name)?;
            Some((name, kind, state))
        })
        .collect()
}

/// The state of a cooler. That of an intel_powerclamp which does nothing is -1.
fn state_of(root: &FactsRoot, cooler: &str) -> Option<u64> {
    let state: i64 = root.number(&format!("{THERMAL}/{cooler}/cur_state"))?;
    Some(u64::try_from(state).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::super::root::Native;
    use super::*;

    /// A machine of files.
    struct Machine(PathBuf);

    impl Machine {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("punctual-events-{name}-{}", std::process::id()));
            let machine = Self(path);
            machine.set("sys/devices/system/cpu/online", "0-3");
            machine.set("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance");
            machine.set("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "7");
            machine.set("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "0");
            machine.set("sys/class/thermal/cooling_device0/type", "thermal-cpufreq-0");
            machine.set("sys/class/thermal/cooling_device0/cur_state", "0");
            machine.set("sys/class/thermal/cooling_device1/type", "pwm-fan");
            machine.set("sys/class/thermal/cooling_device1/cur_state", "1");
            machine
        }

        fn set(&self, file: &str, text: &str) {
            let path = self.0.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }

        fn watch(&self) -> Watch {
            let mut watch = Watch::begin(FactsRoot::new(&self.0, Native::default()));
            // The tests tell what the clocks show.
            watch.alarm = None;
            watch.clocks = at(0, 0, None);
            watch
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn at(asleep: i64, realtime: i64, was_set: Option<bool>) -> Reading {
        Reading { offsets: Offsets { asleep, realtime }, was_set }
    }

    fn told(watch: Watch) -> Vec<(String, String)> {
        watch.end().into_iter().map(|condition| (condition.id, condition.text)).collect()
    }

    #[test]
    fn a_cell_without_events_has_no_condition() {
        let machine = Machine::new("none");
        let mut watch = machine.watch();
        for second in 1..4 {
            watch.look_at_cpus(second);
            watch.look_at_clocks(second, at(900_000, -900_000, Some(second == 2)));
        }
        assert_eq!(told(watch), []);
    }

    #[test]
    fn each_event_is_told_with_its_second() {
        let machine = Machine::new("all");
        for cpu in ["cpu0", "cpu1"] {
            let file = |of| format!("sys/devices/system/cpu/{cpu}/thermal_throttle/{of}");
            machine.set(&file("package_throttle_count"), "0");
        }
        let mut watch = machine.watch();
        watch.look_at_clocks(1, at(0, 0, Some(false)));
        machine.set("sys/devices/system/cpu/online", "0-2");
        machine.set("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave");
        for cpu in ["cpu0", "cpu1"] {
            let file = |of| format!("sys/devices/system/cpu/{cpu}/thermal_throttle/{of}");
            machine.set(&file("package_throttle_count"), "4");
        }
        machine.set("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "10");
        machine.set("sys/class/thermal/cooling_device0/cur_state", "2");
        watch.look_at_cpus(2);
        // Asleep for 4 s: CLOCK_REALTIME went on, which the kernel tells as a step.
        watch.look_at_clocks(2, at(4_000_000_000, 0, Some(true)));
        watch.look_at_clocks(3, at(4_000_000_000, -2_000_000, Some(true)));
        watch.look_at_cpus(3);
        let told = told(watch);
        let expected = [
            ("suspended", "for 4.000 s at 2 s: "),
            ("clock-step", "CLOCK_REALTIME was set back by 2.000 ms at 3 s: "),
            ("cpu-hotplug", "CPUs 0-3 were online, 0-2 from 2 s on: "),
            ("governor-changed", "policy0 changed from performance to powersave at 2 s: "),
            (
                "throttled",
                "cooling_device0 (thermal-cpufreq-0) at level 2 at 2 s; up to 4 times on a CPU \
                 (thermal_throttle): ",
            ),
        ];
        assert_eq!(told.len(), expected.len(), "{told:#?}");
        for ((id, text), (expected_id, start)) in told.iter().zip(expected) {
            assert_eq!(id, expected_id);
            assert!(text.starts_with(start), "{text}");
        }
    }

    #[test]
    fn slewing_is_no_step() {
        let machine = Machine::new("slewed");
        let mut watch = machine.watch();
        watch.look_at_clocks(1, at(0, 50_000_000, None));
        watch.look_at_clocks(2, at(0, 5_000_000_000, Some(false)));
        assert_eq!(told(watch), []);
        let mut watch = machine.watch();
        watch.look_at_clocks(1, at(0, 500_000_000, None));
        assert_eq!(told(watch)[0].0, "clock-step", "a kernel that does not tell");
    }

    #[test]
    fn many_events_of_a_kind_are_counted() {
        let machine = Machine::new("many");
        let mut watch = machine.watch();
        for second in 1..=5 {
            machine.set("sys/devices/system/cpu/online", if second % 2 == 0 { "0-3" } else { "0" });
            watch.look_at_cpus(second);
        }
        let told = told(watch);
        assert_eq!(told.len(), 1);
        assert!(told[0].1.contains("from 3 s on; and 2 more: "), "{}", told[0].1);
    }

    #[test]
    fn a_cooler_that_does_nothing_is_watched() {
        let machine = Machine::new("clamp");
        machine.set("sys/class/thermal/cooling_device2/type", "intel_powerclamp");
        machine.set("sys/class/thermal/cooling_device2/cur_state", "-1");
        let mut watch = machine.watch();
        machine.set("sys/class/thermal/cooling_device2/cur_state", "25");
        watch.look_at_cpus(1);
        let told = told(watch);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].1.starts_with("cooling_device2 (intel_powerclamp) at level 25 at 1 s"));
    }

    #[test]
    fn throttled_from_the_start() {
        let machine = Machine::new("hot");
        machine.set("sys/class/thermal/cooling_device0/cur_state", "3");
        let told = told(machine.watch());
        assert!(told[0].1.contains("at level 3 from the start"), "{told:?}");
    }
}
