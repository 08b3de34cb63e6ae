//! Imports the definitions below a folder, generates them again, and counts what is lost.
//!
//! ```text
//! cargo run --release -p rbuilder-importer --example survey -- FOLDER [--out DIR] [--verbose]
//! ```

#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // reads files and prints, as a program does

#[allow(dead_code)]
#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rbuilder_importer::is_definition;
use serde_json::Value;
use support::RoundTrip;

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().expect("a folder"));
    let (mut out, mut is_verbose) = (None, false);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--out" => out = args.next().map(PathBuf::from),
            "--verbose" => is_verbose = true,
            other => panic!("unknown argument {other}"),
        }
    }
    let mut files = Vec::new();
    find(&folder, &mut files);
    files.sort();
    let (mut total, mut equal, mut refused) = (0, 0, 0);
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let Ok(documents) = serde_saphyr::from_multiple::<Value>(&text) else {
            continue;
        };
        for document in documents.into_iter().filter(is_definition) {
            total += 1;
            let document = complete(document);
            let trip = RoundTrip::of(std::slice::from_ref(&document));
            let name = format!(
                "{} {}",
                path.strip_prefix(&folder).unwrap_or(&path).display(),
                document["metadata"]["name"]
            );
            if let Some(out) = &out {
                for file in &trip.imported.files {
                    let at = out.join(total.to_string()).join(&file.path);
                    std::fs::create_dir_all(at.parent().expect("a folder")).expect("a folder");
                    std::fs::write(at, &file.text).expect("a file");
                }
            }
            let errors: Vec<_> = trip
                .imported
                .diagnostics
                .iter()
                .filter(|found| found.is_error())
                .collect();
            let has_errors =
                !errors.is_empty() || trip.messages.iter().any(|message| message.starts_with("error"));
            if has_errors {
                refused += 1;
                for error in errors {
                    println!("REFUSED {name}: {}: {}", error.place, error.message);
                }
                for message in trip
                    .messages
                    .iter()
                    .filter(|message| message.starts_with("error"))
                    .take(3)
                {
                    println!("REFUSED {name}: {message}");
                }
            } else if trip.differences.is_empty() {
                equal += 1;
            } else {
                for difference in trip.differences.iter().take(if is_verbose { 1000 } else { 3 }) {
                    println!("DIFFERS {name}: {difference}");
                }
            }
            for diagnostic in &trip.imported.diagnostics {
                *reasons.entry(diagnostic.message.clone()).or_default() += 1;
            }
        }
    }
    println!(
        "{total} definitions: {equal} equal, {} differ, {refused} refused",
        total - equal - refused
    );
    for (reason, count) in reasons {
        println!("{count:6}  {reason}");
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

/// A catalogue may have a file for each version, of which only one says that it is stored.
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
    if let Some(versions) = document["spec"]["versions"].as_array_mut() {
        for key in ["served", "storage"] {
            if versions.iter().all(|version| version[key] == false)
                && let Some(first) = versions.first_mut()
            {
                first[key] = true.into();
            }
        }
    }
    document
}
