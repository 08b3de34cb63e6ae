//! Mistakes in `#[webhook(…)]`, with the configuration that we would get.

use super::{Case, Edit, Value, edits, expanded, fields, harm, rows, sent};

pub(super) fn cases() -> Vec<Case> {
    let table = rows(include_str!("../tables/webhook.tsv"));
    table
        .map(|row| {
            let [name, arguments, sends, ..] = row[..] else {
                panic!("{row:?}");
            };
            let sent = sent(&expanded(sends), places);
            Case::new(
                &format!("webhook/{name}"),
                &library(""),
                library(&expanded(arguments)),
                sent,
            )
            .with_harm_if(harm(&row, 3))
        })
        .collect()
}

/// A place is relative to the webhook, or to the configuration if it starts with `!`.
fn places(table: &Value) -> Vec<Edit> {
    let place = |(place, value): Edit| match place.strip_prefix('!') {
        Some(whole) => (format!("1:{whole}"), value),
        None => (format!("1:/webhooks/0/{place}"), value),
    };
    edits(table).into_iter().map(place).collect()
}

fn library(arguments: &str) -> String {
    let comma = if arguments.is_empty() { "" } else { ", " };
    fields("    pub field: String,\n")
        + &format!(
            "\n#[webhook(validating{comma}{arguments})]\npub fn validate(sample: &Sample) -> Result<(), String> {{\n    \
             Ok(())\n}}\n"
        )
}
