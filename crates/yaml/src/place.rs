//! YAML with the place of each value, and places for the fields named in messages.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Location, Spanned};

use crate::resolve::{Plain, find_plain, resolve, resolve_key};

/// A value with its place in the text.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub content: Content,
    range: Range<usize>,
    /// Whether fields in the text may be repeated.
    may_repeat: bool,
}

/// The content of a node.
#[derive(Clone, Debug)]
pub enum Content {
    /// A string, a number, a boolean or null.
    Scalar(Value),
    /// The items of a list.
    List(Vec<Node>),
    /// The fields of an object.
    Fields(Fields),
}

/// The fields of an object, each with the place of its name.
#[derive(Clone, Debug)]
pub struct Fields {
    entries: Vec<Entry>,
    /// Indexes of the entries, sorted by name, since each of a flood of messages looks up a field.
    by_name: Vec<usize>,
}

/// A field: its name, the place of the name, and the value.
type Entry = (String, Range<usize>, Node);

impl Fields {
    pub(crate) fn new(entries: Vec<Entry>) -> Fields {
        let mut by_name: Vec<usize> = (0..entries.len()).collect();
        by_name.sort_by_key(|index| &entries[*index].0);
        Fields { entries, by_name }
    }

    pub(crate) fn has_duplicates(&self) -> bool {
        let name = |index: &usize| &self.entries[*index].0;
        self.by_name
            .windows(2)
            .any(|pair| name(&pair[0]) == name(&pair[1]))
    }

    fn find(&self, name: &str) -> Option<&Entry> {
        // Of several entries with this name, the last one wins.
        let end = self
            .by_name
            .partition_point(|index| self.entries[*index].0.as_str() <= name);
        let entry = &self.entries[self.by_name[end.checked_sub(1)?]];
        (entry.0 == name).then_some(entry)
    }
}

/// The key of objects to merge.
const MERGE: &str = "<<";

/// Maximum length, in bytes, of a name with dots that is looked up in the middle of a path. Label
/// keys have up to 317.
const LONGEST_NAME: usize = 512;

/// Returns the names that a path may start with, each with the rest of the path. Names may contain
/// dots, so the longest comes first.
pub fn first_names(path: &str) -> Vec<(&str, &str)> {
    let is_short = |(at, _): &(usize, &str)| *at <= LONGEST_NAME;
    let mut names: Vec<(&str, &str)> = match path.strip_prefix('[') {
        Some(bracketed) => {
            let ends = bracketed.match_indices(']').take_while(is_short);
            ends.map(|(at, _)| (&bracketed[..at], &bracketed[at + 1..]))
                .collect()
        }
        None => {
            let ends = path.match_indices(['.', '[']).take_while(is_short);
            let whole = std::iter::once((path, ""));
            ends.map(|(at, _)| path.split_at(at)).chain(whole).collect()
        }
    };
    names.reverse();
    names
}

/// The part of a field that a message refers to.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Name,
    Value,
}

impl Node {
    pub(crate) fn new(content: Content, range: Range<usize>, may_repeat: bool) -> Node {
        Node {
            content,
            range,
            may_repeat,
        }
    }

    /// Returns the value without places.
    pub fn value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(Node::value).collect(),
            Content::Fields(fields) => {
                let fields = fields.entries.iter();
                let fields = fields.map(|(name, _, node)| (name.clone(), node.value()));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }

    /// Returns a field.
    pub fn field(&self, name: &str) -> Option<&Node> {
        let Content::Fields(fields) = &self.content else {
            return None;
        };
        fields.find(name).map(|(_, _, node)| node)
    }

    /// Returns the path of each field that is repeated in its object, such as `spec.size`, and
    /// whether its last two values are equal. For such a field, [`value`](Node::value) uses the
    /// last value.
    pub fn find_duplicates(&self) -> Vec<(String, bool)> {
        let mut found = Duplicates::default();
        if self.may_repeat {
            self.add_duplicates("", &mut found);
        }
        found.list.into_iter().flatten().collect()
    }

