//! YAML as read by kubectl and the API server, with the place of each value.
//!
//! All YAML in projects is parsed here, because aliases can make a small text large. The crate also
//! exists for speed: generic code is compiled in the crate that instantiates it, and every build of
//! the command optimizes this crate, but not the command's own. Prefer [`parse_value`],
//! [`parse_values`] and [`parse_nodes`] to the generic functions: their scalars have the types that
//! kubectl gives them, and they read machine-written text with a dedicated reader that is more than
//! ten times as fast.

mod block;
mod place;
mod resolve;

use anyhow::anyhow;
use memchr::{memchr_iter, memmem};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use place::{Content, Fields, Node, first_names, parse_nodes};

/// Number of nodes that aliases may repeat in any text. Beyond that, the limit is the length of the
/// text, which keeps memory proportional to the length.
const REPEATED: usize = 4096;

/// Number of scalar bytes that aliases may repeat in any text.
const REPEATED_BYTES: usize = 1 << 20;

/// Parses a document.
///
/// # Errors
/// Returns an error if the text is not YAML, has a different structure, or repeats too much through
/// aliases.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, serde_saphyr::Error> {
    parse_with(text, bounded(text))
}

/// Parses a document with the given parser options.
///
/// # Errors
/// Returns the same errors as [`parse`].
pub fn parse_with<T: DeserializeOwned>(
    text: &str,
    options: serde_saphyr::Options,
) -> Result<T, serde_saphyr::Error> {
    read_as_go(text, |text| {
        serde_saphyr::from_str_with_options(text, options.clone())
    })
}

/// Parses a document as a value. Faster than [`parse`] for machine-written YAML.
///
/// # Errors
/// Returns the same errors as [`parse`].
pub fn parse_value(text: &str) -> Result<Value, serde_saphyr::Error> {
    if let Some(document) = parse_printed(text) {
        return Ok(document);
    }
    match place::parse_any_values(text)?.as_mut_slice() {
        [document] => Ok(std::mem::take(document)),
        // For its error.
        _ => parse(text),
    }
}

/// Parses a document only if it's in a machine-written style. Returns `None` otherwise, or if the
/// document is invalid.
pub fn parse_printed(text: &str) -> Option<Value> {
    match block::read(text).as_deref_mut() {
        Some([document]) => Some(std::mem::take(document)),
        _ => None,
    }
}

/// Parses the documents of a stream as values.
///
/// # Errors
/// Returns the same errors as [`parse`].
pub fn parse_values(text: &str) -> Result<Vec<Value>, serde_saphyr::Error> {
    match block::read(text) {
        Some(documents) => Ok(documents),
        None => place::parse_any_values(text),
    }
}

/// The parser's error for a continuation line of a quoted scalar with too little indentation.
const CONTINUED: &str = "invalid indentation in multiline quoted scalar";

/// Maximum number of lines to indent in one text. The text is parsed again for each line.
const CONTINUATIONS: usize = 256;

/// Reads a text like `sigs.k8s.io/yaml`, the parser of kubectl and the API server: a continuation
/// line of a quoted scalar may be indented less than its key. The YAML grammar requires more
/// indentation, which isn't part of the scalar. Likewise, a block scalar at the end of a text
/// without a final line feed has no line feed; serde_saphyr adds one.
fn read_as_go<T>(
    text: &str,
    read: impl Fn(&str) -> Result<T, serde_saphyr::Error>,
) -> Result<T, serde_saphyr::Error> {
    let mut indented: Option<String> = strip_last_block(text);
    for _ in 0..CONTINUATIONS {
        let current = indented.as_deref().unwrap_or(text);
        match read(current) {
            Err(error) => match indent_continuation(current, &error) {
                Some(next) => indented = Some(next),
                None => return Err(error),
            },
            read => return read,
        }
    }
    read(indented.as_deref().unwrap_or(text))
}

