//! serde's attributes, as far as they decide the wire shape.
//!
//! Keys that do not, and keys that serde does not know, are passed over: serde's own derive judges those.

use rbuilder_reader::{Attribute, Span};
use rbuilder_schema::Tagging;

use crate::args::{self, Arg, ArgValue, ReadArg as _};
use crate::names::Case;
use crate::{Diagnostic, Session};

/// What serde uses when it reads, and when it writes; and where that is said.
#[derive(Clone, Debug)]
pub(crate) struct Directions<T> {
    pub(crate) read: Option<T>,
    pub(crate) written: Option<T>,
    pub(crate) span: Option<Span>,
}

impl<T> Default for Directions<T> {
    fn default() -> Self {
        Directions {
            read: None,
            written: None,
            span: None,
        }
    }
}

/// What `#[serde(…)]` on a container says.
#[derive(Default)]
pub(crate) struct ContainerAttrs {
    rename: Directions<String>,
    pub(crate) rename_all: Directions<Case>,
    pub(crate) rename_all_fields: Directions<Case>,
    /// All fields have a default.
    pub(crate) default: bool,
    pub(crate) transparent: bool,
    tag: Option<String>,
    content: Option<String>,
    untagged: bool,
    /// `from`, `try_from` or `into`: the type that is on the wire in place of this one.
    pub(crate) stands_for: Option<(String, Span)>,
    /// `deny_unknown_fields`.
    pub(crate) denies_unknown: Option<Span>,
    /// Whether that is the type read, where only one way has another type.
    pub(crate) is_one_way: Option<bool>,
    /// schemars' own `default`, where serde has none.
    pub(crate) shown_default: Option<Span>,
    /// What schemars is told and serde is not.
    pub(crate) foreign: Foreign,
}

impl ContainerAttrs {
    /// The representation of an enum.
    pub(crate) fn tagging(&self) -> Tagging {
        match (&self.tag, &self.content) {
            _ if self.untagged => Tagging::Untagged,
            (Some(tag), Some(content)) => Tagging::Adjacent(tag.clone(), content.clone()),
            (Some(tag), None) => Tagging::Internal(tag.clone()),
            _ => Tagging::External,
        }
    }

    /// `tag` on a struct: the field that serde writes beside those of the struct, and the name in it.
    pub(crate) fn struct_tag(&self, ident: &str) -> Option<(String, String)> {
        let name = self.rename.written.as_deref().unwrap_or(ident);
        self.tag.clone().map(|tag| (tag, name.to_owned()))
    }
}

/// What `#[serde(…)]` on a field says.
#[derive(Default)]
pub(crate) struct FieldAttrs {
    pub(crate) rename: Directions<String>,
    pub(crate) default: bool,
    /// schemars' own `default`, where serde has none: serde reads no object without the field.
    pub(crate) shown_default: Option<Span>,
    /// Whether that is the type's own default, `null` for an `Option`: it names no function.
    pub(crate) shows_type_default: bool,
    pub(crate) skip: bool,
    /// `skip_deserializing`: written, never read.
    pub(crate) output_only: bool,
    /// `skip_serializing`: read, never written.
    pub(crate) input_only: Option<Span>,
    /// `skip_serializing_if`: left out where this function says so.
    pub(crate) skip_if: Option<(String, Span)>,
    pub(crate) flatten: bool,
    /// `with`, `serialize_with` or `deserialize_with`: the Rust type does not say what is on the wire.
    pub(crate) opaque: Option<Span>,
    /// `with` or `deserialize_with`: serde asks the function also where the type is an `Option`, and only of a field that
    /// is there.
    pub(crate) read_by_function: bool,
    /// What schemars is told and serde is not.
    pub(crate) foreign: Foreign,
}

/// What `#[schemars(…)]` says of the form on the wire that `#[serde(…)]` does not say: a form that serde does not have.
#[derive(Default)]
pub(crate) struct Foreign {
    /// The name that serde has.
    rename: Option<Directions<String>>,
    /// `skip`: the schema is without it.
    pub(crate) skip: Option<Span>,
    /// Each other key, and where it is.
    pub(crate) keys: Vec<(String, Span)>,
}

