//! The mutation corpus. We compare rbuilder's diagnostics with the responses of kube-apiserver.
//!
//! A case is wrong if the server rejects it, warns about it, or accepts it without serving what was
//! intended. It's also wrong if the corpus states a mistake that the server does not notice. Each
//! wrong case must have a diagnostic, and each correct case a manifest. Deviations are listed with
//! a reason in [`EXCEPTIONS`](exceptions::EXCEPTIONS), and unused entries fail the test. `cargo
//! xtask mutations` records the responses.
//!
//! If rbuilder may reject a case, the tables contain the manifest to send. Otherwise we couldn't
//! send the case once rbuilder has learned to reject its source.

#[path = "mutations/corpus/mod.rs"]
mod corpus;
#[path = "mutations/exceptions.rs"]
mod exceptions;
#[path = "mutations/record.rs"]
mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::thread;

use rbuilder_generator::{Code, Diagnostic, Severity, find_replacement};
use serde_json::Value;

use corpus::{Case, Files, Sent, made};
use exceptions::EXCEPTIONS;
use record::{Recorded, Verdict};

const RECORDED: &str = include_str!("mutations/recorded.jsonl");

/// We generate all cases once, because several tests need the results.
static MADE: LazyLock<Vec<(Case, Made)>> = LazyLock::new(|| {
    let cases = corpus::cases();
    let made = on_all_processors(&cases, |case| made(&case.files));
    cases.into_iter().zip(made).collect()
});

/// The objects are `None` after an error.
type Made = (Option<Vec<Value>>, Vec<Diagnostic>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agreement {
    /// A wrong case has an error, or a correct case has a manifest.
    Agreed,
    /// A wrong case has a warning or a note.
    Warned,
    /// A wrong case has a manifest and no diagnostic.
    Silent,
    /// A correct case has an error.
    Refused,
}

struct Judged<'a> {
    case: &'a Case,
    verdict: Option<&'a Verdict>,
    said: Option<&'a Diagnostic>,
    agreement: Agreement,
}

impl Judged<'_> {
    fn is_wrong(case: &Case, verdict: Option<&Verdict>) -> bool {
        case.harm.is_some() || !matches!(verdict, None | Some(Verdict::Served))
    }

    fn describe(&self) -> String {
        let server = match (self.verdict, self.case.harm) {
            (Some(verdict), None) => verdict.to_string(),
            (Some(verdict), Some(harm)) => format!("{verdict}, but {harm}"),
            (None, harm) => harm.unwrap_or("nothing is wrong").to_owned(),
        };
        let ours = self.said.map_or("nothing", |said| said.message.as_str());
        format!("{}\n    server:   {server}\n    rbuilder: {ours}", self.case.slug)
    }
}

fn judge<'a>((case, (_, said)): &'a (Case, Made), recorded: &'a BTreeMap<&str, &Recorded>) -> Judged<'a> {
    let verdict = recorded.get(case.slug.as_str()).map(|line| &line.verdict);
    let said = said.iter().max_by_key(|said| said.severity == Severity::Error);
    let severity = said.map(|said| said.severity);
    let agreement = match (Judged::is_wrong(case, verdict), severity) {
        (true, Some(Severity::Error)) => Agreement::Agreed,
        (true, Some(Severity::Warning | Severity::Note)) => Agreement::Warned,
        (true, None) => Agreement::Silent,
        (false, Some(Severity::Error)) => Agreement::Refused,
        (false, _) => Agreement::Agreed,
    };
    Judged {
        case,
        verdict,
        said,
        agreement,
    }
}

/// Uses all processors, because most of the time of this test goes into generating manifests.
fn on_all_processors<'a, T: Send>(cases: &'a [Case], act: impl Fn(&'a Case) -> T + Sync) -> Vec<T> {
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let chunks = cases.chunks(cases.len().div_ceil(processors).max(1));
    thread::scope(|scope| {
        let act = &act;
        let threads: Vec<_> = chunks
            .map(|chunk| scope.spawn(move || chunk.iter().map(act).collect::<Vec<_>>()))
            .collect();
        let results = threads.into_iter().map(|thread| thread.join().expect("a judge"));
        results.flatten().collect()
    })
}

#[test]
fn reports_wrong_cases_and_generates_correct_ones() {
    let lines = record::read(RECORDED);
    let recorded: BTreeMap<&str, &Recorded> = lines.iter().map(|line| (line.slug.as_str(), line)).collect();
    let judged: Vec<_> = MADE.iter().map(|made| judge(made, &recorded)).collect();
    let table = table(&judged);
    // `--nocapture` shows this.
    #[allow(clippy::disallowed_macros)]
    {
        println!("{table}");
    }
    let mut used = BTreeSet::new();
    let mut unexpected = Vec::new();
    for found in &judged {
        if !matches!(found.agreement, Agreement::Silent | Agreement::Refused) {
            continue;
        }
        match EXCEPTIONS
            .iter()
            .position(|(pattern, _)| fits(pattern, &found.case.slug))
        {
            Some(row) => drop(used.insert(row)),
            None => unexpected.push(format!("{:?}: {}", found.agreement, found.describe())),
        }
    }
    assert!(
        unexpected.is_empty(),
        "{table}\n{} cases are in no row of crates/generator/tests/mutations/exceptions.rs:\n{}",
        unexpected.len(),
        unexpected.join("\n")
    );
    let idle: Vec<_> = (0..EXCEPTIONS.len())
        .filter(|row| !used.contains(row))
        .map(|row| EXCEPTIONS[row].0)
        .collect();
    assert!(idle.is_empty(), "no case needs these rows: {idle:#?}");
}