/// Strips the final line feed of a block scalar at the end of a text that has none itself.
fn strip_last_block(text: &str) -> Option<String> {
    if text.ends_with(['\n', '\r']) || text.lines().next_back()?.trim().is_empty() {
        return None;
    }
    let (mut end, mut least, mut header) = (text.len(), usize::MAX, None);
    // Go outwards from the last line: each line is indented less than all lines after it.
    while end > 0 && least > 0 {
        let start = text[..end].rfind('\n').map_or(0, |at| at + 1);
        let line = text[start..end].trim_end();
        let indentation = line.len() - line.trim_start_matches(' ').len();
        if !line.is_empty() && indentation < least {
            let is_last = least == usize::MAX;
            header = find_block_indicator(line)
                .filter(|_| !is_last)
                .map(|at| start + at)
                .or(header);
            least = indentation;
        }
        end = start.saturating_sub(1);
    }
    let indicators = header?;
    let mut stripped = text.to_owned();
    let rest = &text[indicators + 1..];
    let length = rest.len()
        - rest
            .trim_start_matches(|letter: char| letter == '+' || letter.is_ascii_digit())
            .len();
    let kept: String = rest[..length].replace('+', "");
    stripped.replace_range(indicators + 1..indicators + 1 + length, &format!("{kept}-"));
    Some(stripped)
}

/// Returns the position of `|` or `>` in a line that starts a block scalar, or `None` if the scalar
/// already strips its final line feed.
fn find_block_indicator(line: &str) -> Option<usize> {
    let line = line.split_once(" #").map_or(line, |(line, _)| line).trim_end();
    let at = line.rfind(['|', '>'])?;
    let is_whole = line[at + 1..]
        .chars()
        .all(|letter| letter == '+' || letter.is_ascii_digit());
    let before = line[..at].trim_end();
    let word = before.rsplit(' ').next().unwrap_or_default();
    let is_begun = before.is_empty() || before.ends_with([':', '-']) || word.starts_with(['!', '&']);
    (is_whole && is_begun).then_some(at)
}

/// Indents the line with the error. Returns `None` for other errors, or if the line already starts
/// to the right of the previous one.
fn indent_continuation(text: &str, error: &serde_saphyr::Error) -> Option<String> {
    if !describe_cause(error).contains(CONTINUED) {
        return None;
    }
    let line = usize::try_from(error.location()?.line()).ok()?.checked_sub(1)?;
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let above = text[..start].lines().rev().find(|line| !line.trim().is_empty())?;
    let found = text[start..].len() - text[start..].trim_start_matches(' ').len();
    let is_marked = is_marker(&text[start..]) || text[start..].starts_with("...");
    if is_marked || found >= above.len() {
        return None;
    }
    let mut indented = text.to_owned();
    indented.insert_str(start, &" ".repeat(above.len() - found));
    Some(indented)
}

/// Returns parser options with limits on repetition through aliases.
pub fn bounded(text: &str) -> serde_saphyr::Options {
    serde_saphyr::options! {
        // When keeping comments, the parser rejects a longer run of comments between a key and its
        // list, as in `config/default` of kubebuilder projects.
        emit_comments: false,
        // What the text itself contains isn't limited: kubectl has no limit for the documents of a
        // stream or the items of a list.
        budget: serde_saphyr::budget! {
            max_documents: text.len(),
            max_nodes: 2 * text.len() + REPEATED,
            max_events: 4 * text.len() + REPEATED,
            max_total_scalar_bytes: 2 * text.len() + REPEATED_BYTES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: text.len().max(REPEATED),
        },
    }
}

/// Returns whether a file name has a YAML extension.
pub fn is_yaml(path: &str) -> bool {
    path.ends_with(".yaml") || path.ends_with(".yml")
}

/// Parses the non-empty documents of a stream.
///
/// # Errors
/// Returns an error if one of them is not YAML.
pub fn parse_documents(text: &str) -> Result<Vec<Value>, serde_saphyr::Error> {
    let mut documents = parse_values(text)?;
    documents.retain(|document| !document.is_null());
    Ok(documents)
}

