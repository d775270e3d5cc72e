//! How the processes of a part are contained, and how they are ended.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use punctual_sys::error;
use punctual_sys::process::containment::{Containment, Spawn};
use punctual_sys::process::spawn::{Supervisor, spawn};
use punctual_sys::shared::SharedCounters;

use super::context::LoadContext;
use super::order::PartOrder;
use super::procs::{MARKER, kill_marked, until};
use crate::cgroups::OwnCgroups;

/// How long processes may take to die; one that waits for a disk dies late.
const END_LIMIT: Duration = Duration::from_secs(10);
/// How long a supervisor is given to end its processes by itself.
const LIFELINE_LIMIT: Duration = Duration::from_secs(2);

/// A supervisor with everything that contains its processes.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) supervisor: Supervisor,
    pub(super) containment: Containment,
    cgroup: Option<PathBuf>,
    marker: String,
    ended: bool,
}

impl Held {
    /// Starts a supervisor in the strongest available containment among those that the context
    /// allows.
    pub(super) fn start(
        order: &mut PartOrder,
        counters: &SharedCounters,
        context: &mut LoadContext<'_>,
    ) -> Result<Self, String> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let marker = format!("{}-{number}", std::process::id());
        let mut refusals = Vec::new();
        // A process that moves to a group of the user's leaves one of ours.
        let moves = order.params.contains_key("cgroup");
        for &containment in &context.containments.clone() {
            if moves && containment == Containment::Cgroup {
                continue;
            }
            match Self::start_in(containment, order, counters, context, &marker) {
                Ok(held) => return Ok(held),
                Err(reason) => refusals.push(format!("{}: {reason}", containment.name())),
            }
        }
        Err(format!("no supervisor ({})", refusals.join("; ")))
    }

    fn start_in(
        containment: Containment,
        order: &mut PartOrder,
        counters: &SharedCounters,
        context: &mut LoadContext<'_>,
        marker: &str,
    ) -> Result<Self, String> {
        let cgroup = match containment {
            Containment::Cgroup => Some(make_cgroup(context, marker)?),
            _ => None,
        };
        containment.name().clone_into(&mut order.containment);
        order.cgroup.clone_from(&cgroup);
        let json = serde_json::to_string(order).map_err(|error| error.to_string())?;
        let mut args: Vec<OsString> = context.self_args.iter().map(OsString::from).collect();
        args.push(json.into());
        let spawned = spawn(&Spawn {
            executable: &context.executable,
            args: &args,
            variable: (MARKER, marker),
            containment,
            cgroup: cgroup.as_deref(),
            shared: counters.as_fd(),
        });
        match spawned {
            Ok(supervisor) => Ok(Self {
                supervisor,
                containment,
                cgroup,
                marker: marker.to_owned(),
                ended: false,
            }),
            Err(error) => {
                if let Some(cgroup) = cgroup {
                    let _ = fs::remove_dir(cgroup);
                }
                Err(error::text(&error))
            }
        }
    }

    /// Ends every process of the part and reaps the supervisor. False if a process is still
    /// alive ten seconds after it was to die.
    pub(super) fn end(&mut self) -> bool {
        if self.ended {
            return true;
        }
        self.ended = true;
        if self.containment == Containment::Subreaper {
            // Only the supervisor finds descendants that have cleared their environment.
            self.supervisor.close_lifeline();
            until(LIFELINE_LIMIT, || self.is_reaped());
        }
        let mut all_dead = true;
        if let Some(cgroup) = &self.cgroup {
            all_dead &= kill_cgroup(cgroup);
        }
        // A killed init takes its whole namespace with it before it can be reaped.
        let _ = self.supervisor.kill();
        all_dead &= until(END_LIMIT, || self.is_reaped());
        if !self.containment.is_namespace() {
            all_dead &= kill_marked(&self.marker, END_LIMIT);
        }
        if let Some(cgroup) = &self.cgroup {
            all_dead &= until(END_LIMIT, || fs::remove_dir(cgroup).is_ok());
        }
        all_dead
    }

    fn is_reaped(&mut self) -> bool {
        // An error means that there is nothing left to reap.
        self.supervisor.try_wait().map_or(true, |exit| exit.is_some())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.end();
    }
}

/// Kills the members of a cgroup, including those that fork meanwhile.
pub(super) fn kill_cgroup(cgroup: &Path) -> bool {
    let _ = fs::write(cgroup.join("cgroup.kill"), "1");
    until(END_LIMIT, || {
        fs::read_to_string(cgroup.join("cgroup.events"))
            .map_or(true, |events| events.lines().any(|line| line == "populated 0"))
    })
}

fn make_cgroup(context: &mut LoadContext<'_>, marker: &str) -> Result<PathBuf, String> {
    let own = OwnCgroups::read()?.unified().ok_or("no cgroup v2 is mounted")?;
    let folder = own.join(format!("punctual-load-{marker}"));
    let made = context.journal.cgroup_dir(&folder);
    made.map_err(|error| format!("{}: {}", folder.display(), error::text(&error)))?;
    if !folder.join("cgroup.kill").exists() {
        let _ = fs::remove_dir(&folder);
        return Err("the kernel has no cgroup.kill (Linux 5.14)".to_owned());
    }
    Ok(folder)
}
