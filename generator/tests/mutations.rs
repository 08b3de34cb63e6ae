//! The mutation corpus: what kube-apiserver said to each case, and what rbuilder says about it.
//!
//! A case that is wrong (the server refuses it, warns of it, or takes it and does not serve what was meant; or the corpus
//! says what is wrong although the server serves it) must be told of. A case that is right must be made. Any other is a
//! row of [`EXCEPTIONS`](exceptions::EXCEPTIONS), with its reason, and a row that nothing needs fails the test. The
//! record is written by `cargo xtask mutations`.

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

use rbuilder_generator::{Diagnostic, Severity};
use serde_json::Value;

use corpus::{Case, Sent, made};
use exceptions::EXCEPTIONS;
use record::{Recorded, Verdict};

const RECORDED: &str = include_str!("mutations/recorded.jsonl");

/// Every case, with what the generator makes of it and says.
static MADE: LazyLock<Vec<(Case, Made)>> = LazyLock::new(|| {
    let cases = corpus::cases();
    let made = on_all_processors(&cases, |case| made(&case.files));
    cases.into_iter().zip(made).collect()
});

/// The objects, unless the generator refuses, and what it says.
type Made = (Option<Vec<Value>>, Vec<Diagnostic>);

/// The relation between rbuilder's answer and the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agreement {
    /// A mistake is an error, or a valid case has its manifest.
    Agreed,
    /// A mistake is a warning, or a note.
    Warned,
    /// A mistake has its manifest and no diagnostic.
    Silent,
    /// A valid case is an error.
    Refused,
}

/// A case, judged by both.
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

    /// A line for a person: what the server said, and what we say.
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

/// Making manifests is what this test spends its time on.
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
fn what_is_wrong_is_told_of_and_what_is_right_is_made() {
    let lines = record::read(RECORDED);
    let recorded: BTreeMap<&str, &Recorded> = lines.iter().map(|line| (line.slug.as_str(), line)).collect();
    let judged: Vec<_> = MADE.iter().map(|made| judge(made, &recorded)).collect();
    let table = table(&judged);
    // For whoever asks with `--nocapture`.
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
        "{table}\n{} cases are in no row of generator/tests/mutations/exceptions.rs:\n{}",
        unexpected.len(),
        unexpected.join("\n")
    );
    let idle: Vec<_> = (0..EXCEPTIONS.len())
        .filter(|row| !used.contains(row))
        .map(|row| EXCEPTIONS[row].0)
        .collect();
    assert!(idle.is_empty(), "no case needs these rows: {idle:#?}");
}

/// Returns the number of cases of each relation, by group.
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

/// Returns whether a pattern matches a slug; `*` is any part of it.
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
fn the_record_is_about_these_cases() {
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

/// The manifest holds what the tables say it would, where there is one.
#[test]
fn the_tables_say_what_is_made() {
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
