//! Explanations made up as a board would have given them.

use punctual_core::explanation::{
    Chosen, Explained, ExplainedCell, Explanation, Held, Hold, Leg, Milestone, StackSpan,
};
use punctual_core::preemption::Model;

use super::Random;

const CALL: [&str; 6] = [
    "entry_SYSCALL_64_after_hwframe",
    "do_syscall_64",
    "__x64_sys_clone",
    "__do_sys_clone",
    "kernel_clone",
    "copy_process",
];
const COPY: [&str; 4] =
    ["dup_mm.constprop.0", "copy_page_range", "copy_pte_range", "copy_present_page"];
pub const TIMER: [&str; 3] =
    ["asm_sysvec_apic_timer_interrupt", "__sysvec_apic_timer_interrupt", "hrtimer_interrupt"];
const SLEEP: [&str; 6] = [
    "entry_SYSCALL_64_after_hwframe",
    "do_syscall_64",
    "__x64_sys_clock_nanosleep",
    "hrtimer_nanosleep",
    "do_nanosleep",
    "schedule",
];

/// A sample that grows.
pub struct Maker(pub Explained);

impl Maker {
    pub fn new(chosen: Chosen, idle: bool) -> Self {
        Self(Explained {
            chosen,
            at_ns: 1_204_000_000,
            latency_ns: 0,
            missed: 0,
            idle,
            instructions: 0,
            legs: Vec::new(),
            held: Vec::new(),
            spans: Vec::new(),
            turns: Vec::new(),
            functions: Vec::new(),
        })
    }

    /// What ran next, for so long.
    pub fn run(&mut self, ns: u64, parts: &[&[&str]]) {
        let names = parts.concat();
        let functions = &mut self.0.functions;
        let mut number = |name: &&str| {
            let at = functions.iter().position(|one| one == name).unwrap_or_else(|| {
                functions.push((*name).to_owned());
                functions.len() - 1
            });
            u32::try_from(at).unwrap()
        };
        let stack: Vec<u32> = names.iter().map(&mut number).collect();
        self.0.latency_ns += ns;
        self.0.instructions += if stack.is_empty() { 0 } else { ns };
        self.0.spans.push(StackSpan { end_ns: self.0.latency_ns, stack });
    }

    /// A leg that ends now.
    pub fn leg(&mut self, until: Milestone) {
        self.0.legs.push(Leg { until, end_ns: self.0.latency_ns });
    }

    pub fn held(&mut self, how: Hold, from_ns: Option<i64>, to_ns: i64, ends: [&str; 2]) {
        let [began_in, ended_in] = ends.map(str::to_owned);
        self.0.held.push(Held { how, from_ns, to_ns, began_in, ended_in });
    }

    /// From the interrupt to the thread's wake-up.
    pub fn interrupt(&mut self, on: &[&str]) {
        self.leg(Milestone::Interrupt);
        self.run(700, &[on, &TIMER[..2]]);
        self.run(650, &[on, &TIMER]);
        self.run(420, &[on, &TIMER, &["__hrtimer_run_queues", "hrtimer_wakeup"]]);
        self.leg(Milestone::Wakeup);
        self.run(800, &[on, &TIMER, &["__hrtimer_run_queues", "hrtimer_wakeup", "try_to_wake_up"]]);
        self.run(
            310,
            &[
                on,
                &TIMER,
                &["__hrtimer_run_queues", "hrtimer_wakeup", "try_to_wake_up", "enqueue_task_rt"],
            ],
        );
        self.run(240, &[on, &TIMER, &["tick_program_event"]]);
    }

    /// From the scheduler to the reading of the clock.
    pub fn switch(&mut self, from: &[&str]) {
        self.leg(Milestone::Schedule);
        self.run(620, &[from, &["__schedule"]]);
        self.run(480, &[from, &["__schedule", "pick_next_task_rt"]]);
        self.leg(Milestone::Switch);
        self.run(410, &[&SLEEP, &["__schedule", "finish_task_switch.isra.0"]]);
        self.run(530, &[&SLEEP[..5]]);
        self.run(300, &[&SLEEP[..2], &["syscall_exit_to_user_mode"]]);
        self.leg(Milestone::User);
        self.run(90, &[&["wait_for_release"]]);
        self.leg(Milestone::Clock);
    }
}

