//! Flattens `use` trees into single imports.

use rbuilder_reader::Span;
use rbuilder_reader::token::{Cursor, Delimiter};
use rbuilder_syntax::Diagnostic;

use super::file::FileReader;
use super::renamed::RenamedImport;
use crate::package::{Dependency, Glob, ModuleId, Name};

#[derive(Debug, PartialEq, Eq)]
enum Import {
    /// The local name and the path it refers to.
    Name(String, Vec<String>),
    /// The path before `::*`.
    Glob(Vec<String>),
}

impl FileReader<'_, '_> {
    pub(super) fn imports(&mut self, tree: Cursor<'_>, module: ModuleId) -> Result<(), Diagnostic> {
        let mut names = Vec::new();
        let mut globs = Vec::new();
        for import in read_imports(tree)? {
            match import {
                Import::Name(name, path) => {
                    self.refuse_renamed(&name, &path, tree.span(), module);
                    names.push(name.clone());
                    // Don't replace a type with this name: the import may be a derive or a
                    // function.
                    let names = &mut self.collector.package.modules[module.0].names;
                    names.entry(name).or_insert(Name::Import(path));
                }
                Import::Glob(path) => globs.push(path),
            }
        }
        let undecided = self.add_undecided(names.join(" "), module);
        let globs = globs.into_iter().map(|path| Glob { path, undecided });
        self.collector.package.modules[module.0].globs.extend(globs);
        Ok(())
    }

    /// Markers are recognized by name, so report imports that rename them. Derives may be renamed
    /// as long as they are used in the same file.
    fn refuse_renamed(&mut self, name: &str, path: &[String], span: Span, module: ModuleId) {
        let Some(real) = path.last().filter(|last| *last != name) else {
            return;
        };
        let dependencies = &self.collector.package.member(module).dependencies;
        let is_ours = || {
            let first = path.iter().find(|segment| !segment.is_empty());
            first.is_some_and(|first| match dependencies.get(first) {
                Some(Dependency::Other(real)) => real.starts_with("rbuilder"),
                _ => first == "rbuilder",
            })
        };
        let is_derive = matches!(real.as_str(), "CustomResource" | "CrdSchema");
        let is_marker = matches!(real.as_str(), "rbac" | "webhook") && is_ours();
        if self.is_foreign || !is_derive && !is_marker {
            return;
        }
        let help = format!("import `{real}` without `as`");
        if is_derive {
            let message = format!(
                "`{real}` is renamed here and derived in another file, where rbuilder does not recognize it"
            );
            return self.add_renamed(name, Diagnostic::error(span, message).help(help));
        }
        let message = format!("`{real}` is renamed here; rbuilder recognizes it only by its own name");
        self.session.report(Diagnostic::error(span, message).help(help));
    }

    fn add_renamed(&mut self, alias: &str, reason: Diagnostic) {
        self.collector.renamed.push(RenamedImport {
            file: self.id,
            path: self.open.path.clone(),
            alias: alias.to_owned(),
            reason,
        });
    }
}

/// Parses the tree of a `use` item, after the keyword. If the path starts with `::`, its first
/// segment is empty.
fn read_imports(mut tree: Cursor<'_>) -> Result<Vec<Import>, Diagnostic> {
    let mut found = Vec::new();
    walk(&mut tree, &mut Vec::new(), &mut found)?;
    if tree.is_punct(b';') {
        Ok(found)
    } else {
        Err(tree.expected("`;`"))
    }
}

fn walk(tree: &mut Cursor<'_>, prefix: &mut Vec<String>, found: &mut Vec<Import>) -> Result<(), Diagnostic> {
    // Recursion is bounded by the lexer, which limits the depth of braces.
    let outer = prefix.len();
    if tree.eat_pair(b':', b':') && outer == 0 {
        prefix.push(String::new());
    }
    loop {
        if tree.eat(b'*') {
            found.push(Import::Glob(prefix.clone()));
        } else if let Some(mut group) = tree.group(Delimiter::Brace) {
            while !group.is_end() {
                walk(&mut group, prefix, found)?;
                if !group.is_end() {
                    group.expect(b',')?;
                }
            }
        } else {
            let Some(ident) = tree.any_ident() else {
                return Err(tree.expected("identifier"));
            };
            if tree.eat_pair(b':', b':') {
                prefix.push(ident.text.to_owned());
                continue;
            }
            let rename = if tree.eat_word("as") {
                let Some(rename) = tree.any_ident() else {
                    return Err(tree.expected("identifier"));
                };
                Some(rename.text.to_owned())
            } else {
                None
            };
            found.extend(named(prefix, ident.text, rename));
        }
        prefix.truncate(outer);
        return Ok(());
    }
}

/// `a::{self}` imports `a`, and `as _` imports no name at all.
fn named(prefix: &[String], name: &str, rename: Option<String>) -> Option<Import> {
    let mut path = prefix.to_vec();
    if name != "self" || path.is_empty() {
        path.push(name.to_owned());
    }
    let here = rename.or_else(|| path.last().cloned())?;
    (here != "_").then_some(Import::Name(here, path))
}

#[cfg(test)]
mod tests {
    use rbuilder_reader::token::lex;

    use super::*;

    #[test]
    fn flattens_use_trees() {
        let cases: &[(&str, &[&str])] = &[
            ("use a::b;", &["b = a::b"]),
            ("use a::{b, c as d, self};", &["b = a::b", "d = a::c", "a = a"]),
            (
                "use ::k8s::{x::{Y, self as z}, *};",
                &["Y = ::k8s::x::Y", "z = ::k8s::x", "* = ::k8s"],
            ),
            ("use super::*;", &["* = super"]),
            ("use a::r#type::T as _;", &[]),
            ("use a::r#type;", &["type = a::type"]),
            ("use {::a::b, c};", &["b = ::a::b", "c = c"]),
            (
                "use crate::{a::{b, c::{d}}, e};",
                &["b = crate::a::b", "d = crate::a::c::d", "e = crate::e"],
            ),
        ];
        for (input, expected) in cases {
            let tokens = lex(input).expect("tokens");
            let mut tree = tokens.cursor();
            tree.skip();
            let found: Vec<String> = read_imports(tree)
                .expect("a tree")
                .into_iter()
                .map(|import| match import {
                    Import::Name(name, path) => format!("{name} = {}", path.join("::")),
                    Import::Glob(path) => format!("* = {}", path.join("::")),
                })
                .collect();
            assert_eq!(found, *expected, "{input}");
        }
    }
}
