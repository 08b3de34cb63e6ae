//! Rust types and serde attributes, with mistakes in the JSON format and what only looks like one.

use super::{Case, KEYS, fields, harm, library, rows, sent};

pub(super) fn cases() -> Vec<Case> {
    let table = rows(include_str!("../tables/serde.tsv"));
    table
        .map(|row| {
            let [name, field, items, sends, ..] = row[..] else {
                panic!("{row:?}");
            };
            let base = fields("    pub field: String,\n");
            let field = field.replace("\\n", "\n").replace("\\t", "\t");
            let changed = library(KEYS, "", &format!("{field}\n"), &format!("{items}\n"));
            let sent = sent(sends, |_| unreachable!("no row names places"));
            Case::new(&format!("serde/{name}"), &base, changed, sent).with_harm_if(harm(&row, 4))
        })
        .collect()
}
