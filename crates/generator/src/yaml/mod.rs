//! Prints YAML like Go's `sigs.k8s.io/yaml`, which controller-gen and kubectl use.
//!
//! Keys are sorted as in Go, lists are not indented below their key, text with line breaks becomes
//! a `|-` block, and long plain text is folded at 80 columns. Text that YAML 1.1 parsers read as a
//! boolean, number, null or date is quoted. `tests/yaml.rs` compares the output with recorded Go
//! output.
//!
//! There are three deliberate differences from Go:
//!
//! - The keys `<<` and `=` are quoted. Go writes them plain, and then cannot parse them.
//! - Text that other YAML 1.1 parsers reject or read as a number or timestamp is quoted:
//!   `2001-01-01T00:00:00` and `2001-02-30`.
//! - Unicode line separators are escaped.
//!
//! [`to_string`] prints a JSON value. Large documents use `write_document` instead, where each
//! value is a `Node` that is filled once, so that nothing has to be copied.

mod number;
mod order;
mod scalar;

use serde_json::{Number, Value};

pub(crate) use order::sort_keys;
use scalar::{Place, push_spaces};

/// Prints a single document, without a `---` line.
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    write_document(&mut out).value(value);
    out
}

pub(crate) fn write_document(out: &mut String) -> Node<'_> {
    Node {
        out,
        indent: 0,
        after: After::Nothing,
    }
}

/// The position of a value in the output. Each method writes the value and ends the line.
pub(crate) struct Node<'o> {
    out: &'o mut String,
    indent: usize,
    after: After,
}

#[derive(Clone, Copy)]
enum After {
    /// Nothing: the value starts the document.
    Nothing,
    /// `key:`
    Key,
    /// `-`, or the `:` on the line after a `? key`. The value starts on the same line.
    Indicator,
}

impl Node<'_> {
    /// Writes any JSON value. The keys of objects are sorted.
    pub(crate) fn value(self, value: &Value) {
        match value {
            Value::Null => self.plain("null"),
            Value::Bool(flag) => self.flag(*flag),
            Value::Number(number) => self.number(number),
            Value::String(text) => self.text(text),
            Value::Array(list) => self.list(|items| list.iter().for_each(|item| items.item().value(item))),
            Value::Object(map) => self.map(|entries| {
                let mut keys: Vec<(&str, &Value)> =
                    map.iter().map(|(key, value)| (key.as_str(), value)).collect();
                sort_keys(&mut keys);
                keys.into_iter()
                    .for_each(|(key, value)| entries.key(key).value(value));
            }),
        }
    }

    pub(crate) fn text(self, text: &str) {
        self.leaf(|out, indent| scalar::write_scalar(out, text, Place::Value { indent }));
    }

    pub(crate) fn word(self, word: &'static str) {
        debug_assert!(scalar::is_plain(word), "{word}");
        self.plain(word);
    }

    pub(crate) fn flag(self, flag: bool) {
        self.plain(if flag { "true" } else { "false" });
    }

    pub(crate) fn number(self, number: &Number) {
        self.leaf(|out, _| number::write_number(out, number));
    }

    pub(crate) fn count(self, count: u64) {
        self.leaf(|out, _| number::write_count(out, count));
    }

    /// Writes `{}` if `fill` adds nothing.
    pub(crate) fn map(self, fill: impl FnOnce(&mut Entries<'_>)) {
        let (indent, inline) = match self.after {
            After::Nothing => (self.indent, false),
            After::Key => (self.indent + 2, false),
            After::Indicator => (self.indent + 2, true),
        };
        self.collection("{}", |out| fill(&mut Entries { out, indent, inline }));
    }

    /// Writes `[]` if `fill` adds nothing.
    pub(crate) fn list(self, fill: impl FnOnce(&mut Items<'_>)) {
        let (indent, inline) = match self.after {
            After::Nothing | After::Key => (self.indent, false),
            After::Indicator => (self.indent + 2, true),
        };
        self.collection("[]", |out| fill(&mut Items { out, indent, inline }));
    }

    fn collection(self, empty: &str, fill: impl FnOnce(&mut String)) {
        let before = self.out.len();
        match self.after {
            After::Nothing => {}
            After::Key => self.out.push('\n'),
            After::Indicator => self.out.push(' '),
        }
        let start = self.out.len();
        fill(self.out);
        if self.out.len() == start {
            self.out.truncate(before);
            self.plain(empty);
        }
    }

    fn plain(self, text: &str) {
        self.leaf(|out, _| out.push_str(text));
    }

    fn leaf(self, write: impl FnOnce(&mut String, usize)) {
        if !matches!(self.after, After::Nothing) {
            self.out.push(' ');
        }
        write(self.out, self.indent + 2);
        self.out.push('\n');
    }
}

/// A map being written. The caller adds the entries in Go's order.
pub(crate) struct Entries<'o> {
    out: &'o mut String,
    indent: usize,
    /// The first key goes on the line of an indicator.
    inline: bool,
}

impl Entries<'_> {
    pub(crate) fn key(&mut self, key: &str) -> Node<'_> {
        self.begin();
        if scalar::is_plain_word(key) {
            self.out.push_str(key);
            self.out.push(':');
            return self.node(After::Key);
        }
        if scalar::is_simple_key(key) {
            scalar::write_scalar(self.out, key, Place::Key);
            self.out.push(':');
            return self.node(After::Key);
        }
        self.out.push_str("? ");
        let indent = self.indent + 2;
        scalar::write_scalar(self.out, key, Place::Value { indent });
        self.out.push('\n');
        push_spaces(self.out, self.indent);
        self.out.push(':');
        self.node(After::Indicator)
    }

    /// Like [`Entries::key`], for a key known not to need quotes.
    pub(crate) fn word(&mut self, key: &'static str) -> Node<'_> {
        debug_assert!(scalar::is_plain(key), "{key}");
        self.begin();
        self.out.push_str(key);
        self.out.push(':');
        self.node(After::Key)
    }

    fn begin(&mut self) {
        if !std::mem::take(&mut self.inline) {
            push_spaces(self.out, self.indent);
        }
    }

    fn node(&mut self, after: After) -> Node<'_> {
        Node {
            out: self.out,
            indent: self.indent,
            after,
        }
    }
}

pub(crate) struct Items<'o> {
    out: &'o mut String,
    indent: usize,
    inline: bool,
}

impl Items<'_> {
    pub(crate) fn item(&mut self) -> Node<'_> {
        if !std::mem::take(&mut self.inline) {
            push_spaces(self.out, self.indent);
        }
        self.out.push('-');
        Node {
            out: self.out,
            indent: self.indent,
            after: After::Indicator,
        }
    }
}
