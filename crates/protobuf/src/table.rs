//! The fields of messages, parsed from `table.txt`, which `cargo xtask protobuf` generates. Its
//! first lines explain the format.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::special::Special;

const TEXT: &str = include_str!("table.txt");

/// The pseudo package of the messages whose JSON is not an object.
const SPECIAL: &str = "special";

/// The version of kinds that each version has, e.g. `DeleteOptions`.
const ANY_VERSION: &str = "*";

#[derive(Default)]
pub(crate) struct Table {
    kinds: HashMap<(&'static str, &'static str), usize>,
    messages: Vec<Vec<Field>>,
}

pub(crate) struct Field {
    pub(crate) number: u32,
    /// The name in JSON.
    pub(crate) name: &'static str,
    /// Go omits the field if it is false, zero, empty or absent.
    pub(crate) omits_empty: bool,
    /// Go omits the field if it is the zero of its type. Such fields are times, which are null then.
    pub(crate) omits_zero: bool,
    /// In JSON, the fields of the message are fields of the parent.
    pub(crate) is_inline: bool,
    pub(crate) shape: Shape,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    Single,
    /// A single value that can be absent.
    Pointer,
    List,
    /// The keys are strings.
    Map,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Bool,
    Int32,
    Int64,
    Double,
    String,
    Bytes,
    /// JSON as bytes.
    Raw,
    /// The index of a message.
    Message(usize),
    /// A message with other JSON than its fields.
    Special(Special, usize),
}

/// Returns the table, which the first call parses.
pub(crate) fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| parse(TEXT).unwrap_or_default())
}

impl Table {
    pub(crate) fn fields(&self, message: usize) -> &[Field] {
        self.messages.get(message).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn message_of(&self, api_version: &str, kind: &str) -> Option<usize> {
        // The keys have static lifetimes, and a shorter one is fine for a lookup.
        let kinds: &HashMap<(&str, &str), usize> = &self.kinds;
        let own = kinds.get(&(api_version, kind));
        let any = || {
            kinds
                .get(&(ANY_VERSION, kind))
                .filter(|_| !api_version.is_empty())
        };
        own.or_else(any).copied()
    }

    /// Returns the kinds with their versions, in no order.
    #[cfg(test)]
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.kinds.keys().copied()
    }
}

/// Returns `None` if the text is damaged. A test parses it.
fn parse(text: &'static str) -> Option<Table> {
    let names = number_messages(text)?;
    let mut table = Table::default();
    let mut package = "";
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (first, rest) = line.split_once(' ')?;
        match first {
            "kinds" => add_kinds(&mut table, &names, rest)?,
            "package" => package = rest,
            "message" => table.messages.push(Vec::new()),
            number => {
                let field = parse_field(number, rest, package, &names)?;
                table.messages.last_mut()?.push(field);
            }
        }
    }
    Some(table)
}

type Names = HashMap<(&'static str, &'static str), usize>;

/// Numbers messages by package and name, because fields refer to messages that follow.
fn number_messages(text: &'static str) -> Option<Names> {
    let mut names = Names::new();
    let mut package = "";
    for line in text.lines() {
        match line.split_once(' ')? {
            ("package", name) => package = name,
            ("message", name) => {
                names.insert((package, name), names.len());
            }
            _ => {}
        }
    }
    Some(names)
}

/// Adds a line of kinds. The message of `kind=package.Name` is in another package.
fn add_kinds(table: &mut Table, names: &Names, line: &'static str) -> Option<()> {
    let mut words = line.split(' ');
    let (version, package) = (words.next()?, words.next()?);
    for word in words {
        let (kind, message) = match word.split_once('=') {
            Some((kind, message)) => (kind, message.rsplit_once('.')?),
            None => (word, (package, word)),
        };
        table.kinds.insert((version, kind), *names.get(&message)?);
    }
    Some(())
}

fn parse_field(number: &str, rest: &'static str, package: &'static str, names: &Names) -> Option<Field> {
    let (flagged, ty) = rest.split_once(' ')?;
    let name = flagged.trim_end_matches(['?', '~', '<']);
    let flags = &flagged[name.len()..];
    let (shape, ty) = match ty {
        _ if ty.starts_with('*') => (Shape::Pointer, &ty[1..]),
        _ if ty.starts_with("[]") => (Shape::List, &ty[2..]),
        _ if ty.starts_with("{}") => (Shape::Map, &ty[2..]),
        _ => (Shape::Single, ty),
    };
    Some(Field {
        number: number.parse().ok()?,
        name,
        omits_empty: flags.contains('?'),
        omits_zero: flags.contains('~'),
        is_inline: flags.contains('<'),
        shape,
        kind: parse_kind(ty, package, names)?,
    })
}

fn parse_kind(name: &'static str, package: &'static str, names: &Names) -> Option<Kind> {
    Some(match name {
        "bool" => Kind::Bool,
        "int32" => Kind::Int32,
        "int64" => Kind::Int64,
        "double" => Kind::Double,
        "string" => Kind::String,
        "bytes" => Kind::Bytes,
        "raw" => Kind::Raw,
        _ => match name.rsplit_once('.') {
            Some(("", name)) => Kind::Message(*names.get(&(package, name))?),
            Some(path) => Kind::Message(*names.get(&path)?),
            None => Kind::Special(Special::from_name(name)?, *names.get(&(SPECIAL, name))?),
        },
    })
}
