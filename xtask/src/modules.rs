//! Modules of a crate that import each other in cycles.
//!
//! A module imports another one of the same parent if code of its files, or of its children's, names an item that a file of
//! the other one defines: in `use`, in a path, or inside of a macro's arguments. Re-exports are followed to the file that
//! defines the item. A parent and its children belong together: what they name of each other does not count, nor does code
//! for tests.

use crate::files;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// A file, by its index in [`Crate::files`].
type File = usize;

/// A module, by its index in [`Crate::modules`].
type Module = usize;

/// What a name in a module means.
enum Name {
    /// An item that is defined in this file.
    Item(File),
    /// A module of this crate.
    Module(Module),
    /// Another path's, which `use` brought here.
    Alias(Vec<String>),
}

/// Where a part of a path is, which decides what it can mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part<'a> {
    /// The first one of a path in code.
    First,
    /// The first one of the path by which `use` brings this name.
    OfUse(&'a str),
    /// A later one.
    Inner,
}

#[derive(Default)]
struct Scope {
    file: File,
    parent: Option<Module>,
    /// A name can mean several things: a function and a module, say.
    names: HashMap<String, Vec<Name>>,
    /// Paths of which `use PATH::*` takes all names.
    globs: Vec<Vec<String>>,
}

/// One crate's files and modules.
#[derive(Default)]
struct Crate {
    files: Vec<PathBuf>,
    modules: Vec<Scope>,
    /// Each module with its items.
    code: Vec<(Module, Vec<syn::Item>)>,
}

/// Modules of one parent that import each other.
struct Cycle {
    /// Their files, from the repository's root.
    modules: Vec<String>,
    /// Which file names what of another one.
    imports: Vec<String>,
}

/// Each cycle with the imports that make it.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let shown = |Cycle { modules, imports }| {
        let (modules, imports) = (modules.join(" "), imports.join("\n    "));
        format!("these import each other: {modules}\n    {imports}")
    };
    Ok(cycles(root)?.into_iter().map(shown).collect())
}

