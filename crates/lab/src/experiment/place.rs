//! The guests of an experiment, and what differs between them.

use punctual_core::aim::Aim;

use crate::kernel::Kernel;

/// One guest of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Index of the kernel.
    pub kernel: usize,
    /// Number of the replicate, from 0.
    pub replicate: u32,
    /// Name of its run directory.
    pub name: String,
    /// The release of its run that is moved to a given instant and ends it.
    pub aim: Option<Aim>,
}

impl Place {
    /// The guests for these kernels from replicate `first` on, every kernel once before any kernel is
    /// booted again.
    pub(super) fn all(kernels: &[Kernel], first: u32, replicates: u32) -> Vec<Self> {
        let names = names(kernels);
        let place = |replicate: u32| {
            names.iter().enumerate().map(move |(kernel, name)| Self {
                kernel,
                replicate,
                name: format!("{name}-{replicate}"),
                aim: None,
            })
        };
        (first..first.saturating_add(replicates)).flat_map(place).collect()
    }

    /// The same guest with an aimed release: the one with this number.
    #[must_use]
    pub fn aimed(&self, aim: Aim, number: usize) -> Self {
        Self { name: format!("{}-aim{number}", self.name), aim: Some(aim), ..self.clone() }
    }

    /// Seed of the board's random numbers.
    #[must_use]
    pub fn seed(&self) -> u64 {
        u64::from(self.replicate) + 1
    }

    /// Delay of the first release, ns: multiples of the golden ratio modulo one millisecond,
    /// which are well spread whatever their number.
    pub(super) fn phase_ns(&self) -> u64 {
        u64::from(self.replicate) * 618_034 % 1_000_000
    }
}

/// Names for run directories, derived from the kernels: unique, and of characters that need no
/// quoting.
fn names(kernels: &[Kernel]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for kernel in kernels {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._+".contains(c) { c } else { '-' };
        let name: String = kernel.name.chars().map(plain).collect();
        let name = name.trim_matches(['-', '.']);
        let mut free = name.to_owned();
        let mut number = 1;
        while names.contains(&free) {
            number += 1;
            free = format!("{name}-no{number}");
        }
        names.push(free);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::testing::kernel;

    #[test]
    fn no_two_run_directories_have_one_name() {
        let kernels = ["vmlinux", "vmlinux-no2", "vmlinux", "-vmlinux", "a b"].map(kernel);
        assert_eq!(
            names(&kernels),
            ["vmlinux", "vmlinux-no2", "vmlinux-no3", "vmlinux-no4", "a-b"]
        );
    }

    #[test]
    fn each_kernel_is_booted_once_before_any_is_booted_again() {
        let places = Place::all(&["a", "b"].map(kernel), 0, 2);
        let names: Vec<&str> = places.iter().map(|place| place.name.as_str()).collect();
        assert_eq!(names, ["a-0", "b-0", "a-1", "b-1"]);
        assert_eq!((places[0].seed(), places[0].phase_ns()), (1, 0));
        assert_eq!((places[3].seed(), places[3].phase_ns()), (2, 618_034));
        assert_eq!(Place::all(&["b"].map(kernel), 1, 1)[0].seed(), places[3].seed());
    }
}
