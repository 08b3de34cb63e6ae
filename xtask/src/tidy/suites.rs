//! Checks that all files in test suites run. Files that are not declared anywhere are silently not
//! compiled.
//!
//! Some packages combine their tests into one program, `tests/suite.rs`, because each program has
//! to link the package and all its dependencies. The command's 36 separate programs took twice as
//! long to build as a single one, and clippy took two thirds longer. Cargo only discovers files in
//! `tests/` if each is a program.

use std::collections::BTreeMap;

use super::File;

/// Reports files in `tests/` of packages without `autotests` that are neither a module of the suite
/// nor a separate target.
pub(super) fn check_suites(files: &[File<'_>]) -> Vec<String> {
    let texts: BTreeMap<&str, &str> = files.iter().map(|file| (file.path, file.text)).collect();
    let manifests = files
        .iter()
        .filter(|file| file.path.ends_with("/Cargo.toml") && has_line(file.text, "autotests = false"));
    manifests
        .flat_map(|manifest| {
            let tests = manifest.path.replace("Cargo.toml", "tests/");
            let suite = texts.get(format!("{tests}suite.rs").as_str()).copied();
            let named = move |name: &str| {
                has_line(manifest.text, &format!("name = \"{name}\""))
                    || has_line(suite.unwrap_or_default(), &format!("mod {name};"))
            };
            let lost = texts.keys().filter(move |path| {
                let name = path
                    .strip_prefix(&tests)
                    .and_then(|name| name.strip_suffix(".rs"));
                name.is_some_and(|name| !name.contains('/') && !named(name))
            });
            lost.map(|path| {
                format!("{path}: add a `mod` of this file to suite.rs beside it: its tests do not run")
            })
            .collect::<Vec<_>>()
        })
        .collect()
}

fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|other| other.trim() == line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_file_missing_in_suite() {
        let check = |manifest: &str, suite: &str, expected: &[&str]| {
            let files = [
                ("a/Cargo.toml", manifest),
                ("a/tests/suite.rs", suite),
                ("a/tests/one.rs", ""),
                ("a/tests/one/data.rs", ""),
                ("b/tests/other.rs", ""),
            ];
            let files = files.map(|(path, text)| File { path, text });
            let found = check_suites(&files);
            let paths: Vec<_> = found.iter().filter_map(|line| line.split(':').next()).collect();
            assert_eq!(paths, expected, "{manifest}{suite}");
        };
        let without = "autotests = false\n[[test]]\nname = \"suite\"\n";
        check(without, "mod one;\n", &[]);
        check(without, "", &["a/tests/one.rs"]);
        check(without, "// mod one;\n", &["a/tests/one.rs"]);
        check(&format!("{without}[[test]]\nname = \"one\"\n"), "", &[]);
        check("", "", &[]);
    }
}
