//! Guesses the kind of a JSON value from the spelling of the type.
//!
//! This allows errors to be reported early, while the token is known. A user's own type `String`
//! would be mistaken for std's. Uncertain cases are checked in the final schema.

use rbuilder_reader::{TypeKind, TypeRef};

/// The JSON representation of a type in serde.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    List(Box<Kind>),
    Map(Box<Kind>),
    Object,
    Unknown,
}

impl Kind {
    /// Returns the kind of a type, looking through `Option`, `Box`, `Arc` and `Rc`.
    pub(crate) fn of(ty: &TypeRef) -> Kind {
        match &ty.kind {
            TypeKind::Array(item, _) => Kind::List(Box::new(Kind::of(item))),
            TypeKind::Path(segments, args) => of_path(segments, args),
            TypeKind::Tuple(_) | TypeKind::Other(_) => Kind::Unknown,
        }
    }

    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Kind::Text => "a string",
            Kind::Integer => "an integer",
            Kind::Number => "a number",
            Kind::Boolean => "a boolean",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a map",
            Kind::Object => "a struct",
            Kind::Unknown => "another value",
        }
    }
}

fn of_path(segments: &[String], args: &[TypeRef]) -> Kind {
    let nth = |position: usize| args.get(position).map_or(Kind::Unknown, Kind::of);
    match segments.last().map_or("", String::as_str) {
        "String" | "str" | "char" => Kind::Text,
        "i8" | "i16" | "i32" | "i64" | "isize" | "u8" | "u16" | "u32" | "u64" | "usize" => Kind::Integer,
        "f32" | "f64" => Kind::Number,
        "bool" => Kind::Boolean,
        "Option" | "Box" | "Arc" | "Rc" => nth(0),
        "Vec" | "VecDeque" | "HashSet" | "BTreeSet" => Kind::List(Box::new(nth(0))),
        "HashMap" | "BTreeMap" => Kind::Map(Box::new(nth(1))),
        _ => Kind::Unknown,
    }
}

pub(crate) fn is_option(ty: &TypeRef) -> bool {
    // Names can't be resolved here, so go by the spelling.
    ends_with_one_of(ty, &["Option"])
}

/// Returns true if serde collects all remaining fields in the flattened type, judging by its name.
pub(crate) fn takes_rest(ty: &TypeRef) -> bool {
    ends_with_one_of(ty, &["BTreeMap", "HashMap", "IndexMap", "Map", "Value"])
}

fn ends_with_one_of(ty: &TypeRef, names: &[&str]) -> bool {
    match &ty.kind {
        TypeKind::Path(segments, _) => segments.last().is_some_and(|last| names.contains(&last.as_ref())),
        _ => false,
    }
}