    fn add_duplicates(&self, path: &str, found: &mut Duplicates) {
        match &self.content {
            Content::Scalar(_) => {}
            Content::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    item.add_duplicates(&format!("{path}[{index}]"), found);
                }
            }
            Content::Fields(fields) => {
                let mut last: BTreeMap<&str, &Node> = BTreeMap::new();
                for (name, _, node) in &fields.entries {
                    let below = match path.is_empty() {
                        true => name.clone(),
                        false => format!("{path}.{name}"),
                    };
                    node.add_duplicates(&below, found);
                    if let Some(before) = last.insert(name, node) {
                        found.add(below, before.value() == node.value());
                    }
                }
            }
        }
    }

    /// Returns each value that messages can refer to, with its place, in text order.
    #[cfg(test)]
    pub(crate) fn places(&self) -> Vec<(String, Range<usize>)> {
        let place = |node: &Node| (node.value().to_string(), node.range.clone());
        match &self.content {
            Content::Scalar(_) => vec![place(self)],
            Content::List(items) => items.iter().flat_map(Node::places).collect(),
            Content::Fields(fields) if fields.entries.is_empty() => vec![place(self)],
            Content::Fields(fields) => {
                let entries = fields.entries.iter();
                entries
                    .flat_map(|(name, range, node)| {
                        [vec![(name.clone(), range.clone())], node.places()].concat()
                    })
                    .collect()
            }
        }
    }

    /// Returns the items of a list printed by kubectl, or the object itself.
    pub fn into_objects(self) -> Vec<Node> {
        let is_list = match self.field("kind").map(|kind| &kind.content) {
            Some(Content::Scalar(Value::String(kind))) => kind.ends_with("List"),
            _ => false,
        };
        match self.field("items").map(|items| &items.content) {
            Some(Content::List(items)) if is_list => items.clone(),
            _ => vec![self],
        }
    }

    /// Returns the place of a field such as `spec.ports[0].name`, or of the nearest enclosing
    /// value.
    pub fn locate(&self, field: &str) -> Range<usize> {
        self.find(field, &self.start(), Part::Value)
    }

    /// Returns the place of a field's name, or of the nearest enclosing value.
    pub fn locate_name(&self, field: &str) -> Range<usize> {
        self.find(field, &self.start(), Part::Name)
    }

    /// Returns the place of the kind, for messages about the entire object.
    fn start(&self) -> Range<usize> {
        match &self.content {
            Content::Fields(fields) => {
                let kind = fields.find("kind").or(fields.entries.first());
                kind.map_or_else(|| self.range.clone(), |(_, _, node)| node.range.clone())
            }
            _ => self.range.clone(),
        }
    }

    fn find(&self, path: &str, nearest: &Range<usize>, part: Part) -> Range<usize> {
        let path = path.strip_prefix('.').unwrap_or(path);
        if path.is_empty() {
            return match self.content {
                Content::Scalar(_) if part == Part::Value => self.range.clone(),
                _ => nearest.clone(),
            };
        }
        match &self.content {
            Content::Scalar(_) => nearest.clone(),
            Content::List(items) => {
                let index = path.strip_prefix('[').and_then(|path| path.split_once(']'));
                let item =
                    index.and_then(|(index, rest)| Some((items.get(index.parse::<usize>().ok()?)?, rest)));
                item.map_or_else(
                    || nearest.clone(),
                    |(item, rest)| item.find(rest, &item.start_of_item(nearest), part),
                )
            }
            Content::Fields(fields) => {
                let mut fitting = first_names(path)
                    .into_iter()
                    .filter_map(|(name, rest)| Some((fields.find(name)?, rest)));
                match fitting.next() {
                    Some(((_, name, node), rest)) => node.find(rest, name, part),
                    None => nearest.clone(),
                }
            }
        }
    }

    fn start_of_item(&self, nearest: &Range<usize>) -> Range<usize> {
        match &self.content {
            Content::Scalar(_) => self.range.clone(),
            Content::List(_) => nearest.clone(),
            Content::Fields(fields) => fields
                .entries
                .first()
                .map_or_else(|| nearest.clone(), |(_, name, _)| name.clone()),
        }
    }
}

