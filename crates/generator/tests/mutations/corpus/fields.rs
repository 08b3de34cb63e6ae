//! Mistakes on a single field: markers, explicit schemas and patterns.

use serde_json::json;

use super::{Case, Edit, FIELD, Sent, Value, expanded, field_edits, fields, harm, json as parse, rows, sent};

/// The columns are a name, the type of the field, its markers, the schema keys that they would set,
/// and the harm if the server accepts the case.
const MARKED: &[(&str, &str)] = &[
    ("bounds", include_str!("../tables/bounds.tsv")),
    ("cel", include_str!("../tables/cel.tsv")),
    ("default", include_str!("../tables/default.tsv")),
    ("format", include_str!("../tables/formats.tsv")),
    ("logic", include_str!("../tables/logic.tsv")),
    ("presence", include_str!("../tables/presence.tsv")),
    ("topology", include_str!("../tables/topology.tsv")),
];

pub(super) fn cases() -> Vec<Case> {
    let marked = MARKED
        .iter()
        .flat_map(|(group, table)| rows(table).map(move |row| marked(group, &row)));
    let unread = rows(include_str!("../tables/marker.tsv")).map(|row| {
        let [name, ty, markers] = row[..] else {
            panic!("{row:?}");
        };
        field(&format!("marker/{name}"), ty, markers, Sent::Nothing).with_harm("the marker says nothing")
    });
    let literals = rows(include_str!("../tables/literal.tsv")).map(|row| literal(&row));
    let patterns = rows(include_str!("../tables/pattern.tsv")).map(|row| pattern(&row));
    marked.chain(unread).chain(literals).chain(patterns).collect()
}

fn marked(group: &str, row: &[&'static str]) -> Case {
    let [name, ty, markers, keys, ..] = *row else {
        panic!("{row:?}");
    };
    let sent = sent(&expanded(keys), field_edits);
    field(&format!("{group}/{name}"), ty, &expanded(markers), sent).with_harm_if(harm(row, 4))
}

/// The markers are on the field of the base project.
pub(super) fn field(slug: &str, ty: &str, markers: &str, sent: Sent) -> Case {
    let base = fields(&format!("    pub field: {ty},\n"));
    let changed = fields(&format!("    #[kube({markers})]\n    pub field: {ty},\n"));
    Case::new(slug, &base, changed, sent)
}

fn literal(row: &[&'static str]) -> Case {
    let [name, schema, ..] = *row else {
        panic!("{row:?}");
    };
    let value = parse(schema);
    let edits: Vec<Edit> = vec![(FIELD.into(), Some(value))];
    let markers = format!("schema = {schema}");
    field(
        &format!("literal/{name}"),
        "serde_json::Value",
        &markers,
        Sent::Edited(edits),
    )
    .with_harm_if(harm(row, 2))
}

fn pattern(row: &[&'static str]) -> Case {
    let pattern = row.get(1).copied().unwrap_or_default();
    let keys: Value = json!({ "pattern": pattern });
    let markers = format!("validation(pattern = r#\"{pattern}\"#)");
    let sent = Sent::Edited(field_edits(&keys));
    field(&format!("pattern/{}", row[0]), "String", &markers, sent)
}
