//! The files of a crate, and the modules in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Attribute, Item, UseTree, Visibility};

/// A crate, tests apart.
pub struct Crate {
    pub name: String,
    pub files: Vec<File>,
    /// By their path from the root of the crate.
    pub modules: BTreeMap<Vec<String>, Module>,
}

/// A file of a crate.
pub struct File {
    /// From the folder of the sources.
    pub path: String,
    /// The module that it holds, by its path from the root of the crate.
    pub module: Vec<String>,
    /// How many lines it has, tests apart.
    pub lines: usize,
    pub types: Vec<Type>,
}

/// A type that a file defines.
pub struct Type {
    pub name: String,
    /// File and line.
    pub place: String,
    /// The `cfg` attributes that it stands under.
    pub condition: String,
}

/// A module, in a file of its own or not.
#[derive(Default)]
pub struct Module {
    /// Number of its file.
    pub file: usize,
    /// What it defines.
    pub items: BTreeSet<String>,
    pub children: BTreeSet<String>,
    pub uses: Vec<Use>,
    /// Paths in its code, and their lines.
    pub paths: Vec<(Vec<String>, usize)>,
}

/// One name of a `use` declaration.
pub struct Use {
    pub path: Vec<String>,
    /// What it is called here; none for everything (`*`).
    pub alias: Option<String>,
    /// Whether others may take it from here.
    pub exported: bool,
    pub line: usize,
}

impl Crate {
    /// Reads the crate in a folder with `src/`.
    pub fn read(folder: &Path) -> Self {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let mut one = Self { name, files: Vec::new(), modules: BTreeMap::new() };
        for root in ["lib.rs", "main.rs"].map(|name| folder.join("src").join(name)) {
            if root.exists() {
                let below = root.parent().unwrap().to_owned();
                // A binary beside its library is a crate of its own, with modules of its own.
                let at = if one.files.is_empty() { vec![] } else { vec!["main".to_owned()] };
                one.file(&root, &below, at, "");
            }
        }
        assert!(!one.files.is_empty(), "no crate in {}", folder.display());
        one
    }

    /// Reads a file that holds the module `at`; files of its children lie in `below`.
    fn file(&mut self, path: &Path, below: &Path, at: Vec<String>, condition: &str) {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let syntax = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let name = path.display().to_string();
        let name = name.rsplit_once("/../../").map_or(name.clone(), |(_, name)| name.to_owned());
        let number = self.files.len();
        let lines = text.lines().count();
        self.files.push(File { path: name, module: at.clone(), lines, types: Vec::new() });
        self.module(number, &syntax.items, below, at, condition);
    }

    fn module(
        &mut self,
        file: usize,
        items: &[Item],
        below: &Path,
        at: Vec<String>,
        condition: &str,
    ) {
        let mut module = Module { file, ..Module::default() };
        let mut nested: Vec<(&syn::ItemMod, String)> = Vec::new();
        for item in items {
            let attributes = attributes(item);
            if is_test(attributes) {
                let span = item.span();
                let first = attributes.first().map_or(span.start().line, |a| a.span().start().line);
                if !matches!(item, Item::Mod(one) if one.content.is_none()) {
                    self.files[file].lines -= span.end().line + 1 - first;
                }
                continue;
            }
            let condition = format!("{condition}{}", conditions(attributes));
            match item {
                Item::Use(one) => {
                    let exported = !matches!(one.vis, Visibility::Inherited);
                    let line = one.span().start().line;
                    leaves(&one.tree, &mut Vec::new(), &mut |path, alias| {
                        module.uses.push(Use { path, alias, exported, line });
                    });
                    continue;
                }
                Item::Mod(one) => {
                    module.children.insert(one.ident.to_string());
                    nested.push((one, condition));
                    continue;
                }
                _ => {}
            }
            if let Some((name, is_type)) = defined(item) {
                module.items.insert(name.clone());
                if is_type {
                    let place = format!("{}:{}", self.files[file].path, item.span().start().line);
                    self.files[file].types.push(Type { name, place, condition });
                }
            }
            Paths(&mut module.paths).visit_item(item);
        }
        for (one, condition) in nested {
            let name = one.ident.to_string();
            let child = [&at[..], std::slice::from_ref(&name)].concat();
            if let Some((_, items)) = &one.content {
                self.module(file, items, &below.join(&name), child, &condition);
            } else {
                let path = file_of(one, below);
                self.file(&path, &below.join(&name), child, &condition);
            }
        }
        self.modules.insert(at, module);
    }
}

