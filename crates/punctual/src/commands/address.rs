//! Where a browser finds a report.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::output;

/// The program of freedesktop.org that opens a file with what its user prefers.
const OPENER: &str = "xdg-open";

/// The address of a file, which terminals make a link of: `file:///tmp/r/report.html`.
pub fn address(path: &Path) -> String {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut text = "file://".to_owned();
    for byte in whole.as_os_str().as_bytes() {
        match byte {
            // What may stand in a path as it is (RFC 3986, section 3.3).
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'/'
            | b'-'
            | b'.'
            | b'_'
            | b'~'
            | b'+'
            | b':'
            | b'@'
            | b'='
            | b',' => text.push(char::from(*byte)),
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

/// Opens a report in the browser. If that fails, the report is there nevertheless, so this only
/// says it.
pub fn open(path: &Path) {
    let quiet = Stdio::null;
    let mut opener = Command::new(OPENER);
    opener.arg(path).stdin(quiet()).stdout(quiet()).stderr(quiet());
    let failed = match opener.status() {
        Ok(status) if status.success() => return,
        Ok(status) => status.to_string(),
        Err(error) => punctual_sys::error::text(&error),
    };
    output::complain(&format!("--open: {OPENER}: {failed}; the report is {}", address(path)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_no_character_that_ends_it() {
        let path = Path::new("/no/such/a b#c%d/r\u{e9}port\u{1b}.html");
        assert_eq!(address(path), "file:///no/such/a%20b%23c%25d/r%C3%A9port%1B.html");
    }
}
