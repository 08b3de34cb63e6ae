//! `cargo xtask docs`: generates the reference pages of the guide. The parsers and the pages use the
//! same tables.

use anyhow::Result;
use rbuilder_schema::{Key, Subject};
use rbuilder_syntax::marker::{Marker, Place, markers};
use rbuilder_syntax::{
    ArgDoc, ArgRow, CRD_KEYS, CSV_FIELD_ARGS, CSV_KIND_ARGS, KUBE_KEYS, NestedArgs, RBAC_ARGS, WEBHOOK_ARGS,
    nested_key_args, nested_marker_args, nested_webhook_args,
};

use crate::committed::{Check, update_file};
use crate::repo;

const MARKERS_PAGE: &str = "docs/markers.md";
/// Pages that are printed by the command. The first value is the name in `rbuilder reference`.
const COMMAND_PAGES: [(&str, &str); 2] = [("commands", "docs/commands.md"), ("codes", "docs/codes.md")];

/// Generates the pages. They are either written or compared with the existing ones.
pub(crate) fn update_pages(args: &Check) -> Result<()> {
    update_file(MARKERS_PAGE, markers_page().as_bytes(), args.check, "docs")?;
    let rbuilder = repo::build_rbuilder()?;
    for (name, path) in COMMAND_PAGES {
        let command = repo::rbuilder_command(&rbuilder, repo::root(), &format!("reference {name}"))?;
        // We need to add a line feed, because `read` removes it.
        let page = format!("{}\n", command.read()?.trim_end());
        update_file(path, page.as_bytes(), args.check, "docs")?;
    }
    Ok(())
}

fn markers_page() -> String {
    let parts = [
        ("<markers>", rows(markers().map(marker_row))),
        ("<validation>", rows(Key::arguments().map(validation_row))),
        ("<marker arguments>", nested_lists(&nested_marker_args())),
        ("<kube keys>", arg_table("key", KUBE_KEYS)),
        ("<crd keys>", arg_table("key", CRD_KEYS)),
        ("<key arguments>", nested_lists(&nested_key_args())),
        ("<rbac>", arg_table("argument", RBAC_ARGS)),
        ("<webhook>", arg_table("argument", WEBHOOK_ARGS)),
        ("<webhook arguments>", nested_lists(&nested_webhook_args())),
        ("<csv fields>", arg_table("argument", CSV_FIELD_ARGS)),
        ("<csv kinds>", arg_table("argument", CSV_KIND_ARGS)),
    ];
    let page = include_str!("markers.md.in").to_owned();
    let fill = |page: String, (name, part): (&str, String)| page.replace(&format!("{name}\n"), &part);
    parts.into_iter().fold(page, fill)
}

fn marker_row(marker: &Marker) -> Vec<String> {
    let places: Vec<&str> = marker.places.iter().map(|place| place_name(*place)).collect();
    vec![
        code(marker.form),
        places.join(", "),
        description(marker.doc, marker.repeatable),
    ]
}

fn validation_row(key: &Key) -> Vec<String> {
    vec![
        code(key.argument),
        subject_name(key.subject).to_owned(),
        key.doc.to_owned(),
    ]
}

fn arg_table<T>(noun: &str, args: &[ArgRow<T>]) -> String {
    let args: Vec<ArgDoc> = args.iter().map(ArgRow::describe).collect();
    table(noun, &args)
}

fn nested_lists(lists: &[NestedArgs]) -> String {
    let list = |list: &NestedArgs| {
        format!(
            "\n### Inside `{}`\n\n{}",
            list.form,
            table("argument", &list.args)
        )
    };
    lists.iter().map(list).collect()
}

fn table(noun: &str, args: &[ArgDoc]) -> String {
    let row = |arg: &ArgDoc| vec![code(arg.name), description(arg.doc, arg.repeatable)];
    format!(
        "| {noun} | description |\n|---|---|\n{}",
        rows(args.iter().map(row))
    )
}

fn rows(rows: impl Iterator<Item = Vec<String>>) -> String {
    rows.map(|cells| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    })
    .collect()
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn description(doc: &str, is_repeatable: bool) -> String {
    format!("{doc}{}", if is_repeatable { " Repeatable." } else { "" })
}

fn place_name(place: Place) -> &'static str {
    match place {
        Place::Type => "type",
        Place::Field => "field",
        Place::Newtype => "newtype",
        Place::Variant => "variant",
        Place::Value => "items, keys, values",
    }
}

fn subject_name(subject: Subject) -> &'static str {
    match subject {
        Subject::Number => "numbers",
        Subject::Text => "strings",
        Subject::List => "lists",
        Subject::Object => "structs and maps",
        Subject::Any | Subject::Open => "any value",
    }
}