/// The file of a module that is declared.
fn file_of(module: &syn::ItemMod, below: &Path) -> PathBuf {
    let name = module.ident.to_string();
    let [plain, folder] = [format!("{name}.rs"), format!("{name}/mod.rs")];
    let plain = below.join(plain);
    if plain.exists() { plain } else { below.join(folder) }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(one) => &one.attrs,
        Item::Enum(one) => &one.attrs,
        Item::Fn(one) => &one.attrs,
        Item::Impl(one) => &one.attrs,
        Item::Macro(one) => &one.attrs,
        Item::Mod(one) => &one.attrs,
        Item::Static(one) => &one.attrs,
        Item::Struct(one) => &one.attrs,
        Item::Trait(one) => &one.attrs,
        Item::Type(one) => &one.attrs,
        Item::Union(one) => &one.attrs,
        Item::Use(one) => &one.attrs,
        _ => &[],
    }
}

/// The conditions under which something is compiled, as text.
fn conditions(attributes: &[Attribute]) -> String {
    let of = attributes.iter().filter(|one| one.path().is_ident("cfg"));
    of.map(|one| one.meta.to_token_stream().to_string()).collect()
}

fn is_test(attributes: &[Attribute]) -> bool {
    let condition = conditions(attributes);
    let mut words = condition.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| word == "test") && !condition.contains("not (test")
}

/// What an item defines, and whether that is a type.
fn defined(item: &Item) -> Option<(String, bool)> {
    let (ident, is_type) = match item {
        Item::Const(one) => (&one.ident, false),
        Item::Fn(one) => (&one.sig.ident, false),
        Item::Static(one) => (&one.ident, false),
        Item::Enum(one) => (&one.ident, true),
        Item::Struct(one) => (&one.ident, true),
        Item::Trait(one) => (&one.ident, true),
        Item::Type(one) => (&one.ident, true),
        Item::Union(one) => (&one.ident, true),
        _ => return None,
    };
    Some((ident.to_string(), is_type))
}

/// Calls `found` for each name of a `use` declaration with its path and what it is called.
fn leaves(
    tree: &UseTree,
    path: &mut Vec<String>,
    found: &mut impl FnMut(Vec<String>, Option<String>),
) {
    match tree {
        UseTree::Path(one) => {
            path.push(one.ident.to_string());
            leaves(&one.tree, path, found);
            path.pop();
        }
        // `a::{self, b}` imports `a`.
        UseTree::Name(one) if one.ident == "self" => found(path.clone(), path.last().cloned()),
        UseTree::Name(one) => {
            let name = one.ident.to_string();
            found([&path[..], std::slice::from_ref(&name)].concat(), Some(name));
        }
        UseTree::Rename(one) => {
            let alias = Some(one.rename.to_string());
            found([&path[..], &[one.ident.to_string()]].concat(), alias);
        }
        UseTree::Glob(_) => found(path.clone(), None),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, path, found)),
    }
}

/// Collects the paths of code, those in the arguments of macros too.
struct Paths<'a>(&'a mut Vec<(Vec<String>, usize)>);

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let names = path.segments.iter().map(|segment| segment.ident.to_string());
            self.0.push((names.collect(), path.span().start().line));
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, one: &'ast syn::Macro) {
        self.tokens(one.tokens.clone());
    }

    /// In a function a `use` is as good as the path that it stands for.
    fn visit_item_use(&mut self, one: &'ast syn::ItemUse) {
        let line = one.span().start().line;
        leaves(&one.tree, &mut Vec::new(), &mut |path, _| self.0.push((path, line)));
    }
}

impl Paths<'_> {
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut line, mut colons) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.end_of(&mut path, line);
                        line = ident.span().start().line;
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.end_of(&mut path, line);
                    colons = 0;
                    self.tokens(group.stream());
                }
                _ => {
                    self.end_of(&mut path, line);
                    colons = 0;
                }
            }
        }
        self.end_of(&mut path, line);
    }

    fn end_of(&mut self, path: &mut Vec<String>, line: usize) {
        if !path.is_empty() {
            self.0.push((std::mem::take(path), line));
        }
    }
}