/// The cycles in every crate below `crates`.
fn cycles(root: &Path) -> Result<Vec<Cycle>, Box<dyn Error>> {
    let mut found = Vec::new();
    let mut crates = std::fs::read_dir(root.join("crates"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    crates.sort();
    for folder in crates {
        let source = folder.join("src");
        for start in ["lib.rs", "main.rs"].map(|name| source.join(name)) {
            if start.is_file() {
                found.extend(Crate::read(&start)?.cycles(root));
            }
        }
    }
    Ok(found)
}

impl Crate {
    fn read(start: &Path) -> Result<Self, Box<dyn Error>> {
        let mut this = Self::default();
        let folder = start.parent().expect("a file is in a folder").to_path_buf();
        this.add_file(start, &folder, None)?;
        Ok(this)
    }

    /// Reads a file as a module; its children's files are in `folder`.
    fn add_file(
        &mut self,
        path: &Path,
        folder: &Path,
        parent: Option<Module>,
    ) -> Result<Module, Box<dyn Error>> {
        let text = files::read(path)?;
        let syntax = syn::parse_file(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        let file = self.files.len();
        self.files.push(path.to_path_buf());
        self.add_module(file, folder, parent, syntax.items)
    }

    fn add_module(
        &mut self,
        file: File,
        folder: &Path,
        parent: Option<Module>,
        items: Vec<syn::Item>,
    ) -> Result<Module, Box<dyn Error>> {
        let module = self.modules.len();
        self.modules.push(Scope { file, parent, ..Scope::default() });
        let mut code = Vec::new();
        for item in items {
            if attributes(&item).iter().any(is_for_tests) {
                continue;
            }
            match item {
                syn::Item::Mod(child) => {
                    let name = child.ident.to_string();
                    let below = folder.join(&name);
                    let child = match child.content {
                        Some((_, items)) => self.add_module(file, &below, Some(module), items)?,
                        None => {
                            let flat = folder.join(format!("{name}.rs"));
                            let nested = below.join("mod.rs");
                            let path = match path_attribute(&child.attrs) {
                                // From where this file is, not from where its children are.
                                Some(given) => self.files[file].with_file_name(given),
                                None if flat.is_file() => flat,
                                None => nested,
                            };
                            self.add_file(&path, &below, Some(module))?
                        }
                    };
                    self.name(module, name, Name::Module(child));
                }
                syn::Item::Use(item) => {
                    self.add_use(module, Vec::new(), &item.tree);
                    // What is only passed on is not used here.
                    if matches!(item.vis, syn::Visibility::Inherited) {
                        code.push(syn::Item::Use(item));
                    }
                }
                other => {
                    if let Some(name) = defined(&other) {
                        self.name(module, name, Name::Item(file));
                    }
                    code.push(other);
                }
            }
        }
        self.code.push((module, code));
        Ok(module)
    }

    fn name(&mut self, module: Module, name: String, meaning: Name) {
        self.modules[module].names.entry(name).or_default().push(meaning);
    }

    fn add_use(&mut self, module: Module, mut path: Vec<String>, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(tree) => {
                path.push(tree.ident.to_string());
                self.add_use(module, path, &tree.tree);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_use(module, path.clone(), tree);
                }
            }
            syn::UseTree::Glob(_) => self.modules[module].globs.push(path),
            syn::UseTree::Name(tree) => {
                let name = tree.ident.to_string();
                // `use module::{self}`.
                let alias = if name == "self" { path.last().cloned() } else { Some(name.clone()) };
                if name != "self" {
                    path.push(name);
                }
                if let Some(alias) = alias {
                    self.name(module, alias, Name::Alias(path));
                }
            }
            syn::UseTree::Rename(tree) => {
                if tree.ident != "self" {
                    path.push(tree.ident.to_string());
                }
                self.name(module, tree.rename.to_string(), Name::Alias(path));
            }
        }
    }

    /// The files that define what a path names, seen from a module.
    fn resolve(&self, module: Module, path: &[String]) -> BTreeSet<File> {
        let mut files = BTreeSet::new();
        self.walk(module, path, Part::First, &mut BTreeSet::new(), &mut files);
        files
    }

    /// Follows a path from a module.
    fn walk(
        &self,
        module: Module,
        path: &[String],
        part: Part<'_>,
        seen: &mut BTreeSet<(Module, Vec<String>)>,
        files: &mut BTreeSet<File>,
    ) {
        let Some((first, rest)) = path.split_first() else { return };
        if !seen.insert((module, path.to_vec())) {
            return;
        }
        let scope = &self.modules[module];
        let above = match first.as_str() {
            "super" => scope.parent,
            "crate" if part != Part::Inner => Some(0),
            "self" if part != Part::Inner => Some(module),
            _ => None,
        };
        if let Some(above) = above {
            return self.walk(above, rest, Part::Inner, seen, files);
        }
        for meaning in scope.names.get(first).into_iter().flatten() {
            match meaning {
                Name::Item(file) => {
                    files.insert(*file);
                }
                Name::Module(child) => self.walk(*child, rest, Part::Inner, seen, files),
                // The name that `use a::a` begins with is not the one that it brings.
                Name::Alias(_) if part == Part::OfUse(first) => {}
                Name::Alias(target) => {
                    let path: Vec<_> = target.iter().chain(rest).cloned().collect();
                    self.walk(module, &path, Part::OfUse(first), seen, files);
                }
            }
        }
        // Nor is it one that another `use a::*` brings: most are names of crates.
        if matches!(part, Part::OfUse(_)) {
            return;
        }
        for target in &scope.globs {
            let path: Vec<_> = target.iter().chain(path).cloned().collect();
            self.walk(module, &path, Part::OfUse("*"), seen, files);
        }
    }

    /// Which files import which, and by which paths.
    fn imports(&self) -> BTreeMap<(File, File), BTreeSet<String>> {
        let mut imports: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (module, items) in &self.code {
            let mut paths = Paths::default();
            items.iter().for_each(|item| paths.visit_item(item));
            let from = self.modules[*module].file;
            for path in paths.found {
                for to in self.resolve(*module, &path) {
                    if to != from {
                        imports.entry((from, to)).or_default().insert(path.join("::"));
                    }
                }
            }
        }
        imports
    }

    /// A file's modules from the crate's root down to its own, by what names them in their parents' folders.
    fn place(&self, file: File) -> Vec<File> {
        let mut place = Vec::new();
        let mut module = self.modules.iter().position(|scope| scope.file == file);
        while let Some(this) = module {
            let scope = &self.modules[this];
            if place.last() != Some(&scope.file) {
                place.push(scope.file);
            }
            module = scope.parent;
        }
        place.reverse();
        place
    }

    /// Groups of modules of one parent that import each other, files of their children included.
    fn cycles(&self, root: &Path) -> Vec<Cycle> {
        let places: Vec<_> = (0..self.files.len()).map(|file| self.place(file)).collect();
        // By parent: which children import which, and the imports that show it.
        let mut parents: BTreeMap<File, BTreeMap<(File, File), Vec<String>>> = BTreeMap::new();
        for ((from, to), paths) in self.imports() {
            let (a, b) = (&places[from], &places[to]);
            let shared = a.iter().zip(b).take_while(|(a, b)| a == b).count();
            // Parents and children belong together.
            let (Some(&child), Some(&other)) = (a.get(shared), b.get(shared)) else { continue };
            let paths: Vec<_> = paths.iter().map(String::as_str).collect();
            let line = format!("{} names {}", self.shown(from, root), paths.join(", "));
            parents.entry(a[shared - 1]).or_default().entry((child, other)).or_default().push(line);
        }
        parents.values().flat_map(|imports| self.groups(imports, root)).collect()
    }

    fn groups(&self, imports: &BTreeMap<(File, File), Vec<String>>, root: &Path) -> Vec<Cycle> {
        let nodes: BTreeSet<File> = imports.keys().flat_map(|&(from, to)| [from, to]).collect();
        let reached_from = |start: File| {
            let mut reached = BTreeSet::new();
            let mut open = vec![start];
            while let Some(node) = open.pop() {
                for &(from, to) in imports.keys() {
                    if from == node && reached.insert(to) {
                        open.push(to);
                    }
                }
            }
            reached
        };
        let reaches: BTreeMap<File, BTreeSet<File>> =
            nodes.iter().map(|&node| (node, reached_from(node))).collect();
        let mut done: BTreeSet<File> = BTreeSet::new();
        let mut groups = Vec::new();
        for &first in &nodes {
            if done.contains(&first) || !reaches[&first].contains(&first) {
                continue;
            }
            let group: BTreeSet<File> =
                reaches[&first].iter().copied().filter(|it| reaches[it].contains(&first)).collect();
            done.extend(&group);
            let mut modules: Vec<_> = group.iter().map(|&file| self.shown(file, root)).collect();
            modules.sort();
            let within =
                imports.iter().filter(|((a, b), _)| group.contains(a) && group.contains(b));
            let imports = within.flat_map(|(_, lines)| lines).cloned().collect();
            groups.push(Cycle { modules, imports });
        }
        groups
    }

    fn shown(&self, file: File, root: &Path) -> String {
        let path = &self.files[file];
        path.strip_prefix(root).unwrap_or(path).display().to_string()
    }
}

/// The paths that code names.
#[derive(Default)]
struct Paths {
    found: BTreeSet<Vec<String>>,
}

impl Paths {
    fn add_use(&mut self, mut path: Vec<String>, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(tree) => {
                path.push(tree.ident.to_string());
                self.add_use(path, &tree.tree);
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.add_use(path.clone(), tree));
            }
            syn::UseTree::Glob(_) => {}
            syn::UseTree::Name(tree) => {
                path.push(tree.ident.to_string());
                self.found.insert(path);
            }
            syn::UseTree::Rename(tree) => {
                path.push(tree.ident.to_string());
                self.found.insert(path);
            }
        }
    }

    /// Paths in what a macro is given: names with `::` between them.
    fn add_tokens(&mut self, tokens: proc_macro2::TokenStream) {
        use proc_macro2::TokenTree;
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons < 2 {
                        self.end_path(&mut path);
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                other => {
                    self.end_path(&mut path);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.add_tokens(group.stream());
                    }
                }
            }
        }
        self.end_path(&mut path);
    }

    fn end_path(&mut self, path: &mut Vec<String>) {
        if !path.is_empty() {
            self.found.insert(std::mem::take(path));
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !attributes(item).iter().any(is_for_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes: &[_] = match item {
            syn::ImplItem::Fn(item) => &item.attrs,
            syn::ImplItem::Const(item) => &item.attrs,
            _ => &[],
        };
        if !attributes.iter().any(is_for_tests) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_use(Vec::new(), &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.found.insert(path.segments.iter().map(|part| part.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, macro_call: &'ast syn::Macro) {
        self.add_tokens(macro_call.tokens.clone());
        visit::visit_macro(self, macro_call);
    }

    // Documentation may name whatever it likes.
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

/// Whether code is left out of what users get: `#[cfg(test)]`, and `cfg` of a feature for tests or of loom.
fn is_for_tests(attribute: &syn::Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else { return false };
    let condition = list.tokens.to_string();
    list.path.is_ident("cfg")
        && !condition.starts_with("not")
        && ["test", "loom"]
            .iter()
            .any(|word| condition.split(|c: char| !c.is_alphanumeric()).any(|part| part == *word))
}

fn path_attribute(attributes: &[syn::Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| {
        let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
        let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else {
            return None;
        };
        attribute.path().is_ident("path").then(|| text.value())
    })
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::ExternCrate(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::ForeignMod(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::TraitAlias(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Union(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The name that an item defines.
fn defined(item: &syn::Item) -> Option<String> {
    let name = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Macro(item) => item.ident.as_ref()?,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::TraitAlias(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with one crate, of these files.
    fn repository(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            files::write(&folder.path().join("crates/a/src").join(path), text).unwrap();
        }
        folder
    }

    /// The cycles of a crate with these files.
    fn cycles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let cycles = cycles(repository(files).path()).unwrap();
        let name = |path: String| path.trim_start_matches("crates/a/src/").to_owned();
        cycles.into_iter().map(|it| it.modules.into_iter().map(name).collect()).collect()
    }

    #[test]
    fn modules_that_name_each_other_are_found() {
        let library = ("lib.rs", "mod a; mod b; mod c;");
        let a = ("a.rs", "use crate::b::B; pub struct A(B);");
        let c = ("c.rs", "use crate::a::A; pub fn c(_: A) {}");
        for back in [
            "use crate::a::A; pub struct B;",
            "pub struct B; fn f(_: super::a::A) {}",
            "pub struct B; fn f() { assert!(matches!(x(), crate::a::A(_))) }",
            "use crate::a; pub struct B; fn f() { a::A::new() }",
            "use super::a as other; pub struct B; fn f(_: &[other::A]) {}",
            "use crate::a::*; pub struct B; fn f(_: A) {}",
        ] {
            assert_eq!(cycles_of(&[library, a, ("b.rs", back), c]), [["a.rs", "b.rs"]], "{back}");
        }
        let none = ("b.rs", "pub struct B;");
        assert_eq!(cycles_of(&[library, a, none, c]), Vec::<Vec<String>>::new());
    }

    #[test]
    fn files_of_children_and_re_exports_count() {
        let found = cycles_of(&[
            ("lib.rs", "pub mod a; pub mod b; pub use b::B;"),
            ("a/mod.rs", "mod inner; pub use inner::A;"),
            ("a/inner.rs", "pub struct A(crate::B);"),
            ("b.rs", "use crate::a::A; pub struct B; impl From<A> for B {}"),
        ]);
        assert_eq!(found, [["a/mod.rs", "b.rs"]]);
    }

    #[test]
    fn parents_tests_and_other_crates_do_not_count() {
        let found = cycles_of(&[
            ("lib.rs", "mod a; mod b; pub struct Shared(a::A);"),
            ("a.rs", "use crate::{Shared, b::B}; pub struct A(B); fn f(_: Shared) {}"),
            (
                "b.rs",
                "use a::a; use clap::*; pub struct B; #[cfg(test)] mod tests { use crate::a::A; }",
            ),
        ]);
        assert_eq!(found, Vec::<Vec<String>>::new());
    }

    #[test]
    fn a_cycle_is_shown_with_its_imports() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "pub struct B(super::a::A);"),
        ];
        let shown = "these import each other: crates/a/src/a.rs crates/a/src/b.rs
    crates/a/src/a.rs names crate::b::B
    crates/a/src/b.rs names super::a::A";
        assert_eq!(check(repository(&files).path()).unwrap(), [shown]);
    }
}
