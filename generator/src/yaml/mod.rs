//! The one YAML printer: the style of Go's `sigs.k8s.io/yaml`, which controller-gen and kubectl print with.
//!
//! Keys are sorted as Go sorts them, lists are not indented under their key, text of several lines is a `|-`
//! block, long plain text is folded at 80 columns, and whatever a YAML 1.1 reader would take for a boolean, a
//! number, a null or a date is quoted. `tests/yaml.rs` holds it to recorded Go output.
//!
//! It differs from Go on purpose in three places: the keys `<<` and `=`, which Go writes plain and then cannot
//! read back, are quoted; so are texts that other YAML 1.1 readers take for a number or a moment, or stumble over, as
//! `2001-01-01T00:00:00` and `2001-02-30`; and Unicode's own line separators are escaped.
//!
//! [`to_string`] prints a JSON value. What is large is printed from where it is, with `write`: each value is a
//! `Node` that is filled once, and nothing is copied on the way.

mod number;
mod order;
mod scalar;

use serde_json::{Number, Value};

pub(crate) use order::sort_keys;
use scalar::{Place, push_spaces};

/// Writes one document, without the `---` line.
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    write_document(&mut out).value(value);
    out
}

/// The one value of a document that is added to `out`.
pub(crate) fn write_document(out: &mut String) -> Node<'_> {
    Node {
        out,
        indent: 0,
        after: After::Nothing,
    }
}

/// The position of a value in the output. Each of its methods writes the value and ends the line.
pub(crate) struct Node<'o> {
    out: &'o mut String,
    /// The column of what the value belongs to.
    indent: usize,
    after: After,
}

/// The text before a value.
#[derive(Clone, Copy)]
enum After {
    /// It begins the document.
    Nothing,
    /// `key:`.
    Key,
    /// `-`, or the `:` after a key that has a line of its own: the value goes on in the same line.
    Indicator,
}

impl Node<'_> {
    /// Any JSON value; the keys of maps are sorted.
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

    /// A string that needs no quotes.
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

    /// A map; `{}` when nothing is put into it.
    pub(crate) fn map(self, fill: impl FnOnce(&mut Entries<'_>)) {
        let (indent, inline) = match self.after {
            After::Nothing => (self.indent, false),
            After::Key => (self.indent + 2, false),
            After::Indicator => (self.indent + 2, true),
        };
        self.collection("{}", |out| fill(&mut Entries { out, indent, inline }));
    }

    /// A list; `[]` when nothing is put into it.
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

/// A map being written. Entries stand in the order in which they are put: the caller's order is Go's.
pub(crate) struct Entries<'o> {
    out: &'o mut String,
    indent: usize,
    /// The first key continues a line that an indicator began.
    inline: bool,
}

impl Entries<'_> {
    /// The value of the next key, which can be any text.
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

    /// The value of the next key, which needs no quotes.
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

/// A list being written.
pub(crate) struct Items<'o> {
    out: &'o mut String,
    indent: usize,
    inline: bool,
}

impl Items<'_> {
    /// The next item.
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
