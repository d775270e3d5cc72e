//! What tells this board from others of its kind.
//!
//! `/etc/machine-id` is not among it: an image that is copied to many boards copies it too.

use std::collections::BTreeSet;

use punctual_core::schema::{BoardIdentity, IdentityKind};

use super::root::FactsRoot;

/// MAC addresses that are recorded at most.
const MACS_MAX: usize = 8;

/// UUIDs of boards whose maker has set none, as osquery knows them (`kPlaceholderHardwareUUIDList`),
/// and the first with its bytes in the order of SMBIOS 2.6.
const NO_UUIDS: [&str; 5] = [
    "03000200-0400-0500-0006-000700080009",
    "00020003-0004-0005-0006-000700080009",
    "03020100-0504-0706-0809-0a0b0c0d0e0f",
    "10000000-0000-8000-0040-000000000000",
    "12345678-1234-5678-90ab-cddeefaabbcc",
];

/// What makers write that have no serial number, in small letters and without what separates them.
const NO_SERIALS: [&str; 10] = [
    "tobefilledbyoem",
    "notspecified",
    "notapplicable",
    "notavailable",
    "defaultstring",
    "systemserialnumber",
    "serialnumber",
    "unknown",
    "empty",
    "none",
];

/// Everything that this board can be known by: serial number, UUID and MAC addresses as far as they
/// can be read, since not everyone who measures may read all of it, and the name that was given to
/// it.
#[must_use]
pub fn identity(root: &FactsRoot, given_name: Option<&str>) -> Vec<BoardIdentity> {
    let text = |path: &str| Some(root.text(path)?.to_lowercase());
    let serial = text("proc/device-tree/serial-number").filter(|text| is_serial(text));
    let uuid = text("sys/class/dmi/id/product_uuid").filter(|text| is_uuid(text));
    let kinds = [
        (IdentityKind::Serial, serial.into_iter().collect()),
        (IdentityKind::Uuid, uuid.into_iter().collect()),
        (IdentityKind::Mac, permanent_macs(root)),
        (IdentityKind::Name, given_name.map(str::to_owned).into_iter().collect::<Vec<_>>()),
    ];
    let of = |(by, contents): (IdentityKind, Vec<String>)| {
        contents.into_iter().map(move |content| BoardIdentity::of(by, &content))
    };
    kinds.into_iter().flat_map(of).collect()
}

/// Whether a text is a serial number rather than what stands for none: words, one digit again and
/// again, or digits in their order.
fn is_serial(text: &str) -> bool {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let digits: String = digits.chars().filter(char::is_ascii_alphanumeric).collect();
    let is_one = digits.chars().all(|digit| digits.starts_with(digit));
    let in_order = ["0123456789abcdef", "1234567890"].iter().any(|all| all.starts_with(&digits));
    digits.len() >= 4 && !is_one && !in_order && !NO_SERIALS.contains(&digits.as_str())
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && is_serial(text) && !NO_UUIDS.contains(&text) && !is_repeated(text)
}

/// Whether it is two digits again and again, such as `fefefefe-fefe-…`.
fn is_repeated(text: &str) -> bool {
    let digits: Vec<char> = text.chars().filter(char::is_ascii_hexdigit).collect();
    digits.chunks(2).all(|pair| pair == &digits[..2])
}

/// The MAC addresses that makers gave to the interfaces that are part of this board
/// (`NET_ADDR_PERM`, Documentation/ABI/testing/sysfs-class-net): none of USB, which are moved from
/// board to board, and none that is administered locally (IEEE 802).
fn permanent_macs(root: &FactsRoot) -> Vec<String> {
    let of_interface = |name: String| {
        let path = |file: &str| format!("sys/class/net/{name}/{file}");
        let is_part = root.exists(&path("device"))
            && root.link(&path("device/subsystem")).is_none_or(|bus| !bus.ends_with("/usb"));
        let is_permanent = root.number::<u32>(&path("addr_assign_type")) == Some(0);
        let address = root.text(&path("address"))?.to_lowercase();
        (is_part && is_permanent && is_given(&address)).then_some(address)
    };
    let found: BTreeSet<_> =
        root.list("sys/class/net").into_iter().filter_map(of_interface).collect();
    found.into_iter().take(MACS_MAX).collect()
}

/// Whether an address is of one interface, and given by its maker.
fn is_given(address: &str) -> bool {
    let bytes: Option<Vec<u8>> =
        address.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes.is_some_and(|bytes| {
        bytes.len() == 6 && bytes[0] & 0b11 == 0 && bytes.iter().any(|byte| *byte != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_no_serial_number_is_none() {
        for text in [
            "0000000000000000",
            "ffffffff",
            "0123456789",
            "123456789",
            "0123456789abcdef",
            "1",
            "0x00",
            "to be filled by o.e.m.",
            "not specified",
            "default string",
            "system serial number",
            "n/a",
        ] {
            assert!(!is_serial(text), "{text}");
        }
        for text in ["10000000abcdef01", "cn0y2k7d", "1234567891", "000000001a2b3c4d"] {
            assert!(is_serial(text), "{text}");
        }
        for text in [
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "fefefefe-fefe-fefe-fefe-fefefefefefe",
            "03000200-0400-0500-0006-000700080009",
            "not settable",
        ] {
            assert!(!is_uuid(text), "{text}");
        }
        assert!(is_uuid("4c4c4544-0042-3510-8057-b4c04f4b5a32"));
    }

    #[test]
    fn a_mac_address_is_of_its_maker() {
        for text in [
            "00:00:00:00:00:00",
            "52:54:00:12:34:56",
            "01:80:c2:00:00:0e",
            "80:00:02:08:fe:80:00:00:00:00:00:00:f4:52:14:03:00:7b:cb:a1",
            "none",
        ] {
            assert!(!is_given(text), "{text}");
        }
        assert!(is_given("dc:a6:32:01:02:03"));
    }
}
