//! Imports the CRDs in a folder, generates them again, and counts the differences.
//!
//! ```text
//! cargo run --release -p rbuilder-importer --example survey -- FOLDER [--together] [--out DIR] [--verbose]
//! ```
//!
//! With `--together`, the CRDs in each subfolder of FOLDER are imported as one project and share
//! types.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // reads files and prints, as a program does

#[allow(dead_code)]
#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rbuilder_kubernetes::crd::{is_crd, versions_mut};
use serde_json::Value;
use support::RoundTrip;

/// The counts over all definitions.
#[derive(Default)]
struct Counts {
    total: usize,
    equal: usize,
    differ: usize,
    refused: usize,
    types: usize,
    shared: usize,
    /// Warnings from the importer and the generator, grouped by message.
    warnings: BTreeMap<String, Warnings>,
}

/// All warnings with the same message.
#[derive(Default)]
struct Warnings {
    count: usize,
    /// The first warning, with its place.
    first: String,
}

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().expect("a folder"));
    let (mut out, mut is_verbose, mut is_together) = (None, false, false);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--out" => out = args.next().map(PathBuf::from),
            "--verbose" => is_verbose = true,
            "--together" => is_together = true,
            other => panic!("unknown argument {other}"),
        }
    }
    let mut files = Vec::new();
    find(&folder, &mut files);
    files.sort();
    let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let Ok(documents) = serde_saphyr::from_multiple::<Value>(&text) else {
            continue;
        };
        let below = path.strip_prefix(&folder).unwrap_or(&path);
        for document in documents.into_iter().filter(is_crd) {
            let name = document["metadata"]["name"].as_str().unwrap_or_default();
            let group = match (is_together, below.iter().next()) {
                (true, Some(project)) => project.to_string_lossy().into_owned(),
                _ => format!("{} {name}", below.display()),
            };
            groups.entry(group).or_default().push(complete(document));
        }
    }
    let mut counts = Counts::default();
    for (at, (name, documents)) in groups.iter().enumerate() {
        let trip = RoundTrip::of(documents);
        if let Some(out) = &out {
            let place = if is_together { name.clone() } else { at.to_string() };
            write(&out.join(place), &trip);
        }
        counts.add(name, documents, &trip, if is_verbose { 1000 } else { 3 });
    }
    counts.print();
}

impl Counts {
    fn add(&mut self, name: &str, documents: &[Value], trip: &RoundTrip, most: usize) {
        let found = &trip.imported.diagnostics;
        let errors = found
            .iter()
            .filter(|found| found.is_error())
            .map(|error| format!("{}: {}", error.place, error.message));
        let messages = trip
            .messages
            .iter()
            .filter(|message| message.starts_with("error"))
            .cloned();
        let errors: Vec<String> = errors.chain(messages).collect();
        self.total += documents.len();
        for error in errors.iter().take(most) {
            println!("REFUSED {name}: {error}");
        }
        for difference in trip.differences.iter().take(most) {
            println!("DIFFERS {name}: {difference}");
        }
        for document in documents {
            let crd = document["metadata"]["name"].as_str().unwrap_or_default();
            let differs = trip.differences.iter().any(|difference| difference.contains(crd));
            match (errors.is_empty(), differs) {
                (false, _) => self.refused += 1,
                (true, true) => self.differ += 1,
                (true, false) => self.equal += 1,
            }
        }
        for file in &trip.imported.files {
            let types = file.text.matches("\npub struct ").count() + file.text.matches("\npub enum ").count();
            self.types += types;
            if file.path.ends_with("shared.rs") {
                self.shared += types;
            }
        }
        for diagnostic in found.iter().filter(|found| !found.is_error()) {
            let text = format!("{}: {}", diagnostic.place, diagnostic.message);
            self.add_warning("importer", &diagnostic.message, &text);
        }
        for message in trip
            .messages
            .iter()
            .filter(|message| message.starts_with("warning"))
        {
            let end = message.find(" (src/").unwrap_or(message.len());
            self.add_warning("generator", &message[..end], message);
        }
    }

    fn add_warning(&mut self, whose: &str, message: &str, text: &str) {
        let warnings = self
            .warnings
            .entry(format!("{whose}: {}", sentence(message)))
            .or_default();
        warnings.count += 1;
        if warnings.count == 1 {
            warnings.first = text.to_owned();
        }
    }

    fn print(&self) {
        let Counts {
            total,
            equal,
            differ,
            refused,
            types,
            shared,
            warnings,
        } = self;
        println!("{total} definitions: {equal} equal, {differ} differ, {refused} refused");
        println!("{types} types, {shared} of them shared");
        for (sentence, warnings) in warnings {
            println!("{:6}  {sentence}", warnings.count);
            println!("        such as {}", warnings.first);
        }
    }
}

/// Replaces the names and numbers in a message, so that similar messages are grouped.
fn sentence(message: &str) -> String {
    let is_name = |part: &str| part.starts_with(|first: char| first == '.' || first.is_uppercase());
    let parts = message.split('`').enumerate();
    let parts = parts.map(|(at, part)| match at % 2 {
        1 if is_name(part) => "…",
        _ => part,
    });
    let digits = |word: &'_ str| word.chars().all(|letter| letter.is_ascii_digit());
    let text = parts.collect::<Vec<_>>().join("`");
    let words = text.split(' ').map(|word| if digits(word) { "N" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// Writes all source files and their `mod.rs` files.
fn write(folder: &Path, trip: &RoundTrip) {
    let put = |path: &str, text: &str| {
        let at = folder.join(path);
        std::fs::create_dir_all(at.parent().expect("a folder")).expect("a folder");
        std::fs::write(at, text).expect("a file");
    };
    for file in &trip.imported.files {
        put(&file.path, &file.text);
    }
    for modules in &trip.imported.folders {
        put(
            format!("{}/mod.rs", modules.path).trim_start_matches('/'),
            &modules.text,
        );
    }
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
            files.push(path);
        }
    }
}

/// Marks the first version as served and stored if no version is: some catalogues contain one file
/// per version.
fn complete(mut document: Value) -> Value {
    if document["spec"]["group"]
        .as_str()
        .is_some_and(|group| group.ends_with("k8s.io"))
    {
        let key = "api-approved.kubernetes.io";
        if document["metadata"]["annotations"][key].is_null() {
            document["metadata"]["annotations"][key] = "unapproved, a copy".into();
        }
    }
    for key in ["served", "storage"] {
        if versions_mut(&mut document).all(|version| version[key] == false)
            && let Some(first) = versions_mut(&mut document).next()
        {
            first[key] = true.into();
        }
    }
    document
}
