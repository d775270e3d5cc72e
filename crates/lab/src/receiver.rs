//! Receives a guest's messages from its channel and writes them to its run directory.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use punctual_core::channel::{Decoder, Event, Message};

use crate::console::printable;
use crate::run_dir::RunDir;

/// The receiving end of a guest's channel.
pub(crate) struct Receiver {
    channel: File,
    decoder: Decoder,
    dir: RunDir,
    /// Whether anything has arrived, which means that init is running.
    pub(crate) heard: bool,
    /// Whether the guest said that it has sent the whole run.
    pub(crate) whole: bool,
    /// Failures that the guest reported.
    troubles: Vec<String>,
    /// Error of the first unreadable message.
    damage: Option<String>,
}

impl Receiver {
    /// Receives from the growing file `channel`.
    pub(crate) fn open(channel: &Path, dir: RunDir) -> Result<Self> {
        Ok(Self {
            channel: File::open(channel).context("the channel")?,
            decoder: Decoder::default(),
            dir,
            heard: false,
            whole: false,
            troubles: Vec::new(),
            damage: None,
        })
    }

    /// Reads what has arrived; if the guest has `ended`, nothing more will. Returns whether
    /// there was anything.
    ///
    /// # Errors
    /// The run directory cannot be written, or the host refuses the run: the guest is no
    /// longer of use.
    pub(crate) fn receive(&mut self, ended: bool, tell: &mut dyn FnMut(&Event)) -> Result<bool> {
        let mut bytes = Vec::new();
        self.channel.read_to_end(&mut bytes).context("cannot read the channel")?;
        self.heard |= !bytes.is_empty();
        self.decoder.push(&bytes);
        loop {
            match self.decoder.take() {
                Ok(Some(message)) => self.act(message, tell)?,
                Ok(None) if ended && self.decoder.skip() => {}
                Ok(None) => return Ok(!bytes.is_empty()),
                Err(error) => {
                    // The measuring process was killed in the middle of a message; the next
                    // one, from init, says why.
                    if self.damage.is_none() {
                        self.damage = Some(error.to_string());
                    }
                    self.decoder.skip();
                }
            }
        }
    }

    fn act(&mut self, message: Message, tell: &mut dyn FnMut(&Event)) -> Result<()> {
        match message {
            Message::Event(event) => {
                match &event {
                    Event::Trouble { text } => self.troubles.push(printable(text)),
                    Event::Ended { whole, .. } => self.whole = *whole,
                    _ => {}
                }
                tell(&event);
                Ok(())
            }
            Message::Append(name, bytes) => self.dir.append(&name, &bytes),
            Message::Whole(name, bytes) => self.dir.replace(&name, &bytes),
        }
    }

    /// Ends the run directory and returns the reasons why the run is incomplete: those that
    /// the guest reported, then `others`. They are also noted in the run if any of it has
    /// arrived.
    pub(crate) fn finish(&mut self, others: Vec<String>) -> Vec<String> {
        let mut troubles = std::mem::take(&mut self.troubles);
        troubles.extend(others);
        troubles.extend(self.damage.take());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
    use punctual_core::channel::encode;
    use std::fs;

    #[test]
    fn a_message_that_was_cut_short_is_told_after_what_explains_it() {
        let folder = Folder::new();
        let cut = encode(&Message::Append("cells/00-x/blocks".to_owned(), vec![7; 100]));
        let why = Event::Trouble { text: "the measuring process was killed\x1b".to_owned() };
        let sent = [
            &encode(&Message::Append("cells/00-x/blocks".to_owned(), vec![1, 2]))[..],
            &cut[..30],
            &encode(&Message::Event(why)),
            &encode(&Message::Event(Event::Ended { at_ns: 9, whole: false })),
        ];
        folder.write("channel", &sent.concat());
        let path = folder.0.join("run");
        let dir = RunDir::create(&path, Box::new(|_| Ok(()))).unwrap();
        let mut receiver = Receiver::open(&folder.0.join("channel"), dir).unwrap();
        let mut events = 0;
        assert!(receiver.receive(true, &mut |_| events += 1).unwrap());
        assert!(!receiver.receive(true, &mut |_| ()).unwrap());
        assert_eq!((events, receiver.heard, receiver.whole), (2, true, false));
        assert_eq!(fs::read(path.join("cells/00-x/blocks")).unwrap(), [1, 2]);
        let troubles = receiver.finish(vec!["ended by a signal".to_owned()]);
        assert_eq!(troubles[..2], ["the measuring process was killed", "ended by a signal"]);
        assert!(troubles[2].contains("message"), "{troubles:?}");
    }
}