impl Foreign {
    /// Whether schemars has a name of its own.
    pub(crate) fn is_renamed(&self) -> bool {
        self.rename.is_some()
    }

    /// Takes note of a key of schemars' that is none of serde's.
    fn note(&mut self, arg: &Arg<'_>, serde: &[Arg<'_>]) {
        const KEYS: &[&str] = &[
            "content",
            "flatten",
            "from",
            "into",
            "other",
            "rename_all",
            "rename_all_fields",
            "tag",
            "transparent",
            "try_from",
            "untagged",
        ];
        let value = |arg: &Arg<'_>| arg.literal().map(|literal| literal.value.clone());
        let is_known = |known: &Arg<'_>| known.name == arg.name && value(known) == value(arg);
        if KEYS.contains(&arg.name) && !serde.iter().any(is_known) {
            self.keys.push((arg.name.to_owned(), arg.span));
        }
    }
}

/// What `#[serde(…)]` on a variant says.
#[derive(Default)]
pub(crate) struct VariantAttrs {
    pub(crate) rename: Directions<String>,
    pub(crate) rename_all: Directions<Case>,
    pub(crate) skip: bool,
    /// `skip_deserializing`: written, never read.
    pub(crate) output_only: Option<Span>,
    /// `skip_serializing`: read, never written.
    pub(crate) input_only: Option<Span>,
    pub(crate) other: bool,
    pub(crate) untagged: bool,
    pub(crate) opaque: Option<Span>,
    /// What schemars is told and serde is not.
    pub(crate) foreign: Foreign,
}

