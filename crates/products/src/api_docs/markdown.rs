//! Renders the reference as Markdown for GitHub and CommonMark. Fields are nested lists rather than
//! tables: a table would lose the paragraphs, lists and code of descriptions, and could be broken
//! by a pattern.

use rbuilder_kubernetes::gvk;
use rbuilder_schema::Schema;

use super::anchors::{push_field, version_anchor};
use super::compare::compare_versions;
use super::description::{Block, Span, parse_blocks, parse_spans};
use super::fact::inline_value;
use super::facts::{collect_facts, type_name};
use super::fields::{Field, allowed_values, description_of, fields_of, fields_of_object, rules_of};
use super::model::{Kind, Reference, Role, Version};
use super::{MARK, description};

/// Renders the reference as a Markdown page.
pub fn render_markdown(reference: &Reference) -> String {
    let mut page = format!("<!-- {MARK} -->\n\n# {}\n", text(&reference.title));
    push_overview(&mut page, reference);
    for kind in &reference.kinds {
        push_kind(&mut page, kind);
    }
    push_permissions(&mut page, &reference.roles);
    end_block(&mut page);
    page
}

fn push_overview(page: &mut String, reference: &Reference) {
    if reference.kinds.len() < 2 {
        return;
    }
    page.push_str("\n| Kind | API version | Description |\n|---|---|---|\n");
    for kind in &reference.kinds {
        let version = kind.preferred();
        let description = version.and_then(|version| version.schema().description.as_deref());
        page.push_str(&row(&[
            format!("[{}](#{})", text(&kind.name), kind.anchor),
            code(&gvk::api_version(
                &kind.group,
                version.map_or("", |version| &version.name),
            )),
            spans(&description::first_sentence(description.unwrap_or_default())),
        ]));
    }
}

fn push_kind(page: &mut String, kind: &Kind) {
    end_block(page);
    page.push_str(&format!(
        "\n{}\n## {}\n\n",
        anchor_tag(&kind.anchor),
        text(&kind.name)
    ));
    let preferred = kind.preferred();
    if let Some(description) = preferred.and_then(|version| version.schema().description.as_deref()) {
        push_blocks(page, &parse_blocks(description), "");
        page.push('\n');
    }
    push_names(page, kind, preferred);
    push_versions(page, kind);
    push_differences(page, kind);
    for sample in &kind.samples {
        page.push_str("\nExample:\n\n");
        page.push_str(&fenced(sample, "yaml", ""));
    }
    for version in &kind.versions {
        push_version(page, kind, version);
    }
}

fn push_names(page: &mut String, kind: &Kind, version: Option<&Version>) {
    let mut item = |term: &str, value: String| page.push_str(&format!("- {term}: {value}\n"));
    if let Some(version) = version {
        item("API version", code(&gvk::api_version(&kind.group, &version.name)));
    }
    item("Resource", code(&kind.plural));
    if !kind.short_names.is_empty() {
        item("Short names", codes(kind.short_names.iter()));
    }
    if !kind.categories.is_empty() {
        item("Categories", codes(kind.categories.iter()));
    }
    item("Scope", kind.scope().into());
    if let Some(version) = version {
        if version.subresources.status.is_some() {
            item("Subresource", code("status"));
        }
        if let Some(scale) = &version.subresources.scale {
            item(
                "Subresource",
                format!("{} by {}", code("scale"), code(&scale.spec_replicas_path)),
            );
        }
        if !version.selectable_fields.is_empty() {
            item(
                "Field selectors",
                codes(version.selectable_fields.iter().map(|field| &field.json_path)),
            );
        }
        if !version.columns.is_empty() {
            let columns: Vec<String> = version.columns.iter().map(|column| text(&column.name)).collect();
            item("Columns", columns.join(", "));
        }
    }
    if kind.is_converted {
        item("Conversion", "by a webhook of the operator".into());
    }
}

fn push_versions(page: &mut String, kind: &Kind) {
    if let [only] = kind.versions.as_slice()
        && only.served
        && !only.deprecated
    {
        return;
    }
    page.push_str("\n| Version | Served | Stored | State |\n|---|---|---|---|\n");
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    for version in &kind.versions {
        let state = match (&version.deprecation_warning, version.deprecated) {
            (Some(warning), true) => format!("deprecated: {}", spans(warning)),
            (None, true) => "deprecated".into(),
            _ => String::new(),
        };
        let name = format!("[{}](#{})", text(&version.name), version_anchor(kind, version));
        page.push_str(&row(&[name, yes(version.served), yes(version.storage), state]));
    }
}

