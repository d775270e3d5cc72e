//! Circles among files (Tarjan 1972).

use std::collections::BTreeSet;

use crate::names::Imports;
use crate::sources::Crate;

/// Files each of which uses each other one, by whatever way.
pub struct Circle {
    /// Numbers of the files, ascending by path.
    pub files: Vec<usize>,
}

impl Circle {
    /// The circle with the imports that make it.
    pub fn describe(&self, one: &Crate, imports: &Imports) -> String {
        let within = imports
            .iter()
            .filter(|((from, to), _)| self.files.contains(from) && self.files.contains(to));
        let lines = within.map(|((from, to), (line, path))| {
            format!("    {}:{line} uses {path} of {}\n", one.files[*from].path, one.files[*to].path)
        });
        format!("  {} files of {}:\n{}", self.files.len(), one.name, lines.collect::<String>())
    }
}

/// Every circle.
pub fn circles(imports: &Imports) -> Vec<Circle> {
    let files: BTreeSet<usize> = imports.keys().flat_map(|&(from, to)| [from, to]).collect();
    let most = files.last().map_or(0, |last| last + 1);
    let (index, low) = (vec![None; most], vec![0; most]);
    let mut search = Search { imports, index, low, next: 0, stack: vec![], found: vec![] };
    for file in files {
        if search.index[file].is_none() {
            search.visit(file);
        }
    }
    search.found
}

struct Search<'a> {
    imports: &'a Imports,
    index: Vec<Option<usize>>,
    low: Vec<usize>,
    next: usize,
    stack: Vec<usize>,
    found: Vec<Circle>,
}

impl Search<'_> {
    fn visit(&mut self, file: usize) {
        let number = self.next;
        self.next += 1;
        self.index[file] = Some(number);
        self.low[file] = number;
        self.stack.push(file);
        let targets = self.imports.range((file, 0)..(file + 1, 0)).map(|((_, to), _)| *to);
        for to in targets.collect::<Vec<_>>() {
            match self.index[to] {
                None => {
                    self.visit(to);
                    self.low[file] = self.low[file].min(self.low[to]);
                }
                Some(index) if self.stack.contains(&to) => {
                    self.low[file] = self.low[file].min(index);
                }
                Some(_) => {}
            }
        }
        if self.low[file] == number {
            let at = self.stack.iter().position(|&one| one == file).unwrap();
            let mut files = self.stack.split_off(at);
            if files.len() > 1 {
                files.sort_unstable();
                self.found.push(Circle { files });
            }
        }
    }
}
