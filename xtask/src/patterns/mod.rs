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

use anyhow::{Context, Result, bail, ensure};
use rbuilder_re2::Pattern;
use serde::{Deserialize, Serialize};
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
#[derive(Serialize)]
struct Question {
    pattern: String,
    texts: Vec<String>,
}

/// Words from which patterns and strings are made.
#[derive(Deserialize)]
struct Words {
    operands: Vec<String>,
    operators: Vec<String>,
    texts: Vec<String>,
    classes: Vec<String>,
    pieces: Vec<String>,
    letters: Vec<String>,
}

fn words() -> Words {
    serde_saphyr::from_str(include_str!("words.yaml")).expect("words.yaml has lists of words")
}

/// What Go's regexp says about a pattern.
#[derive(Deserialize)]
struct Answer {
    /// Error code for patterns that don't compile.
    error: Option<String>,
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
    let mut text = String::from(include_str!("tables.rs.in"));
    for line in go(&["tables"])?.lines() {
        let row: Value = serde_json::from_str(line)?;
        let ascii = match row["ascii"].as_str().map(|digits| digits.trim_start_matches('0')) {
            None => bail!("a table has no characters"),
            Some("") => "0".to_owned(),
            Some(digits) => format!("0x{digits}"),
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
        writeln!(file, "{}", serde_json::to_string(question)?)?;
    }
    file.flush()?;
    let answers = go(&["judge", &file.path().to_string_lossy()])?;
    let answers = answers.lines().map(serde_json::from_str);
    let answers: Vec<Answer> = answers.collect::<Result<_, _>>()?;
    ensure!(answers.len() == questions.len(), "Go left questions unanswered");
    Ok(answers)
}

/// Compares the results for a number of random patterns. Returns an error if any of them is
/// different.
fn compare_random(seed: u64, count: u64) -> Result<()> {
    let words = words();
    let questions: Vec<Question> = (seed..seed + count)
        .map(|seed| random::random_question(&words, seed))
        .collect();
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
