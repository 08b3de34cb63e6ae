//! Renders the reference as a single HTML page without any other files (not even fonts), readable
//! without scripts.
//!
//! Objects are `<details>` elements, which work without scripts, with the keyboard, with the
//! browser's search and as link targets. The script only adds a search field. The content security
//! policy allows just this style and script, by hash, so a description can't make the page send
//! requests.

mod field;
mod kind;
mod yaml;

use super::anchors::version_anchor;
use super::description::{Block, Item, Span, parse_blocks, parse_spans};
use super::model::{Reference, Role};
use super::{MARK, description};
use crate::html::escape;
use kind::push_kind;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("search.js");

/// Hashes for the content security policy, checked by a test.
const STYLE_HASH: &str = "sha256-48cvdt/h305llSZr8mtMWRPdRcXbXcEHc1mf6Tey7Zk=";
const SCRIPT_HASH: &str = "sha256-hzBa5IbHVLULkkxXiWHNYWWhoO2ouWOPqrt+eUAzo6c=";

/// Renders the reference as an HTML page.
pub fn render_html(reference: &Reference) -> String {
    let title = escape(&reference.title);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{STYLE_HASH}'; \
         script-src '{SCRIPT_HASH}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"{MARK}\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">Skip to the reference</a>\n"
    );
    push_navigation(&mut page, reference);
    page.push_str("<main id=\"main\">\n");
    page.push_str(&format!("<header>\n<h1>{title}</h1>\n"));
    push_overview(&mut page, reference);
    page.push_str("</header>\n");
    for kind in &reference.kinds {
        push_kind(&mut page, kind);
    }
    push_permissions(&mut page, &reference.roles);
    page.push_str("</main>\n");
    page.push_str(&format!("<script>{SCRIPT}</script>\n</body>\n</html>\n"));
    page
}

/// Adds the list of kinds by group. Its search field stays hidden until the script runs.
fn push_navigation(page: &mut String, reference: &Reference) {
    page.push_str("<nav aria-label=\"Kinds\">\n");
    page.push_str(&format!(
        "<p class=\"home\"><a href=\"#main\">{}</a></p>\n",
        escape(&reference.title)
    ));
    page.push_str(
        "<div class=\"search\" role=\"search\" hidden>\n\
         <label for=\"search\">Search fields</label>\n\
         <input id=\"search\" type=\"search\" autocomplete=\"off\" spellcheck=\"false\" placeholder=\"Field or words\" \
         aria-controls=\"found\"><kbd aria-hidden=\"true\">/</kbd>\n\
         <p id=\"count\" role=\"status\"></p>\n<ol id=\"found\"></ol>\n</div>\n",
    );
    let mut group = None;
    for kind in &reference.kinds {
        if group != Some(&kind.group) {
            if group.is_some() {
                page.push_str("</ul>\n");
            }
            page.push_str(&format!("<p class=\"group\">{}</p>\n<ul>\n", escape(&kind.group)));
            group = Some(&kind.group);
        }
        page.push_str(&format!("<li>{}", link(&kind.anchor, &kind.name)));
        if kind.versions.len() > 1 {
            page.push_str("<span class=\"versions\">");
            for version in &kind.versions {
                page.push_str(&format!(
                    " {}",
                    link(&version_anchor(kind, version), &version.name)
                ));
            }
            page.push_str("</span>");
        }
        page.push_str("</li>\n");
    }
    if group.is_some() {
        page.push_str("</ul>\n");
    }
    if !reference.roles.is_empty() {
        page.push_str("<p class=\"group\">Operator</p>\n<ul>\n<li><a href=\"#permissions\">Permissions</a></li>\n</ul>\n");
    }
    page.push_str("</nav>\n");
}

/// Adds a table of kinds if there are several. It replaces the navigation on narrow screens.
fn push_overview(page: &mut String, reference: &Reference) {
    if reference.kinds.len() < 2 {
        return;
    }
    page.push_str(
        "<div class=\"scroll\"><table class=\"overview\">\n<thead><tr><th scope=\"col\">Kind</th>\
         <th scope=\"col\">Description</th></tr></thead>\n<tbody>\n",
    );
    for kind in &reference.kinds {
        let description = kind
            .preferred()
            .and_then(|version| version.schema().description.as_deref());
        let sentence = description::first_sentence(description.unwrap_or_default());
        let versions = kind.versions.iter();
        let versions: Vec<String> = versions
            .map(|version| link(&version_anchor(kind, version), &version.name))
            .collect();
        page.push_str(&format!(
            "<tr><th scope=\"row\">{} <span class=\"of\">{} {}</span></th><td>{}</td></tr>\n",
            link(&kind.anchor, &kind.name),
            breakable(&kind.group),
            versions.join(" "),
            spans(&sentence),
        ));
    }
    if !reference.roles.is_empty() {
        page.push_str(
            "<tr><th scope=\"row\"><a href=\"#permissions\">Permissions</a></th><td>Roles of the operator.</td></tr>\n",
        );
    }
    page.push_str("</tbody>\n</table></div>\n");
}

