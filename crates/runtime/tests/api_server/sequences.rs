//! Sequences of requests, recorded on kube-apiserver and sent to both servers.
//!
//! `sequences.txt` consists of sequences. Each runs in a namespace of its own, `{ns}`:
//!
//! ```text
//! # A claim is protected                                    the title
//! > POST /api/v1/namespaces/{ns}/persistentvolumeclaims {…}  a request, with or without a body
//! ? /metadata/finalizers /status                             the parts of the response to compare
//! < 201 {"/metadata/finalizers":[…],"/status":{…}}           the response
//! ! reason                                                   why the fake server responds differently …
//! < 200 {}                                                   … and how
//! ```
//!
//! Methods like `PATCH+merge` select the type of a patch. Without `?`, the whole response is
//! compared. Times, UIDs and resource versions are masked. To record the responses again, run the
//! tests of the real server with `RBUILDER_RECORD_SEQUENCES=1`.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::servers::{Server, on_both_servers};
use crate::support::Place;

on_both_servers!(responses_are_those_of_kube_apiserver);

const SEQUENCES: &str = "tests/api_server/sequences.txt";
const RECORD: &str = "RBUILDER_RECORD_SEQUENCES";

async fn responses_are_those_of_kube_apiserver(server: Server) {
    let is_real = matches!(server, Server::Real(_));
    let mut place = Place::new(server).await;
    let (mut recorded, mut wrong, mut title) = (String::new(), Vec::new(), "");
    let text = std::fs::read_to_string(SEQUENCES).unwrap();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(found) = line.strip_prefix("# ") {
            title = found;
            place.namespace = place.server.namespace("sequence").await;
        }
        writeln!(recorded, "{line}").unwrap();
        let Some(request) = line.strip_prefix("> ") else {
            continue;
        };
        let shown = lines.next_if(|line| line.starts_with("? "));
        if let Some(shown) = shown {
            writeln!(recorded, "{shown}").unwrap();
        }
        let mut expected = lines.next_if(|line| line.starts_with("< ")).unwrap_or("< ");
        let found = format!("< {}", send(&place, request, shown).await);
        writeln!(recorded, "{found}").unwrap();
        if let Some(reason) = lines.next_if(|line| line.starts_with("! ")) {
            let of_fake = lines.next().expect("the response of the fake server");
            writeln!(recorded, "{reason}\n{of_fake}").unwrap();
            assert_ne!(
                expected, of_fake,
                "{title}: there is no difference to give a reason for"
            );
            expected = if is_real { expected } else { of_fake };
        }
        if found != expected {
            wrong.push(format!(
                "{title}\n> {request}\nexpected {expected}\nfound    {found}"
            ));
        }
    }
    if is_real && std::env::var_os(RECORD).is_some() {
        std::fs::write(SEQUENCES, recorded).unwrap();
        return;
    }
    assert!(
        wrong.is_empty(),
        "{} responses differ:\n\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
}

/// Sends a request, and returns the status code, the warnings and the selected parts of the body.
async fn send(place: &Place, request: &str, shown: Option<&str>) -> String {
    let mut words = request.splitn(3, ' ');
    let mut next = || words.next().unwrap_or_default();
    let (method, path, body) = (next(), next(), next().replace("{ns}", &place.namespace));
    let (method, kind) = method.split_once('+').unwrap_or((method, ""));
    let content_type = match kind {
        "merge" => "application/merge-patch+json",
        "json" => "application/json-patch+json",
        "strategic" => "application/strategic-merge-patch+json",
        "apply" => "application/apply-patch+yaml",
        _ => "application/json",
    };
    let headers = [("content-type", content_type)];
    let (code, warnings, text) = place.raw_with_warnings(method, path, &headers, &body).await;
    let mut response = code.to_string();
    for warning in warnings {
        write!(response, " {warning}").unwrap();
    }
    let body = match serde_json::from_str::<Value>(&text) {
        Ok(body) => select(body, shown).to_string(),
        Err(_) => format!("{text:?}"),
    };
    scrub(&format!("{response} {body}")).replace(&place.namespace, "{ns}")
}

fn select(mut body: Value, shown: Option<&str>) -> Value {
    if let Some(shown) = shown.filter(|_| body["kind"] != "Status") {
        let pointers = shown.split(' ').skip(1);
        let parts = pointers.map(|pointer| {
            (
                pointer.to_owned(),
                body.pointer(pointer).cloned().unwrap_or_default(),
            )
        });
        return parts.collect::<Map<_, _>>().into();
    }
    if let Some(metadata) = body["metadata"].as_object_mut() {
        for name in ["creationTimestamp", "managedFields", "resourceVersion", "uid"] {
            metadata.remove(name);
        }
    }
    if body["kind"] == "Status" {
        return json!({ "message": body["message"], "reason": body["reason"], "details": body["details"] });
    }
    body
}

/// Masks times, UIDs and the current resource version.
fn scrub(text: &str) -> String {
    let mut scrubbed = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-:".contains(letter);
        let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length.max(rest.chars().next().map_or(0, char::len_utf8)));
        let shape: String = word
            .chars()
            .map(|letter| if letter.is_ascii_hexdigit() { '0' } else { letter })
            .collect();
        let masked = match shape.as_str() {
            "0000-00-00T00:00:00Z" => "{time}",
            "00000000-0000-0000-0000-000000000000" => "{uid}",
            _ if scrubbed.ends_with("current: ") || scrubbed.ends_with("in record (") => "{version}",
            _ => word,
        };
        scrubbed.push_str(masked);
        rest = after;
    }
    scrubbed
}
