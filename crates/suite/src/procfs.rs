//! The texts of /proc that several parts of punctual read. The parsers take bytes, so any root
//! folder will do; damaged input is `None` or left out.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use punctual_sys::process::Pid;

/// The values of one key in `key : value` lines; empty ones are left out.
pub(crate) fn values<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key && !value.trim().is_empty()).then(|| value.trim())
    })
}

/// One size of `/proc/meminfo`, bytes.
pub(crate) fn meminfo_bytes(text: &str, key: &str) -> Option<u64> {
    // The kernel writes kB but means KiB.
    let kib: u64 = values(text, key).next()?.strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// What `/proc/PID/stat` says of a process (proc_pid_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Its parent; 0 if that is outside the PID namespace.
    pub parent: Pid,
    /// Whether it has ended but has not been reaped.
    pub ended: bool,
    /// CPU time of the process and of its reaped children, clock ticks.
    pub cpu_ticks: u64,
    /// When it started, clock ticks since boot.
    pub start_ticks: u64,
}

impl Stat {
    /// Reads `PID/stat` below the folder `proc`. `None` if there is no such process.
    pub(crate) fn read(proc: &Path, pid: Pid) -> Option<Self> {
        Self::parse(&fs::read(proc.join(pid.to_string()).join("stat")).ok()?)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        // The name is in parentheses and may itself contain parentheses and spaces.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let (user, system) = (number(11)?, number(12)?);
        let (user_of_children, system_of_children) = (number(13)?, number(14)?);
        let of_children = user_of_children.checked_add(system_of_children)?;
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            ended: matches!(*fields.first()?, "Z" | "X" | "x"),
            cpu_ticks: user.checked_add(system)?.checked_add(of_children)?,
            start_ticks: number(19)?,
        })
    }
}

/// The cgroups in `/proc/PID/cgroup` (cgroups(7)): the controllers of a hierarchy (empty for
/// cgroup v2) and the path in it.
pub(crate) fn cgroups(bytes: &[u8]) -> impl Iterator<Item = (String, PathBuf)> {
    lines(bytes).filter_map(|line| {
        let mut fields = line.splitn(3, |&byte| byte == b':').skip(1);
        let controllers = String::from_utf8_lossy(fields.next()?).into_owned();
        Some((controllers, path(fields.next()?.to_vec())))
    })
}

/// One line of `/proc/PID/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The part of the file system that is mounted.
    pub root: PathBuf,
    /// Mount point.
    pub point: PathBuf,
    /// File system type.
    pub kind: String,
    /// Options of the file system; for cgroup v1, the controllers.
    pub options: String,
}

impl Mount {
    /// Every mount, in the order of the lines.
    pub(crate) fn all(mountinfo: &[u8]) -> Vec<Self> {
        lines(mountinfo).filter_map(Self::parse).collect()
    }

    /// Where the cgroup `path` is below this mount. `None` if the mount shows another part of
    /// the hierarchy, which happens in containers.
    pub(crate) fn cgroup(&self, path: &Path) -> Option<PathBuf> {
        Some(self.point.join(path.strip_prefix(&self.root).ok()?))
    }

    /// See proc_pid_mountinfo(5): optional fields end with a single `-`.
    fn parse(line: &[u8]) -> Option<Self> {
        let fields: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
        let dash = 6 + fields.get(6..)?.iter().position(|field| *field == b"-")?;
        let text = |at: usize| Some(String::from_utf8_lossy(fields.get(at)?).into_owned());
        Some(Self {
            root: unescaped(fields[3]),
            point: unescaped(fields[4]),
            kind: text(dash + 1)?,
            options: text(dash + 3).unwrap_or_default(),
        })
    }
}

/// mountinfo writes spaces, tabs, newlines and backslashes as `\ooo`.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = after.get(..3).filter(|_| byte == b'\\').and_then(octal);
        bytes.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &after[3..] } else { after };
    }
    path(bytes)
}

fn octal(digits: &[u8]) -> Option<u8> {
    digits.iter().try_fold(0_u8, |number, digit| match digit {
        b'0'..=b'7' => number.checked_mul(8)?.checked_add(digit - b'0'),
        _ => None,
    })
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| byte == b'\n')
}

