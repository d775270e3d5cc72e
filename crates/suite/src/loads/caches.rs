//! The caches of the first CPU, for loads that exceed them.

use std::fs;
use std::path::Path;

/// Sizes, bytes, the smallest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caches {
    /// Of data, and of both.
    pub(super) data: Vec<u64>,
    /// Of instructions alone; 0 if it has none.
    pub(super) instructions: u64,
}

impl Caches {
    pub(super) fn read() -> Self {
        Self::below(Path::new("/sys/devices/system/cpu/cpu0/cache"))
    }

    /// Boards whose kernel does not tell, as many virtual ones, are taken for small ones.
    fn below(folder: &Path) -> Self {
        let mut caches = Self { data: Vec::new(), instructions: 0 };
        for index in fs::read_dir(folder).into_iter().flatten().flatten() {
            let read = |name| fs::read_to_string(index.path().join(name)).unwrap_or_default();
            let size = read("size");
            let Ok(bytes) = crate::registry::size::parse(size.trim()) else { continue };
            match read("type").trim() {
                "Instruction" => caches.instructions = bytes,
                "Data" | "Unified" if bytes > 0 => caches.data.push(bytes),
                _ => {}
            }
        }
        caches.data.sort_unstable();
        if caches.data.is_empty() {
            caches.data = vec![32 << 10, 256 << 10];
        }
        if caches.instructions == 0 {
            caches.instructions = caches.data[0];
        }
        caches
    }

    pub(super) fn largest(&self) -> u64 {
        self.data.last().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_by_type() {
        let folder = std::env::temp_dir().join(format!("punctual-caches-{}", std::process::id()));
        let unknown = Caches { data: vec![32 << 10, 256 << 10], instructions: 32 << 10 };
        assert_eq!(Caches::below(&folder), unknown);
        let levels =
            [("Data", "32K"), ("Instruction", "48K"), ("Unified", "8192K"), ("Unified", "1M")];
        for (index, (kind, size)) in levels.iter().enumerate() {
            let index = folder.join(format!("index{index}"));
            fs::create_dir_all(&index).unwrap();
            fs::write(index.join("type"), format!("{kind}\n")).unwrap();
            fs::write(index.join("size"), format!("{size}\n")).unwrap();
        }
        let caches = Caches::below(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(caches.data, [32 << 10, 1 << 20, 8 << 20]);
        assert_eq!((caches.instructions, caches.largest()), (48 << 10, 8 << 20));
    }
}
