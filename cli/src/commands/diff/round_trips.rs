//! Finds the versions of a kind that a project's round-trip tests cover.
//!
//! A webhook's conversion is code, which isn't run here. But we can find calls of
//! `rbuilder::testing::assert_round_trip::<K, V>` and `RoundTrip::<K, V>` in the source, and report
//! versions that none of them connects.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use rbuilder_kubernetes::crd::Crd;
use rbuilder_reader::grammar::{ItemKind, Items};
use rbuilder_reader::token::{Cursor, Delimiter, lex};
use rbuilder_reader::{TypeKind, TypeRef, find_local_items};
use serde_json::Value;

use crate::tree::Tree;

const TESTS: [&str; 2] = ["assert_round_trip", "RoundTrip"];
/// Maximum number of aliases of a type to follow.
const STEPS: usize = 8;

/// Segments of a path, e.g. `["crate", "api", "v2", "Cup"]`.
type Path = Vec<String>;

/// Paths of both types for each test in a project.
#[derive(Debug, Default)]
pub(super) struct RoundTrips(Vec<[Path; 2]>);

impl RoundTrips {
    /// Finds the tests in all Rust files of a project. Files that don't parse are skipped.
    pub(super) fn read(tree: &Tree) -> Result<RoundTrips> {
        let mut found = Vec::new();
        for path in tree.find_files(|path| path.ends_with(".rs"))? {
            let text = tree.read(&path)?.unwrap_or_default();
            if TESTS.iter().any(|name| text.contains(name)) {
                found.extend(find_round_trips(&text));
            }
        }
        Ok(RoundTrips(found))
    }

    pub(super) fn find_untested(&self, crd: &Value) -> Vec<String> {
        let (crd, kind) = (Crd::of(crd), Crd::of(crd).kind());
        // The API server doesn't convert to or from any other version.
        let used = crd
            .versions()
            .filter(|version| version.is_served || version.is_storage);
        let versions: Vec<&str> = used.map(|version| version.name).collect();
        let pairs = self.0.iter().filter_map(|[first, second]| {
            Some([
                find_version(first, kind, &versions)?,
                find_version(second, kind, &versions)?,
            ])
        });
        let pairs: Vec<[&str; 2]> = pairs.collect();
        let connected = largest_group(&versions, &pairs);
        let left = versions.iter().filter(|version| !connected.contains(**version));
        left.map(|version| (*version).to_owned()).collect()
    }
}

/// Finds the version of a kind's type, i.e. the name of a module in its path.
fn find_version<'v>(path: &[String], kind: &str, versions: &[&'v str]) -> Option<&'v str> {
    let (name, modules) = path.split_last()?;
    let is_module = |version: &&&str| modules.iter().any(|module| module == **version);
    versions.iter().find(is_module).copied().filter(|_| name == kind)
}

