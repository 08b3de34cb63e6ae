//! Compares kube-apiserver's verdicts on the mutation corpus with the recorded ones.
//!
//! Both the corpus and the record are in `crates/generator/tests/mutations`, along with a test that
//! compares rbuilder with the record and doesn't need a server. `cargo xtask mutations` runs this
//! test, and also updates the record.

#[path = "../../../generator/tests/mutations/corpus/mod.rs"]
mod corpus;
mod definitions;
#[path = "../../../generator/tests/mutations/record.rs"]
mod record;
mod reviews;
mod server;

use std::fs;
use std::path::{Path, PathBuf};

use futures::StreamExt;
use rbuilder::envtest::Environment;

use corpus::{Case, GROUP};
use record::{Recorded, Verdict};
use server::Server;

/// Number of concurrent cases.
const AT_ONCE: usize = 24;

/// Environment variable that updates the record.
const OVERWRITE: &str = "SNAPSHOTS";

#[rbuilder::envtest::test]
async fn recorded_verdicts_match_the_server(env: Environment) {
    let server = Server::new(&env).await;
    let cases = corpus::cases();
    let answers = futures::stream::iter(cases.iter().enumerate().map(|(number, case)| {
        let server = &server;
        async move {
            let verdict = judge(case, number, server).await;
            let recorded = |verdict| Recorded {
                slug: case.slug.clone(),
                case: case.fingerprint(),
                verdict,
            };
            verdict.map(|verdict| verdict.map(recorded))
        }
    }));
    let answers: Vec<Result<Option<Recorded>, String>> = answers.buffer_unordered(AT_ONCE).collect().await;
    let unsent: Vec<&String> = answers
        .iter()
        .filter_map(|answer| answer.as_ref().err())
        .collect();
    assert!(unsent.is_empty(), "these cannot be sent: {unsent:#?}");
    let mut answers: Vec<Recorded> = answers.into_iter().flatten().flatten().collect();
    answers.sort_by(|a, b| a.slug.cmp(&b.slug));
    let text = record::write(&answers);
    if std::env::var_os(OVERWRITE).is_some_and(|value| value == "overwrite") {
        fs::write(path(), text).expect("the record is written");
        return;
    }
    let recorded = record::read(&fs::read_to_string(path()).expect("the record"));
    let differences = differences(&recorded, &answers);
    assert!(
        differences.is_empty(),
        "kube-apiserver says something else of {} cases; run `cargo xtask mutations` and read the diff:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../generator/tests/mutations/recorded.jsonl")
}

/// Returns the verdict of the server, or `None` if the case is never sent.
async fn judge(case: &Case, number: usize, server: &Server) -> Result<Option<Verdict>, String> {
    let objects = case
        .objects()
        .map_err(|error| format!("{}: {error}", case.slug))?;
    let of_kind = |kinds: &[&str]| -> Vec<_> {
        let objects = objects.iter();
        objects
            .filter(|object| object["kind"].as_str().is_some_and(|kind| kinds.contains(&kind)))
            .cloned()
            .collect()
    };
    Ok(match case.group() {
        "rbac" => reviews::roles(server, &of_kind(&["ClusterRole", "Role"])).await,
        "webhook" => {
            let kinds = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"];
            reviews::webhooks(server, &of_kind(&kinds)).await
        }
        _ => {
            let group = format!("m{number}.example.com");
            let definitions = of_kind(&["CustomResourceDefinition"]);
            let text = serde_json::to_string(&definitions).expect("JSON");
            let definitions: Vec<_> = serde_json::from_str(&text.replace(GROUP, &group)).expect("JSON");
            let verdict = definitions::judge(server, definitions).await;
            verdict.map(|verdict| renamed(verdict, &group))
        }
    })
}

/// Returns the cases for which the verdicts differ.
fn differences(recorded: &[Recorded], answers: &[Recorded]) -> Vec<String> {
    let find = |list: &[Recorded], slug: &str| list.iter().find(|line| line.slug == slug).cloned();
    let show = |line: Option<Recorded>| line.map_or("nothing".into(), |line| line.verdict.to_string());
    let mut slugs: Vec<&str> = recorded
        .iter()
        .chain(answers)
        .map(|line| line.slug.as_str())
        .collect();
    slugs.sort_unstable();
    slugs.dedup();
    let difference = |slug: &&str| {
        let (before, now) = (find(recorded, slug), find(answers, slug));
        (before != now).then(|| {
            format!(
                "{slug}\n    recorded: {}\n    now:      {}",
                show(before),
                show(now)
            )
        })
    };
    slugs.iter().filter_map(difference).collect()
}

/// Replaces the case's group on the server with the base project's group.
fn renamed(verdict: Verdict, group: &str) -> Verdict {
    let rename = |why: String| why.replace(group, GROUP);
    match verdict {
        Verdict::Served => Verdict::Served,
        Verdict::Warned(why) => Verdict::Warned(rename(why)),
        Verdict::Refused(why) => Verdict::Refused(rename(why)),
        Verdict::Idle(why) => Verdict::Idle(rename(why)),
    }
}