/// Reads the attributes of a container.
pub(crate) fn container(attrs: &[Attribute<'_>], session: &mut Session) -> ContainerAttrs {
    let mut read = ContainerAttrs::default();
    let mut into = None;
    let serde = own_args(attrs, session);
    let schemars = schemars_args(attrs);
    for (arg, is_serde) in both(&serde, &schemars) {
        match arg.name {
            "rename" => read.rename = names(arg, session),
            "rename_all" => read.rename_all = cases(arg, session),
            "rename_all_fields" => read.rename_all_fields = cases(arg, session),
            "default" if is_serde => read.default = true,
            "default" => read.shown_default = Some(arg.span),
            "transparent" => read.transparent = true,
            "tag" => read.tag = arg.text(session),
            "content" => read.content = arg.text(session),
            "untagged" => read.untagged = true,
            "deny_unknown_fields" if is_serde => read.denies_unknown = Some(arg.span),
            "from" | "try_from" => read.stands_for = arg.text(session).map(|ty| (ty, arg.value_span())),
            "into" => into = arg.text(session).map(|ty| (ty, arg.value_span())),
            _ => {}
        }
        if !is_serde {
            read.foreign.note(arg, &serde);
        }
    }
    read.shown_default = read.shown_default.filter(|_| !read.default);
    if let (Some((from, _)), Some((into, at))) = (&read.stands_for, &into)
        && plain(from) != plain(into)
    {
        let message = format!("what is read differs from what is written: `{from}` and `{into}`");
        let help = "the schema is that of what is read; use one type for both";
        session.report(Diagnostic::warning(*at, message).help(help));
    }
    read.is_one_way = match (&read.stands_for, &into) {
        (Some(_), None) => Some(true),
        (None, Some(_)) => Some(false),
        _ => None,
    };
    // What is read counts; `into` alone says what is written.
    read.stands_for = read.stands_for.or(into);
    // schemars' `with` on a type: the schema of that one.
    let schemars = attrs.iter().filter(|attr| attr.is("schemars"));
    for arg in schemars.flat_map(|attr| args::of_attribute(attr, &mut Session::default())) {
        if arg.name == "with" {
            read.stands_for = arg.text(session).map(|ty| (ty, arg.value_span()));
            read.is_one_way = None;
        }
    }
    read
}

/// A type in a text, without blanks.
fn plain(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Reads the attributes of a field.
pub(crate) fn field(attrs: &[Attribute<'_>], session: &mut Session) -> FieldAttrs {
    let mut read = FieldAttrs::default();
    let serde = own_args(attrs, session);
    let schemars = schemars_args(attrs);
    for (arg, is_serde) in both(&serde, &schemars) {
        match arg.name {
            "rename" if is_serde => read.rename = names(arg, session),
            "rename" => {
                let shown = names(arg, session);
                let own = std::mem::replace(&mut read.rename, shown);
                read.foreign.rename.get_or_insert(own);
            }
            "default" if is_serde => read.default = true,
            "default" => {
                read.shown_default = Some(arg.span);
                read.shows_type_default = matches!(arg.value, ArgValue::Flag);
            }
            "skip" if is_serde => read.skip = true,
            "skip" => read.foreign.skip = Some(arg.span),
            "skip_serializing" => read.input_only = Some(arg.span),
            "skip_deserializing" => read.output_only = true,
            "skip_serializing_if" => read.skip_if = arg.text(session).map(|path| (path, arg.span)),
            "flatten" => read.flatten = true,
            "with" | "deserialize_with" => (read.opaque, read.read_by_function) = (Some(arg.span), true),
            "serialize_with" => read.opaque = Some(arg.span),
            _ => {}
        }
        if !is_serde {
            read.foreign.note(arg, &serde);
        }
    }
    // serde_with's macro makes a `with` of it, and a `default` where the type is an `Option`.
    let converted = attrs.iter().find(|attr| attr.last_segment() == "serde_as");
    read.opaque = read.opaque.or(converted.map(Attribute::span));
    read.skip |= read.input_only.is_some() && read.output_only;
    read.foreign.skip = read.foreign.skip.filter(|_| !read.skip);
    if read.default || read.skip {
        read.shown_default = None;
    }
    read
}

/// Reads the attributes of a variant.
pub(crate) fn variant(attrs: &[Attribute<'_>], session: &mut Session) -> VariantAttrs {
    let mut read = VariantAttrs::default();
    let serde = own_args(attrs, session);
    let schemars = schemars_args(attrs);
    for (arg, is_serde) in both(&serde, &schemars) {
        match arg.name {
            "rename" if is_serde => read.rename = names(arg, session),
            "rename" => {
                let shown = names(arg, session);
                let own = std::mem::replace(&mut read.rename, shown);
                read.foreign.rename.get_or_insert(own);
            }
            "rename_all" => read.rename_all = cases(arg, session),
            "skip" => read.skip = true,
            "skip_serializing" => read.input_only = Some(arg.span),
            "skip_deserializing" => read.output_only = Some(arg.span),
            "other" => read.other = true,
            "untagged" => read.untagged = true,
            "with" | "serialize_with" | "deserialize_with" => read.opaque = Some(arg.span),
            _ => {}
        }
        if !is_serde {
            read.foreign.note(arg, &serde);
        }
    }
    read.skip |= read.output_only.is_some() && read.input_only.is_some();
    read
}

/// The arguments of `#[serde(…)]`.
fn own_args<'a>(attrs: &[Attribute<'a>], session: &mut Session) -> Vec<Arg<'a>> {
    let serde = attrs.iter().filter(|attr| attr.is("serde"));
    serde.flat_map(|attr| args::of_attribute(attr, session)).collect()
}

/// The arguments of `#[schemars(…)]` that serde knows as well, and what schemars is told counts for the schema. What is
/// wrong with them is said where the rest of them is read.
fn schemars_args<'a>(attrs: &[Attribute<'a>]) -> Vec<Arg<'a>> {
    let schemars = attrs.iter().filter(|attr| attr.is("schemars"));
    schemars
        .flat_map(|attr| args::of_attribute(attr, &mut Session::default()))
        .filter(|arg| !matches!(arg.name, "with" | "serialize_with"))
        .collect()
}