fn push_permissions(page: &mut String, roles: &[Role]) {
    if roles.is_empty() {
        return;
    }
    page.push_str("<section class=\"kind\" id=\"permissions\">\n<h2>Permissions <a class=\"anchor\" href=\"#permissions\" aria-label=\"Link to Permissions\">#</a></h2>\n<p>The operator needs these permissions.</p>\n");
    for role in roles {
        page.push_str(&format!(
            "<h3>{} <code>{}</code>{}</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">API group</th>\
             <th scope=\"col\">Resources</th><th scope=\"col\">Verbs</th></tr></thead>\n<tbody>\n",
            escape(&role.kind),
            escape(&role.metadata.name),
            escape(&role.scope()),
        ));
        for rule in &role.rules {
            let names = match rule.resource_names.is_empty() {
                true => String::new(),
                false => format!(
                    " <span class=\"muted\">named</span> {}",
                    codes(rule.resource_names.iter())
                ),
            };
            page.push_str(&format!(
                "<tr><td>{}</td><td>{}{names}</td><td>{}</td></tr>\n",
                codes(rule.group_names()),
                codes(rule.resources.iter().chain(&rule.urls)),
                codes(rule.verbs.iter()),
            ));
        }
        page.push_str("</tbody>\n</table></div>\n");
    }
    page.push_str("</section>\n");
}

fn link(anchor: &str, text: &str) -> String {
    format!("<a href=\"#{}\">{}</a>", escape(anchor), breakable(text))
}

/// Allows line breaks between the words of a long name.
fn breakable(name: &str) -> String {
    let mut text = String::new();
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && was_lower || matches!(c, '.' | '/') && !text.is_empty() {
            text.push_str("<wbr>");
        }
        text.push_str(&escape(c.encode_utf8(&mut [0; 4])));
        was_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    text
}

fn codes(words: impl Iterator<Item = impl AsRef<str>>) -> String {
    let words: Vec<String> = words
        .map(|word| format!("<code>{}</code>", escape(word.as_ref())))
        .collect();
    words.join(", ")
}

fn spans(line: &str) -> String {
    let parts = parse_spans(line).into_iter().map(|span| match span {
        Span::Text(text) => escape(text),
        Span::Code(text) => format!("<code>{}</code>", escape(text)),
        Span::Emphasis(text) => format!("<em>{}</em>", escape(text)),
        Span::Strong(text) => format!("<strong>{}</strong>", escape(text)),
        Span::Link(text, address) => {
            format!(
                "<a href=\"{}\" rel=\"noreferrer\">{}</a>",
                escape(address),
                breakable_address(text)
            )
        }
    });
    parts.collect()
}

fn breakable_address(text: &str) -> String {
    escape(text).replace('/', "/<wbr>")
}

fn push_description(page: &mut String, text: &str) {
    push_blocks(page, &parse_blocks(text));
}

fn push_blocks(page: &mut String, blocks: &[Block<'_>]) {
    for block in blocks {
        match block {
            Block::Paragraph(text) => page.push_str(&format!("<p>{}</p>\n", spans(text))),
            Block::Heading(text) => page.push_str(&format!("<p class=\"heading\">{}</p>\n", spans(text))),
            Block::Code(text) => page.push_str(&format!("<pre><code>{}</code></pre>\n", escape(text))),
            Block::List { is_ordered, items } => push_list(page, *is_ordered, items),
        }
    }
}

fn push_list(page: &mut String, is_ordered: bool, items: &[Item]) {
    let tag = if is_ordered { "ol" } else { "ul" };
    page.push_str(&format!("<{tag}>\n"));
    let mut is_inner = false;
    let mut is_open = false;
    for item in items {
        // A list may start with a nested item, which has no parent.
        let goes_in = item.level > 0 && is_open;
        match (is_inner, goes_in) {
            (false, true) => page.push_str("<ul>\n"),
            (true, false) => page.push_str("</li>\n</ul>\n</li>\n"),
            _ if is_open => page.push_str("</li>\n"),
            _ => {}
        }
        page.push_str(&format!("<li>{}", spans(&item.text)));
        is_inner = goes_in;
        is_open = true;
    }
    page.push_str(if is_inner {
        "</li>\n</ul>\n</li>\n"
    } else {
        "</li>\n"
    });
    page.push_str(&format!("</{tag}>\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_lists_are_closed() {
        let mut page = String::new();
        push_description(&mut page, "- a\n    - b\n    - c\n- d\n\n1. e\n");
        assert_eq!(
            page.replace('\n', ""),
            "<ul><li>a<ul><li>b</li><li>c</li></ul></li><li>d</li></ul><ol><li>e</li></ol>"
        );
    }

    #[test]
    fn descriptions_are_escaped() {
        let mut page = String::new();
        push_description(
            &mut page,
            "<img src=x onerror=alert(1)> \u{202e}[x](https://a\"onclick=b) `</code>`",
        );
        assert_eq!(
            page,
            "<p>&lt;img src=x onerror=alert(1)&gt; \u{fffd}[x](<a href=\"https://a\" rel=\"noreferrer\">https:/<wbr>/<wbr>a</a>&quot;onclick=b) <code>&lt;/code&gt;</code></p>\n"
        );
    }

    #[test]
    fn policy_has_hashes_of_style_and_script() {
        use base64::Engine as _;
        use base64::prelude::BASE64_STANDARD;

        for (text, hash) in [(STYLE, STYLE_HASH), (SCRIPT, SCRIPT_HASH)] {
            let digest = hmac_sha256::Hash::hash(text.as_bytes());
            assert_eq!(
                hash,
                format!("sha256-{}", BASE64_STANDARD.encode(digest)),
                "write this hash"
            );
        }
    }
}