/// Repeated fields, in the order of their last occurrence.
#[derive(Default)]
struct Duplicates {
    /// The paths, and whether the last two values are equal. `None` if there is a later occurrence.
    list: Vec<Option<(String, bool)>>,
    positions: BTreeMap<String, usize>,
}

impl Duplicates {
    fn add(&mut self, path: String, is_same: bool) {
        if let Some(before) = self.positions.insert(path.clone(), self.list.len()) {
            self.list[before] = None;
        }
        self.list.push(Some((path, is_same)));
    }
}

/// Parses the non-empty documents of a stream. Fields may be repeated; see
/// [`Node::find_duplicates`].
///
/// # Errors
/// Returns an error if the text is not YAML.
pub fn parse_nodes(text: &str) -> Result<Vec<Node>, Error> {
    match crate::block::read(text) {
        Some(nodes) => Ok(nodes),
        None => parse_any_nodes(text),
    }
}

pub(crate) fn parse_any_nodes(text: &str) -> Result<Vec<Node>, Error> {
    let nodes = match read_nodes(text, DuplicateKeyPolicy::Error) {
        Err(error) if matches!(error.without_snippet(), Error::DuplicateMappingKey { .. }) => {
            read_nodes(text, DuplicateKeyPolicy::LastWins)?
        }
        nodes => nodes?,
    };
    let is_empty = |node: &Node| matches!(node.content, Content::Scalar(Value::Null));
    Ok(nodes.into_iter().filter(|node| !is_empty(node)).collect())
}

/// Parses the documents of a stream, including empty ones.
pub(crate) fn parse_any_values(text: &str) -> Result<Vec<Value>, Error> {
    let nodes = match read_nodes(text, DuplicateKeyPolicy::Error) {
        Err(error) if is_second_merge(&error) => {
            let nodes = read_nodes(text, DuplicateKeyPolicy::LastWins)?;
            match nodes.iter().all(|node| node.find_duplicates().is_empty()) {
                true => nodes,
                false => return Err(error),
            }
        }
        nodes => nodes?,
    };
    Ok(nodes.iter().map(Node::value).collect())
}

/// Whether the error is about several `<<` in an object, which kubectl's parser accepts.
fn is_second_merge(error: &Error) -> bool {
    matches!(error.without_snippet(), Error::DuplicateMappingKey { key: Some(key), .. } if key == MERGE)
}

fn read_nodes(text: &str, duplicates: DuplicateKeyPolicy) -> Result<Vec<Node>, Error> {
    crate::read_as_go(text, |text| {
        let mut options = crate::bounded(text);
        options.duplicate_keys = duplicates;
        options.non_finite_float_policy = NonFiniteFloatPolicy::AsString;
        // The parser would never let merged fields override others.
        options.merge_keys = MergeKeyPolicy::AsOrdinary;
        let documents: Vec<Spanned<Raw>> = serde_saphyr::from_multiple_with_options(text, options.clone())?;
        if let Some(version) = find_other_version(text) {
            return Err(serde::de::Error::custom(format!(
                "expected `%YAML 1.1`, which is the only version that kubectl reads, found `{version}`"
            )));
        }
        let reader = Reader {
            text,
            may_repeat: matches!(duplicates, DuplicateKeyPolicy::LastWins),
        };
        let nodes: Result<Vec<Node>, Refused> = documents
            .into_iter()
            .map(|document| reader.place(document))
            .collect();
        nodes.map_err(|refused| {
            // The parser's own error has a location.
            options.non_finite_float_policy = NonFiniteFloatPolicy::Reject;
            let again = serde_saphyr::from_multiple_with_options::<Value>(text, options);
            again.err().unwrap_or_else(|| serde::de::Error::custom(refused.0))
        })
    })
}

/// Finds a directive of another version than YAML 1.1 before the first document.
fn find_other_version(text: &str) -> Option<&str> {
    let is_before = |line: &&str| line.starts_with(['%', '#']) || line.trim().is_empty();
    let mut directives = text.lines().take_while(is_before);
    directives.find(|line| line.starts_with("%YAML") && line.split_whitespace().nth(1) != Some("1.1"))
}

/// Why kubectl rejects a scalar.
struct Refused(String);

