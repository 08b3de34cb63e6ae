//! What a type certainly is on the wire, by its spelling alone.
//!
//! This is for early complaints at the token. A type that somebody else named `String` is not seen through;
//! whatever is not certain is left to the checks on the finished schema.

use syn::{GenericArgument, PathArguments, Type};

/// What a type is on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    List(Box<Kind>),
    Map(Box<Kind>),
    /// A struct with named fields.
    Object,
    Unknown,
}

impl Kind {
    /// The kind of a type as written; `Option`, `Box`, `Arc` and `Rc` are what they hold.
    pub(crate) fn of(ty: &Type) -> Kind {
        match ty {
            Type::Paren(inner) => Kind::of(&inner.elem),
            Type::Group(inner) => Kind::of(&inner.elem),
            Type::Reference(inner) => Kind::of(&inner.elem),
            Type::Array(inner) => Kind::List(Box::new(Kind::of(&inner.elem))),
            Type::Slice(inner) => Kind::List(Box::new(Kind::of(&inner.elem))),
            Type::Path(path) if path.qself.is_none() => of_path(&path.path),
            _ => Kind::Unknown,
        }
    }

    /// How a message calls it.
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Integer => "a whole number",
            Kind::Number => "a number",
            Kind::Boolean => "`true` or `false`",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a map",
            Kind::Object => "a struct",
            Kind::Unknown => "something else",
        }
    }
}

fn of_path(path: &syn::Path) -> Kind {
    let Some(last) = path.segments.last() else {
        return Kind::Unknown;
    };
    let nth = |position| nth_argument(&last.arguments, position).map_or(Kind::Unknown, Kind::of);
    match last.ident.to_string().as_str() {
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

fn nth_argument(arguments: &PathArguments, position: usize) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else {
        return None;
    };
    let mut types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    types.nth(position)
}

/// Whether a type is written as an `Option`.
pub(crate) fn is_option(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| last.ident == "Option"),
        Type::Group(inner) => is_option(&inner.elem),
        Type::Paren(inner) => is_option(&inner.elem),
        _ => false,
    }
}
