//! Receives a guest's messages from its channel and writes them to its run directory.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use punctual_core::channel::{Decoder, Event, Message};
use punctual_core::layout::RUN_JSON;
use punctual_core::text::clean_start;
use punctual_core::units::{SECOND_NS, grouped};

use crate::bounds::Bounds;
use crate::run_dir::RunDir;

/// Bytes read at once.
const SLICE: u64 = 1 << 20;

/// Longest text of a guest that is kept, characters.
const LONGEST_TEXT: usize = 1_000;

/// Failures of a guest that are kept.
const MOST_TROUBLES: usize = 16;

/// The receiving end of a guest's channel.
pub(crate) struct Receiver {
    channel: File,
    decoder: Decoder,
    dir: RunDir,
    bounds: Bounds,
    /// Bytes received.
    received: u64,
    /// Whether the channel was read to its end after the guest had ended.
    at_end: bool,
    /// Whether any message has arrived, which means that init is running.
    pub(crate) heard: bool,
    /// Whether the guest said that it has sent the whole run.
    pub(crate) whole: bool,
    /// Failures that the guest reported.
    troubles: Vec<String>,
    /// Failures that it reported beyond [`MOST_TROUBLES`].
    more_troubles: u64,
    /// Error of the first unreadable message.
    damage: Option<String>,
}

/// What has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    /// Whether there was any message.
    pub(crate) any: bool,
    /// Whether there may be more.
    pub(crate) more: bool,
}

impl Receiver {
    /// Receives from the growing file `channel`.
    pub(crate) fn open(channel: &Path, dir: RunDir, bounds: Bounds) -> Result<Self> {
        Ok(Self {
            channel: File::open(channel).context("the channel")?,
            decoder: Decoder::default(),
            dir,
            bounds,
            received: 0,
            at_end: false,
            heard: false,
            whole: false,
            troubles: Vec::new(),
            more_troubles: 0,
            damage: None,
        })
    }

    /// Acts on what has arrived, until the time is `until` if that comes first; if the guest
    /// has `ended`, nothing more will arrive.
    ///
    /// # Errors
    /// The run directory cannot be written, the host refuses the run, or the guest exceeds its
    /// bounds: it is no longer of use.
    pub(crate) fn receive(
        &mut self,
        ended: bool,
        until: Instant,
        tell: &mut dyn FnMut(&Event),
    ) -> Result<Received> {
        let mut any = false;
        loop {
            while Instant::now() < until {
                match self.decoder.take() {
                    Ok(Some(message)) => {
                        any = true;
                        self.heard = true;
                        self.act(message, tell)?;
                    }
                    Ok(None) if self.at_end && self.decoder.skip() => {}
                    Ok(None) => break,
                    Err(error) => {
                        // The measuring process was killed in the middle of a message; the next
                        // one, from init, says why.
                        self.note_damage(&error.to_string());
                        self.decoder.skip();
                    }
                }
            }
            if Instant::now() >= until {
                return Ok(Received { any, more: true });
            }
            if !self.read()? {
                if self.at_end || !ended {
                    return Ok(Received { any, more: false });
                }
                self.at_end = true;
            }
        }
    }

    /// Reads a slice of the channel; `false` if there is nothing.
    fn read(&mut self) -> Result<bool> {
        let mut bytes = Vec::new();
        let mut slice = (&self.channel).take(SLICE);
        slice.read_to_end(&mut bytes).context("cannot read the channel")?;
        self.received += bytes.len() as u64;
        ensure!(
            self.received <= self.bounds.bytes,
            "the guest sent more than the {} bytes that its plan can take",
            grouped(self.bounds.bytes)
        );
        self.decoder.push(&bytes);
        Ok(!bytes.is_empty())
    }

    fn act(&mut self, message: Message, tell: &mut dyn FnMut(&Event)) -> Result<()> {
        match message {
            Message::Event(event) => self.follow(printable(event), tell),
            Message::Append(name, bytes) if self.bounds.files.contains(&name) => {
                self.dir.append(&name, &bytes)
            }
            Message::Whole(name, bytes) if name == RUN_JSON => self.dir.replace_run(&bytes),
            Message::Append(name, _) | Message::Whole(name, _) => {
                self.note_damage(&format!("\"{name}\" is no file of this run"));
                Ok(())
            }
        }
    }

    fn follow(&mut self, event: Event, tell: &mut dyn FnMut(&Event)) -> Result<()> {
        match &event {
            Event::Trouble { text } if self.troubles.len() < MOST_TROUBLES => {
                self.troubles.push(text.clone());
            }
            Event::Trouble { .. } => self.more_troubles += 1,
            Event::Ended { whole, .. } => self.whole = *whole,
            Event::Booted { at_ns }
            | Event::Settling { at_ns }
            | Event::Pausing { at_ns }
            | Event::Started { at_ns, .. }
            | Event::Cell { at_ns, .. }
            | Event::Progress { at_ns, .. } => ensure!(
                *at_ns <= self.bounds.board_ns,
                "the guest goes on after {} s of the board's time, the most that its plan can \
                 take",
                grouped(self.bounds.board_ns / SECOND_NS)
            ),
        }
        tell(&event);
        Ok(())
    }

    fn note_damage(&mut self, text: &str) {
        if self.damage.is_none() {
            self.damage = Some(clean_start(text, LONGEST_TEXT));
        }
    }

    /// Ends the run directory and returns the reasons why the run is incomplete: those that
    /// the guest reported, then `others`. They are also noted in the run if any of it has
    /// arrived.
    pub(crate) fn finish(&mut self, others: Vec<String>) -> Vec<String> {
        let mut troubles = std::mem::take(&mut self.troubles);
        if self.more_troubles > 0 {
            troubles.push(format!("{} more failures", grouped(self.more_troubles)));
        }
        troubles.extend(others.iter().map(|text| clean_start(text, LONGEST_TEXT)));
        troubles.extend(self.damage.take());
        if self.whole && troubles.is_empty() {
            troubles.extend(self.dir.why_incomplete());
        }
        if !troubles.is_empty() {
            // A run of which nothing has arrived has no run.json to note it in.
            let _ = self.dir.note_failure(&troubles.join("; "));
        }
        troubles
    }

    /// Whether the guest itself reported trouble.
    pub(crate) fn is_in_trouble(&self) -> bool {
        !self.troubles.is_empty()
    }
}

/// The event with texts that may be printed.
fn printable(event: Event) -> Event {
    match event {
        Event::Trouble { text } => Event::Trouble { text: clean_start(&text, LONGEST_TEXT) },
        Event::Cell { at_ns, number, key, before_ns } => {
            Event::Cell { at_ns, number, key: clean_start(&key, LONGEST_TEXT), before_ns }
        }
        Event::Booted { .. }
        | Event::Settling { .. }
        | Event::Pausing { .. }
        | Event::Started { .. }
        | Event::Progress { .. }
        | Event::Ended { .. } => event,
    }
}

#[cfg(test)]
mod tests;
