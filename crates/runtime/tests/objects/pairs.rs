//! Compares the fake API server with the record, and with kube-apiserver for the same random
//! writes.
//!
//! To compare more of them, run `RBUILDER_WRITES=20000 cargo test --workspace --test objects
//! alike`. `RBUILDER_SEED` sets the number of the first random kind, to compare different ones.
//! Differences found in this way are in `crates/judge/tests/found.jsonl`.
//!
//! kube-apiserver may respond to the same write in more than one way. When a rule compares objects
//! (`for key, value := range t.value` in `unstructuredMap.Equal` of
//! `k8s.io/apiserver/pkg/cel/common/valuesunstructured.go`) or iterates over a map, it visits the
//! fields in the random order of Go's maps, and stops at the first one that differs or cannot be
//! read. If the fake server's response is different, the write is therefore repeated several times,
//! and the response must be among those.

use rbuilder::envtest::Environment;
use rbuilder::fake::ApiServer;
use serde_json::Value;

use crate::corpus::record::{Answer, Recorded};
use crate::corpus::{Kind, Write};
use crate::random;
use crate::server::Server;
use crate::{MOST_SHOWN, RANDOM, RANDOM_MESSAGE, answer_all};

/// How many random writes to send, unless `RBUILDER_WRITES` is set.
const WRITES: usize = 480;

/// Number of repetitions of a write for collecting all possible responses.
const AGAIN: usize = 64;

/// Maximum fraction of responses that may differ for random reasons.
const RANDOM_SHARE: f64 = 0.01;

/// Number of the first random kind, above those in the record.
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

/// Sends all recorded writes again. Returns those with a different response.
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
    let seed = std::env::var("RBUILDER_SEED").ok();
    let first = seed.map_or(RANDOM, |seed| seed.parse().expect("a number"));
    let (real, fake) = (Server::new(env.client()), Server::new(ApiServer::new().client()));
    let (mut count, mut at_random, mut differences) = (0, 0_u32, Vec::new());
    for seed in first.. {
        if count >= wanted {
            break;
        }
        let (kind, writes) = random::kind(seed);
        let number = FIRST + usize::try_from(seed).expect("a small number");
        let kind = Kind { number, ..kind };
        // Some of the random schemas are rejected, e.g. because of an invalid default.
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
            let Some(difference) = compare(&kind, &theirs.write, &theirs.answer, &ours.answer) else {
                continue;
            };
            match gives_answer(&real, &kind, &theirs.write, &ours.answer).await {
                true => at_random += 1,
                false => differences.push(difference),
            }
        }
        real.uninstall(&kind).await;
        fake.uninstall(&kind).await;
    }
    report(count, wanted, &differences);
    let most = (count as f64 * RANDOM_SHARE).ceil();
    assert!(
        f64::from(at_random) <= most,
        "{at_random} of {count} answers differ at random"
    );
}

/// Kinds and updates with more than one possible response. All responses contain these strings.
const AT_RANDOM: &[(&str, &str, &str, [&str; 2])] = &[
    // One field differs, and another one can't be read.
    (
        r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},
            "x-kubernetes-validations":[{"rule":"self == oldSelf"}]}}}"#,
        r#"{"spec":{"a":true,"b":1}}"#,
        r#"{"spec":{"a":true,"b":2}}"#,
        [
            "failed rule: self == oldSelf",
            "invalid data, expected int, got bool",
        ],
    ),
    // The same for a map.
    (
        r#"{"type":"object","properties":{"spec":{"type":"object","maxProperties":5,"additionalProperties":{"type":"integer"},
            "x-kubernetes-validations":[{"rule":"self == oldSelf"}]}}}"#,
        r#"{"spec":{"k1":true,"k2":1}}"#,
        r#"{"spec":{"k1":true,"k2":2}}"#,
        [
            "failed rule: self == oldSelf",
            "invalid data, expected int, got bool",
        ],
    ),
];

/// kube-apiserver has several possible responses, and the fake server must return one of them.
#[rbuilder::envtest::test]
async fn answers_at_random_include_ours(env: Environment) {
    let (real, fake) = (Server::new(env.client()), Server::new(ApiServer::new().client()));
    for (number, (schema, old, new, expected)) in AT_RANDOM.iter().enumerate() {
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        let kind = serde_json::json!({ "number": 2 * FIRST + number, "schema": read(schema) });
        let kind: Kind = serde_json::from_value(kind).expect("a kind");
        let write = serde_json::json!({ "how": "update", "old": read(old), "new": read(new) });
        let write: Write = serde_json::from_value(write).expect("a write");
        real.install(&kind).await.expect("kube-apiserver accepts the CRD");
        fake.install(&kind)
            .await
            .expect("the fake server accepts the CRD");
        let mut missing: Vec<&str> = expected.to_vec();
        for index in 0..AGAIN {
            let answer = real.answer(&kind, &write, index).await;
            let messages: Vec<&String> = answer.causes.iter().map(|(_, _, message)| message).collect();
            missing.retain(|words| !messages.iter().any(|message| message.contains(words)));
        }
        assert!(
            missing.is_empty(),
            "kube-apiserver never answers {missing:?}: {schema}"
        );
        let ours = fake.answer(&kind, &write, 0).await;
        assert!(gives_answer(&real, &kind, &write, &ours).await, "{ours:?}");
        real.uninstall(&kind).await;
    }
}

/// Sends a write several times. Returns `true` if one of the responses is the expected one.
async fn gives_answer(server: &Server, kind: &Kind, write: &Write, expected: &Answer) -> bool {
    for index in FIRST..FIRST + AGAIN {
        if server.answer(kind, write, index).await == *expected {
            return true;
        }
    }
    false
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

/// Part of the message for a rule that has encountered a string not in the format in its schema.
///
/// The server decodes these strings when a rule reads them. With more than one, the order is
/// random, so the rule may succeed or fail before it gets to any of them. The judge doesn't decide
/// such cases, and the fake server accepts them.
const UNDECODABLE: &str = " formatted string ";

fn is_undecidable(answer: &Answer) -> bool {
    answer
        .causes
        .iter()
        .any(|(_, _, message)| message.contains(UNDECODABLE) && message.contains(" evaluating rule: "))
}

/// Describes how two responses differ, if at all.
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

/// Removes the part of a message that says which value was visited first. With several values of
/// the wrong type, the order is random.
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
