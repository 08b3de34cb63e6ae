//! Syntax highlighting for YAML examples. It is heuristic, but a wrong guess only affects the color
//! of a word, never the text.

use super::escape;

pub(super) fn highlight(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(highlight_line).collect();
    lines.join("\n")
}

fn highlight_line(line: &str) -> String {
    let content = line.trim_start_matches([' ', '-']);
    if content.starts_with('#') {
        return format!("<i>{}</i>", escape(line));
    }
    let (start, content) = line.split_at(line.len() - content.len());
    let key = content.split(':').next().unwrap_or_default();
    let rest = &content[key.len()..];
    let is_key = !key.is_empty() && !key.contains(' ') && (rest == ":" || rest.starts_with(": "));
    let (value, comment) = match rest.find(" #") {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let comment = if comment.is_empty() {
        String::new()
    } else {
        format!("<i>{}</i>", escape(comment))
    };
    if !is_key {
        return escape(line);
    }
    format!(
        "{}<b>{}</b>{}{comment}",
        escape(start),
        escape(key),
        escape(value)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_keys_and_comments() {
        for (line, expected) in [
            ("spec:", "<b>spec</b>:"),
            ("  - name: a # first", "  - <b>name</b>: a<i> # first</i>"),
            ("# all", "<i># all</i>"),
            ("plain text: <b>", "plain text: &lt;b&gt;"),
        ] {
            assert_eq!(highlight(line), expected);
        }
    }
}
