//! `cargo xtask patterns`: records how patterns are handled by Go's regexp, which is what
//! kube-apiserver uses.
//!
//! The patterns are in `table.rs`. The parser and the matcher of `rbuilder-re2` are tested with the
//! recorded results, see `crates/re2/tests/recorded.rs`. This task also generates the names of all
//! Unicode classes for the parser.

mod random;
mod table;

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::{Context, Result, ensure};
use rbuilder_re2::Pattern;
use serde_json::{Value, json};

use crate::committed::update_file;
use crate::repo;
use crate::sh::Cmd;

const RECORDED: &str = "crates/re2/tests/recorded.jsonl";
const TABLES: &str = "crates/re2/src/tables.rs";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail if a committed file is stale
    #[arg(long)]
    check: bool,
    /// Change nothing; compare the parser and the matcher with Go for this many random patterns, with random texts
    #[arg(long, conflicts_with = "check")]
    random: Option<u64>,
    /// Seed of the first random pattern
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A pattern, and the strings that we try to match.
struct Question {
    pattern: String,
    texts: Vec<String>,
}

/// What Go's regexp says about a pattern.
struct Answer {
    /// Error code for patterns that don't compile.
    error: Option<String>,
    /// Whether the pattern matches each of the strings.
    matches: Vec<bool>,
}

/// Runs Go's regexp. The results are either written or compared with the existing ones.
pub(crate) fn record_verdicts(args: &Args) -> Result<()> {
    if let Some(count) = args.random {
        return compare_random(args.seed, count);
    }
    update_file(TABLES, tables()?.as_bytes(), args.check, "patterns")?;
    update_file(RECORDED, verdicts()?.as_bytes(), args.check, "patterns")
}

fn go(arguments: &[&str]) -> Result<String> {
    let program = repo::root().join("xtask/src/patterns/main.go");
    Cmd::new("go run").arg(program).args(arguments).read()
}

/// Returns Rust source with the names of all Unicode classes.
fn tables() -> Result<String> {
    let mut text = String::from(
        "//! Unicode's categories and scripts by the names that Go's `regexp` knows.
//!
//! Made by `cargo xtask patterns` from Go 1.26, with which kube-apiserver is built. Do not edit.

/// A category or script.
#[derive(Debug)]
pub(super) struct Table {
    /// Its name in lower case, without what does not count.
    pub(super) name: &'static str,
    /// The number of bounds of its ranges.
    pub(super) bounds: u32,
    /// The characters of ASCII in it, a bit each.
    pub(super) ascii: u128,
    /// True where it has more letters when case is ignored.
    pub(super) folds: bool,
}

const fn table(name: &'static str, bounds: u32, ascii: u128, folds: bool) -> Table {
    Table {
        name,
        bounds,
        ascii,
        folds,
    }
}

/// Every category and script, sorted by name.
pub(super) static TABLES: &[Table] = &[\n",
    );
    for line in go(&["tables"])?.lines() {
        let row: Value = serde_json::from_str(line)?;
        let ascii = row["ascii"].as_str().context("a table has no characters")?;
        let ascii = match ascii.trim_start_matches('0') {
            "" => "0".to_owned(),
            digits => format!("0x{digits}"),
        };
        writeln!(
            text,
            "    table({}, {}, {ascii}, {}),",
            row["name"], row["bounds"], row["folds"]
        )?;
    }
    text.push_str("];\n");
    Ok(text)
}

/// Returns the content of the file with the recorded results.
fn verdicts() -> Result<String> {
    let questions = table::all_questions();
    let answers = ask(&questions)?;
    let mut text = String::new();
    for (question, answer) in questions.iter().zip(answers) {
        let mut line = json!({"pattern": question.pattern});
        match answer.error {
            Some(error) => line["error"] = error.into(),
            None => {
                let texts = question.texts.iter().zip(&answer.matches);
                let (yes, no): (Vec<_>, Vec<_>) = texts.partition(|(_, matches)| **matches);
                for (name, texts) in [("matches", yes), ("differs", no)] {
                    line[name] = texts.into_iter().map(|(text, _)| text.as_str()).collect();
                }
            }
        }
        writeln!(text, "{line}")?;
    }
    Ok(text)
}

fn ask(questions: &[Question]) -> Result<Vec<Answer>> {
    let mut file = tempfile::NamedTempFile::new().context("no file for the questions")?;
    for question in questions {
        let line = json!({"pattern": question.pattern, "texts": question.texts});
        writeln!(file, "{line}")?;
    }
    file.flush()?;
    let answers = go(&["judge", &file.path().to_string_lossy()])?
        .lines()
        .map(answer)
        .collect::<Result<Vec<_>>>()?;
    ensure!(answers.len() == questions.len(), "Go left questions unanswered");
    Ok(answers)
}

fn answer(line: &str) -> Result<Answer> {
    let read: Value = serde_json::from_str(line)?;
    let matches = read["matches"].as_array().context("an answer has no matches")?;
    Ok(Answer {
        error: read["error"].as_str().map(str::to_owned),
        matches: matches.iter().map(|value| value == true).collect(),
    })
}

/// Compares the results for a number of random patterns. Returns an error if any of them is
/// different.
fn compare_random(seed: u64, count: u64) -> Result<()> {
    let questions: Vec<Question> = (seed..seed + count).map(random::random_question).collect();
    let answers = ask(&questions)?;
    let (mut valid, mut held, mut undecided) = (0, 0, 0);
    let mut differences = 0;
    for (question, answer) in questions.iter().zip(&answers) {
        let parsed = Pattern::parse(&question.pattern);
        if parsed.is_ok() != answer.error.is_none() {
            differences += 1;
            println!(
                "{:?}: Go {:?}, here {:?}",
                question.pattern,
                answer.error,
                parsed.err()
            );
            continue;
        }
        let Ok(pattern) = parsed else { continue };
        valid += 1;
        for (text, matches) in question.texts.iter().zip(&answer.matches) {
            held += 1;
            match pattern.is_match(text) {
                None => undecided += 1,
                Some(here) if here != *matches => {
                    differences += 1;
                    println!("{:?} on {text:?}: Go {matches}, here {here}", question.pattern);
                }
                Some(_) => {}
            }
        }
    }
    println!("{count} patterns, {valid} of them valid; {held} texts, {undecided} of them undecided");
    ensure!(differences == 0, "{differences} verdicts differ from Go's");
    Ok(())
}