/// Returns the items of a list, as printed by `kubectl get --output yaml`, or the object itself. As
/// in kubectl and kustomize, a list has a kind that ends in `List`, and `items`.
pub fn list_items(document: Value) -> Vec<Value> {
    let is_list = document["kind"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("List"));
    match document {
        Value::Object(mut keys) if is_list && keys.get("items").is_some_and(Value::is_array) => {
            match keys.remove("items") {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            }
        }
        document => vec![document],
    }
}

/// Describes the reason why a text isn't YAML or exceeds the limits, on one line that ends with the
/// line and column.
pub fn describe_cause(error: &serde_saphyr::Error) -> String {
    let cause = error
        .without_snippet()
        .render_with_formatter(&serde_saphyr::UserMessageFormatter);
    let details = [": limits breached", ": total_replayed_events"];
    match details.into_iter().find_map(|details| cause.split_once(details)) {
        Some((cause, _)) => cause.to_owned(),
        None => cause,
    }
}

/// Describes the reason why a text isn't YAML or exceeds the limits, with the location and the
/// line. The parser's own message is repetitive and mentions options that users can't set.
pub fn describe_failure(path: &str, text: &str, error: &serde_saphyr::Error) -> anyhow::Error {
    describe_failure_after(0, path, text, error)
}

/// Like [`describe_failure`], for a text that is preceded by `lines` lines of the file.
pub fn describe_failure_after(
    lines: u64,
    path: &str,
    text: &str,
    error: &serde_saphyr::Error,
) -> anyhow::Error {
    let message = describe_cause(error);
    let Some(location) = error.location() else {
        return anyhow!("cannot parse {path}: {message}");
    };
    let (line, column) = (location.line(), location.column());
    let message = message
        .strip_suffix(&format!(" at line {line}, column {column}"))
        .unwrap_or(&message);
    let found = text
        .lines()
        .nth((line as usize).saturating_sub(1))
        .unwrap_or_default();
    let shown = match found.len() {
        1..=LONGEST_LINE if !may_hold_credentials(text) => format!("\n  | {found}"),
        _ => String::new(),
    };
    anyhow!("cannot parse {path}:{}:{column}: {message}{shown}", line + lines)
}

/// Whether a text contains a Secret or a kubeconfig, whose lines messages must not quote: they end
/// up in the logs of CI. The text needn't be YAML.
pub fn may_hold_credentials(text: &str) -> bool {
    let is_sensitive = |line: &str| {
        let bare: String = line
            .chars()
            .filter(|letter| !matches!(letter, ' ' | '\t' | '"' | '\''))
            .collect();
        bare.match_indices("kind:").any(|(at, key)| {
            let kind = &bare[at + key.len()..];
            let end = kind.find(|letter: char| !letter.is_ascii_alphanumeric());
            matches!(
                &kind[..end.unwrap_or(kind.len())],
                "Secret" | "SecretList" | "Config"
            )
        })
    };
    text.lines().any(is_sensitive)
}

/// Maximum length of a line in messages, in bytes.
const LONGEST_LINE: usize = 200;

/// A document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Number of the first line with content, starting at 1.
    pub line: usize,
    /// The text from the document's marker to the next one, with comments.
    pub text: String,
    /// The value. Null if the document consists only of comments.
    pub value: Value,
}

/// Reads the documents of a file. Their texts add up to the entire file. Text before the first
/// marker is a document unless it's only whitespace.
///
/// # Errors
/// Returns an error with the location if a document is not YAML.
pub fn read_documents(path: &str, text: &str) -> anyhow::Result<Vec<Document>> {
    let mut documents = Vec::new();
    let mut before = 0;
    for text in split_texts(text.strip_prefix('\u{feff}').unwrap_or(text)) {
        let lines = text.matches('\n').count();
        if !text.trim().is_empty() {
            documents.push(read_document(path, before, text)?);
        }
        before += lines;
    }
    Ok(documents)
}

/// Splits a stream at its document markers. The texts include their markers and add up to the
/// entire stream.
pub fn split_texts(stream: &str) -> Vec<String> {
    let mut texts: Vec<String> = vec![String::new()];
    for line in stream.split_inclusive('\n') {
        if is_marker(line) {
            texts.push(String::new());
        }
        if let Some(text) = texts.last_mut() {
            text.push_str(line);
        }
    }
    texts.retain(|text| !text.is_empty());
    texts
}

