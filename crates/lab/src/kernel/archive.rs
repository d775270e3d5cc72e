//! Debian's archive: the package lists of its releases, which apt reads by a configuration of
//! punctual's own. The system's sources are neither needed nor touched.
//!
//! ```text
//! kernels/apt/amd64/bookworm/   apt.conf, sources.list, and what apt keeps of them
//! kernels/apt/amd64/bookworm/kernels   the release's kernels, as apt-cache describes them
//! ```

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf, absolute};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use punctual_sys::file;

use super::cache::{Cache, Writer};
use super::output::{Offer, last_error, offers, suite_of};
use super::releases::{RELEASES, Release};
use super::spec::is_part;
use super::tools::{Tools, not_run};
use crate::arch::Arch;
use crate::files;

/// What names without a version mean on a machine that does not run one of these releases.
const STABLE: &str = "trixie";

/// The mirror, unless `PUNCTUAL_MIRROR` names another.
const MIRROR: &str = "http://deb.debian.org/debian";

/// The keys that sign the archive, from Debian's package debian-archive-keyring.
const KEYRINGS: [&str; 2] = [
    "usr/share/keyrings/debian-archive-keyring.gpg",
    "usr/share/keyrings/debian-archive-keyring.pgp",
];

/// How old a list may be before it is read anew for those who ask what there is.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);

/// The largest description of a release's kernels that is read, bytes; they have about 1 MB.
const MOST_KERNELS: u64 = 64 << 20;

/// When a list is read anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lists {
    /// Never: there may be no network.
    AsTheyAre,
    /// If there is none.
    IfMissing,
    /// If it is older than a day.
    IfOld,
}

/// No list has been read yet, and none may be.
#[derive(Debug)]
pub(super) struct NoLists;

impl fmt::Display for NoLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no list of Debian's kernels has been read yet; `punctual lab kernels` reads them",
        )
    }
}

impl std::error::Error for NoLists {}

/// What is known of a release.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) release: &'static Release,
    /// The suite's name that moves on to the next release: `oldstable`.
    pub(super) suite: String,
    pub(super) offers: Vec<Offer>,
}

/// The archive for one architecture.
#[derive(Debug)]
pub(super) struct Archive<'a> {
    pub(super) tools: &'a Tools,
    pub(super) cache: &'a Cache,
    /// The root folder of the machine.
    pub(super) root: &'a Path,
    pub(super) arch: Arch,
}

