//! Checks that we don't forget any file in a test suite. If there's no `mod` for a file, it is
//! silently ignored by the compiler.
//!
//! Some of our packages have just one test program, `tests/suite.rs`, which contains all tests.
//! This is because every program needs to be linked with the package and its dependencies. The
//! command used to have 36 programs, and building them took twice as long (clippy took two thirds
//! longer). The disadvantage is that Cargo can only find files in `tests/` if each is a program of
//! its own.

use std::collections::BTreeMap;

use super::File;

/// For packages without `autotests`, reports all files in `tests/` that are not a module of the
/// suite. It is also fine if there's a target for the file.
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