/// A release while another process forks: so many pages are copied before the scheduler is called.
pub fn fork(chosen: Chosen, pages: u64) -> Explained {
    let mut made = Maker::new(chosen, false);
    made.run(1_450, &[&CALL, &COPY[..3]]);
    made.run(60, &[&CALL, &COPY[..3], &TIMER[..1]]);
    made.interrupt(&[&CALL[..], &COPY[..3]].concat());
    let woken = made.0.latency_ns;
    let allocate = ["__folio_alloc", "get_page_from_freelist", "prep_new_page", "clear_page_erms"];
    for page in 0..pages {
        made.run(120 + page % 7, &[&CALL, &COPY[..3]]);
        made.run(85, &[&CALL, &COPY, &allocate[..2]]);
        made.run(950, &[&CALL, &COPY, &allocate]);
        made.run(45, &[&CALL, &COPY]);
        made.run(610, &[&CALL, &COPY, &["copy_mc_enhanced_fast_string"]]);
        made.run(30, &[&CALL, &COPY, &["folio_add_new_anon_rmap"]]);
    }
    made.run(2_300, &[&CALL, &["sched_cgroup_fork"]]);
    made.run(140, &[&CALL[..2], &["syscall_exit_to_user_mode"]]);
    let end = i64::try_from(made.0.latency_ns).unwrap();
    let woken = i64::try_from(woken).unwrap() - 1_350;
    made.held(Hold::Scheduler, Some(woken), end, ["try_to_wake_up", "schedule"]);
    made.switch(&[&CALL[..2], &["syscall_exit_to_user_mode", "schedule"]].concat());
    made.0
}

/// A release while interrupts are off in another thread of the kernel.
pub fn locked(chosen: Chosen, ns: u64) -> Explained {
    let mut made = Maker::new(chosen, false);
    let thread =
        ["ret_from_fork_asm", "ret_from_fork", "kthread", "worker_thread", "process_one_work"];
    let rest = ["blk_mq_run_work_fn", "scsi_queue_rq"];
    made.run(ns / 4, &[&thread, &rest]);
    made.run(ns / 2, &[&thread, &rest, &["ata_scsi_queuecmd", "ioread8"]]);
    made.run(ns - ns / 4 - ns / 2, &[&thread, &rest, &["ata_scsi_queuecmd"]]);
    let end = i64::try_from(ns).unwrap();
    made.held(
        Hold::Interrupts,
        Some(-18_400),
        end,
        ["_raw_spin_lock_irqsave", "_raw_spin_unlock_irqrestore"],
    );
    made.interrupt(&[&thread[..], &rest].concat());
    made.switch(&[&thread[..], &["preempt_schedule_irq"]].concat());
    made.0.missed = 3;
    made.0
}

/// A release while a softirq runs.
pub fn softirq(chosen: Chosen, packets: u64) -> Explained {
    let mut made = Maker::new(chosen, false);
    let device = ["asm_common_interrupt", "common_interrupt", "irq_exit_rcu", "handle_softirqs"];
    made.run(400, &[&["main"], &device]);
    made.interrupt(&[&["main"], &device[..]].concat());
    for _ in 0..packets {
        made.run(300, &[&["main"], &device, &["net_rx_action", "virtnet_poll"]]);
        made.run(1_100, &[&["main"], &device, &["net_rx_action", "virtnet_poll", "tcp_v4_rcv"]]);
        made.run(
            450,
            &[
                &["main"],
                &device,
                &["net_rx_action", "virtnet_poll", "tcp_v4_rcv", "__skb_checksum"],
            ],
        );
    }
    let end = i64::try_from(made.0.latency_ns).unwrap();
    made.held(Hold::Scheduler, Some(1_500), end, ["try_to_wake_up", "schedule"]);
    made.switch(
        &[&["main"][..], &device[..2], &["irqentry_exit", "preempt_schedule_irq"]].concat(),
    );
    made.0
}

