//! What a deadline is asked to leave open: the keys `at_most` and `allow` of a plan, and the
//! options of these names.

use thiserror::Error;

use super::Plan;
use crate::allowance::Allowance;
use crate::units::percent;

/// What is asked of the evidence for a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Asked {
    /// Of a hard deadline: what a PASS may leave open.
    pub at_most: Option<Allowance>,
    /// What makes it soft: how much may be late.
    pub allow: Option<Allowance>,
    /// Activations are counted one by one.
    pub singly: bool,
}

/// What these are called where they were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    at_most: &'static str,
    allow: &'static str,
    singly: &'static str,
    deadline: &'static str,
}

impl Names {
    /// As options.
    pub const OPTIONS: Self =
        Self { at_most: "--at-most", allow: "--allow", singly: "--singly", deadline: "--deadline" };
    /// As keys of a plan.
    pub const KEYS: Self =
        Self { at_most: "at_most", allow: "allow", singly: "singly", deadline: "deadline" };
}

/// Why that does not fit together.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum AskedError {
    /// A deadline that is both hard and soft.
    #[error(
        "{at_most} and {allow}: the first is of a hard deadline, the second makes it soft; give \
         one of them",
        at_most = .0.at_most, allow = .0.allow
    )]
    Both(Names),
    /// A share of a hard deadline.
    #[error(
        "{at_most} {0}%: how often lateness begins is what a hard deadline bounds, so give a rate \
         such as {at_most} 6/min; {allow} {0}% makes the deadline soft; with {singly}, which takes \
         late activations for independent, {at_most} {0}% bounds their share",
        at_most = .1.at_most, allow = .1.allow, singly = .1.singly
    )]
    HardShare(String, Names),
    /// A rate where activations are counted one by one.
    #[error("{0} with {singly}: activations are counted one by one then, so give a share such as \
             0.01%, or leave out {singly}", singly = .1.singly)]
    SinglyRate(String, Names),
    /// Something is allowed, and there is nothing to be late for.
    #[error(
        "{allow} {0} needs a deadline: give {deadline} too",
        allow = .1.allow, deadline = .1.deadline
    )]
    NoDeadline(Allowance, Names),
}

impl Plan {
    /// Judges by what is asked instead of what the plan says of the same: `at_most` makes the
    /// deadline hard, `allow` soft. A rate ends that activations are counted one by one.
    ///
    /// # Errors
    /// [`AskedError`], in the words of `names`.
    pub fn ask(&mut self, asked: &Asked, names: Names) -> Result<(), AskedError> {
        let of_rate = |name, rate| AskedError::SinglyRate(format!("{name} {rate}"), names);
        match (asked.at_most, asked.allow) {
            (Some(_), Some(_)) => return Err(AskedError::Both(names)),
            (Some(Allowance::Rate(rate)), None) if asked.singly => {
                return Err(of_rate(names.at_most, rate));
            }
            (None, Some(Allowance::Rate(rate))) if asked.singly => {
                return Err(of_rate(names.allow, rate));
            }
            (Some(Allowance::Share(share)), None) if !asked.singly && !self.singly => {
                return Err(AskedError::HardShare(percent(share), names));
            }
            (Some(at_most), None) => {
                (self.tolerate, self.tolerate_episodes) = (None, None);
                match at_most {
                    Allowance::Rate(rate) => {
                        (self.episodes, self.probability, self.singly) = (rate, None, false);
                    }
                    Allowance::Share(share) => self.probability = Some(share),
                }
            }
            (None, Some(allow)) if self.deadline_ns.is_none() => {
                return Err(AskedError::NoDeadline(allow, names));
            }
            (None, Some(Allowance::Rate(rate))) => {
                (self.tolerate, self.tolerate_episodes) = (None, Some(rate));
                self.singly = false;
            }
            (None, Some(Allowance::Share(share))) => {
                (self.tolerate, self.tolerate_episodes) = (Some(share), None);
            }
            (None, None) => {}
        }
        if asked.singly {
            if let Some(rate) = self.tolerate_episodes {
                return Err(of_rate(names.allow, rate));
            }
            self.singly = true;
        }
        Ok(())
    }
}
