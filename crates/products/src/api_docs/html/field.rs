//! Renders a field with its details and nested fields.

use rbuilder_schema::Schema;
use serde_json::Value;

use super::super::anchors::push_field;
use super::super::description::{Block, parse_blocks};
use super::super::fact::inline_value;
use super::super::facts::{collect_facts, type_name};
use super::super::fields::{Field, allowed_values, description_of, fields_of, rules_of};
use super::{breakable, escape, push_blocks, spans};
use rbuilder_project::count::counted;

/// Objects at this depth or deeper start out collapsed. `spec` has depth 0.
const OPEN_DEPTH: usize = 2;
/// Fields at this depth or deeper are only slightly indented, and not at all on narrow screens. The
/// path above them shows where they belong.
const DEEP: usize = 7;
/// Number of enum values shown initially.
const MOST_VALUES: usize = 24;
/// Rules are expanded initially up to this number.
const MOST_RULES: usize = 5;
/// Length in bytes beyond which the rest of a description is collapsed.
const LONG_DESCRIPTION: usize = 700;

/// Adds the fields of an object as a list. `above` is the displayed path of the object.
pub(super) fn push_fields(page: &mut String, anchor: &str, above: &str, fields: &[Field<'_>], depth: usize) {
    if fields.is_empty() {
        return;
    }
    page.push_str("<ul class=\"fields\">\n");
    for field in fields {
        let mut inner = anchor.to_owned();
        push_field(&mut inner, field.name);
        push_one(page, &inner, above, field, depth);
    }
    page.push_str("</ul>\n");
}

fn push_one(page: &mut String, anchor: &str, above: &str, field: &Field<'_>, depth: usize) {
    let schema = field.schema;
    let class = if depth >= DEEP { "field deep" } else { "field" };
    page.push_str(&format!(
        "<li class=\"{class}\" id=\"{anchor}\">\n<div class=\"head\">"
    ));
    page.push_str(&format!(
        "<span class=\"name\">{}{}</span> <span class=\"type\">{}",
        if depth >= DEEP {
            parent(above)
        } else {
            String::new()
        },
        breakable(field.name),
        escape(&type_name(schema))
    ));
    if let Some(format) = &schema.format {
        page.push_str(&format!(" ({})", escape(format)));
    }
    page.push_str("</span>");
    if field.is_required {
        page.push_str(" <span class=\"required\">required</span>");
    }
    if let Some(default) = &schema.default {
        page.push_str(&format!(
            " <span class=\"default\">default <code>{}</code></span>",
            escape(&inline_value(default))
        ));
    }
    page.push_str(&format!(
        " <a class=\"anchor\" href=\"#{anchor}\" aria-label=\"Link to {}\">#</a></div>\n",
        escape(field.name)
    ));
    if let Some(title) = &schema.title {
        page.push_str(&format!("<p class=\"heading\">{}</p>\n", escape(title)));
    }
    push_text(page, description_of(schema));
    if let Some(docs) = &schema.external_docs {
        let text = docs.description.as_deref().unwrap_or(&docs.url);
        page.push_str(&format!(
            "<p>See {}.</p>\n",
            spans(&format!("[{text}]({})", docs.url))
        ));
    }
    push_values(page, schema);
    push_facts(page, schema);
    push_rules(page, schema);
    push_inner(page, anchor, above, field, depth);
    page.push_str("</li>\n");
}

fn parent(path: &str) -> String {
    let name = path.rsplit('.').next().unwrap_or_default();
    format!("<span class=\"of\">{}.</span>", breakable(name))
}

fn push_text(page: &mut String, text: &str) {
    let blocks = parse_blocks(text);
    if blocks.is_empty() {
        return;
    }
    let shown = if text.len() <= LONG_DESCRIPTION {
        blocks.len()
    } else {
        first_blocks(&blocks)
    };
    page.push_str("<div class=\"doc\">\n");
    push_blocks(page, &blocks[..shown]);
    if shown < blocks.len() {
        page.push_str("<details class=\"more\">\n<summary>More</summary>\n");
        push_blocks(page, &blocks[shown..]);
        page.push_str("</details>\n");
    }
    page.push_str("</div>\n");
}

/// Number of blocks of a long description to show: the first paragraph, and a list or code block
/// that it introduces.
fn first_blocks(blocks: &[Block<'_>]) -> usize {
    match blocks {
        [Block::Paragraph(text), Block::List { .. } | Block::Code(_), ..] if text.ends_with(':') => 2,
        _ => 1,
    }
}

fn push_values(page: &mut String, schema: &Schema) {
    for (place, values) in allowed_values(schema) {
        let label = if place.is_empty() {
            "Allowed values".to_owned()
        } else {
            format!("Allowed values of {place}")
        };
        page.push_str(&format!(
            "<div class=\"values\"><span class=\"label\">{label}</span> "
        ));
        let (first, others) = values.split_at(values.len().min(MOST_VALUES));
        push_value_list(page, first);
        if !others.is_empty() {
            page.push_str(&format!("<details>\n<summary>{} more</summary>\n", others.len()));
            push_value_list(page, others);
            page.push_str("</details>\n");
        }
        page.push_str("</div>\n");
    }
}

fn push_value_list(page: &mut String, values: &[Value]) {
    page.push_str("<ul>");
    for value in values {
        page.push_str(&format!("<li><code>{}</code></li>", escape(&inline_value(value))));
    }
    page.push_str("</ul>\n");
}

fn push_facts(page: &mut String, schema: &Schema) {
    let facts = collect_facts(schema);
    if facts.is_empty() {
        return;
    }
    page.push_str("<ul class=\"facts\">\n");
    for fact in facts {
        let label = escape(&fact.label);
        match fact.code.as_str() {
            "" => page.push_str(&format!("<li>{label}</li>\n")),
            code => page.push_str(&format!("<li>{label} <code>{}</code></li>\n", escape(code))),
        }
    }
    page.push_str("</ul>\n");
}

pub(super) fn push_rules(page: &mut String, schema: &Schema) {
    let rules = rules_of(schema);
    if rules.is_empty() {
        return;
    }
    let open = if rules.len() <= MOST_RULES { " open" } else { "" };
    let count = counted(rules.len(), "rule");
    page.push_str(&format!(
        "<details class=\"rules\"{open}>\n<summary>{count}</summary>\n<ul>\n"
    ));
    for (place, rule) in rules {
        page.push_str("<li>");
        if !place.is_empty() {
            page.push_str(&format!("<span class=\"muted\">{place}:</span> "));
        }
        if let Some(message) = &rule.message {
            page.push_str(&format!("{} ", spans(message)));
        }
        page.push_str(&format!(
            "<code class=\"cel\">{}</code>",
            escape(rule.rule.trim())
        ));
        if let Some(expression) = &rule.message_expression {
            page.push_str(&format!(
                "<span class=\"muted\">message</span> <code class=\"cel\">{}</code>",
                escape(expression.trim())
            ));
        }
        if let Some(path) = &rule.field_path {
            page.push_str(&format!(
                "<span class=\"muted\">reported at</span> <code>{}</code>",
                escape(path)
            ));
        }
        page.push_str("</li>\n");
    }
    page.push_str("</ul>\n</details>\n");
}

fn push_inner(page: &mut String, anchor: &str, above: &str, field: &Field<'_>, depth: usize) {
    let fields = fields_of(field.schema);
    if fields.is_empty() {
        return;
    }
    let open = if depth < OPEN_DEPTH { " open" } else { "" };
    let path = if above.is_empty() {
        field.name.to_owned()
    } else {
        format!("{above}.{}", field.name)
    };
    let count = counted(fields.len(), "field");
    page.push_str(&format!(
        "<details class=\"inner\"{open}>\n<summary>{count}<span class=\"of\"> of {}</span></summary>\n",
        breakable(&path)
    ));
    push_fields(page, anchor, &path, &fields, depth + 1);
    page.push_str("</details>\n");
}
