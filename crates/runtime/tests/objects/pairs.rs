//! Compares the answers of the fake API server with the record, and with those of kube-apiserver to
//! the same random writes.
//!
//! `RBUILDER_WRITES=20000 cargo test --workspace --test objects alike` compares more writes. Two of
//! these answers differ at random: `self == oldSelf` compares objects of which one field differs and
//! another one cannot be read, and the server reports whichever it visits first. Answers that
//! differed for another reason are in `crates/judge/tests/found.jsonl`.

use rbuilder::envtest::Environment;
use rbuilder::fake::ApiServer;
use serde_json::Value;

use crate::corpus::record::{Answer, Recorded};
use crate::corpus::{Kind, Write};
use crate::random;
use crate::server::Server;
use crate::{MOST_SHOWN, RANDOM, RANDOM_MESSAGE, answer_all};

/// Number of random writes, unless `RBUILDER_WRITES` is set.
const WRITES: usize = 480;

/// Number of the first kind: the kinds of the record have smaller ones.
const FIRST: usize = 100_000;

#[tokio::test]
async fn fake_server_answers_as_recorded() {
    let server = Server::new(ApiServer::new().client());
    let (mut count, mut differences) = (0, Vec::new());
    let mut kind: Option<Kind> = None;
    let mut writes: Vec<Recorded> = Vec::new();
    let lines = include_str!("../../../judge/tests/recorded.jsonl").lines();
    for line in lines.map(Some).chain([None]) {
        let value = line.map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
        match value {
            Some(value) if value.get("schema").is_none() => {
                writes.push(serde_json::from_value(value).expect("a write"));
                continue;
            }
            next => {
                if let Some(kind) = &kind {
                    count += writes.len();
                    differences.extend(replay(&server, kind, std::mem::take(&mut writes)).await);
                }
                kind = next.map(|value| serde_json::from_value(value).expect("a kind"));
            }
        }
    }
    report(count, 3000, &differences);
}

/// Sends recorded writes again. Returns the answers that differ.
async fn replay(server: &Server, kind: &Kind, recorded: Vec<Recorded>) -> Vec<String> {
    server
        .install(kind)
        .await
        .expect("the server had accepted the CRD");
    let mut differences = Vec::new();
    for (index, Recorded { write, answer }) in recorded.into_iter().enumerate() {
        let now = server.answer(kind, &write, index).await;
        differences.extend(compare(kind, &write, &answer, &now));
    }
    differences
}

#[rbuilder::envtest::test]
async fn fake_and_real_server_answer_alike(env: Environment) {
    let wanted = std::env::var("RBUILDER_WRITES").ok();
    let wanted = wanted.map_or(WRITES, |count| count.parse().expect("a number"));
    let (real, fake) = (Server::new(env.client()), Server::new(ApiServer::new().client()));
    let (mut count, mut differences) = (0, Vec::new());
    for seed in RANDOM.. {
        if count >= wanted {
            break;
        }
        let (kind, writes) = random::kind(seed);
        let number = FIRST + usize::try_from(seed).expect("a small number");
        let kind = Kind { number, ..kind };
        // The server rejects some random schemas, such as those with a default that does not fit.
        if real.install(&kind).await.is_err() {
            continue;
        }
        fake.install(&kind).await.expect("kube-apiserver accepts the CRD");
        let (ours, theirs) = tokio::join!(
            answer_all(&fake, &kind, writes.clone()),
            answer_all(&real, &kind, writes)
        );
        assert_eq!(ours.len(), theirs.len(), "{}", kind.schema);
        count += ours.len();
        for (ours, theirs) in ours.iter().zip(&theirs) {
            differences.extend(compare(&kind, &theirs.write, &theirs.answer, &ours.answer));
        }
        real.uninstall(&kind).await;
        fake.uninstall(&kind).await;
    }
    report(count, wanted, &differences);
}

fn report(count: usize, least: usize, differences: &[String]) {
    assert!(count >= least, "only {count} writes were compared");
    let shown = &differences[..differences.len().min(MOST_SHOWN)];
    assert!(
        differences.is_empty(),
        "{} of {count} answers differ:\n{}",
        differences.len(),
        shown.join("\n")
    );
}

/// Part of the message about a rule that met a text without the format that its schema declares. The
/// server decodes such texts when a rule reads them; which of several it reads first is random, as is
/// whether it reads them before the rule has failed or passed otherwise. The judge leaves open what it
/// cannot decide, and the fake server accepts it.
const UNDECODABLE: &str = " formatted string ";

fn is_undecidable(answer: &Answer) -> bool {
    answer
        .causes
        .iter()
        .any(|(_, _, message)| message.contains(UNDECODABLE) && message.contains(" evaluating rule: "))
}

/// Returns a description of two answers to a write that differ.
fn compare(kind: &Kind, write: &Write, expected: &Answer, found: &Answer) -> Option<String> {
    let is_same = without_random_parts(expected) == without_random_parts(found);
    if is_same || is_undecidable(expected) {
        return None;
    }
    let show = |answer: &Answer| serde_json::to_string(answer).expect("JSON");
    Some(format!(
        "{}\n  {}\n  real: {}\n  fake: {}",
        kind.schema,
        serde_json::to_string(write).expect("JSON"),
        show(expected),
        show(found)
    ))
}

/// Removes which of several values of the wrong type a rule has met first: the server visits the
/// values at random.
fn without_random_parts(answer: &Answer) -> Answer {
    let mut answer = answer.clone();
    for (_, _, message) in &mut answer.causes {
        if let Some((before, rest)) = message.split_once(RANDOM_MESSAGE)
            && let Some((_, rule)) = rest.split_once(" evaluating rule: ")
        {
            *message = format!("{before}{RANDOM_MESSAGE}{rule}");
        }
    }
    answer
}
