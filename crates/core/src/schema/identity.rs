//! What tells one board from others of its kind.

use serde::{Deserialize, Serialize};

use crate::hash::hmac_sha256;

/// The key of [`BoardIdentity::of`], so that a value in a record is not the one that other
/// programs derive from the same serial number. Anyone can compute the value from the
/// number: it is a pseudonym, and no secret from whoever knows the number or can try all
/// numbers.
const KEY: &[u8] = b"punctual board identity 1";

/// What tells one board from others of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardIdentity {
    /// What it was derived from.
    pub by: IdentityKind,
    /// 16 hexadecimal digits.
    pub value: String,
}

/// What a board can be known by, the surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdentityKind {
    /// The serial number in the device tree.
    Serial,
    /// DMI's `product_uuid`.
    Uuid,
    /// The permanent MAC address of a network interface. A board has one for each.
    Mac,
    /// The name that was given with `--board-name`.
    Name,
}

impl IdentityKind {
    /// The kinds that hardware tells, the surest first.
    pub const HARDWARE: [Self; 3] = [Self::Serial, Self::Uuid, Self::Mac];

    /// The name as recorded.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Uuid => "uuid",
            Self::Mac => "mac",
            Self::Name => "name",
        }
    }
}

impl std::fmt::Display for BoardIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.by.name(), self.value)
    }
}

impl BoardIdentity {
    /// The one that is derived from `content`, such as a serial number: 64 bits of the HMAC-SHA256
    /// (RFC 2104) of kind and content. Of a million boards two share one with a probability of
    /// 3e-8.
    #[must_use]
    pub fn of(by: IdentityKind, content: &str) -> Self {
        let mut value = hmac_sha256(KEY, format!("{}={content}", by.name()).as_bytes());
        value.truncate(16);
        Self { by, value }
    }
}

/// Whether two boards are one by the surest kind that both have. `None` if they have none in common.
/// Of several MAC addresses one suffices, since a card may be added.
#[must_use]
pub fn same_hardware(a: &[BoardIdentity], b: &[BoardIdentity]) -> Option<bool> {
    IdentityKind::HARDWARE.into_iter().find_map(|kind| {
        let mut of_a = a.iter().filter(|one| one.by == kind).peekable();
        let mut of_b = b.iter().filter(|one| one.by == kind).peekable();
        (of_a.peek().is_some() && of_b.peek().is_some())
            .then(|| of_a.any(|one| b.iter().any(|other| one == other)))
    })
}

/// What tells these boards apart, such as `serial=` and eight digits each, by the surest kind that all
/// have. `None` if there is none.
#[must_use]
pub fn short_identities(boards: &[&[BoardIdentity]]) -> Option<Vec<String>> {
    IdentityKind::HARDWARE.into_iter().find_map(|kind| {
        let short = |known: &&[BoardIdentity]| {
            let found = known.iter().find(|one| one.by == kind)?;
            Some(format!("{}={}", kind.name(), found.value.get(..8)?))
        };
        boards.iter().map(short).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(by: &[(IdentityKind, &str)]) -> Vec<BoardIdentity> {
        by.iter().map(|(by, content)| BoardIdentity::of(*by, content)).collect()
    }

    #[test]
    fn a_value_is_64_bits_and_does_not_change_from_version_to_version() {
        let serial = BoardIdentity::of(IdentityKind::Serial, "10000000abcdef01");
        assert_eq!(serial.value, "4df2e63354b0b408");
        assert_ne!(serial.value, BoardIdentity::of(IdentityKind::Uuid, "10000000abcdef01").value);
    }

    #[test]
    fn the_surest_kind_that_both_have_decides() {
        use IdentityKind::{Mac, Name, Serial, Uuid};
        let same = |a: &[_], b: &[_]| same_hardware(&known(a), &known(b));
        assert_eq!(same(&[(Serial, "1"), (Mac, "5")], &[(Serial, "2"), (Mac, "5")]), Some(false));
        // Read once as root, and once not.
        assert_eq!(same(&[(Uuid, "1"), (Mac, "5")], &[(Mac, "5")]), Some(true));
        // A card more, and one of another board.
        assert_eq!(same(&[(Mac, "5")], &[(Mac, "4"), (Mac, "5")]), Some(true));
        assert_eq!(same(&[(Mac, "5")], &[(Mac, "4"), (Mac, "6")]), Some(false));
        assert_eq!(same(&[(Uuid, "5")], &[(Mac, "5")]), None);
        assert_eq!(same(&[(Name, "5")], &[(Name, "5")]), None);
        let boards = [known(&[(Uuid, "1"), (Mac, "5")]), known(&[(Mac, "6")])];
        let short = short_identities(&[&boards[0], &boards[1]]).unwrap();
        assert_eq!(short[0], format!("mac={}", &boards[0][1].value[..8]));
        assert_eq!(short_identities(&[&boards[0], &[]]), None);
    }
}