impl Archive<'_> {
    /// The release whose kernels the names without a version mean: that of this machine, or
    /// Debian's stable one.
    pub(super) fn own(&self) -> &'static Release {
        let text = file::read_text(&self.root.join("etc/os-release"), 65_536).unwrap_or_default();
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            line.map(|value| value.trim_matches('"').to_owned())
        };
        let named = |name: &str| RELEASES.iter().find(|release| release.name == name);
        let own =
            (value("ID").as_deref() == Some("debian")).then(|| value("VERSION_CODENAME")).flatten();
        let own = own.and_then(|name| named(&name));
        own.or_else(|| named(STABLE)).unwrap_or(&RELEASES[0])
    }

    /// What is known of these releases, the oldest first. Lists that cannot be read anew are used
    /// as they are, and a release of which nothing is known is left out; `say` is told both.
    ///
    /// # Errors
    /// Nothing is known of any of them; the text says what to do.
    pub(super) fn known(
        &self,
        releases: &[&'static Release],
        lists: Lists,
        say: &mut dyn FnMut(&str),
    ) -> Result<Vec<Known>> {
        let mut all = Vec::new();
        let mut missing = Vec::new();
        let mut unreachable = false;
        for &release in releases {
            let (kernels, age) = (self.read(release), self.age(release));
            let anew = match lists {
                Lists::AsTheyAre => false,
                Lists::IfMissing => kernels.is_none(),
                Lists::IfOld => kernels.is_none() || age.is_none_or(|age| age > OLD),
            };
            if anew
                && !unreachable
                && let Err(error) = self.update(release, say)
            {
                // The others would each wait for their time to be over.
                unreachable = !is_gone(&error);
                missing.push(error);
            }
            if let Some(age) = age.filter(|age| anew && unreachable && *age > OLD) {
                let days = age.as_secs() / OLD.as_secs();
                say(&format!("using the list of Debian {} of {days} days ago", release.name));
            }
            all.extend(self.read(release));
        }
        if !all.is_empty() {
            missing.iter().for_each(|error| say(&format!("{error:#}")));
            return Ok(all);
        }
        match missing.into_iter().next_back() {
            Some(error) => Err(error),
            None => Err(NoLists.into()),
        }
    }

    /// An absolute path: apt runs in another folder.
    fn folder(&self, release: &Release) -> PathBuf {
        let folder = self.cache.folder.join("apt").join(self.arch.debian()).join(release.name);
        absolute(&folder).unwrap_or(folder)
    }

    fn read(&self, release: &'static Release) -> Option<Known> {
        let text = self.text(release)?;
        let (head, rest) = text.split_once("\n\n")?;
        Some(Known {
            release,
            suite: head.strip_prefix("Suite: ").unwrap_or_default().to_owned(),
            offers: offers(rest, self.arch).collect(),
        })
    }

    fn text(&self, release: &Release) -> Option<String> {
        file::read_text(&self.folder(release).join("kernels"), MOST_KERNELS).ok()
    }

    fn age(&self, release: &Release) -> Option<Duration> {
        let changed = fs::metadata(self.folder(release).join("kernels")).ok()?.modified().ok()?;
        SystemTime::now().duration_since(changed).ok()
    }

    /// Reads the lists of a release anew.
    fn update(&self, release: &'static Release, say: &mut dyn FnMut(&str)) -> Result<()> {
        let before = self.age(release);
        let writer = self.cache.writer(say)?;
        // Another process may have done it while this one waited.
        if self.age(release).is_some_and(|age| before.is_none_or(|before| age < before)) {
            return Ok(());
        }
        say(&format!("reading the package lists of Debian {}", release.name));
        self.configure(release)?;
        // A mirror without one of the suites has the others.
        let update = self.apt(release, "apt-get", &["-q", "update"]);
        let update = output(update, "apt-get")?;
        let failed = (!update.status.success())
            .then(|| last_error(&String::from_utf8_lossy(&update.stderr)));
        let kernels = self.describe(release)?;
        match (failed, kernels) {
            (None, Some(kernels)) => self.keep(&writer, release, &kernels),
            // Some of the suites were read.
            (Some(error), Some(kernels)) if self.text(release).as_ref() != Some(&kernels) => {
                say(&format!("Debian {}: apt-get: {error}", release.name));
                self.keep(&writer, release, &kernels)
            }
            (Some(error), _) => {
                bail!("cannot read the package lists of Debian {}: apt-get: {error}", release.name)
            }
            (None, None) => bail!("Debian {} has no kernel for {}", release.name, self.arch),
        }
    }

    fn keep(&self, writer: &Writer<'_>, release: &Release, kernels: &str) -> Result<()> {
        let partial = writer.partial("kernels")?;
        let path = partial.0.join("kernels");
        files::write(&path, kernels.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
        writer.keep(&path, &self.folder(release).join("kernels"))
    }

    /// The packages of kernels that apt's lists of a release have, if there are any.
    fn describe(&self, release: &Release) -> Result<Option<String>> {
        let text = |program, arguments: &[&str]| -> Result<String> {
            let output = output(self.apt(release, program, arguments), program)?;
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        // Each command reads the lists again: as few as possible.
        let found = text("apt-cache", &["pkgnames", "linux-"])?;
        let known = |name: &&str| is_part(name) && !name.ends_with("-dbg");
        let names: Vec<&str> = found.lines().filter(known).collect();
        if names.is_empty() {
            return Ok(None);
        }
        let arguments: Vec<&str> = ["show"].into_iter().chain(names).collect();
        let stanzas = text("apt-cache", &arguments)?;
        let targets = text(
            "apt-get",
            &["indextargets", "--format", "$(CODENAME) $(SUITE)", "Created-By: Packages"],
        )?;
        let suite = suite_of(&targets, release.name).unwrap_or(release.name);
        Ok(Some(format!("Suite: {suite}\n\n{stanzas}")))
    }

    /// Writes apt's configuration and the sources.
    fn configure(&self, release: &Release) -> Result<()> {
        let folder = self.folder(release);
        let keyring = KEYRINGS.iter().map(|name| self.root.join(name)).find(|path| path.is_file());
        let keyring = keyring.with_context(|| {
            format!(
                "/{} is missing, and Debian's package lists cannot be checked: install \
                 debian-archive-keyring, or give the path of a kernel",
                KEYRINGS[0]
            )
        })?;
        let mirror = std::env::var("PUNCTUAL_MIRROR").unwrap_or_default();
        let mirror = if mirror.is_empty() { MIRROR } else { mirror.trim_end_matches('/') };
        // Both become words of apt's files.
        let plain =
            |text: &str| !text.contains(|c: char| c.is_whitespace() || "\"[];#".contains(c));
        ensure!(plain(mirror), "PUNCTUAL_MIRROR={mirror} is not the address of a mirror");
        let shown = folder.to_string_lossy().into_owned();
        ensure!(
            plain(&shown),
            "{shown}: apt does not take such a path; set PUNCTUAL_CACHE to a folder without \
             spaces, quotes and brackets in its path"
        );
        let sources = release.suites.iter().map(|suite| {
            let archive = if suite.ends_with("-security") { "-security" } else { "" };
            format!("deb [signed-by={}] {mirror}{archive} {suite} main\n", keyring.display())
        });
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        fs::create_dir_all(folder.join("lists/partial"))
            .with_context(|| format!("cannot make {}", folder.display()))?;
        write("sources.list", &sources.collect::<String>())?;
        write("status", "")?;
        write("apt.conf", &configuration(&shown, self.arch))
    }

    /// A command of apt with the configuration of a release.
    pub(super) fn apt(&self, release: &Release, program: &str, arguments: &[&str]) -> Command {
        let mut command = self.tools.command(program, arguments);
        command.env("APT_CONFIG", self.folder(release).join("apt.conf"));
        command
    }
}

/// Whether a mirror answered that it has not got a release (any more).
fn is_gone(error: &anyhow::Error) -> bool {
    let text = format!("{error:#}");
    text.contains("does not have a Release file") || text.contains("has no kernel")
}

fn output(mut command: Command, program: &str) -> Result<std::process::Output> {
    command.stdin(Stdio::null()).output().map_err(|error| not_run(program, error))
}

/// apt.conf(5). Whatever the system's configuration says is not read.
fn configuration(folder: &str, arch: Arch) -> String {
    let arch = arch.debian();
    format!(
        "\
Dir \"{folder}/\";
Dir::State \"{folder}/\";
Dir::State::lists \"lists/\";
Dir::State::status \"{folder}/status\";
Dir::Cache \"{folder}/\";
// Built in memory: a file of 30 MB for two commands a day.
Dir::Cache::pkgcache \"\";
Dir::Cache::srcpkgcache \"\";
Dir::Etc \"{folder}/\";
Dir::Etc::main \"/dev/null\";
Dir::Etc::parts \"/dev/null\";
Dir::Etc::sourcelist \"{folder}/sources.list\";
Dir::Etc::sourceparts \"/dev/null\";
Dir::Etc::preferences \"/dev/null\";
Dir::Etc::preferencesparts \"/dev/null\";
Dir::Etc::trusted \"/dev/null\";
Dir::Etc::trustedparts \"/dev/null\";
Dir::Log \"{folder}/\";
APT::Architecture \"{arch}\";
APT::Architectures {{ \"{arch}\"; }};
// root would become _apt, which may not write here.
APT::Sandbox::User \"root\";
APT::Update::Error-Mode \"any\";
Acquire::Languages \"none\";
Acquire::GzipIndexes \"true\";
Acquire::Retries \"2\";
Acquire::http::Timeout \"20\";
Acquire::https::Timeout \"20\";
// A release becomes oldstable.
Acquire::AllowReleaseInfoChange \"true\";
// What an old mirror signed is still what Debian built, and old kernels are wanted.
Acquire::Check-Valid-Until \"false\";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled \"false\";
"
    )
}
