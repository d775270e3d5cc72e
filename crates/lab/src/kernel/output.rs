//! What apt and dpkg print, parsed.

use super::spec::{is_part, of_package};
use crate::arch::Arch;

/// The format in which dpkg-query lists packages for [`installed`].
pub(super) const INSTALLED: &str = "-f=${db:Status-Abbrev} ${Package} ${Architecture} ${Version}\n";

/// A package that apt can download: a kernel, a part of one, or one that only depends on others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its name, which can be part of a path.
    pub name: String,
    /// Its version, which can be part of a path.
    pub version: String,
    /// Size of the download.
    pub download_bytes: u64,
    /// Size of what it unpacks to.
    pub unpacked_bytes: u64,
    /// The kernels and parts of kernels that it depends on.
    pub depends: Vec<String>,
}

/// Names and versions of the installed kernels of an architecture, from dpkg-query's lines in
/// the format `INSTALLED`.
pub fn installed(text: &str, arch: Arch) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(move |line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let ["ii", name, of, version] = words[..] else { return None };
        (of == arch.debian() && of_package(name, arch).is_some()).then_some((name, version))
    })
}

/// The packages of kernels that `apt-cache show` describes, of one architecture only.
pub fn offers(text: &str, arch: Arch) -> impl Iterator<Item = Offer> {
    text.split("\n\n").filter_map(move |stanza| offer(stanza, arch))
}

fn offer(stanza: &str, arch: Arch) -> Option<Offer> {
    let field =
        |name: &str| stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let (name, version) = (field("Package")?, field("Version")?);
    // They become part of a path.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+~-:".contains(&byte);
    let is_plain = |text: &str| text.bytes().all(plain);
    if !is_part(name) || !is_plain(name) || !is_plain(version) {
        return None;
    }
    if field("Architecture")? != arch.debian() {
        return None;
    }
    let number = |name| field(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let depends = field("Depends").unwrap_or_default().split([',', '|']);
    let depends = depends.filter_map(|one| one.split_whitespace().next());
    Some(Offer {
        name: name.to_owned(),
        version: version.to_owned(),
        download_bytes: number("Size"),
        unpacked_bytes: number("Installed-Size").saturating_mul(1024),
        depends: depends.filter(|name| is_part(name)).map(str::to_owned).collect(),
    })
}

/// The suite of a release, from lines of `apt-get indextargets` with codename and suite.
#[must_use]
pub fn suite_of<'a>(targets: &'a str, codename: &str) -> Option<&'a str> {
    let suite = targets.lines().find_map(|line| line.strip_prefix(codename)?.strip_prefix(' '))?;
    // It becomes a line of a file.
    Some(suite.trim()).filter(|suite| suite.bytes().all(|byte| byte.is_ascii_graphic()))
}

/// The last error line in the output of apt or dpkg.
#[must_use]
pub fn last_error(stderr: &str) -> String {
    let is_error = |line: &&str| line.starts_with("E:") || line.contains("error:");
    let last = stderr.lines().rfind(is_error).or_else(|| stderr.lines().next_back());
    last.unwrap_or("no error message").trim_start_matches("E:").trim().to_owned()
}
