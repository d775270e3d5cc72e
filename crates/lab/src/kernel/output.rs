//! What apt and dpkg print, parsed.

use super::spec::of_package;
use crate::arch::Arch;

/// The format in which dpkg-query lists packages for [`installed`].
pub(super) const INSTALLED: &str = "-f=${db:Status-Abbrev} ${Package} ${Architecture} ${Version}\n";

/// A package that apt can download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its name, which is that of a kernel's package.
    pub name: String,
    /// Its version, which can be part of a path.
    pub version: String,
    /// Size of the download.
    pub download_bytes: u64,
    /// Size of what it unpacks to.
    pub unpacked_bytes: u64,
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

/// The packages that `apt-cache show` describes, kernels of an architecture only.
pub fn offers(text: &str, arch: Arch) -> impl Iterator<Item = Offer> {
    text.split("\n\n").filter_map(move |stanza| offer(stanza, arch))
}

fn offer(stanza: &str, arch: Arch) -> Option<Offer> {
    let field =
        |name: &str| stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let name = field("Package")?;
    let version = field("Version")?;
    of_package(name, arch)?;
    // It becomes part of a path.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+~-:".contains(&byte);
    if !version.bytes().all(plain) || field("Architecture")? != arch.debian() {
        return None;
    }
    let number = |name| field(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    Some(Offer {
        name: name.to_owned(),
        version: version.to_owned(),
        download_bytes: number("Size"),
        unpacked_bytes: number("Installed-Size").saturating_mul(1024),
    })
}

/// The kernel that a package depends on, from what `apt-cache depends` prints.
#[must_use]
pub fn dependency(text: &str, arch: Arch) -> Option<&str> {
    text.lines().find_map(|line| {
        let name = line.trim().trim_start_matches('|').strip_prefix("Depends: ")?;
        let name = name.split(':').next()?;
        of_package(name, arch).map(|_| name)
    })
}

/// The last error line in the output of apt or dpkg.
#[must_use]
pub fn last_error(stderr: &str) -> String {
    let is_error = |line: &&str| line.starts_with("E:") || line.contains("error:");
    let last = stderr.lines().rfind(is_error).or_else(|| stderr.lines().next_back());
    last.unwrap_or("no error message").trim_start_matches("E:").trim().to_owned()
}
