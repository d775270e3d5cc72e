//! Where a browser finds a report.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use punctual_sys::error;
use punctual_sys::process::effective_uid;

use crate::output;

/// The program of freedesktop.org that opens a file with what its user prefers.
const OPENER: &str = "xdg-open";

/// How long it is waited for, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

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

/// Opens a report in the browser, but not as root. If that fails, the report is there
/// nevertheless, so this only says it.
pub fn open(path: &Path) {
    let quiet = Stdio::null;
    let mut opener = Command::new(OPENER);
    opener.arg(path).stdin(quiet()).stdout(quiet()).stderr(quiet());
    let not_opened = match effective_uid() {
        0 => Some("no browser is started as root".to_owned()),
        _ => start(&mut opener, PATIENCE).err().map(|reason| format!("{OPENER}: {reason}")),
    };
    if let Some(reason) = not_opened {
        output::complain(&format!("--open: {reason}; the report is {}", address(path)));
    }
}

/// Starts a program, and waits at most for `limit` to learn whether it fails. Returns it if it
/// goes on, as a browser does that was not running.
fn start(opener: &mut Command, limit: Duration) -> Result<Option<Child>, String> {
    let mut child = opener.spawn().map_err(|error| error::text(&error))?;
    let start = Instant::now();
    loop {
        match child.try_wait().map_err(|error| error::text(&error))? {
            Some(status) if status.success() => return Ok(None),
            Some(status) => return Err(status.to_string()),
            None if start.elapsed() >= limit => return Ok(Some(child)),
            None => thread::sleep(PAUSE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_no_character_that_ends_it() {
        let path = Path::new("/no/such/a b#c%d/r\u{e9}port\u{1b}.html");
        assert_eq!(address(path), "file:///no/such/a%20b%23c%25d/r%C3%A9port%1B.html");
    }

    #[test]
    fn a_browser_that_goes_on_is_not_waited_for() {
        let mut browser = Command::new("sleep");
        let going_on = start(browser.arg("600"), Duration::from_millis(50)).unwrap();
        let mut child = going_on.expect("it goes on");
        child.kill().unwrap();
        child.wait().unwrap();
        let mut refused = Command::new("false");
        assert!(start(&mut refused, PATIENCE).unwrap_err().contains("exit status: 1"));
        let mut done = Command::new("true");
        assert!(start(&mut done, PATIENCE).unwrap().is_none());
    }
}
