//! There are two versions of a kind in one package, or two kinds.

use super::{Case, IMPORTS, Sent, TYPES, edits, harm, rows, sent};

const FIRST: &str = "version = \"v1\", storage = true";
const SECOND: &str = "version = \"v2\", storage = false";

pub(super) fn cases() -> Vec<Case> {
    let table = rows(include_str!("../tables/versions.tsv"));
    table
        .map(|row| {
            let [name, first, second, sends, ..] = row[..] else {
                panic!("{row:?}");
            };
            let or = |keys: &'static str, right| if keys == "-" { right } else { keys };
            let changed = library(or(first, FIRST), or(second, SECOND));
            let sent: Sent = sent(sends, edits);
            let base = library(FIRST, SECOND);
            Case::new(&format!("versions/{name}"), &base, changed, sent).with_harm_if(harm(&row, 4))
        })
        .collect()
}

fn library(first: &str, second: &str) -> String {
    format!(
        "{IMPORTS}{TYPES}{}{}",
        module("first", first),
        module("second", second)
    )
}

/// `keys` replace the default attributes of the kind.
fn module(name: &str, keys: &str) -> String {
    let mut all = vec![keys.replace(", -namespaced", "")];
    for (key, line) in [
        ("group", "group = \"mutations.example.com\""),
        ("kind", "kind = \"Sample\""),
        ("plural", "plural = \"samples\""),
        ("namespaced", "namespaced"),
    ] {
        if !keys
            .split(", ")
            .any(|said| said.trim_start_matches('-').split(' ').next() == Some(key))
        {
            all.push(line.to_owned());
        }
    }
    format!(
        "\npub mod {name} {{\n    use super::*;\n\n    \
         #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n    \
         #[kube({})]\n    pub struct SampleSpec {{\n        pub field: String,\n    }}\n}}\n",
        all.join(", ")
    )
}