/// serde's arguments and then schemars', each with whether it is serde's.
fn both<'t, 'a>(serde: &'t [Arg<'a>], schemars: &'t [Arg<'a>]) -> impl Iterator<Item = (&'t Arg<'a>, bool)> {
    let own = serde.iter().map(|arg| (arg, true));
    own.chain(schemars.iter().map(|arg| (arg, false)))
}

/// `rename = "x"`, or `rename(serialize = "x", deserialize = "y")`.
fn names(arg: &Arg<'_>, session: &mut Session) -> Directions<String> {
    let span = Some(arg.span);
    let ArgValue::List(directions) = &arg.value else {
        let name = arg.text(session);
        return Directions {
            read: name.clone(),
            written: name,
            span,
        };
    };
    let mut direction = |name: &str| {
        let direction = directions.iter().find(|direction| direction.name == name);
        direction.and_then(|direction| direction.text(session))
    };
    Directions {
        read: direction("deserialize"),
        written: direction("serialize"),
        span,
    }
}

fn cases(arg: &Arg<'_>, session: &mut Session) -> Directions<Case> {
    let Directions { read, written, span } = names(arg, session);
    // An unknown rule is for serde to refuse.
    Directions {
        read: read.as_deref().and_then(Case::parse),
        written: written.as_deref().and_then(Case::parse),
        span,
    }
}

impl Directions<Case> {
    /// These rules; where they are silent, those of the container.
    pub(crate) fn or(self, other: &Directions<Case>) -> Directions<Case> {
        Directions {
            read: self.read.or(other.read),
            written: self.written.or(other.written),
            span: self.span.or(other.span),
        }
    }
}

/// The name that serde reads; a warning where it writes another one.
pub(crate) fn name(
    ident: &str,
    rename: &Directions<String>,
    rename_all: &Directions<Case>,
    by_case: fn(Case, &str) -> String,
    session: &mut Session,
) -> String {
    let read = pick(&rename.read, rename_all.read, ident, by_case);
    let written = pick(&rename.written, rename_all.written, ident, by_case);
    if read != written
        && let Some(span) = rename.span.or(rename_all.span)
    {
        let message = "the name that is read differs from the name that is written";
        let help = "the schema has the name that is read; use one name for both";
        session.report(Diagnostic::warning(span, message).help(help));
    }
    read
}

/// An error for each thing on the wire of which schemars is told another form than serde has: for a type whose reading
/// serde derives.
pub(crate) fn check_foreign(foreign: &Foreign, session: &mut Session) {
    for (key, at) in &foreign.keys {
        let message = format!("`{key}` tells schemars of a form that serde does not read");
        let help = format!("write `{key}` in `#[serde(…)]`: schemars reads that as well");
        session.error_help(*at, message, help);
    }
}

/// The same for the name of a field or variant, which is `shown` to schemars.
pub(crate) fn check_foreign_name(
    foreign: &Foreign,
    shown: &Directions<String>,
    ident: &str,
    rename_all: &Directions<Case>,
    by_case: fn(Case, &str) -> String,
    session: &mut Session,
) {
    let (Some(own), Some(at)) = (&foreign.rename, shown.span) else {
        return;
    };
    let (own, shown) = (
        pick(&own.read, rename_all.read, ident, by_case),
        shown.read.as_deref().unwrap_or(ident),
    );
    if own != shown {
        let message = format!("the schema has the name `{shown}`, and serde reads `{own}`");
        let help = format!("write `#[serde(rename = \"{shown}\")]`: schemars reads that as well");
        session.error_help(at, message, help);
    }
}

fn pick(name: &Option<String>, case: Option<Case>, ident: &str, by_case: fn(Case, &str) -> String) -> String {
    match (name, case) {
        (Some(name), _) => name.clone(),
        (None, Some(case)) => by_case(case, ident),
        (None, None) => ident.to_owned(),
    }
}