/// Resolves scalars. The parser's own types are those of YAML 1.2, with some of YAML 1.1.
struct Reader<'a> {
    text: &'a str,
    may_repeat: bool,
}

impl Reader<'_> {
    fn place(&self, raw: Spanned<Raw>) -> Result<Node, Refused> {
        let content = match raw.value {
            Raw::Scalar(value) => Content::Scalar(match find_plain(self.text, range(raw.defined)) {
                Some(Plain::Untagged(text)) => {
                    resolve(text).ok_or_else(|| Refused(format!("JSON has no number `{text}`")))?
                }
                Some(Plain::Tagged(text)) => text.into(),
                None => value,
            }),
            Raw::List(items) => {
                let items = items.into_iter().map(|item| self.place(item));
                Content::List(items.collect::<Result<_, _>>()?)
            }
            Raw::Fields(fields) => Content::Fields(Fields::new(self.place_fields(fields)?)),
        };
        Ok(Node::new(content, range(raw.referenced), self.may_repeat))
    }

    /// Places the fields of an object, and those that it merges. Like in kubectl's parser, the last
    /// value of a field wins, whether it's merged or not.
    fn place_fields(&self, fields: Vec<(Spanned<String>, Spanned<Raw>)>) -> Result<Vec<Entry>, Refused> {
        let (mut entries, mut merged) = (Vec::new(), Vec::new());
        for (name, field) in fields {
            if self.is_merge(&name) {
                if matches!(field.value, Raw::List(_)) && field.defined != field.referenced {
                    return Err(not_mergeable());
                }
                merge(self.place(field)?, &mut entries)?;
                merged.resize(entries.len(), true);
            } else {
                entries.push(self.place_field(name, field)?);
                merged.push(false);
            }
        }
        if merged.contains(&true) {
            remove_overridden(&mut entries, &merged);
        }
        Ok(entries)
    }

    /// Whether a key is `<<`, and neither quoted nor a string by its tag.
    fn is_merge(&self, name: &Spanned<String>) -> bool {
        let place = range(name.defined);
        let is_plain = || self.text[place.start..].starts_with(MERGE);
        let is_tagged = || self.text[..place.start].trim_end().ends_with("!!str");
        name.value == MERGE && self.text.is_char_boundary(place.start) && is_plain() && !is_tagged()
    }

    fn place_field(&self, name: Spanned<String>, field: Spanned<Raw>) -> Result<Entry, Refused> {
        let resolved = match find_plain(self.text, range(name.defined)) {
            Some(Plain::Untagged(text)) => {
                let refused = || Refused(format!("expected a string as key, found `{text}`"));
                resolve_key(text).ok_or_else(refused)?
            }
            _ => name.value,
        };
        Ok((resolved, range(name.referenced), self.place(field)?))
    }
}

/// Adds the fields of an object, or of several in a list, of which the first takes precedence.
fn merge(merged: Node, entries: &mut Vec<Entry>) -> Result<(), Refused> {
    let add = |node: Node, entries: &mut Vec<Entry>| match node.content {
        Content::Fields(fields) => {
            entries.extend(fields.entries);
            Ok(())
        }
        _ => Err(not_mergeable()),
    };
    match merged.content {
        Content::List(items) => items.into_iter().rev().try_for_each(|item| add(item, entries)),
        content => add(Node { content, ..merged }, entries),
    }
}

fn not_mergeable() -> Refused {
    Refused("expected an object, or objects in a list, to merge (`<<`)".to_owned())
}

/// Removes fields that a merged one overrides, and merged fields that another one overrides. They aren't
/// repeated in the text.
fn remove_overridden(entries: &mut Vec<Entry>, merged: &[bool]) {
    let mut later: BTreeMap<String, bool> = BTreeMap::new();
    let mut is_kept: Vec<bool> = entries
        .iter()
        .zip(merged)
        .rev()
        .map(|((name, ..), is_merged)| {
            let is_kept = later
                .get(name)
                .is_none_or(|is_later_merged| !is_merged && !is_later_merged);
            if is_kept {
                later.insert(name.clone(), *is_merged);
            }
            is_kept
        })
        .collect();
    entries.retain(|_| is_kept.pop().unwrap_or(true));
}