/// Counts the cases with each result, by group.
fn table(judged: &[Judged<'_>]) -> String {
    let mut groups: BTreeMap<&str, [usize; 6]> = BTreeMap::new();
    for found in judged {
        let wrong = Judged::is_wrong(found.case, found.verdict);
        let column = match found.agreement {
            Agreement::Agreed => 2,
            Agreement::Warned => 3,
            Agreement::Silent => 4,
            Agreement::Refused => 5,
        };
        for group in [found.case.group(), "~ all"] {
            let row = groups.entry(group).or_default();
            row[usize::from(!wrong)] += 1;
            row[column] += 1;
        }
    }
    let mut text = format!(
        "{:<12}{:>8}{:>8}{:>8}{:>8}{:>8}{:>15}\n",
        "group", "wrong", "right", "agreed", "warned", "silent", "false refusal"
    );
    for (group, [wrong, right, agreed, warned, silent, refused]) in groups {
        text += &format!("{group:<12}{wrong:>8}{right:>8}{agreed:>8}{warned:>8}{silent:>8}{refused:>15}\n");
    }
    text
}

/// In a pattern, `*` matches any text.
fn fits(pattern: &str, slug: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == slug,
        Some((start, rest)) => slug.strip_prefix(start).is_some_and(|slug| {
            let mut ends = slug.char_indices().map(|(at, _)| at).chain([slug.len()]);
            ends.any(|at| fits(rest, &slug[at..]))
        }),
    }
}

#[test]
fn record_matches_cases() {
    let cases = corpus::cases();
    let lines = record::read(RECORDED);
    assert_eq!(
        record::write(&lines),
        RECORDED,
        "the record is not as it is written"
    );
    let sent = cases.iter().filter(|case| !matches!(case.sent, Sent::Nothing));
    let sent: BTreeMap<&str, String> = sent
        .map(|case| (case.slug.as_str(), case.fingerprint()))
        .collect();
    let recorded: BTreeMap<&str, String> = lines
        .iter()
        .map(|line| (line.slug.as_str(), line.case.clone()))
        .collect();
    assert_eq!(recorded, sent, "run `cargo xtask mutations`");
    for pair in cases.windows(2) {
        assert_ne!(pair[0].slug, pair[1].slug, "two cases have one name");
    }
    let wrong = cases.iter().filter(|case| {
        let line = lines.iter().find(|line| line.slug == case.slug);
        Judged::is_wrong(case, line.map(|line| &line.verdict))
    });
    let wrong = wrong.count();
    assert!(wrong >= 800, "{wrong} mistakes");
    assert!(
        cases.len() - wrong >= 150,
        "{} cases that are right",
        cases.len() - wrong
    );
}

/// If the generator returns objects, the edits in the tables must give the same ones.
#[test]
fn tables_match_generated_objects() {
    let differs = |(case, (objects, _)): &&(Case, Made)| {
        let (Sent::Edited(_), Some(objects)) = (&case.sent, objects) else {
            return false;
        };
        let told = case
            .objects()
            .unwrap_or_else(|error| panic!("{}: {error}", case.slug));
        told != *objects && !exceptions::OTHERWISE.contains(&case.slug.as_str())
    };
    let wrong: Vec<_> = MADE.iter().filter(differs).map(|(case, _)| &case.slug).collect();
    assert!(
        wrong.is_empty(),
        "{} manifests are others: {wrong:#?}",
        wrong.len()
    );
}

#[test]
fn every_message_has_a_code() {
    let messages = MADE.iter().flat_map(|(case, (_, said))| {
        said.iter()
            .map(|said| (case.slug.as_str(), said.message.as_str()))
    });
    let without: Vec<_> = messages
        .filter(|(_, message)| Code::of_message(message).is_none())
        .collect();
    assert!(
        without.is_empty(),
        "add these to a row of crates/generator/src/codes/: {without:#?}"
    );
}

/// In these cases, the generator doesn't find a second mistake until the first one has been
/// corrected.
const HIDING: &[&str] = &["key/marker-among-keys"];

/// A replacement has to correct the mistake in its message, and must not introduce another one.
#[test]
fn replacements_correct_their_mistakes() {
    let texts = |said: &[Diagnostic]| -> BTreeMap<String, usize> {
        said.iter().fold(BTreeMap::new(), |mut counts, said| {
            *counts.entry(said.text()).or_default() += 1;
            counts
        })
    };
    let mut count = 0;
    let mut unexpected = Vec::new();
    for (case, (_, said)) in MADE.iter() {
        let before = texts(said);
        for diagnostic in said {
            let Some(files) = apply(&case.files, diagnostic) else {
                continue;
            };
            count += 1;
            let (_, found) = made(&files);
            let after = texts(&found);
            let is_corrected = after.get(&diagnostic.text()) < before.get(&diagnostic.text());
            let is_new = |(text, number): (&String, &usize)| before.get(text) < Some(number);
            let hides = HIDING.contains(&case.slug.as_str());
            if !is_corrected || !hides && after.iter().any(is_new) {
                unexpected.push((&case.slug, diagnostic, found));
            }
        }
    }
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    assert!(count >= 150, "{count} replacements");
}

fn apply(files: &Files, diagnostic: &Diagnostic) -> Option<Files> {
    let mut files = files.clone();
    let (_, text) = files
        .iter_mut()
        .find(|(path, _)| *path == diagnostic.place.path)?;
    let replacement = find_replacement(diagnostic, text)?;
    text.replace_range(replacement.range, &replacement.text);
    Some(files)
}
