//! Names of simulations, derived from the tests that run them.

use std::collections::BTreeMap;
use std::panic::Location;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Directory with saved failing histories, relative to the package root.
const KEPT: &str = "simulations";

/// Identifies a simulation among the tests of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Unique within the package, and safe to use as a file name.
    pub(crate) name: String,
    /// Source location, e.g. `tests/memcached.rs:40`.
    pub(crate) source: String,
}

impl Identity {
    pub(crate) fn of(place: &Location<'_>) -> Self {
        static COUNTS: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());
        let thread = std::thread::current();
        // libtest names threads after tests, but runs tests on the main thread with
        // `--test-threads=1`.
        let test = thread.name().filter(|name| *name != "main");
        // A test may run several simulations; number them from the second one on.
        let mut name = name_of(place.file(), test, place.line());
        let mut counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            name = format!("{name}-{count}");
        }
        let source = format!("{}:{}", place.file().replace('\\', "/"), place.line());
        Self { name, source }
    }

    pub(crate) fn kept_file(&self) -> PathBuf {
        Path::new(KEPT).join(format!("{}.jsonl", self.name))
    }
}

/// Builds a name such as `tests-memcached.sample_is_reconciled`.
fn name_of(file: &str, test: Option<&str>, line: u32) -> String {
    let file = file.replace('\\', "/");
    let path = Path::new(&file).with_extension("");
    let parts: Vec<String> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(part) => part.to_str().map(str::to_owned),
            _ => None,
        })
        .collect();
    // In a workspace, `file!()` is relative to the workspace root and begins with the package path.
    let start = parts
        .iter()
        .rposition(|part| matches!(part.as_str(), "tests" | "src"));
    let test = test.map_or_else(|| format!("line-{line}"), str::to_owned);
    let name = format!(
        "{}.{}",
        parts[start.unwrap_or(0)..].join("-"),
        test.replace("::", ".")
    );
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let letters = name.chars();
    letters
        .map(|letter| if is_safe(letter) { letter } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_contain_file_and_test() {
        for (file, test, expected) in [
            (
                "tests/memcached.rs",
                Some("sample_is_reconciled"),
                "tests-memcached.sample_is_reconciled",
            ),
            (
                "shop/tests/api/cart.rs",
                Some("cart::is_reconciled"),
                "tests-api-cart.cart.is_reconciled",
            ),
            (
                r"shop\src\lib.rs",
                Some("tests::doc/test"),
                "src-lib.tests.doc_test",
            ),
            ("tests/memcached.rs", None, "tests-memcached.line-7"),
        ] {
            assert_eq!(name_of(file, test, 7), expected);
        }
    }
}
