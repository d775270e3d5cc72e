//! The monitor of QEMU on its standard input and output (docs/interop/qmp-spec.rst of QEMU).

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout};

use anyhow::{Context, Result, bail};
use punctual_sys::fd::set_nonblocking;
use serde_json::{Value, json};

/// Shell commands that QEMU writes its state to, and reads it from; the path is in [`STATE`],
/// so it needs no quoting. QEMU before 8.2 has no other way to use a file. The second file says
/// that the first one is whole.
const WRITE: &str = "exec:cat >\"$PUNCTUAL_STATE\" && : >\"$PUNCTUAL_STATE.whole\"";
const READ: &str = "exec:exec cat <\"$PUNCTUAL_STATE\"";

/// The variable of QEMU's environment that has the path of its state.
pub(crate) const STATE: &str = "PUNCTUAL_STATE";

/// Options with which QEMU takes commands.
pub(crate) const OPTIONS: [&str; 2] = ["-qmp", "stdio"];

/// A QEMU that writes its state or starts from one.
pub(crate) struct Control {
    to: ChildStdin,
    from: ChildStdout,
    /// What has arrived of the next message.
    rest: Vec<u8>,
    goes_on: bool,
    is_paused: bool,
    is_over: bool,
}

impl Control {
    /// Prepares to write the state of a guest that pauses.
    ///
    /// # Errors
    /// QEMU does not take commands.
    pub(crate) fn keep(child: &mut Child) -> Result<Self> {
        Self::of(child, false)
    }

    /// Makes a guest go on from its state; QEMU was started with `-incoming defer`.
    ///
    /// # Errors
    /// QEMU does not take commands.
    pub(crate) fn go_on(child: &mut Child) -> Result<Self> {
        let mut control = Self::of(child, true)?;
        control.send("migrate-incoming", &json!({ "uri": READ }))?;
        Ok(control)
    }

    fn of(child: &mut Child, goes_on: bool) -> Result<Self> {
        let (to, from) = child.stdin.take().zip(child.stdout.take()).context("no monitor")?;
        set_nonblocking(from.as_fd()).context("the monitor of QEMU")?;
        let rest = Vec::new();
        let mut control = Self { to, from, rest, goes_on, is_paused: false, is_over: false };
        control.send("qmp_capabilities", &json!({}))?;
        let events = json!({ "capability": "events", "state": true });
        control.send("migrate-set-capabilities", &json!({ "capabilities": [events] }))?;
        Ok(control)
    }

    /// Whether the guest has paused by itself.
    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Whether QEMU has written the state, or the guest goes on from it.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Writes the state of the guest, which has paused.
    ///
    /// # Errors
    /// QEMU takes no commands any more.
    pub(crate) fn write(&mut self) -> Result<()> {
        self.send("migrate", &json!({ "uri": WRITE }))
    }

    /// Lets a guest go on whose state was written, until it pauses again.
    ///
    /// # Errors
    /// QEMU takes no commands any more.
    pub(crate) fn go_on_to_next_pause(&mut self) -> Result<()> {
        (self.is_paused, self.is_over) = (false, false);
        self.send("cont", &json!({}))
    }

    /// Acts on what QEMU has said.
    ///
    /// # Errors
    /// It cannot do what it was told, or takes no commands any more.
    pub(crate) fn step(&mut self) -> Result<()> {
        // Nothing is of interest then; what QEMU says of its end fits into the pipe.
        if self.is_over {
            return Ok(());
        }
        let mut bytes = [0; 4096];
        loop {
            match self.from.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(count) => self.rest.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("the monitor of QEMU"),
            }
        }
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            self.hear(&serde_json::from_slice(&line).context("the monitor of QEMU")?)?;
        }
        Ok(())
    }

    fn hear(&mut self, message: &Value) -> Result<()> {
        if let Some(why) = message.pointer("/error/desc").and_then(Value::as_str) {
            bail!("QEMU: {why}");
        }
        match (message["event"].as_str(), message["data"]["status"].as_str()) {
            (Some("STOP"), _) => self.is_paused = true,
            (Some("MIGRATION"), Some("completed")) => {
                // The state was written by a guest that had paused, and it is still paused.
                if self.goes_on {
                    self.send("cont", &json!({}))?;
                } else {
                    self.is_over = true;
                }
            }
            (Some("RESUME"), _) => self.is_over = self.goes_on,
            (Some("MIGRATION"), Some("failed")) if self.goes_on => {
                bail!("QEMU cannot go on from the kept state")
            }
            (Some("MIGRATION"), Some("failed")) => bail!("QEMU cannot write the board's state"),
            _ => {}
        }
        Ok(())
    }

    fn send(&mut self, command: &str, arguments: &Value) -> Result<()> {
        let line = json!({ "execute": command, "arguments": arguments });
        writeln!(self.to, "{line}").context("the monitor of QEMU")
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Something that answers with these lines, and what it was told until then.
    fn answering(lines: &str, goes_on: bool) -> (Result<Control>, Child) {
        let script = format!("for n in 1 2; do read line; done; printf '%s\\n' '{lines}'; cat >&2");
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let control = if goes_on { Control::go_on(&mut child) } else { Control::keep(&mut child) };
        (control, child)
    }

    /// Steps until something has come of it; then what else it was told.
    fn stepped(lines: &str, goes_on: bool) -> (Result<(bool, bool)>, String) {
        let (control, mut child) = answering(lines, goes_on);
        let mut control = control.unwrap();
        let result = loop {
            match control.step() {
                Ok(()) if control.is_paused || control.is_over => {
                    break Ok((control.is_paused, control.is_over));
                }
                Ok(()) => std::thread::yield_now(),
                Err(error) => break Err(error),
            }
        };
        drop(control);
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        child.wait().unwrap();
        (result, told)
    }

    const COMPLETED: &str = r#"{"return": {}}
{"event": "MIGRATION", "data": {"status": "active"}}
{"event": "MIGRATION", "data": {"status": "completed"}}"#;

    #[test]
    fn a_guest_goes_on_once_its_state_is_read() {
        let lines = format!("{COMPLETED}\n{{\"event\": \"RESUME\"}}");
        let (result, told) = stepped(&lines, true);
        assert_eq!(result.unwrap(), (false, true));
        let (incoming, cont) = (told.find("migrate-incoming"), told.find("\"cont\""));
        assert!(incoming.is_some() && incoming < cont, "{told}");
    }

    #[test]
    fn a_guest_whose_state_is_written_stays_paused() {
        let (result, told) = stepped(COMPLETED, false);
        assert_eq!(result.unwrap(), (false, true));
        assert!(!told.contains("cont"), "{told}");
        let (result, _) = stepped(r#"{"event": "STOP"}"#, false);
        assert_eq!(result.unwrap(), (true, false));
    }

    #[test]
    fn what_qemu_cannot_do_is_said() {
        let failed = r#"{"event": "MIGRATION", "data": {"status": "failed"}}"#;
        for (lines, goes_on, says) in [
            (failed, true, "QEMU cannot go on from the kept state"),
            (failed, false, "QEMU cannot write the board"),
            (r#"{"error": {"class": "x", "desc": "no such URI"}}"#, true, "QEMU: no such URI"),
        ] {
            let error = stepped(lines, goes_on).0.unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
