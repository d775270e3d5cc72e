//! What a name stands for: the file that defines it, through every `use` on the way.

use std::collections::BTreeMap;

use crate::sources::{Crate, Module};

/// Longer ways than this are circles of `use` declarations.
const LONGEST_WAY: u32 = 24;

/// From a file to one that it uses: the first line that does, and what it uses.
pub type Imports = BTreeMap<(usize, usize), (usize, String)>;

/// Which file of a crate uses which. To export a name again is not to use it; and what a
/// module uses of its own children is left out, since it is made of them.
pub fn imports(one: &Crate) -> Imports {
    let mut imports = Imports::new();
    for (at, module) in &one.modules {
        let uses = module.uses.iter().filter(|one| !one.exported && one.alias.is_some());
        let uses = uses.map(|one| (&one.path, one.line));
        for (path, line) in uses.chain(module.paths.iter().map(|(path, line)| (path, *line))) {
            let Some(file) = (Names { one, way: 0 }).file(at, path) else { continue };
            if file == module.file
                || one.files[file].module.starts_with(&one.files[module.file].module)
            {
                continue;
            }
            let first = imports.entry((module.file, file));
            let import = first.or_insert_with(|| (line, path.join("::")));
            if line < import.0 {
                *import = (line, path.join("::"));
            }
        }
    }
    imports
}

struct Names<'a> {
    one: &'a Crate,
    way: u32,
}

impl Names<'_> {
    /// The file that defines what a path in a module stands for; none for a module itself,
    /// and for what is of another crate.
    fn file(&mut self, at: &[String], path: &[String]) -> Option<usize> {
        let mut at = at;
        let mut rest = path;
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "crate" => at = &at[..self.root_of(at)],
                "self" => {}
                "super" => at = &at[..at.len().checked_sub(1)?],
                _ => break,
            }
            rest = others;
        }
        self.within(at, rest)
    }

    /// The length of the path of the root of a module's crate: of the binary or the library.
    fn root_of(&self, at: &[String]) -> usize {
        let binary = vec!["main".to_owned()];
        let is_root = self.one.modules.contains_key(&binary)
            && !self.one.modules[&Vec::new()].children.contains("main");
        usize::from(is_root && at.starts_with(&binary))
    }

    fn within(&mut self, at: &[String], path: &[String]) -> Option<usize> {
        let (first, rest) = path.split_first()?;
        let module: &Module = self.one.modules.get(at)?;
        if module.items.contains(first) {
            return Some(module.file);
        }
        if module.children.contains(first) {
            return self.within(&[at, std::slice::from_ref(first)].concat(), rest);
        }
        self.way += 1;
        if self.way > LONGEST_WAY {
            return None;
        }
        let named = module.uses.iter().filter(|one| one.alias.as_ref() == Some(first));
        for one in named {
            // What it begins with is not itself: `use clap::Command` is of another crate.
            if one.path.first() != Some(first)
                && let Some(file) = self.file(at, &[&one.path[..], rest].concat())
            {
                return Some(file);
            }
        }
        for glob in module.uses.iter().filter(|one| one.alias.is_none()) {
            if glob.path.first() != Some(first)
                && let Some(file) = self.file(at, &[&glob.path[..], path].concat())
            {
                return Some(file);
            }
        }
        None
    }
}