fn read_document(path: &str, before: usize, text: String) -> anyhow::Result<Document> {
    let value: Option<Value> = match is_blank(&text) {
        true => None,
        false => parse_value(&text)
            .map(Some)
            .map_err(|error| describe_failure_after(before as u64, path, &text, &error))?,
    };
    let is_content = |line: &&str| !is_blank(line.strip_prefix("---").unwrap_or(line));
    let skipped = text.lines().take_while(|line| !is_content(line)).count();
    let skipped = if value.is_none() { 0 } else { skipped };
    Ok(Document {
        line: before + skipped + 1,
        text,
        value: value.unwrap_or_default(),
    })
}

/// Returns whether a line is a document marker.
pub fn is_marker(line: &str) -> bool {
    line.strip_prefix("---")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

/// Splits a stream into documents that can be parsed one by one, with the line number of each
/// marker. A line that starts with `---` always ends a document, because YAML doesn't allow it in
/// any scalar.
///
/// `rbuilder manifests` splits every CRD of the project, so markers are searched with memchr rather
/// than line by line.
pub fn split_documents(text: &str) -> Vec<(usize, &str)> {
    let mut documents = Vec::new();
    let (mut start, mut first_line, mut line_number, mut counted) = (0, 1, 1, 0);
    let first = text.starts_with("---").then_some(0);
    let others = memmem::find_iter(text.as_bytes(), "\n---").map(|at| at + 1);
    for offset in first.into_iter().chain(others) {
        let line = text[offset..].split_inclusive('\n').next().unwrap_or_default();
        if !is_marker(line) {
            continue;
        }
        line_number += memchr_iter(b'\n', &text.as_bytes()[counted..offset]).count();
        counted = offset;
        documents.push((first_line, &text[start..offset]));
        // The marker may be followed by a comment or by the document itself.
        let rest = line[3..].trim_start();
        let skip = if rest.starts_with('#') { line.len() } else { 3 };
        (start, first_line) = (offset + skip, line_number);
    }
    documents.push((first_line, &text[start..]));
    documents.retain(|(_, document)| !is_blank(document));
    documents
}

/// Returns whether a document consists only of comments.
pub fn is_blank(text: &str) -> bool {
    let is_content = |line: &&str| !line.is_empty() && !line.starts_with('#') && *line != "---";
    !text.lines().map(str::trim).any(|line| is_content(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns anchors that each refer to the previous one twice.
    fn doubled(levels: usize) -> String {
        let mut text = "a0: &a0 {type: string}\n".to_owned();
        for level in 1..=levels {
            let before = level - 1;
            text.push_str(&format!("a{level}: &a{level} {{a: *a{before}, b: *a{before}}}\n"));
        }
        text
    }

    #[test]
    fn lines_of_secrets_are_not_quoted() {
        let describe = |kind: &str, value: &str| {
            let text = format!("apiVersion: v1\nkind: {kind}\nstringData:\n\ttoken: {value}\n");
            let error = parse::<Value>(&text).unwrap_err();
            describe_failure("a.yaml", &text, &error).to_string()
        };
        assert!(describe("ConfigMap", "s3cr3t").contains("s3cr3t"));
        for kind in ["Secret", "\"Secret\"", "SecretList # all", "Config"] {
            let said = describe(kind, "s3cr3t");
            assert!(
                said.starts_with("cannot parse a.yaml:4:") && !said.contains("s3cr3t"),
                "{said}"
            );
        }
        assert!(may_hold_credentials("{\"kind\": \"Secret\", \"data\": {"));
        assert!(!may_hold_credentials("kind: SecretStore\n"));
    }

    #[test]
    fn long_comments_are_skipped() {
        let comments = "# - source: {kind: Service}\n#   targets: []\n\n".repeat(200);
        for indentation in ["", " "] {
            let item = format!("\n{indentation}- ");
            let text =
                format!("{comments}resources:\n{comments}{item}../crd\n{comments}{item}../rbac\n{comments}");
            let read: Value = parse(&text).expect("YAML");
            assert_eq!(read["resources"], serde_json::json!(["../crd", "../rbac"]));
            assert_eq!(parse_values(&text).expect("YAML"), [read]);
        }
    }

    #[test]
    fn long_streams_and_lists_are_read() {
        let stream = "--- {a: 1}\n".repeat(5000);
        assert_eq!(
            parse_values(&stream).map(|documents| documents.len()).ok(),
            Some(5000)
        );
        let list = format!("items: [{}]\n", "{a: [1, 2]}, ".repeat(100_000));
        let value = parse_value(&list).expect("YAML");
        assert_eq!(value["items"].as_array().map(Vec::len), Some(100_000));
    }

    #[test]
    fn repetition_by_aliases_is_limited() {
        assert!(parse::<Value>(&doubled(6)).is_ok());
        for levels in [12, 24] {
            assert!(parse::<Value>(&doubled(levels)).is_err());
            assert!(parse_values(&doubled(levels)).is_err());
        }
        let long = "x".repeat(100_000);
        let repeated = |count: usize| format!("a: &a {long}\nb: [{}]\n", vec!["*a"; count].join(", "));
        assert!(parse::<Value>(&repeated(9)).is_ok());
        assert!(parse::<Value>(&repeated(90)).is_err());
    }

    #[test]
    fn quoted_scalars_may_continue_left_of_their_key() {
        let check = |text: &str, expected: &str| {
            let found = parse::<Value>(text).map(|value| value.to_string());
            assert_eq!(found.ok().as_deref(), Some(expected), "{text}");
        };
        check(
            "a:\n    rule: 'x ||\n  y\n\n z'\n    b: 1\n",
            r#"{"a":{"b":1,"rule":"x || y\nz"}}"#,
        );
        check(
            "a:\n    - rule: \"x ||\n  y\\\n  z\"\n",
            r#"{"a":[{"rule":"x || yz"}]}"#,
        );
        check("a:\n  rule: 'x\ny\n  z'\n", r#"{"a":{"rule":"x y z"}}"#);
        let stream = "a:\n  b: 'x\n y'\n---\nc: 'x\ny'\n";
        assert_eq!(parse_values(stream).map(|all| all.len()).ok(), Some(2));
        // A plain scalar ends here, in Go as well.
        assert!(parse::<Value>("a:\n    rule: x ||\n  y\n").is_err());
        assert!(parse::<Value>("a:\n  rule: 'x\n---\ny'\n").is_err());
    }

    #[test]
    fn last_block_scalar_ends_with_the_text() {
        for (text, expected) in [
            ("a:\n  b: |\n    x\n    y", r#"{"a":{"b":"x\ny"}}"#),
            ("a:\n  b: |\n    x\n    y\n", r#"{"a":{"b":"x\ny\n"}}"#),
            ("a: |+\n  x\n\n  y", r#"{"a":"x\n\ny"}"#),
            ("a: >2 # folded\n  x\n  y", r#"{"a":"x y"}"#),
            ("- a: |\n    x\n- !!str |\n  y", r#"[{"a":"x\n"},"y"]"#),
            // The inner lines are plain text, as is the indicator in a plain scalar.
            ("a: |\n  b: |\n    x", r#"{"a":"b: |\n  x"}"#),
            ("a: b |\n  x", r#"{"a":"b | x"}"#),
            ("a: |\n  x\nb: 1", r#"{"a":"x\n","b":1}"#),
            ("a: |-\n  x", r#"{"a":"x"}"#),
        ] {
            let found = parse::<Value>(text).map(|value| value.to_string());
            assert_eq!(found.ok().as_deref(), Some(expected), "{text}");
            let nodes = parse_nodes(text).map(|nodes| nodes[0].value().to_string());
            assert_eq!(nodes.ok().as_deref(), Some(expected), "{text}");
        }
    }

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
