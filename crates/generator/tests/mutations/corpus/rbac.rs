//! Mistakes in `#[rbac(…)]`, with the rule that would be in the role.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Case, Sent, fields, harm, json as parse, rows};

const RIGHT: &str = "groups = \"apps\", resources = \"deployments\", verbs = \"get\"";

pub(super) fn cases() -> Vec<Case> {
    let words = rows(include_str!("../tables/rbac.tsv")).map(|row| {
        let [name, groups, resources, verbs, ..] = row[..] else {
            panic!("{row:?}");
        };
        let list = |words: &str| -> BTreeSet<String> { words.split(';').map(str::to_owned).collect() };
        let core = |group: &String| {
            if group == "core" {
                String::new()
            } else {
                group.clone()
            }
        };
        let rule = json!({
            "apiGroups": list(groups).iter().map(core).collect::<BTreeSet<_>>(),
            "resources": list(resources),
            "verbs": list(verbs),
        });
        let marker = format!("groups = \"{groups}\", resources = \"{resources}\", verbs = \"{verbs}\"");
        case(&format!("rbac/{name}"), &marker, edit(rule)).with_harm_if(harm(&row, 4))
    });
    let rules = rows(include_str!("../tables/rule.tsv")).map(|row| {
        let [name, marker, sends, ..] = row[..] else {
            panic!("{row:?}");
        };
        let sent = match sends {
            "-" => Sent::Made,
            "never" => Sent::Nothing,
            rule => edit(parse(rule)),
        };
        case(&format!("rbac/{name}"), marker, sent).with_harm_if(harm(&row, 3))
    });
    let derived =
        rows(include_str!("../tables/derived.tsv")).map(|row| derived(row[0], row[1], harm(&row, 2)));
    words.chain(rules).chain(derived).collect()
}

/// `#[rbac(derived)]` is on a function with this body.
fn derived(name: &str, body: &str, harm: Option<&'static str>) -> Case {
    let library = fields("    pub field: String,\n")
        + &format!("\n#[rbac(derived)]\npub async fn reconcile(client: kube::Client) {{\n    {body}\n}}\n");
    // Without a rule, there's no role to send.
    let sent = match harm {
        Some(_) => Sent::Nothing,
        None => Sent::Made,
    };
    Case::new(&format!("rbac/derived-{name}"), &library, library.clone(), sent).with_harm_if(harm)
}

fn edit(rule: Value) -> Sent {
    Sent::Edited(vec![("1:/rules/0".into(), Some(rule))])
}

fn case(slug: &str, marker: &str, sent: Sent) -> Case {
    let library = |marker: &str| {
        fields("    pub field: String,\n") + &format!("\n#[rbac({marker})]\npub fn reconcile() {{}}\n")
    };
    Case::new(slug, &library(RIGHT), library(marker), sent)
}
