//! Whether a signal has asked for an end.

use punctual_sys::signal::Signals;

/// Whether a signal that ends a run has come meanwhile. All that have come are taken.
pub fn came(signals: &Signals) -> bool {
    std::iter::from_fn(|| signals.wait(0)).filter(|signal| signal.ends()).count() > 0
}
