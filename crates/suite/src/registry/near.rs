//! Suggestions for mistyped names.

/// `; did you mean "NAME"?` for the nearest of `known`, or nothing if none is within two
/// letters that are wrong, missing, extra or swapped.
pub fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    known
        .map(|known| (strsim::osa_distance(name, known), known))
        .min()
        .filter(|(distance, known)| *distance <= 2 && *distance < known.chars().count())
        .map_or_else(String::new, |(_, known)| format!("; did you mean \"{known}\"?"))
}

/// What to say of a name that no entry has: which names there are, and which may be meant.
pub fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let hint = hint(name, known.iter().copied());
    let hint = if hint.is_empty() { ";" } else { &hint };
    format!("unknown {what} \"{name}\"{hint} there are: {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn only_what_is_near_is_meant() {
        let known = || ["wakeup", "clock", "sim"].into_iter();
        assert_eq!(hint("wakup", known()), "; did you mean \"wakeup\"?");
        assert_eq!(hint("clokc", known()), "; did you mean \"clock\"?");
        assert_eq!(hint("xyzzy", known()), "");
        assert_eq!(hint("", ["no"].into_iter()), "");
    }
}
