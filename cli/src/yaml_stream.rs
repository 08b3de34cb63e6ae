//! Streams of YAML documents.

use serde_json::Value;

/// Returns whether a file is YAML by its name.
pub(crate) fn is_yaml(path: &str) -> bool {
    path.ends_with(".yaml") || path.ends_with(".yml")
}

/// Parses the documents of a stream; those that are empty are left out.
///
/// # Errors
/// Fails if one of them is not YAML.
pub(crate) fn parse_documents(text: &str) -> Result<Vec<Value>, serde_saphyr::Error> {
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(text)?;
    documents.retain(|document| !document.is_null());
    Ok(documents)
}

/// Returns the documents of a stream, each with the number of the line of its marker, so that they can be parsed one by one.
/// A document ends at a line that begins with `---`, whatever it is in: YAML allows the marker in no scalar.
pub(crate) fn split_documents(text: &str) -> Vec<(usize, &str)> {
    let mut documents = Vec::new();
    let (mut start, mut first_line, mut offset) = (0, 1, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if line == "---" || line.starts_with("---") && line[3..].starts_with([' ', '\t', '\r', '\n']) {
            documents.push((first_line, &text[start..offset]));
            // The marker can be followed by a comment, or by the document itself.
            let rest = line[3..].trim_start();
            let skip = if rest.starts_with('#') { line.len() } else { 3 };
            (start, first_line) = (offset + skip, number + 1);
        }
        offset += line.len();
    }
    documents.push((first_line, &text[start..]));
    documents.retain(|(_, document)| !is_blank(document));
    documents
}

/// Returns whether a document has comments only.
fn is_blank(text: &str) -> bool {
    let is_content = |line: &&str| !line.is_empty() && !line.starts_with('#');
    !text.lines().map(str::trim).any(|line| is_content(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_begin_at_markers() {
        let check = |text, expected: &[(usize, &str)]| assert_eq!(split_documents(text), expected, "{text}");
        check("a: 1\n---\nb: 2\n", &[(1, "a: 1\n"), (2, "\nb: 2\n")]);
        check("# a\n---\n\n---\na: 1", &[(4, "\na: 1")]);
        check("--- # note\na: 1\n", &[(1, "a: 1\n")]);
        check("--- {a: 1}\n", &[(1, " {a: 1}\n")]);
        check("---a: 1\n", &[(1, "---a: 1\n")]);
    }
}