/// The largest group of versions connected by pairs. Empty without pairs.
fn largest_group<'v>(versions: &[&'v str], pairs: &[[&'v str; 2]]) -> BTreeSet<&'v str> {
    let group_of = |start: &'v str| {
        let mut group = BTreeSet::from([start]);
        loop {
            let before = group.len();
            for [first, second] in pairs {
                if group.contains(first) || group.contains(second) {
                    group.extend([first, second]);
                }
            }
            if group.len() == before {
                return group;
            }
        }
    };
    let groups = versions.iter().map(|version| group_of(version));
    // `max_by_key` returns the last maximum, so `rev` picks the earlier version in a tie.
    let largest = groups.rev().max_by_key(BTreeSet::len).unwrap_or_default();
    match largest.len() {
        // Only connected to itself.
        1 => BTreeSet::new(),
        _ => largest,
    }
}

fn find_round_trips(text: &str) -> Vec<[Path; 2]> {
    let mut found = Vec::new();
    if let Ok(tokens) = lex(text) {
        search_items(tokens.cursor(), &Names::default(), &mut found);
    }
    found
}

#[derive(Clone, Debug, Default)]
struct Names(BTreeMap<String, Path>);

impl Names {
    fn add_items(&mut self, cursor: Cursor<'_>) {
        let mut items = Items::new(cursor, None);
        if items.read_inner_attributes().is_err() {
            return;
        }
        while let Ok(Some(item)) = items.read() {
            match item.kind {
                ItemKind::Use(tree) => self.add_imports(tree, &[]),
                ItemKind::Alias(alias) => {
                    if let Some(TypeKind::Path(path, _)) = alias.target.map(|target| target.kind) {
                        self.0.insert(alias.ident.text.to_owned(), path);
                    }
                }
                _ => {}
            }
        }
    }

    fn add_imports(&mut self, mut cursor: Cursor<'_>, above: &[String]) {
        while !cursor.is_end() && !cursor.is_punct(b';') {
            let mut path = above.to_vec();
            cursor.eat_pair(b':', b':');
            while let Some(ident) = cursor.any_ident() {
                path.push(ident.text.to_owned());
                if !cursor.eat_pair(b':', b':') {
                    break;
                }
            }
            if let Some(inner) = cursor.group(Delimiter::Brace) {
                self.add_imports(inner, &path);
            } else if !cursor.is_punct(b'*') {
                if path.last().is_some_and(|last| last == "self") {
                    path.pop();
                }
                let name = match cursor.eat_word("as") {
                    true => cursor.any_ident().map(|ident| ident.text.to_owned()),
                    false => path.last().cloned(),
                };
                self.0.extend(name.map(|name| (name, path)));
            }
            while !cursor.is_end() && !cursor.eat(b',') {
                cursor.skip();
            }
        }
    }

    /// Replaces the first segment of a path as long as it is a known name.
    fn resolve(&self, mut path: Path) -> Path {
        for _ in 0..STEPS {
            let Some(longer) = path.first().and_then(|first| self.0.get(first)) else {
                break;
            };
            // E.g. `use anyhow;`, which resolves to itself.
            if longer.first() == path.first() {
                break;
            }
            path.splice(..1, longer.iter().cloned());
        }
        path
    }
}

fn search_items(cursor: Cursor<'_>, outer: &Names, found: &mut Vec<[Path; 2]>) {
    let mut names = outer.clone();
    names.add_items(cursor);
    let mut items = Items::new(cursor, None);
    if items.read_inner_attributes().is_err() {
        return;
    }
    while let Ok(Some(item)) = items.read() {
        match item.kind {
            ItemKind::Function(function) => {
                if let Some(Ok(tokens)) = function.body.map(lex) {
                    search_body(tokens.cursor(), &names, found);
                }
            }
            ItemKind::Module(_, Some(content)) => search_items(content, &names, found),
            _ => {}
        }
    }
}

fn search_body(body: Cursor<'_>, outer: &Names, found: &mut Vec<[Path; 2]>) {
    let mut names = outer.clone();
    for span in find_local_items(body) {
        if let Ok(tokens) = lex(body.text_of(span)) {
            names.add_items(tokens.cursor());
        }
    }
    search_tokens(body, &names, found);
}

fn search_tokens(mut cursor: Cursor<'_>, names: &Names, found: &mut Vec<[Path; 2]>) {
    while !cursor.is_end() {
        if let Some(ident) = cursor.any_ident() {
            if TESTS.contains(&ident.text) {
                found.extend(read_types(&mut cursor, names));
            }
        } else if let Some(group) = cursor.any_group() {
            search_tokens(group, names, found);
        } else {
            cursor.skip();
        }
    }
}

fn read_types(cursor: &mut Cursor<'_>, names: &Names) -> Option<[Path; 2]> {
    cursor.eat_pair(b':', b':').then_some(())?;
    cursor.eat(b'<').then_some(())?;
    let first = read_path(cursor)?;
    cursor.eat(b',').then_some(())?;
    let second = read_path(cursor)?;
    Some([first, second].map(|path| names.resolve(path)))
}

fn read_path(cursor: &mut Cursor<'_>) -> Option<Path> {
    match TypeRef::read(cursor).ok()?.kind {
        TypeKind::Path(path, _) => Some(path),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn find_untested(text: &str, versions: &[&str]) -> Vec<String> {
        let versions: Vec<Value> = versions
            .iter()
            .map(|name| json!({ "name": name, "served": true, "storage": false }))
            .collect();
        let crd = json!({ "spec": { "names": { "kind": "Cup" }, "versions": versions } });
        RoundTrips(find_round_trips(text)).find_untested(&crd)
    }

    #[test]
    fn types_are_found_through_imports_and_aliases() {
        for text in [
            "#[test]\nfn a() { rbuilder::testing::assert_round_trip::<shop::api::v1::Cup, shop::api::v2::Cup>(); }",
            "use shop::api::v1::Cup;\nfn a() { type Spoke = shop::api::v2::Cup;\n testing::assert_round_trip::<Cup, Spoke>(); }",
            "use shop::api::{v1, v2::{self, Cup as Spoke}};\nfn a() { RoundTrip::<v1::Cup, Spoke>::new().assert(); }",
            "mod tests { use crate::api::{v1::*, v1, v2};\n #[test] fn a() { run(|| { RoundTrip::<v2::Cup, v1::Cup>::new() }); } }",
            "use crate::api::v1;\ntype Hub = v1::Cup;\ntype Spoke = super::v2::Cup;\nfn a() { assert_round_trip::<Hub, Spoke>() }",
        ] {
            assert_eq!(find_untested(text, &["v1", "v2"]), [""; 0], "{text}");
        }
    }

    #[test]
    fn other_calls_test_no_version() {
        for text in [
            "fn a() { assert_round_trip::<v1::Pot, v2::Pot>(); }",
            "fn a() { assert_round_trip(); }",
            "use crate::{Hub, Spoke};\nfn a() { assert_round_trip::<Hub, Spoke>(); }",
            "// assert_round_trip::<v1::Cup, v2::Cup>()",
            "fn a() { let text = \"assert_round_trip::<v1::Cup, v2::Cup>()\"; }",
            "fn a() { assert_round_trip::<v1::Cup, v1::Cup>(); }",
            "fn a( { assert_round_trip::<v1::Cup, v2::Cup>(); }",
            "use a as b; use b as a; fn c() { assert_round_trip::<a::Cup, b::Cup>(); }",
        ] {
            assert_eq!(find_untested(text, &["v1", "v2"]), ["v1", "v2"], "{text}");
        }
    }

    #[test]
    fn versions_are_tested_through_the_hub() {
        let test = |hub: &str, spoke: &str| {
            format!("fn a() {{ assert_round_trip::<{hub}::Cup, {spoke}::Cup>(); }}\n")
        };
        let versions = ["v1", "v2", "v3", "v4"];
        for (tests, expected) in [
            (vec![("v2", "v1"), ("v2", "v3"), ("v2", "v4")], &[][..]),
            (vec![("v2", "v1"), ("v2", "v3")], &["v4"]),
            (vec![("v2", "v1")], &["v3", "v4"]),
            (vec![("v1", "v2"), ("v3", "v4")], &["v3", "v4"]),
            (vec![], &versions),
        ] {
            let text: String = tests.iter().map(|(hub, spoke)| test(hub, spoke)).collect();
            assert_eq!(find_untested(&text, &versions), expected, "{text}");
        }
    }
}
