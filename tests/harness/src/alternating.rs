//! Measurements of two programs, in turn.

/// Pairs of what `ours` and `theirs` measured. Who is first changes with each pair: neither
/// profits from a drift of the machine.
pub fn alternating<T>(pairs: usize, ours: impl Fn() -> T, theirs: impl Fn() -> T) -> Vec<(T, T)> {
    let of = |pair: usize| {
        if pair.is_multiple_of(2) {
            let first = ours();
            (first, theirs())
        } else {
            let first = theirs();
            (ours(), first)
        }
    };
    (0..pairs).map(of).collect()
}