fn range(location: Location) -> Range<usize> {
    let to_usize = |number: Option<u64>| usize::try_from(number.unwrap_or_default()).unwrap_or_default();
    let start = to_usize(location.span().byte_offset());
    start..start + to_usize(location.span().byte_len())
}

enum Raw {
    Scalar(Value),
    List(Vec<Spanned<Raw>>),
    Fields(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("YAML")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Raw::Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_at_the_start_of_a_path_are_longest_first() {
        for (path, expected) in [
            ("a", &[("a", "")][..]),
            (
                "a.b[0].c",
                &[
                    ("a.b[0].c", ""),
                    ("a.b[0]", ".c"),
                    ("a.b", "[0].c"),
                    ("a", ".b[0].c"),
                ],
            ),
            ("[a.b].c", &[("a.b", ".c")]),
            ("[a]b].c", &[("a]b", ".c"), ("a", "b].c")]),
            ("[a", &[]),
        ] {
            assert_eq!(first_names(path), expected, "{path}");
        }
        // A long path isn't split at each of its dots.
        assert!(first_names(&"a.".repeat(100_000)).len() < 1000);
    }

    #[test]
    fn repeated_fields_are_listed_once() {
        let text = "a: 1\nb: { x: 1, x: 2, x: 2 }\na: 1\nc: 1\nb: { x: 1, x: 2 }\na: 2\n";
        let found = parse_nodes(text).unwrap()[0].find_duplicates();
        let expected = [("b.x", false), ("b", true), ("a", false)];
        assert_eq!(found, expected.map(|(path, is_same)| (path.to_owned(), is_same)));
    }

    #[test]
    fn finds_places_of_fields() {
        let text = "# é\nkind: A\nspec:\n  ports:\n  - name: x\n    a.b/c: 1\n---\nkind: B\nmap: { \"k.l\": [1, 22] }\n";
        let nodes = parse_nodes(text).unwrap();
        let found = |node: usize, field: &str| &text[nodes[node].locate(field)];
        assert_eq!(found(0, "spec.ports[0].name"), "x");
        assert_eq!(found(0, "spec.ports[0].a.b/c"), "1");
        assert_eq!(found(0, "spec.ports[0].gone"), "name");
        assert_eq!(found(0, "spec.gone"), "spec");
        assert_eq!(found(0, "spec.ports"), "ports");
        assert_eq!(found(0, "<nil>"), "A");
        assert_eq!(&text[nodes[0].locate_name("spec.ports[0].name")], "name");
        assert_eq!(found(1, "map[k.l][1]"), "22");
        assert_eq!(found(1, "map.k.l[0]"), "1");
        assert_eq!(
            nodes[1].value(),
            serde_json::json!({ "kind": "B", "map": { "k.l": [1, 22] } })
        );
    }

    #[test]
    fn finds_fields_that_occur_more_than_once() {
        let text = "kind: A\nspec:\n  size: 1\n  ports: [{ a: 1, a: 1 }]\n  size: 2\nkind: A\n";
        let nodes = parse_nodes(text).unwrap();
        let expected = [("spec.ports[0].a", true), ("spec.size", false), ("kind", true)];
        let expected = expected.map(|(path, is_same)| (path.to_owned(), is_same));
        assert_eq!(nodes[0].find_duplicates(), expected);
        assert_eq!(nodes[0].value()["spec"]["size"], 2);
        assert_eq!(Some(nodes[0].locate_name("spec.size").start), text.rfind("size"));
        let merged = "a: &a { x: 1, z: 1 }\nb:\n  <<: *a\n  x: 2\n";
        let nodes = parse_nodes(merged).unwrap();
        assert_eq!(nodes[0].find_duplicates(), []);
        assert_eq!(nodes[0].value()["b"], serde_json::json!({ "x": 2, "z": 1 }));
        let both = "a: &a { x: 1 }\nb:\n  x: 2\n  <<: *a\nc: 1\nc: 2\n";
        let nodes = parse_nodes(both).unwrap();
        assert_eq!(nodes[0].find_duplicates(), [("c".to_owned(), false)]);
        assert_eq!(nodes[0].value()["b"], serde_json::json!({ "x": 1 }));
    }
}