fn push_differences(page: &mut String, kind: &Kind) {
    if kind.versions.len() < 2 {
        return;
    }
    let differences = compare_versions(&kind.versions);
    if differences.is_empty() {
        return page.push_str("\nAll versions have the same fields.\n");
    }
    let names = kind.versions.iter().map(|version| text(&version.name));
    let heads: Vec<String> = std::iter::once("Field".to_owned()).chain(names).collect();
    page.push_str(&format!(
        "\nDifferences between the versions:\n\n{}|{}\n",
        row(&heads),
        "---|".repeat(heads.len())
    ));
    for difference in differences {
        let forms = difference.forms.iter();
        let forms = forms.map(|form| form.as_deref().map_or_else(|| "absent".to_owned(), text));
        let cells: Vec<String> = std::iter::once(code(&difference.path)).chain(forms).collect();
        page.push_str(&row(&cells));
    }
}

fn push_version(page: &mut String, kind: &Kind, version: &Version) {
    let anchor = version_anchor(kind, version);
    end_block(page);
    page.push_str(&format!(
        "\n{}\n### {} {}/{}\n\n",
        anchor_tag(&anchor),
        text(&kind.name),
        text(&kind.group),
        text(&version.name)
    ));
    let fields = fields_of_object(version.schema());
    if fields.is_empty() {
        page.push_str("The schema names no fields.\n");
    }
    end_block(page);
    push_rules(page, version.schema(), "");
    page.push('\n');
    push_fields(page, &anchor, &fields, "");
}

