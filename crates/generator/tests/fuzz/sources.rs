//! Damages packages. Parts of the test cases, an example and the oracle are removed, duplicated,
//! moved and mixed.

use std::fs;
use std::path::Path;

use rbuilder_generator::SourceSet;

use super::random::{Random, floor};

/// The files by their paths.
pub(crate) type Package = Vec<(String, String)>;

const SNIPPETS: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    "\"",
    "'",
    "r#\"",
    "/*",
    "*/",
    "//",
    "///",
    "/**",
    "#[",
    "#![",
    "::",
    "=",
    ",",
    ";",
    "\\",
    "\u{feff}",
    "é",
    "\0",
    "\r",
    "\r\n",
    "\u{2028}",
    "fn f() {",
    "#[kube(",
    "#[webhook(mutating, ",
    "#[webhook(validating, conversion)] ",
    "#[crd(",
    "#[rbac(",
    "#[webhook(",
    "#[serde(",
    "#[derive(",
    "#[cfg(",
    "#[cfg_attr(",
    "#[doc = ",
    "mod x;",
    "mod r#type;",
    "use super::*;",
    "use crate::*;",
    "use {self, a::{b, c as _}};",
    "type X = X;",
    "-1",
    "'a",
    "b'",
    "b\"",
    "c\"",
    "r##\"",
    "0x",
    "1e999",
    "1_000.5e-3f64",
    "..",
    "..=",
    "->",
    "=>",
    "impl T {",
    "impl<T: A<B = C>> D for E<T> where T: F {",
    "trait T { fn f(); }",
    "macro_rules! m {",
    "m! { #[derive(CustomResource)] }",
    "#![cfg(test)]",
    "#[cfg(any())]",
    "#[cfg(not(all(unix, feature = \"x\")))]",
    "#[path = \"lib.rs\"] mod x;",
    "#[path = \"../src/lib.rs\"] mod x;",
    "include!(\"lib.rs\");",
    "pub struct A<T>(A<A<T>>);",
    "pub struct B<const N: usize = { 1 + 1 }>([u8; N]);",
    "async unsafe extern \"C\" fn f<'a>() -> impl Fn(&'a str) {",
    "const C: [u8; 3] = *b\"abc\";",
    "enum E { A = 1, B(i32), C { d: E } }",
    "union U { a: i32 }",
    "static mut S: &str = \"\";",
    "where Self: Sized",
    "dyn Fn() -> ()",
    "Option<Box<dyn A + 'static>>",
    "<T as U>::V",
    "#!/usr/bin/env run\n",
];

/// These are the test cases, an example and the oracle.
pub(crate) fn packages() -> Vec<Package> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<_> = fs::read_dir(root.join("tests/cases"))
        .expect("cases")
        .map(|case| case.expect("a case").path().join("in"))
        .collect();
    folders.sort();
    folders.push(root.join("../../examples/memcached-operator"));
    folders.push(root.join("../../testdata/oracle/rust"));
    folders.iter().map(|folder| package(folder)).collect()
}

fn package(folder: &Path) -> Package {
    let mut files = Package::new();
    let mut open = vec![folder.to_owned()];
    while let Some(current) = open.pop() {
        let mut entries: Vec<_> = fs::read_dir(current)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        entries.sort();
        for path in entries {
            let is_source = path.extension().is_some_and(|end| end == "rs") || path.ends_with("Cargo.toml");
            if path.is_dir() && !path.ends_with("target") {
                open.push(path);
            } else if is_source {
                let name = path.strip_prefix(folder).expect("below the folder");
                let name = name.to_string_lossy().replace('\\', "/");
                files.push((name, fs::read_to_string(&path).expect("text")));
            }
        }
    }
    files
}

pub(crate) fn damaged(packages: &[Package], random: &mut Random) -> SourceSet {
    let mut package = random.one_of(packages).clone();
    for _ in 0..=random.below(3) {
        let others = random.one_of(packages);
        let file = random.below(package.len());
        match random.below(12) {
            0 => move_file(&mut package, file, random),
            1 => {
                let other = random.one_of(others).clone();
                package.push(other);
            }
            _ => damage(&mut package[file].1, others, random),
        }
    }
    let mut sources = SourceSet::default();
    for (path, text) in package {
        sources.insert(path, text);
    }
    sources
}

/// If a file is renamed, so is the module in it.
fn move_file(package: &mut Package, file: usize, random: &mut Random) {
    let names = [
        "src/lib.rs",
        "src/main.rs",
        "src/mod.rs",
        "src/bin/x.rs",
        "src/api/mod.rs",
        "lib.rs",
        "build.rs",
        "../x.rs",
    ];
    package[file].0 = random.text(&names).to_owned();
}

fn damage(text: &mut String, others: &Package, random: &mut Random) {
    let (a, b) = (random.boundary(text), random.boundary(text));
    let (start, end) = (a.min(b), a.max(b));
    match random.below(7) {
        0 => text.truncate(start),
        1 => text.replace_range(start..end.min(floor(text, start + 20)), ""),
        2 => text.insert_str(start, random.text(SNIPPETS)),
        3 => {
            let copy = text[start..end.min(floor(text, start + 200))].to_owned();
            let at = random.boundary(text);
            text.insert_str(at, &copy);
        }
        4 => {
            let times = random.below(400);
            text.insert_str(start, &random.text(SNIPPETS).repeat(times));
        }
        5 => *text = text.replace('\n', random.text(&["\r\n", " ", "\r", "\n\n"])),
        _ => {
            let other = &random.one_of(others).1;
            let from = random.boundary(other);
            text.insert_str(start, &other[from..floor(other, from + 100)]);
        }
    }
}
