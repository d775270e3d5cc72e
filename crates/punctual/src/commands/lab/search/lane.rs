//! What one of several threads that boot guests says to the one that waits for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use punctual_core::channel::Event;
use punctual_core::search::Try;
use punctual_lab::experiment::{Follow, Place};
use punctual_lab::qemu::End;

/// How often guests and signals are looked at.
pub const PAUSE: Duration = Duration::from_millis(100);

/// What a thread has to say.
pub enum Word {
    /// A try, unless its guest was ended before.
    Ended(anyhow::Result<Option<Box<Try>>>),
    Note(String),
}

/// A thread that boots guests.
pub struct Lane<'a> {
    /// Whether nothing is wanted any more.
    pub over: &'a AtomicBool,
    pub to: Sender<Word>,
}

impl Lane<'_> {
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Whoever does not listen any more has ended everything.
    pub fn say(&self, word: Word) {
        let _ = self.to.send(word);
    }
}

impl Follow for Lane<'_> {
    fn booted(&mut self, _: &Place) {}

    fn event(&mut self, _: &Place, _: &Event, _: Duration) {}

    fn ended(&mut self, _: &Place, _: &End, _: Duration) {}

    fn note(&mut self, kernel: &str, text: &str) {
        self.say(Word::Note(format!("{kernel}: {text}")));
    }

    fn warn(&mut self, kernel: &str, text: &str) {
        self.note(kernel, text);
    }

    fn pause(&mut self) -> bool {
        thread::sleep(PAUSE);
        self.is_over()
    }
}