fn push_fields(page: &mut String, anchor: &str, fields: &[Field<'_>], indent: &str) {
    for field in fields {
        let mut inner = anchor.to_owned();
        push_field(&mut inner, field.name);
        push_one(page, &inner, field, indent);
    }
}

fn push_one(page: &mut String, anchor: &str, field: &Field<'_>, indent: &str) {
    let schema = field.schema;
    page.push_str(&format!(
        "{indent}- {}**{}** ({}{}{})",
        anchor_tag(anchor),
        code(field.name),
        text(&type_name(schema)),
        schema
            .format
            .as_deref()
            .map_or_else(String::new, |format| format!(", {}", text(format))),
        if field.is_required { ", required" } else { "" }
    ));
    if let Some(default) = &schema.default {
        page.push_str(&format!(", default {}", code(&inline_value(default))));
    }
    page.push('\n');
    let inner = format!("{indent}  ");
    let start = page.len();
    if let Some(title) = &schema.title {
        page.push_str(&format!("\n{inner}{}\n", text(title)));
    }
    let blocks = parse_blocks(description_of(schema));
    if !blocks.is_empty() {
        page.push('\n');
        push_blocks(page, &blocks, &inner);
    }
    if let Some(docs) = &schema.external_docs {
        let description = docs.description.as_deref().unwrap_or(&docs.url);
        page.push_str(&format!(
            "\n{inner}See {}.\n",
            spans(&format!("[{description}]({})", docs.url))
        ));
    }
    push_constraints(page, schema, &inner);
    push_rules(page, schema, &inner);
    let fields = fields_of(schema);
    if !fields.is_empty() {
        page.push('\n');
        push_fields(page, anchor, &fields, &inner);
    }
    if page.len() > start {
        page.push('\n');
        end_block(page);
        page.push('\n');
    }
}

fn end_block(page: &mut String) {
    page.truncate(page.trim_end_matches('\n').len());
    page.push('\n');
}

fn push_constraints(page: &mut String, schema: &Schema, indent: &str) {
    let mut phrases = Vec::new();
    for (place, values) in allowed_values(schema) {
        let place = if place.is_empty() {
            String::new()
        } else {
            format!(" of {place}")
        };
        phrases.push(format!(
            "allowed values{place} {}",
            codes(values.iter().map(inline_value))
        ));
    }
    phrases.extend(collect_facts(schema).iter().map(|fact| match fact.code.as_str() {
        "" => fact.label.clone(),
        value => format!("{} {}", fact.label, code(value)),
    }));
    if !phrases.is_empty() {
        page.push_str(&format!("\n{indent}Constraints: {}.\n", phrases.join("; ")));
    }
}

fn push_rules(page: &mut String, schema: &Schema, indent: &str) {
    for (place, rule) in rules_of(schema) {
        let place = if place.is_empty() {
            String::new()
        } else {
            format!(" on {place}")
        };
        let expression = code(rule.rule.trim());
        let rule = match rule.message.as_deref() {
            Some(message) => format!("{} ({expression})", spans(message)),
            None => expression,
        };
        page.push_str(&format!("\n{indent}Rule{place}: {rule}\n"));
    }
}

fn push_permissions(page: &mut String, roles: &[Role]) {
    if roles.is_empty() {
        return;
    }
    end_block(page);
    page.push_str(&format!(
        "\n{}\n## Permissions\n\nThe operator needs these permissions.\n",
        anchor_tag("permissions")
    ));
    for role in roles {
        page.push_str(&format!(
            "\n{} {}{}:\n\n| API group | Resources | Verbs |\n|---|---|---|\n",
            text(&role.kind),
            code(&role.metadata.name),
            text(&role.scope())
        ));
        for rule in &role.rules {
            let names = match rule.resource_names.is_empty() {
                true => String::new(),
                false => format!(" named {}", codes(rule.resource_names.iter())),
            };
            page.push_str(&row(&[
                codes(rule.group_names()),
                format!("{}{names}", codes(rule.resources.iter().chain(&rule.urls))),
                codes(rule.verbs.iter()),
            ]));
        }
    }
}

fn anchor_tag(anchor: &str) -> String {
    format!("<a id=\"{}\"></a>", text_entities(anchor))
}

fn push_blocks(page: &mut String, blocks: &[Block<'_>], indent: &str) {
    for (number, block) in blocks.iter().enumerate() {
        if number > 0 {
            page.push('\n');
        }
        match block {
            Block::Paragraph(line) => page.push_str(&format!("{indent}{}\n", paragraph(line))),
            Block::Heading(line) => page.push_str(&format!("{indent}**{}**\n", text(line))),
            Block::Code(body) => page.push_str(&fenced(body, "", indent)),
            Block::List { is_ordered, items } => {
                let mut number = 0;
                for item in items {
                    number += usize::from(item.level == 0);
                    let bullet = if *is_ordered && item.level == 0 {
                        format!("{number}.")
                    } else {
                        "-".into()
                    };
                    page.push_str(&format!(
                        "{indent}{}{bullet} {}\n",
                        "   ".repeat(item.level),
                        paragraph(&item.text)
                    ));
                }
            }
        }
    }
}

/// Formats a code block, with a fence longer than any in the code.
fn fenced(body: &str, language: &str, indent: &str) -> String {
    let longest = body.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    let lines: String = body
        .lines()
        .map(|line| format!("{indent}{line}").trim_end().to_owned() + "\n")
        .collect();
    format!("{indent}{fence}{language}\n{lines}{indent}{fence}\n")
}

/// Escapes the first line of a block, where some characters would otherwise start a list or
/// heading.
fn paragraph(line: &str) -> String {
    let line = spans(line);
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    match line.as_bytes().get(digits) {
        Some(b'.' | b')') if digits > 0 => format!("{}\\{}", &line[..digits], &line[digits..]),
        Some(b'-' | b'+' | b'#' | b'=' | b'~') if digits == 0 => format!("\\{line}"),
        _ => line,
    }
}

fn spans(line: &str) -> String {
    let parts = parse_spans(line).into_iter().map(|span| match span {
        Span::Text(part) => text(part),
        Span::Code(part) => code(part),
        Span::Strong(part) => format!("**{}**", text(part)),
        Span::Emphasis(part) => format!("*{}*", text(part)),
        Span::Link(part, address) if part == address => format!("<{address}>"),
        Span::Link(part, address) => format!("[{}]({address})", text(part)),
    });
    parts.collect()
}

fn text(plain: &str) -> String {
    let mut escaped = String::with_capacity(plain.len());
    for c in plain.chars() {
        match c {
            '*' | '_' | '`' | '[' | ']' | '\\' | '|' => escaped.extend(['\\', c]),
            // Jekyll and Hugo parse `{{` as a template tag.
            '{' => escaped.push_str("&#123;"),
            '\n' | '\r' => escaped.push(' '),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push_str(&text_entities(c.encode_utf8(&mut [0; 4]))),
        }
    }
    escaped
}

fn text_entities(plain: &str) -> String {
    plain
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Formats a code span with enough backticks. `|` is kept; it only matters in tables.
fn code(value: &str) -> String {
    let value = value.replace(['\n', '\r'], " ");
    if value.is_empty() {
        return "``".into();
    }
    let longest = value.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest + 1);
    // CommonMark strips a space on both sides, so that a span can start or end with a backtick.
    let space = if value.starts_with('`') || value.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{ticks}{space}{value}{space}{ticks}")
}

fn codes(words: impl Iterator<Item = impl AsRef<str>>) -> String {
    words
        .map(|word| code(word.as_ref()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Formats a table row. In cells, `|` must be escaped even in code.
fn row(cells: &[String]) -> String {
    let cells: Vec<String> = cells
        .iter()
        // Text from `text` is escaped already.
        .map(|cell| cell.replace("\\|", "|").replace('|', "\\|"))
        .collect();
    format!("| {} |\n", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        for (plain, expected) in [
            ("a_b *c*", "a\\_b \\*c\\*"),
            ("<b>", "&lt;b&gt;"),
            ("{{ x }}", "&#123;&#123; x }}"),
            ("a|b", "a\\|b"),
        ] {
            assert_eq!(text(plain), expected);
        }
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(row(&[text("a|b"), code("^a|b$")]), "| a\\|b | `^a\\|b$` |\n");
        assert_eq!(paragraph("1. a"), "1\\. a");
        assert_eq!(paragraph("- a"), "\\- a");
    }
}
