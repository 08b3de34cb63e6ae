//! Splits descriptions into paragraphs, lists and code, following the conventions of doc comments
//! in Go and Rust.
//!
//! A description can't add markup of its own: the renderers escape all text, and links only lead to
//! http and https addresses.

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Block<'a> {
    Paragraph(String),
    Heading(&'a str),
    List { is_ordered: bool, items: Vec<Item> },
    Code(String),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// 0 for a top-level item, 1 for a nested one. Deeper levels are flattened to 1.
    pub(super) level: usize,
    pub(super) text: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Span<'a> {
    Text(&'a str),
    Code(&'a str),
    Strong(&'a str),
    Emphasis(&'a str),
    /// Text and the http or https address that it links to.
    Link(&'a str, &'a str),
}

pub(super) fn parse_blocks(text: &str) -> Vec<Block<'_>> {
    let mut lines = text.lines().peekable();
    let mut blocks = Vec::new();
    let mut is_after_blank = true;
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.chars().all(|c| c == '-') && trimmed.len() > 2 {
            is_after_blank = true;
            continue;
        }
        if let Some(fence) = ["```", "~~~"]
            .into_iter()
            .find(|fence| trimmed.starts_with(fence))
        {
            let body: Vec<&str> = lines
                .by_ref()
                .take_while(|line| !line.trim().starts_with(fence))
                .collect();
            blocks.push(Block::Code(dedent(&body)));
        } else if let Some(heading) = heading(trimmed) {
            blocks.push(Block::Heading(heading));
        } else if let Some((is_ordered, item)) = list_item(line) {
            add_item(&mut blocks, is_ordered, indent(line), item);
        } else if matches!(blocks.last(), Some(Block::List { .. })) && (indent(line) > 0 || !is_after_blank) {
            continue_item(&mut blocks, trimmed);
        } else if is_after_blank && is_code(line) || trimmed.starts_with('|') {
            let mut body = vec![line];
            while let Some(next) = lines.next_if(|next| is_code(next) || next.trim().starts_with('|')) {
                body.push(next);
            }
            blocks.push(Block::Code(dedent(&body)));
        } else {
            match blocks.last_mut() {
                Some(Block::Paragraph(text)) if !is_after_blank => {
                    text.push(' ');
                    text.push_str(trimmed);
                }
                _ => blocks.push(Block::Paragraph(trimmed.to_owned())),
            }
        }
        is_after_blank = false;
    }
    blocks
}

fn heading(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    (1..=6).contains(&level).then(|| rest.strip_prefix(' ')).flatten()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn is_code(line: &str) -> bool {
    line.starts_with("    ") || line.starts_with('\t')
}

fn list_item(line: &str) -> Option<(bool, &str)> {
    let line = line.trim_start();
    for bullet in ["- ", "* ", "+ ", "• "] {
        if let Some(text) = line.strip_prefix(bullet) {
            return Some((false, text.trim()));
        }
    }
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = line.len() - rest.len();
    let text = rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "))?;
    (1..=3).contains(&digits).then(|| (true, text.trim()))
}

fn add_item(blocks: &mut Vec<Block<'_>>, is_ordered: bool, indent: usize, text: &str) {
    let text = text.to_owned();
    match blocks.last_mut() {
        Some(Block::List {
            items,
            is_ordered: same,
        }) if *same == is_ordered || indent > 1 => {
            // Go indents the items of every list by two spaces, so only deeper indentation means
            // nesting.
            let level = usize::from(indent > 3);
            items.push(Item { level, text });
        }
        _ => blocks.push(Block::List {
            is_ordered,
            items: vec![Item { level: 0, text }],
        }),
    }
}

fn continue_item(blocks: &mut [Block<'_>], line: &str) {
    if let Some(Block::List { items, .. }) = blocks.last_mut()
        && let Some(item) = items.last_mut()
    {
        item.text.push(' ');
        item.text.push_str(line);
    }
}

fn dedent(lines: &[&str]) -> String {
    let filled = lines.iter().filter(|line| !line.trim().is_empty());
    let common = filled.map(|line| indent(line)).min().unwrap_or(0);
    let lines: Vec<&str> = lines
        .iter()
        .map(|line| line.get(common..).unwrap_or_default().trim_end())
        .collect();
    lines.join("\n")
}

pub(super) fn first_sentence(text: &str) -> String {
    let Some(Block::Paragraph(text)) = parse_blocks(text).into_iter().next() else {
        return String::new();
    };
    match text.split_once(". ") {
        // Not the end of a sentence if the dot belongs to an abbreviation.
        Some((sentence, _)) if !sentence.ends_with("e.g") && !sentence.ends_with("i.e") => {
            format!("{sentence}.")
        }
        _ => text,
    }
}

pub(super) fn parse_spans(line: &str) -> Vec<Span<'_>> {
    let mut spans = Vec::new();
    let mut text_start = 0;
    let mut at = 0;
    while at < line.len() {
        let rest = &line[at..];
        let is_word_start = !line[..at].ends_with(|c: char| c.is_alphanumeric());
        match parse_span(rest, is_word_start) {
            Some((span, length)) => {
                if text_start < at {
                    spans.push(Span::Text(&line[text_start..at]));
                }
                spans.push(span);
                at += length;
                text_start = at;
            }
            None => at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    if text_start < line.len() {
        spans.push(Span::Text(&line[text_start..]));
    }
    spans
}

/// Parses the span at the start of `text`, and returns it with its length.
fn parse_span(text: &str, is_word_start: bool) -> Option<(Span<'_>, usize)> {
    let inside = |open: &str, close: &str| {
        let body = text.strip_prefix(open)?;
        let end = body.find(close)?;
        (end > 0).then(|| (&body[..end], open.len() + end + close.len()))
    };
    match text.as_bytes()[0] {
        b'`' => {
            let open = if text.starts_with("``") { "``" } else { "`" };
            let (body, length) = inside(open, open)?;
            Some((Span::Code(body), length))
        }
        b'*' => {
            let (body, length) = inside("**", "**")?;
            Some((Span::Strong(body), length))
        }
        // Only a single word, because names are full of underscores.
        b'_' if is_word_start => {
            let (body, length) = inside("_", "_")?;
            let ends = !text[length..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
            (ends && body.chars().all(char::is_alphanumeric)).then_some((Span::Emphasis(body), length))
        }
        // An intra-doc link in rustdoc.
        b'[' if text.starts_with("[`") => {
            let (body, length) = inside("[`", "`]")?;
            Some((Span::Code(body), length))
        }
        b'[' => {
            let (body, length) = inside("[", "](")?;
            let address = web_address(&text[length..])?;
            let closes = text[length + address.len()..].starts_with(')');
            closes.then(|| (Span::Link(body, address), length + address.len() + 1))
        }
        b'<' => {
            let address = web_address(&text[1..])?;
            let closes = text[1 + address.len()..].starts_with('>');
            closes.then(|| (Span::Link(address, address), address.len() + 2))
        }
        b'h' if is_word_start => {
            // Trailing punctuation belongs to the surrounding sentence.
            let address = web_address(text)?.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'']);
            Some((Span::Link(address, address), address.len()))
        }
        _ => None,
    }
}

fn web_address(text: &str) -> Option<&str> {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))?;
    let is_end =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, ')' | '>' | '<' | '"' | '`' | ']' | '}');
    let length = rest.find(is_end).unwrap_or(rest.len());
    (length > 0).then(|| &text[..text.len() - rest.len() + length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_go_and_rust_comments_into_blocks() {
        let text = "Size is the\nnumber of pods.\n\nOne of:\n- A: first\n  and more\n- B\n    - inner\n1. one\n\n\
                    # Examples\n\n```yaml\n  size: 1\n    a: 2\n```\n    code\n\nEnd.\n\n    indented\n";
        let item = |level, text: &str| Item {
            level,
            text: text.into(),
        };
        assert_eq!(
            parse_blocks(text),
            [
                Block::Paragraph("Size is the number of pods.".into()),
                Block::Paragraph("One of:".into()),
                Block::List {
                    is_ordered: false,
                    items: vec![item(0, "A: first and more"), item(0, "B"), item(1, "inner")],
                },
                Block::List {
                    is_ordered: true,
                    items: vec![item(0, "one")]
                },
                Block::Heading("Examples"),
                Block::Code("size: 1\n  a: 2".into()),
                Block::Paragraph("code".into()),
                Block::Paragraph("End.".into()),
                Block::Code("indented".into()),
            ]
        );
    }

    #[test]
    fn splits_lines_into_spans() {
        for (line, expected) in [
            (
                "a `b` c",
                vec![Span::Text("a "), Span::Code("b"), Span::Text(" c")],
            ),
            ("**must** `", vec![Span::Strong("must"), Span::Text(" `")]),
            (
                "see https://a.b/c.",
                vec![
                    Span::Text("see "),
                    Span::Link("https://a.b/c", "https://a.b/c"),
                    Span::Text("."),
                ],
            ),
            (
                "[docs](https://a.b)!",
                vec![Span::Link("docs", "https://a.b"), Span::Text("!")],
            ),
            (
                "[x](javascript:alert(1))",
                vec![Span::Text("[x](javascript:alert(1))")],
            ),
            ("[`Memcached`]", vec![Span::Code("Memcached")]),
            (
                "_not_ a_b_c __d__",
                vec![Span::Emphasis("not"), Span::Text(" a_b_c __d__")],
            ),
            ("<script>", vec![Span::Text("<script>")]),
            ("``a`b``", vec![Span::Code("a`b")]),
        ] {
            assert_eq!(parse_spans(line), expected, "{line}");
        }
    }

    #[test]
    fn overview_is_the_first_sentence() {
        for (text, expected) in [
            ("A is a. B is b.", "A is a."),
            ("A, e.g. this. B.", "A, e.g. this. B."),
            ("", ""),
        ] {
            assert_eq!(first_sentence(text), expected);
        }
    }
}
