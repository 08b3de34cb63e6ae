//! Fuzz tests. Broken or unusual input must never cause a panic.
//!
//! There are three parts, and each of them is determined by a seed. We damage packages at random,
//! build random markers from the marker tables, and print random values as YAML and parse them
//! again. A normal run uses fixed seeds so that it is reproducible. A longer run uses new seeds
//! until its time is up, and prints the seed of each failure:
//!
//! ```text
//! RBUILDER_FUZZ_SECONDS=600 cargo test --release -p rbuilder-generator --test suite fuzz::
//! RBUILDER_FUZZ_SEED=12345 cargo test -p rbuilder-generator --test suite fuzz::
//! ```

// The test reads files, the clock and the environment.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

#[path = "fuzz/markers.rs"]
mod markers;
#[path = "fuzz/random.rs"]
pub(crate) mod random;
#[path = "fuzz/sources.rs"]
mod sources;
use crate::support;
#[path = "fuzz/yaml.rs"]
mod yaml;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use random::Random;
use rbuilder_generator::{Generated, Options, Severity, SourceSet, generate};

#[test]
fn damaged_packages_do_not_panic() {
    let packages = sources::packages();
    assert!(packages.len() > 10, "the cases are missing");
    let mut refused = 0;
    let rounds = rounds(800, |random| {
        refused += usize::from(check(&sources::damaged(&packages, random)))
    });
    assert!(refused > rounds / 2, "the damage does no harm");
}

#[test]
fn random_markers_do_not_panic() {
    let mut refused = 0;
    let rounds = rounds(1500, |random| {
        refused += usize::from(check(&markers::package(random)))
    });
    assert!(refused > rounds / 4, "the markers are all right");
    assert!(refused < rounds, "no marker is right");
}

#[test]
fn yaml_round_trips() {
    rounds(8_000, |random| yaml::check(&yaml::value(random, 0)));
}

/// Tries all strings of up to three characters that mean something in YAML.
#[test]
fn short_strings_round_trip() {
    let alphabet: Vec<char> = "-+.:,0159_ yneEtTxobZ#?|>'\"~<={}[]&*!%@\\\n\t\r\u{85}\u{feff}é\u{10000}\0"
        .chars()
        .collect();
    let mut texts = vec![String::new()];
    for length in 0..3 {
        let longest: Vec<String> = texts
            .iter()
            .filter(|text| text.chars().count() == length)
            .cloned()
            .collect();
        texts.extend(
            longest
                .iter()
                .flat_map(|text| alphabet.iter().map(move |c| format!("{text}{c}"))),
        );
    }
    let list = |texts: &[String]| serde_json::Value::from(texts.to_vec());
    texts.chunks(500).for_each(|texts| yaml::check(&list(texts)));
}

/// Returns true if there were errors. The other checks hold for any input.
fn check(sources: &SourceSet) -> bool {
    let generated = generate(sources, &Options::default());
    for said in &generated.diagnostics {
        let text = sources.get(&said.place.path).unwrap_or_default();
        assert!(
            text.get(said.place.range.clone()).is_some(),
            "a place outside of the file: {said:?}"
        );
        assert!(!said.message.is_empty(), "{said:?}");
    }
    let Generated {
        files, diagnostics, ..
    } = generated;
    let refused = diagnostics.iter().any(|said| said.severity == Severity::Error);
    assert!(!refused || files.is_empty(), "manifests beside an error");
    for file in &files {
        yaml::check_document(&file.text);
    }
    refused
}

/// Runs a part with many seeds. Returns how many there were.
fn rounds(count: usize, mut round: impl FnMut(&mut Random)) -> usize {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().expect(name))
    };
    let mut run = |seed: u64| {
        let started = Instant::now();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| round(&mut Random::new(seed)))) {
            eprintln!("RBUILDER_FUZZ_SEED={seed} shows it again");
            resume_unwind(panic);
        }
        started.elapsed()
    };
    if let Some(seed) = number("RBUILDER_FUZZ_SEED") {
        run(seed);
        return 1;
    }
    let Some(seconds) = number("RBUILDER_FUZZ_SECONDS") else {
        for seed in 0..count as u64 {
            run(seed);
        }
        return count;
    };
    let (started, mut slowest, mut seed) = (Instant::now(), (Duration::ZERO, 0), count as u64);
    while started.elapsed() < Duration::from_secs(seconds) {
        slowest = slowest.max((run(seed), seed));
        seed += 1;
    }
    eprintln!(
        "{} rounds; the slowest, {}, took {:?}",
        seed - count as u64,
        slowest.1,
        slowest.0
    );
    seed as usize - count
}

/// Imports and aliases are cyclic, or glob imports are nested.
#[test]
fn cycles_terminate() {
    let cases = [
        ("a: X", "use a::X; mod a { pub use super::X; }"),
        ("a: X", "use X as X;"),
        ("a: X", "type X = Y; type Y = X;"),
        ("a: X<i32>", "type X<T> = Option<X<Vec<T>>>;"),
        (
            "a: X",
            "use a::*; mod a { pub use super::b::*; pub use super::*; } mod b { pub use super::a::*; pub use super::*; }",
        ),
        ("a: Self", ""),
        ("a: TestSpec", ""),
        ("a: super::super::super::X", ""),
        ("a: crate::Test", ""),
        ("a: [TestSpec; 3]", ""),
    ];
    for (field, rest) in cases {
        let generated = support::run(&[("src/lib.rs", &support::kind(field, rest))]);
        assert!(
            generated.files.is_empty() && !generated.diagnostics.is_empty(),
            "{field} {rest}"
        );
    }
}
