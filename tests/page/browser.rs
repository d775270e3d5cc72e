//! Chromium without a window: what a page asks for, says, and looks like.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::picture::{Area, Picture};
use punctual_harness::{MARK, Place, end_of};

/// The window of a browser without a screen is not made narrower than this. px.
const LEAST_WINDOW: u32 = 500;

pub struct Browser<'a> {
    place: &'a Place,
}

/// What a page did.
#[derive(Debug)]
pub struct Seen {
    /// Addresses that the page asked the network for.
    pub requests: Vec<String>,
    /// Everything on the console.
    pub console: Vec<String>,
    /// The document as it came to stand.
    pub document: String,
}

/// How a page is laid out. px.
#[derive(Debug)]
pub struct Sheet {
    pub width: u32,
    /// Wider than `width` where the page must be scrolled sideways.
    pub content_width: u32,
    pub height: u32,
    pub figures: Vec<Area>,
    /// Tables of which a part is out of sight, by their first words.
    pub hidden: Vec<String>,
}

impl<'a> Browser<'a> {
    pub fn new(place: &'a Place) -> Self {
        Self { place }
    }

    fn command(&self, more: &[&str], page: &Path) -> Command {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut command = Command::new("chromium");
        command
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-sync"])
            .args(["--disable-component-update", "--hide-scrollbars"])
            // What the browser wants for itself finds no address.
            .arg("--host-resolver-rules=MAP * ~NOTFOUND")
            .arg(format!("--user-data-dir={}", self.place.at(&format!("profile-{number}"))))
            .args(more)
            .arg(format!("file://{}", page.display()))
            .env(MARK, &self.place.path);
        command
    }

    /// Opens a page and watches it.
    pub fn open(&self, page: &Path) -> Seen {
        let log = self.place.at("net.json");
        let option = format!("--log-net-log={log}");
        let ended =
            end_of(self.command(&["--enable-logging=stderr", &option, "--dump-dom"], page)).with(0);
        let console = ended.stderr.lines().filter(|line| line.contains(":CONSOLE:"));
        let console = console.map(str::to_owned).collect();
        let log = fs::read_to_string(log).unwrap();
        // A browser that is in a hurry leaves the list open.
        let log: Value = serde_json::from_str(&log)
            .or_else(|_| serde_json::from_str(&format!("{}]}}", log.trim_end_matches([',', '\n']))))
            .unwrap();
        Seen { requests: requests(&log), console, document: ended.stdout }
    }

    /// A page that shows another one in a frame of some width, and tells how it is
    /// laid out.
    fn frame(&self, page: &Path, width: u32, height: u32) -> PathBuf {
        let name = page.file_name().unwrap().to_str().unwrap();
        let frame = self.place.path.join(format!("frame-{width}-{height}-{name}"));
        let text = format!(
            "<!doctype html><meta name=color-scheme content=\"light dark\">\
             <style>body{{margin:0}}iframe{{border:0;display:block}}pre{{display:none}}</style>\
             <iframe id=frame src=\"{name}\" width={width} height={height}></iframe><pre id=told></pre>\
             <script>onload = () => {{\
               const page = frame.contentDocument, root = page.documentElement;\
               const areas = [...page.querySelectorAll('figure')].map(figure => {{\
                 const {{x, y, width, height}} = figure.getBoundingClientRect();\
                 return {{x, y, width, height}};\
               }});\
               const tables = [...page.querySelectorAll('.scroll')];\
               const hidden = tables.filter(table => table.scrollWidth > table.clientWidth)\
                 .map(table => table.textContent.slice(0, 80));\
               told.textContent = JSON.stringify(\
                 {{width: root.scrollWidth, height: root.scrollHeight, areas, hidden}});\
             }}</script>"
        );
        fs::write(&frame, text).unwrap();
        frame
    }

    /// Lays a page out at a width.
    pub fn measure(&self, page: &Path, width: u32) -> Sheet {
        let frame = self.frame(page, width, 800);
        let document =
            end_of(self.command(&["--allow-file-access-from-files", "--dump-dom"], &frame))
                .with(0)
                .stdout;
        let told =
            document.split("<pre id=\"told\">").nth(1).and_then(|t| t.split("</pre>").next());
        let told: Value = serde_json::from_str(told.unwrap_or_default())
            .unwrap_or_else(|error| panic!("{error}: {document}"));
        let number = |value: &Value| u32::try_from(value.as_u64().unwrap()).unwrap();
        let area = |area: &Value| Area {
            x: area["x"].as_f64().unwrap(),
            y: area["y"].as_f64().unwrap(),
            width: area["width"].as_f64().unwrap(),
            height: area["height"].as_f64().unwrap(),
        };
        Sheet {
            width,
            content_width: number(&told["width"]),
            height: number(&told["height"]),
            hidden: told["hidden"].as_array().unwrap().iter().map(ToString::to_string).collect(),
            figures: told["areas"].as_array().unwrap().iter().map(area).collect(),
        }
    }

    /// Takes a picture of a whole page.
    pub fn draw(&self, page: &Path, sheet: &Sheet, dark: bool) -> Picture {
        let frame = self.frame(page, sheet.width, sheet.height);
        let file = self.place.at(&format!("{}-{dark}.png", sheet.width));
        let screenshot = format!("--screenshot={file}");
        let window = format!("--window-size={},{}", sheet.width.max(LEAST_WINDOW), sheet.height);
        // Blink's own number of the dark scheme is 0, of the light one 1.
        let scheme = format!("--blink-settings=preferredColorScheme={}", u8::from(!dark));
        end_of(self.command(&[&screenshot, &window, &scheme], &frame)).with(0);
        Picture::read(Path::new(&file))
    }

    /// Prints a page to a file.
    pub fn print(&self, page: &Path) -> PathBuf {
        let file = self.place.path.join("report.pdf");
        let option = format!("--print-to-pdf={}", file.display());
        end_of(self.command(&[&option, "--no-pdf-header-footer"], page)).with(0);
        file
    }
}

/// The addresses that a page asked for. What the browser wants for itself comes
/// from no origin.
fn requests(log: &Value) -> Vec<String> {
    let started = &log["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"];
    assert!(started.is_number(), "the log has no requests at all");
    let events = log["events"].as_array().unwrap().iter();
    events
        .filter(|event| event["type"] == *started)
        .map(|event| &event["params"])
        .filter(|request| request["initiator"] != "not an origin")
        .filter_map(|request| Some(request["url"].as_str()?.to_owned()))
        .filter(|url| !url.starts_with("data:") && !url.starts_with("file:"))
        .collect()
}
