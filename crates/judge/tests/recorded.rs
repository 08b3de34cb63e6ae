//! Compares verdicts with the answers of kube-apiserver that `cargo xtask objects` has recorded.

mod corpus;

use std::collections::BTreeMap;

use rbuilder_judge::{Body, Definition, Failure, FieldValidation, Judge, Verdict};
use serde_json::{Value, json};

use corpus::record::{Answer, Recorded};
use corpus::{Kind, NAMESPACE, Write, bare, complete, complete_text, name_of};

/// The largest number of differences in a message.
const MOST_SHOWN: usize = 12;

/// The number of writes that are not decided.
const MOST_UNDECIDED: usize = 1;

#[test]
fn verdicts_equal_the_answers_of_kube_apiserver() {
    let mut differences = Vec::new();
    let mut codes: BTreeMap<u16, usize> = BTreeMap::new();
    let mut undecided = Vec::new();
    for (kind, writes) in recorded() {
        let judge = judge(&kind);
        for (index, Recorded { write, answer }) in writes.iter().enumerate() {
            let verdict = judge_write(&judge, write, kind.number, index);
            *codes.entry(answer.code).or_default() += 1;
            if !verdict.undecided.is_empty() {
                undecided.push(format!("{}: {:?}", show(&kind, write), verdict.undecided));
                continue;
            }
            let found = answer_of(&verdict, &name_of(index), write);
            if without_details(&found) != without_details(answer) {
                differences.push(format!(
                    "{}\n  server: {}\n  here:   {}",
                    show(&kind, write),
                    serde_json::to_string(answer).unwrap(),
                    serde_json::to_string(&found).unwrap()
                ));
            }
        }
    }
    let count = differences.len();
    differences.truncate(MOST_SHOWN);
    assert!(
        count == 0,
        "{count} of {codes:?} differ:\n{}",
        differences.join("\n")
    );
    // The evaluator of rules leaves the size of bytes that are not base64 open.
    assert!(undecided.len() <= MOST_UNDECIDED, "undecided: {undecided:#?}");
    assert!(
        codes[&200] > 500 && codes[&201] > 500 && codes[&422] > 1000 && codes[&400] > 50,
        "{codes:?}"
    );
}

fn recorded() -> Vec<(Kind, Vec<Recorded>)> {
    let mut recorded = read_record(include_str!("recorded.jsonl"));
    // Answers that differed when random writes were sent to both servers (see
    // `crates/runtime/tests/objects/pairs.rs`), and writes in versions that aren't stored.
    recorded.extend(read_record(include_str!("found.jsonl")));
    recorded
}

fn judge(kind: &Kind) -> Judge {
    let definitions = Definition::of_crd(&kind.crd()).expect("a CRD");
    let definition = definitions
        .into_iter()
        .find(|definition| definition.version == "v1");
    Judge::new(definition.expect("the version"))
}

fn judge_write(judge: &Judge, write: &Write, number: usize, index: usize) -> Verdict {
    let name = name_of(index);
    let body = Body::from(complete(&write.new, number, &name, "v1"));
    let fields = match write.how.as_str() {
        "strict" => FieldValidation::Strict,
        "ignored" => FieldValidation::Ignore,
        _ => FieldValidation::Warn,
    };
    let old = write.old.as_ref().map(|old| stored(judge, old, number, &name));
    match (write.how.as_str(), old) {
        ("body", _) => {
            let text = complete_text(write.new.as_str().expect("a text"), number, &name);
            judge.create(&Body::parse(&text).expect("JSON"), NAMESPACE, fields)
        }
        ("update", Some(old)) => judge.update(&body, &old, fields),
        ("status", Some(old)) => judge.update_status(&body, &old, fields),
        ("scale", Some(old)) => {
            let scale = judge.definition().scale.as_ref().expect("the subresource");
            let mut new = old.clone();
            set_nested(&mut new, &scale.spec_replicas, write.new.clone());
            judge.update(&Body::from(new), &old, FieldValidation::Ignore)
        }
        _ => judge.create(&body, NAMESPACE, fields),
    }
}

/// Sets a value, creating missing objects along the path, e.g. for `.spec.replicas`.
fn set_nested(object: &mut Value, path: &str, value: Value) {
    let names = path.trim_start_matches('.').split('.');
    *names.fold(object, |target, name| &mut target[name]) = value;
}

/// Returns an object as it is stored.
fn stored(judge: &Judge, old: &Value, number: usize, name: &str) -> Value {
    let mut old = complete(old, number, name, "v1");
    old["metadata"]["uid"] = "stored".into();
    old["metadata"]["resourceVersion"] = "1".into();
    old["metadata"]["generation"] = 1.into();
    if judge.definition().is_namespaced {
        old["metadata"]["namespace"] = NAMESPACE.into();
    }
    old
}

fn answer_of(verdict: &Verdict, name: &str, write: &Write) -> Answer {
    let mut answer = Answer {
        warnings: verdict.warnings.clone(),
        ..Answer::default()
    };
    answer.warnings.sort();
    match &verdict.result {
        Ok(object) => {
            answer.code = if write.old.is_some() { 200 } else { 201 };
            answer.object = match write.how.as_str() {
                "scale" => json!({ "replicas": object["spec"]["replicas"] }),
                _ => bare(object, name),
            };
        }
        Err(failure) => {
            answer.code = failure.code();
            match failure {
                Failure::Invalid { errors, .. } => {
                    let causes = errors.iter();
                    let causes = causes.map(|error| {
                        (
                            error.reason.as_str().to_owned(),
                            error.field.clone(),
                            error.message.clone(),
                        )
                    });
                    answer.causes = causes.collect();
                    answer.causes.sort();
                }
                other => answer.message = other.message(),
            }
        }
    }
    answer
}

/// Removes what is random in an answer: which of several values of the wrong type a rule has met
/// first.
fn without_details(answer: &Answer) -> Answer {
    let mut answer = answer.clone();
    for (_, _, message) in &mut answer.causes {
        if let Some((before, rest)) = message.split_once("invalid data, ")
            && let Some((_, rule)) = rest.split_once(" evaluating rule: ")
        {
            *message = format!("{before}invalid data evaluating rule: {rule}");
        }
    }
    answer
}

fn show(kind: &Kind, write: &Write) -> String {
    format!("{}\n  {}", kind.schema, serde_json::to_string(write).unwrap())
}

/// Parses a record.
fn read_record(text: &str) -> Vec<(Kind, Vec<Recorded>)> {
    let mut kinds: Vec<(Kind, Vec<Recorded>)> = Vec::new();
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).expect("a line of JSON");
        match (value.get("schema").is_some(), kinds.last_mut()) {
            (false, Some((_, writes))) => writes.push(serde_json::from_value(value).expect("a write")),
            _ => kinds.push((serde_json::from_value(value).expect("a kind"), Vec::new())),
        }
    }
    kinds
}
