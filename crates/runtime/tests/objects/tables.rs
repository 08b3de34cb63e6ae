//! Writes from the files in `crates/judge/tests/tables`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::corpus::{Kind, Write};

const TABLES: [&str; 5] = [
    include_str!("../../../judge/tests/tables/keywords.yaml"),
    include_str!("../../../judge/tests/tables/formats.yaml"),
    include_str!("../../../judge/tests/tables/alternatives.yaml"),
    include_str!("../../../judge/tests/tables/objects.yaml"),
    include_str!("../../../judge/tests/tables/rules.yaml"),
];

pub(crate) fn kinds() -> Vec<(Kind, Vec<Write>)> {
    let entries = TABLES.iter().flat_map(|table| {
        let entries: Vec<Entry> = serde_saphyr::from_str(table).expect("a table");
        entries
    });
    entries.map(Entry::into_kind).collect()
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Entry {
    value: Value,
    values: Vec<Value>,
    changes: Vec<(Value, Value)>,
    schema: Value,
    cluster: bool,
    status: bool,
    scale: Value,
    selectable: Vec<String>,
    creates: Vec<Value>,
    strict: Vec<Value>,
    ignored: Vec<Value>,
    bodies: Vec<Value>,
    updates: Vec<(Value, Value)>,
    statuses: Vec<(Value, Value)>,
    scales: Vec<(Value, Value)>,
}

impl Entry {
    fn into_kind(self) -> (Kind, Vec<Write>) {
        let of_value = |value: Value| json!({ "spec": { "v": value } });
        let schema = match self.value.is_null() {
            true => self.schema,
            false => json!({ "type": "object", "properties": {
                "spec": { "type": "object", "properties": { "v": self.value } } } }),
        };
        let create = |how: &str, new: Value| Write {
            how: how.to_owned(),
            old: None,
            new,
        };
        let change = |how: &str, (old, new): (Value, Value)| Write {
            how: how.to_owned(),
            old: Some(old),
            new,
        };
        let values = self
            .values
            .into_iter()
            .map(|value| create("create", of_value(value)));
        let mut writes: Vec<Write> = values.collect();
        for (how, list) in [
            ("create", self.creates),
            ("strict", self.strict),
            ("ignored", self.ignored),
            ("body", self.bodies),
        ] {
            writes.extend(list.into_iter().map(|new| create(how, new)));
        }
        let changes = self.changes.into_iter();
        let changes = changes.map(|(old, new)| (of_value(old), of_value(new)));
        for (how, list) in [
            ("update", changes.collect()),
            ("update", self.updates),
            ("status", self.statuses),
            ("scale", self.scales),
        ] {
            writes.extend(list.into_iter().map(|pair| change(how, pair)));
        }
        let kind = Kind {
            number: 0,
            schema,
            stored: Value::Null,
            cluster: self.cluster,
            status: self.status,
            scale: self.scale,
            selectable: self.selectable,
        };
        (kind, writes)
    }
}