/// A release into an idle CPU that finds a thread of the kernel released with it and preferred.
pub fn rival(chosen: Chosen) -> Explained {
    let mut made = Maker::new(chosen, true);
    made.run(180, &[&["cpu_startup_entry", "do_idle", "cpuidle_enter_state"]]);
    made.interrupt(&["cpu_startup_entry", "do_idle"]);
    let chosen = i64::try_from(made.0.latency_ns).unwrap();
    made.run(700, &[&["cpu_startup_entry", "do_idle", "schedule_idle"]]);
    let thread = ["ret_from_fork", "kthread", "spin_all [spin]"];
    made.run(3_000_000, &[&thread, &["spin_for [spin]"]]);
    let end = i64::try_from(made.0.latency_ns).unwrap();
    made.held(Hold::Preferred, Some(chosen), end, ["do_idle", "spin_all [spin]"]);
    made.switch(&[&thread[..], &["schedule"]].concat());
    made.0
}

/// A release that finds the CPU idle.
pub fn idle(chosen: Chosen, asleep: u64) -> Explained {
    let mut made = Maker::new(chosen, true);
    made.run(asleep, &[]);
    made.run(180, &[&["cpu_startup_entry", "do_idle", "cpuidle_enter_state"]]);
    made.interrupt(&["cpu_startup_entry", "do_idle"]);
    made.run(260, &[&["cpu_startup_entry", "do_idle"]]);
    made.switch(&["cpu_startup_entry", "do_idle", "schedule_idle"]);
    made.0
}

pub fn cell(key: &str, load: &str, samples: Vec<Explained>) -> ExplainedCell {
    let (key, load) = (key.to_owned(), load.to_owned());
    ExplainedCell { key, load, samples, unexplained: Vec::new() }
}

pub fn explanation(release: &str, model: Model, cells: Vec<ExplainedCell>) -> Explanation {
    Explanation {
        run_id: "5f3a".to_owned(),
        run: format!("20261120T170003Z-lab-{release}-5f3a"),
        release: release.to_owned(),
        model,
        instruction_ns: 1,
        cells,
        caveats: vec!["The samples are those of a repeat, whose times are the same.".to_owned()],
    }
}

/// A kernel without preemption, under a load and without.
pub fn none() -> Explanation {
    let loaded = [
        fork(Chosen::Typical, 0),
        fork(Chosen::Worst, 176),
        softirq(Chosen::Worst, 90),
        locked(Chosen::Worst, 96_000),
    ];
    let quiet = [idle(Chosen::Typical, 1_700), idle(Chosen::Worst, 9_500)];
    explanation(
        "6.1.0-56-amd64",
        Model::None,
        vec![
            cell("wakeup @ hackbench @ 2s", "hackbench", loaded.into()),
            cell("wakeup @ none @ 2s", "none", quiet.into()),
        ],
    )
}

/// The same under PREEMPT_RT: the forks are shorter, and a cell is missing.
pub fn rt() -> Explanation {
    let loaded =
        [fork(Chosen::Typical, 0), locked(Chosen::Worst, 31_000), softirq(Chosen::Worst, 4)];
    let cells = vec![
        cell("wakeup @ hackbench @ 2s", "hackbench", loaded.into()),
        cell("handoff @ none @ 2s", "none", vec![idle(Chosen::Worst, 0)]),
    ];
    explanation("6.1.0-56-rt-amd64", Model::Rt, cells)
}

/// A latency of 5 ms in 100,000 spans of ever changing stacks.
pub fn long() -> Explanation {
    let mut made = Maker::new(Chosen::Worst, false);
    let mut random = Random::new(7);
    let names: Vec<String> = (0..300).map(|i| format!("a_function_of_the_kernel_{i}")).collect();
    made.0.functions = names;
    let mut stack: Vec<u32> = vec![0, 1, 2];
    for number in 1..=100_000_u64 {
        match random.next() % 3 {
            0 if stack.len() > 4 => drop(stack.pop()),
            1 if stack.len() < 22 => stack.push(u32::try_from(random.next() % 300).unwrap()),
            _ => {
                stack.pop();
                stack.push(u32::try_from(random.next() % 300).unwrap());
            }
        }
        made.0.spans.push(StackSpan { end_ns: number * 50, stack: stack.clone() });
    }
    made.0.latency_ns = 5_000_000;
    made.0.instructions = 5_000_000;
    for (until, end_ns) in [
        (Milestone::Interrupt, 2_000),
        (Milestone::Schedule, 4_990_000),
        (Milestone::Clock, 5_000_000),
    ] {
        made.0.legs.push(Leg { until, end_ns });
    }
    explanation(
        "6.1.0",
        Model::None,
        vec![cell("wakeup @ hackbench @ 2s", "hackbench", vec![made.0])],
    )
}
