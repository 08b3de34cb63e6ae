//! Mistakes in the attributes of a kind: `#[kube(…)]` and `#[crd(…)]` on the spec.

use serde_json::json;

use super::{Case, Edit, GROUP, KEYS, ROOT, Sent, edits, expanded, harm, library, rows, sent};

/// Columns, selectors, scales and rules can refer to these fields.
const FIELDS: &str = "    pub field: String,
    pub replicas: i32,
    pub ratio: f64,
    pub on: bool,
    pub when: Time,
    pub mode: Mode,
    pub inner: Inner,
    pub parts: Vec<Inner>,
    pub tags: Vec<String>,
    pub labels: BTreeMap<String, String>,
    pub port: IntOrString,
    pub free: serde_json::Value,
    pub left: Option<String>,
    pub right: Option<String>,
    #[serde(rename = \"wireName\")]
    pub wire_name: Option<String>,
";

pub(super) fn cases() -> Vec<Case> {
    let names = rows(include_str!("../tables/name.tsv")).map(|row| name(&row));
    let keys = rows(include_str!("../tables/key.tsv")).map(|row| {
        let [name, change, sends, ..] = row[..] else {
            panic!("{row:?}");
        };
        let keys = changed(&expanded(change));
        kind(&format!("key/{name}"), &keys, "", sent(&expanded(sends), edits)).with_harm_if(harm(&row, 3))
    });
    let attributes = rows(include_str!("../tables/crd.tsv")).map(|row| {
        let [name, keys, sends, ..] = row[..] else {
            panic!("{row:?}");
        };
        let attribute = format!("#[crd({})]\n", expanded(keys));
        let sent = sent(&expanded(sends), edits);
        kind(&format!("crd/{name}"), KEYS, &attribute, sent).with_harm_if(harm(&row, 3))
    });
    let whole = rows(include_str!("../tables/whole_object.tsv")).map(|row| whole_object(&row));
    names.chain(keys).chain(attributes).chain(whole).collect()
}

fn kind(slug: &str, keys: &str, attributes: &str, sent: Sent) -> Case {
    let base = library(KEYS, "", FIELDS, "");
    Case::new(slug, &base, library(keys, attributes, FIELDS, ""), sent)
}

/// The kind has no spec, so the places in the row are in the schema of the object.
fn whole_object(row: &[&'static str]) -> Case {
    let [name, markers, sends, ..] = *row else {
        panic!("{row:?}");
    };
    let keys = changed("no_spec");
    let places = |keys: &serde_json::Value| {
        let edits = edits(keys).into_iter();
        edits
            .map(|(place, value)| (format!("{ROOT}{place}"), value))
            .collect()
    };
    let base = library(&keys, "", FIELDS, "");
    let changed = library(&keys, &format!("#[crd({markers})]\n"), FIELDS, "");
    Case::new(
        &format!("whole-object/{name}"),
        &base,
        changed,
        sent(sends, places),
    )
    .with_harm_if(harm(row, 3))
}

/// `-key` removes a key. Any other key is added, or replaces the key of the same name.
fn changed(change: &str) -> String {
    let (removed, added) = match change.strip_prefix('-') {
        Some(removed) => removed.split_once(", ").unwrap_or((removed, "")),
        None => ("", change),
    };
    let name = |line: &str| line.split([' ', '(', ',']).next().unwrap_or_default().to_owned();
    let replaced = if removed.is_empty() {
        name(added)
    } else {
        removed.to_owned()
    };
    let kept = KEYS.lines().filter(|line| name(line) != replaced);
    let added = (!added.is_empty()).then(|| format!("{added},"));
    kept.map(str::to_owned)
        .chain(added)
        .map(|line| line + "\n")
        .collect()
}

/// If the kind has another name, so does everything in the manifest that follows from it.
fn name(row: &[&'static str]) -> Case {
    let (part, name) = (row[0], row[1]);
    let value = expanded(row.get(2).copied().unwrap_or_default());
    let set = |place: &str, value: serde_json::Value| -> Edit { (place.to_owned(), Some(value)) };
    let edits = match part {
        "group" => vec![
            set("/spec/group", json!(value)),
            set("/metadata/name", json!(format!("samples.{value}"))),
        ],
        "version" => vec![set("/spec/versions/0/name", json!(value))],
        "kind" => vec![
            set("/spec/names/kind", json!(value)),
            set("/spec/names/listKind", json!(format!("{value}List"))),
            set("/spec/names/singular", json!(value.to_lowercase())),
        ],
        "plural" => vec![
            set("/spec/names/plural", json!(value)),
            set("/metadata/name", json!(format!("{value}.{GROUP}"))),
        ],
        "singular" => vec![set("/spec/names/singular", json!(value))],
        "shortname" => vec![set("/spec/names/shortNames", json!([value]))],
        "category" => vec![set("/spec/names/categories", json!([value]))],
        part => panic!("{part} is not part of a kind's name"),
    };
    let keys = changed(&format!("{part} = \"{value}\""));
    kind(&format!("{part}/{name}"), &keys, "", Sent::Edited(edits)).with_harm_if(harm(row, 3))
}