fn path(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_bytes() {
        let text = "MemTotal:       24684084 kB\nMemFreeX: 1 kB\nHugePages_Total:       4\n\
                    MemFree: 99999999999999999999 kB\nSwapTotal: 18446744073709551615 kB\n";
        assert_eq!(meminfo_bytes(text, "MemTotal"), Some(24_684_084 << 10));
        for key in ["MemFree", "HugePages_Total", "SwapTotal", "SwapFree", ""] {
            assert_eq!(meminfo_bytes(text, key), None, "{key}");
        }
    }

    #[test]
    fn a_name_may_hold_anything() {
        let line = b"42 (a) R 7 (\xff) S 40 1 1 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0 9";
        let expected = Stat { parent: 40, ended: false, cpu_ticks: 100, start_ticks: 9 };
        assert_eq!(Stat::parse(line), Some(expected));
        for cut in 0..line.len() {
            assert_eq!(Stat::parse(&line[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn numbers_that_no_kernel_writes_are_damage() {
        let line = |state: &str, ticks: u64| {
            format!("1 (a) {state} 0 1 1 0 -1 0 1 2 3 4 {ticks} {ticks} 0 0 20 0 1 0 9")
        };
        assert_eq!(Stat::parse(line("S", u64::MAX).as_bytes()), None);
        for (state, ended) in [("Z", true), ("X", true), ("x", true), ("R", false), ("D", false)] {
            assert_eq!(Stat::parse(line(state, 1).as_bytes()).unwrap().ended, ended, "{state}");
        }
    }

    #[test]
    fn this_process_is_found_and_none_without_a_number() {
        let pid = Pid::try_from(std::process::id()).unwrap();
        let stat = Stat::read(Path::new("/proc"), pid).unwrap();
        assert_eq!(u32::try_from(stat.parent), Ok(std::os::unix::process::parent_id()));
        assert!(!stat.ended && stat.start_ticks > 0);
        assert_eq!(Stat::read(Path::new("/proc"), 0), None);
        assert_eq!(Stat::read(Path::new("/nonexistent"), pid), None);
    }

    #[test]
    fn mount_points_with_spaces_and_optional_fields() {
        let line = b"36 35 98:0 /sub /mnt\\040two\\134\xff rw,noatime master:1 - ext3 /dev/root rw";
        let mount = Mount::parse(line).unwrap();
        assert_eq!(mount.root, Path::new("/sub"));
        assert_eq!(mount.point, path(b"/mnt two\\\xff".to_vec()));
        assert_eq!((mount.kind.as_str(), mount.options.as_str()), ("ext3", "rw"));
        // A lone backslash and one with no octal number stay.
        assert_eq!(unescaped(b"\\900\\+12\\777\\04"), Path::new("\\900\\+12\\777\\04"));
        // A folder of that name is not the end of the optional fields.
        let dash = Mount::parse(b"36 35 98:0 / - rw - ext4 /dev/root rw").unwrap();
        assert_eq!((dash.point, dash.kind.as_str()), ("-".into(), "ext4"));
        for damaged in ["", " - ", "1 2 3 - ext4", "36 35 98:0 / /mnt rw -", "36 35 98:0 / /mnt rw"]
        {
            assert_eq!(Mount::parse(damaged.as_bytes()), None, "{damaged:?}");
        }
    }

    #[test]
    fn cgroups_of_all_hierarchies() {
        let found: Vec<_> =
            cgroups(b"9:name=systemd:/x\n4:cpu,cpuacct:/a:b\n0::/\n\n1\n").collect();
        let expected = [("name=systemd", "/x"), ("cpu,cpuacct", "/a:b"), ("", "/")];
        assert!(found.iter().map(|(c, p)| (c.as_str(), p.to_str().unwrap())).eq(expected));
    }

    #[test]
    fn a_cgroup_is_found_below_the_part_that_is_mounted() {
        let mount = &Mount::all(b"25 1 0:22 /docker/a /sys/fs/cgroup rw - cgroup2 cgroup rw\n")[0];
        let at = |path: &str| mount.cgroup(Path::new(path));
        assert_eq!(at("/docker/a/b"), Some("/sys/fs/cgroup/b".into()));
        for elsewhere in ["/docker/ab", "/docker", "/"] {
            assert_eq!(at(elsewhere), None, "{elsewhere}");
        }
    }
}
