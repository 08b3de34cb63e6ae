//! Compares kube-apiserver's responses to writes of objects with the record in
//! `crates/judge/tests`. The verdicts of `rbuilder-judge` are tested against the same record.
//!
//! `cargo xtask objects` runs this, and also updates the record.

#[path = "../../../judge/tests/corpus/mod.rs"]
mod corpus;
mod pairs;
mod random;
mod server;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};

use futures::StreamExt;
use rbuilder::envtest::Environment;
use serde_json::Value;

use corpus::record::Recorded;
use corpus::{Kind, Write};
use server::Server;

/// Number of random schemas.
const RANDOM: u64 = 160;

/// Number of concurrent writes.
const AT_ONCE: usize = 16;

/// Maximum number of differences to print.
const MOST_SHOWN: usize = 20;

/// Part of the message for a rule that has encountered a value of the wrong type. The server visits
/// the values in random order, so it either reports the first such value, or a violation found
/// earlier.
const RANDOM_MESSAGE: &str = "invalid data, ";

/// Environment variable that updates the record.
const OVERWRITE: &str = "SNAPSHOTS";

#[rbuilder::envtest::test]
async fn the_server_answers_as_recorded(env: Environment) {
    let server = Server::new(env.client());
    let wanted = tables::kinds()
        .into_iter()
        .map(|(kind, writes)| (kind, writes, true));
    let random = (0..RANDOM)
        .map(random::kind)
        .map(|(kind, writes)| (kind, writes, false));
    let kinds = wanted
        .chain(random)
        .enumerate()
        .map(|(number, (kind, writes, is_table))| {
            let (kind, server) = (Kind { number, ..kind }, &server);
            async move {
                match server.install(&kind).await {
                    Ok(()) => Some((kind, writes)),
                    // Some of the random schemas are rejected, e.g. because of an invalid default.
                    Err(_) if !is_table => None,
                    Err(why) => panic!("a schema of a table is refused: {why}\n{}", kind.schema),
                }
            }
        });
    let kinds: Vec<Option<(Kind, Vec<Write>)>> =
        futures::stream::iter(kinds).buffered(AT_ONCE).collect().await;
    let mut recorded = Vec::new();
    for (kind, writes) in kinds.into_iter().flatten() {
        let writes = answer_all(&server, &kind, writes).await;
        recorded.push((kind, writes));
    }
    let before = fs::read_to_string(path()).unwrap_or_default();
    let text = keep_same_lines(&before, &format_record(&recorded));
    if std::env::var_os(OVERWRITE).is_some_and(|value| value == "overwrite") {
        fs::write(path(), text).expect("the record is written");
        return;
    }
    let differences = differences(&before, &text);
    assert!(
        differences.is_empty(),
        "kube-apiserver answers something else; run `cargo xtask objects` and read the diff:\n{}",
        differences.join("\n")
    );
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../judge/tests/recorded.jsonl")
}

async fn answer_all(server: &Server, kind: &Kind, writes: Vec<Write>) -> Vec<Recorded> {
    let answers = futures::stream::iter(writes.into_iter().enumerate().map(|(index, write)| async move {
        let answer = server.answer(kind, &write, index).await;
        Recorded { write, answer }
    }));
    answers.buffered(AT_ONCE).collect().await
}

fn format_record(kinds: &[(Kind, Vec<Recorded>)]) -> String {
    let mut text = String::new();
    let mut push = |line: Value| {
        text.push_str(&line.to_string());
        text.push('\n');
    };
    for (kind, writes) in kinds {
        push(serde_json::to_value(kind).expect("JSON"));
        for write in writes {
            push(serde_json::to_value(write).expect("JSON"));
        }
    }
    text
}

/// Keeps the recorded line if the response only differs in a random part.
fn keep_same_lines(before: &str, now: &str) -> String {
    let mut before = before.lines();
    let lines = now.lines().map(|now| match before.next() {
        Some(before) if is_same_answer(before, now) => before,
        _ => now,
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Ignores differences between messages about values of the wrong type.
fn is_same_answer(before: &str, now: &str) -> bool {
    let read = |line: &str| serde_json::from_str::<Value>(line).expect("a line of JSON");
    let (mut before, mut now) = (read(before), read(now));
    if let (Some(before), Some(now)) = (before["causes"].as_array_mut(), now["causes"].as_array_mut()) {
        for (before, now) in before.iter_mut().zip(now) {
            let is_random = |cause: &Value| {
                cause[2]
                    .as_str()
                    .is_some_and(|text| text.contains(RANDOM_MESSAGE))
            };
            if is_random(before) || is_random(now) {
                (before[2], now[2]) = (Value::Null, Value::Null);
            }
        }
    }
    before == now
}

/// Returns the lines that differ, and reports if there are fewer lines than before.
fn differences(before: &str, now: &str) -> Vec<String> {
    let mut differences: Vec<String> = before
        .lines()
        .zip(now.lines())
        .filter(|(before, now)| before != now)
        .take(MOST_SHOWN)
        .map(|(before, now)| format!("recorded: {before}\nnow:      {now}"))
        .collect();
    let (before, now) = (before.lines().count(), now.lines().count());
    if before != now {
        differences.push(format!("{before} lines are recorded, now there are {now}"));
    }
    differences
}
