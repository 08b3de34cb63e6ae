//! Reads the serde attributes that affect the JSON of a type, and skips the others.
//!
//! serde's derive reports mistakes to the compiler. The generator runs without one, so it reports
//! unknown keys itself.

use rbuilder_reader::{Attribute, Span};
use rbuilder_schema::Tagging;

use crate::args::{self, Arg, ArgValue, ReadArg as _};
use crate::model::DefaultSource;
use crate::names::Case;
use crate::table::{ArgRow, Draft, find_row, read_args, report_duplicate};
use crate::{Diagnostic, Session, suggest};

/// Separate values for deserializing and serializing, and the location of the attribute.
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

impl<T> Directions<T> {
    fn add(&mut self, other: Directions<T>, arg: &Arg<'_>, session: &mut Session) {
        let is_duplicate =
            self.read.is_some() && other.read.is_some() || self.written.is_some() && other.written.is_some();
        if is_duplicate {
            report_duplicate(arg, session);
        }
        // There may be a `rename` for each direction.
        self.read = self.read.take().or(other.read);
        self.written = self.written.take().or(other.written);
        self.span = self.span.or(other.span);
    }
}

#[derive(Default)]
pub(crate) struct ContainerAttrs {
    rename: Directions<String>,
    pub(crate) rename_all: Directions<Case>,
    pub(crate) rename_all_fields: Directions<Case>,
    /// The source of absent fields in serde.
    pub(crate) default: Option<DefaultSource>,
    pub(crate) transparent: bool,
    tag: Option<String>,
    content: Option<String>,
    untagged: bool,
    /// The type in `from`, `try_from` or `into`, which determines the JSON.
    pub(crate) stands_for: Option<(String, Span)>,
    /// Kept separate until it's clear whether there is a `from`.
    into: Option<(String, Span)>,
    pub(crate) denies_unknown: Option<Span>,
    /// Set if only one direction is converted: true for `from`, false for `into`.
    pub(crate) is_one_way: Option<bool>,
    /// schemars' own `default`, which wins in the schema.
    pub(crate) shown_default: Option<DefaultSource>,
    /// Keys that exist in schemars but not in serde.
    pub(crate) foreign: Foreign,
}

impl ContainerAttrs {
    pub(crate) fn tagging(&self) -> Tagging {
        match (&self.tag, &self.content) {
            _ if self.untagged => Tagging::Untagged,
            (Some(tag), Some(content)) => Tagging::Adjacent(tag.clone(), content.clone()),
            (Some(tag), None) => Tagging::Internal(tag.clone()),
            _ => Tagging::External,
        }
    }

    /// Returns the field that `tag` adds to a struct, with the struct's name as its value.
    pub(crate) fn struct_tag(&self, ident: &str) -> Option<(String, String)> {
        let name = self.rename.written.as_deref().unwrap_or(ident);
        self.tag.clone().map(|tag| (tag, name.to_owned()))
    }
}

#[derive(Default)]
pub(crate) struct FieldAttrs {
    pub(crate) rename: Directions<String>,
    pub(crate) default: Option<DefaultSource>,
    /// schemars' own `default`, which wins in the schema. serde may still require the field.
    pub(crate) shown_default: Option<DefaultSource>,
    pub(crate) skip: bool,
    /// serde writes but doesn't read the field (`skip_deserializing`).
    pub(crate) output_only: bool,
    /// serde reads but doesn't write the field (`skip_serializing`).
    pub(crate) input_only: Option<Span>,
    pub(crate) skip_if: Option<(String, Span)>,
    pub(crate) flatten: bool,
    /// Set by `with`, `serialize_with` or `deserialize_with`: the Rust type does not determine the
    /// JSON.
    pub(crate) opaque: Option<Opaque>,
    /// Set by `with` and `deserialize_with`. serde only calls the function for a field that is
    /// present, and therefore requires even an `Option`.
    pub(crate) read_by_function: bool,
    pub(crate) foreign: Foreign,
}

/// Functions that serialize or deserialize a field instead of its type.
#[derive(Clone, Copy)]
pub(crate) struct Opaque {
    pub(crate) span: Span,
    /// False if there are only deserialization functions, so that the type determines the
    /// serialized JSON.
    pub(crate) writes: bool,
    /// Set by `with` and `serde_as`. For these, schemars requires a type with a schema, whereas it
    /// ignores single functions.
    pub(crate) is_module: bool,
}

impl Opaque {
    fn module(span: Span) -> Self {
        Opaque {
            span,
            writes: true,
            is_module: true,
        }
    }

    fn with_function(known: Option<Self>, span: Option<Span>, writes: bool) -> Option<Self> {
        let Some(span) = span else { return known };
        let first = known.unwrap_or(Opaque {
            span,
            writes,
            is_module: false,
        });
        Some(Opaque {
            writes: first.writes || writes,
            ..first
        })
    }
}

/// Keys of `#[schemars(…)]` that describe JSON which serde neither reads nor writes.
#[derive(Default)]
pub(crate) struct Foreign {
    /// serde's names, if schemars has different ones.
    rename: Option<Directions<String>>,
    /// schemars omits the field from the schema.
    pub(crate) skip: Option<Span>,
    pub(crate) keys: Vec<(String, Span)>,
}

impl Foreign {
    pub(crate) fn is_renamed(&self) -> bool {
        self.rename.is_some()
    }

    fn note(&mut self, arg: &Arg<'_>, serde: &[&Arg<'_>]) {
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
        // The same key with the same value in `#[serde(…)]` describes the same JSON.
        let is_known = |known: &&Arg<'_>| known.name == arg.name && value(known) == value(arg);
        if KEYS.contains(&arg.name) && !serde.iter().any(is_known) {
            self.keys.push((arg.name.to_owned(), arg.span));
        }
    }
}

#[derive(Default)]
pub(crate) struct VariantAttrs {
    pub(crate) rename: Directions<String>,
    pub(crate) rename_all: Directions<Case>,
    pub(crate) skip: bool,
    pub(crate) output_only: Option<Span>,
    pub(crate) input_only: Option<Span>,
    pub(crate) other: bool,
    pub(crate) untagged: bool,
    pub(crate) opaque: Option<Span>,
    pub(crate) foreign: Foreign,
}

/// serde's own derive checks all other keys.
const CONTAINER: &[ArgRow<ContainerAttrs>] = &[
    ArgRow::repeatable("rename", "Name of the type.", |arg, read, session| {
        read.rename.add(names(arg, session), arg, session);
    }),
    ArgRow::repeatable("rename_all", "Case of the names.", |arg, read, session| {
        read.rename_all.add(cases(arg, session), arg, session);
    }),
    ArgRow::repeatable(
        "rename_all_fields",
        "Case of the fields of variants.",
        |arg, read, session| {
            read.rename_all_fields.add(cases(arg, session), arg, session);
        },
    ),
    ArgRow::once("default", "Every field has a default.", |arg, read, session| {
        read.default = default_source(arg, session);
    }),
    ArgRow::once("transparent", "As its one field.", |_, read, _| {
        read.transparent = true
    }),
    ArgRow::once(
        "tag",
        "Field with the name of the variant.",
        |arg, read, session| {
            read.tag = arg.text(session);
        },
    ),
    ArgRow::once(
        "content",
        "Field with the content of the variant.",
        |arg, read, session| {
            read.content = arg.text(session);
        },
    ),
    ArgRow::once("untagged", "Without the name of the variant.", |_, read, _| {
        read.untagged = true
    }),
    ArgRow::once(
        "deny_unknown_fields",
        "Other fields are refused.",
        |arg, read, _| {
            read.denies_unknown = Some(arg.span);
        },
    ),
    ArgRow::once("from", "Type that is read.", |arg, read, session| {
        read.stands_for = placed_text(arg, session);
    }),
    ArgRow::once("try_from", "Type that is read.", |arg, read, session| {
        read.stands_for = placed_text(arg, session);
    }),
    ArgRow::once("into", "Type that is written.", |arg, read, session| {
        read.into = placed_text(arg, session);
    }),
];

/// Keys with a different meaning in schemars.
const SHOWN_CONTAINER: &[ArgRow<ContainerAttrs>] = &[
    ArgRow::once(
        "default",
        "A default in the schema only.",
        |arg, read, session| {
            read.shown_default = default_source(arg, session);
        },
    ),
    ArgRow::once(
        "deny_unknown_fields",
        "A schema that takes no other fields.",
        |_, _, _| {},
    ),
];

const FIELD: &[ArgRow<FieldAttrs>] = &[
    ArgRow::repeatable("rename", "Name of the field.", |arg, read, session| {
        read.rename.add(names(arg, session), arg, session);
    }),
    ArgRow::once("default", "Value of an absent field.", |arg, read, session| {
        read.default = default_source(arg, session);
    }),
    ArgRow::once("skip", "Neither read nor written.", |_, read, _| read.skip = true),
    ArgRow::once("skip_serializing", "Never written.", |arg, read, _| {
        read.input_only = Some(arg.span);
    }),
    ArgRow::once("skip_deserializing", "Never read.", |_, read, _| {
        read.output_only = true
    }),
    ArgRow::once(
        "skip_serializing_if",
        "Left out where a function says so.",
        |arg, read, session| {
            read.skip_if = arg.text(session).map(|path| (path, arg.span));
        },
    ),
    ArgRow::once("flatten", "Its fields stand beside the others.", |_, read, _| {
        read.flatten = true
    }),
    ArgRow::once("with", "Module that reads and writes.", |arg, read, _| {
        (read.opaque, read.read_by_function) = (changes_form(arg).map(Opaque::module), true);
    }),
    ArgRow::once("deserialize_with", "Function that reads.", |arg, read, _| {
        read.opaque = Opaque::with_function(read.opaque, changes_form(arg), false);
        read.read_by_function = true;
    }),
    ArgRow::once("serialize_with", "Function that writes.", |arg, read, _| {
        read.opaque = Opaque::with_function(read.opaque, changes_form(arg), true);
    }),
];

/// Keys with a different meaning in schemars.
const SHOWN_FIELD: &[ArgRow<FieldAttrs>] = &[
    ArgRow::once(
        "default",
        "A default in the schema only.",
        |arg, read, session| {
            read.shown_default = default_source(arg, session);
        },
    ),
    ArgRow::once("skip", "Not part of the schema.", |arg, read, _| {
        read.foreign.skip = Some(arg.span);
    }),
];

const VARIANT: &[ArgRow<VariantAttrs>] = &[
    ArgRow::repeatable("rename", "Name of the variant.", |arg, read, session| {
        read.rename.add(names(arg, session), arg, session);
    }),
    ArgRow::repeatable("rename_all", "Case of its fields.", |arg, read, session| {
        read.rename_all.add(cases(arg, session), arg, session);
    }),
    ArgRow::once("skip", "Neither read nor written.", |_, read, _| read.skip = true),
    ArgRow::once("skip_serializing", "Never written.", |arg, read, _| {
        read.input_only = Some(arg.span);
    }),
    ArgRow::once("skip_deserializing", "Never read.", |arg, read, _| {
        read.output_only = Some(arg.span);
    }),
    ArgRow::once("other", "Stands for every unknown variant.", |_, read, _| {
        read.other = true
    }),
    ArgRow::once("untagged", "Without the name of the variant.", |_, read, _| {
        read.untagged = true
    }),
    ArgRow::once("with", "Module that reads and writes.", |arg, read, _| {
        read.opaque = Some(arg.span);
    }),
    ArgRow::once("serialize_with", "Function that writes.", |arg, read, _| {
        read.opaque = Some(arg.span);
    }),
    ArgRow::once("deserialize_with", "Function that reads.", |arg, read, _| {
        read.opaque = Some(arg.span);
    }),
];

/// `rename(serialize = "x", deserialize = "y")`
const DIRECTIONS: &[ArgRow<Directions<String>>] = &[
    ArgRow::once("serialize", "Name that is written.", |arg, to, session| {
        to.written = arg.text(session);
    }),
    ArgRow::once("deserialize", "Name that is read.", |arg, to, session| {
        to.read = arg.text(session);
    }),
];

/// The keys of serde 1.0.229, from `serde_derive/src/internals/symbol.rs`.
const KEYS: &[&str] = &[
    "alias",
    "borrow",
    "bound",
    "content",
    "crate",
    "default",
    "deny_unknown_fields",
    "deserialize_with",
    "expecting",
    "field_identifier",
    "flatten",
    "from",
    "getter",
    "into",
    "other",
    "remote",
    "rename",
    "rename_all",
    "rename_all_fields",
    "serialize_with",
    "skip",
    "skip_deserializing",
    "skip_serializing",
    "skip_serializing_if",
    "tag",
    "transparent",
    "try_from",
    "untagged",
    "variant_identifier",
    "with",
];

fn warn_of_unknown(arg: &Arg<'_>, session: &mut Session) {
    if KEYS.contains(&arg.name) {
        return;
    }
    let message = format!(
        "unknown serde attribute `{}`: the schema is made without it",
        arg.name
    );
    // Only a warning, because the key may exist in a newer serde.
    let help = match suggest::find_nearest(arg.name, KEYS.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "remove it, unless your serde has it".to_owned(),
    };
    session.report(Diagnostic::warning(arg.span, message).help(help));
}

/// Returns the span of a (de)serialization function, if it changes the JSON.
fn changes_form(arg: &Arg<'_>) -> Option<Span> {
    // E.g. `singleton_map` of serde_yaml and its successors makes enums in YAML look the same as in
    // JSON.
    let path = arg.literal().and_then(|literal| literal.value.as_str());
    let keeps_form = path.is_some_and(|path| {
        path.split("::")
            .any(|name| name == "singleton_map" || name == "singleton_map_recursive")
    });
    (!keeps_form).then_some(arg.span)
}

fn default_source(arg: &Arg<'_>, session: &mut Session) -> Option<DefaultSource> {
    match arg.value {
        ArgValue::Flag => Some(DefaultSource::Type),
        _ => arg.text(session).map(DefaultSource::Function),
    }
}

fn placed_text(arg: &Arg<'_>, session: &mut Session) -> Option<(String, Span)> {
    arg.text(session).map(|text| (text, arg.value_span()))
}

/// serde's keys, and schemars' keys, which take precedence in the schema.
struct Keys<'t, 'a> {
    serde: Vec<&'t Arg<'a>>,
    schemars: Vec<&'t Arg<'a>>,
}

impl<'t, 'a> Keys<'t, 'a> {
    /// Reports errors in `#[serde(…)]` only: those in `#[schemars(…)]` are reported along with its
    /// markers.
    fn of(attrs: &'t [Attribute<'a>], session: &mut Session) -> Self {
        let serde = attrs.iter().filter(|attr| attr.is("serde"));
        Keys {
            serde: serde.flat_map(|attr| args::check_args(attr, session)).collect(),
            schemars: args::list_args(attrs, &["schemars"])
                .filter(|arg| !matches!(arg.name, "with" | "serialize_with"))
                .collect(),
        }
    }

    fn read_own<T: Default + 'static>(&self, rows: &'static [ArgRow<T>], session: &mut Session) -> T {
        let mut draft = Draft::default();
        draft.read_known(self.serde.iter().copied(), rows, session);
        // In the compiler, serde's derive reports unknown keys.
        if !session.is_of_derive() {
            self.serde.iter().for_each(|arg| warn_of_unknown(arg, session));
        }
        draft.value
    }

    /// Reads serde's keys, then schemars'. If both tables have a row, the one in `shown` wins.
    fn read_shown<T>(
        &self,
        read: T,
        shown: &'static [ArgRow<T>],
        rows: &'static [ArgRow<T>],
        session: &mut Session,
    ) -> T {
        let mut draft = Draft::new(read);
        let find = |name: &str| find_row(shown)(name).or_else(|| find_row(rows)(name));
        read_args(
            self.schemars.iter().copied(),
            &mut draft,
            find,
            |_, _, _| {},
            session,
        );
        draft.value
    }

    /// Takes serde's value of a key that schemars overrides.
    fn take_renamed<T>(&self, name: &str, to: &mut Directions<T>) -> Option<Directions<T>> {
        let is_told = self.schemars.iter().any(|arg| arg.name == name);
        is_told.then(|| std::mem::take(to))
    }

    fn note_foreign(&self, foreign: &mut Foreign) {
        for arg in &self.schemars {
            foreign.note(arg, &self.serde);
        }
    }
}

pub(crate) fn read_container_attrs(attrs: &[Attribute<'_>], session: &mut Session) -> ContainerAttrs {
    let keys = Keys::of(attrs, session);
    let mut read = keys.read_own(CONTAINER, session);
    if !keys.schemars.is_empty() {
        keys.take_renamed("rename", &mut read.rename);
        keys.take_renamed("rename_all", &mut read.rename_all);
        keys.take_renamed("rename_all_fields", &mut read.rename_all_fields);
        read = keys.read_shown(read, SHOWN_CONTAINER, CONTAINER, session);
        keys.note_foreign(&mut read.foreign);
    }
    let into = read.into.take();
    if let (Some((from, _)), Some((into, at))) = (&read.stands_for, &into)
        && plain(from) != plain(into)
    {
        let message = format!("deserializing uses `{from}` but serializing uses `{into}`");
        let help = "use one type for both: the schema is that of `from`";
        session.report(Diagnostic::warning(*at, message).help(help));
    }
    read.is_one_way = match (&read.stands_for, &into) {
        (Some(_), None) => Some(true),
        (None, Some(_)) => Some(false),
        _ => None,
    };
    // The schema describes the type that is read, so `into` only counts without a `from`.
    read.stands_for = read.stands_for.or(into);
    // On a type, schemars' `with` specifies the schema to use.
    for arg in args::list_args(attrs, &["schemars"]) {
        if arg.name == "with" {
            read.stands_for = arg.text(session).map(|ty| (ty, arg.value_span()));
            read.is_one_way = None;
        }
    }
    read
}

fn plain(text: &str) -> String {
    // Whitespace is insignificant in types.
    text.split_whitespace().collect()
}

pub(crate) fn read_field_attrs(attrs: &[Attribute<'_>], session: &mut Session) -> FieldAttrs {
    let keys = Keys::of(attrs, session);
    let mut read = keys.read_own(FIELD, session);
    if !keys.schemars.is_empty() {
        read.foreign.rename = keys.take_renamed("rename", &mut read.rename);
        read = keys.read_shown(read, SHOWN_FIELD, FIELD, session);
        keys.note_foreign(&mut read.foreign);
    }
    // `serde_as` adds `with`, and also `default` for an `Option`.
    let converted = attrs.iter().find(|attr| attr.last_segment() == "serde_as");
    read.opaque = read.opaque.or(converted.map(|attr| Opaque::module(attr.span())));
    // Equivalent to `skip`.
    read.skip |= read.input_only.is_some() && read.output_only;
    read.foreign.skip = read.foreign.skip.filter(|_| !read.skip);
    read
}

pub(crate) fn read_variant_attrs(attrs: &[Attribute<'_>], session: &mut Session) -> VariantAttrs {
    let keys = Keys::of(attrs, session);
    let mut read = keys.read_own(VARIANT, session);
    if !keys.schemars.is_empty() {
        read.foreign.rename = keys.take_renamed("rename", &mut read.rename);
        keys.take_renamed("rename_all", &mut read.rename_all);
        read = keys.read_shown(read, &[], VARIANT, session);
        keys.note_foreign(&mut read.foreign);
    }
    // Equivalent to `skip`.
    read.skip |= read.output_only.is_some() && read.input_only.is_some();
    read
}

/// Parses `rename = "x"` or `rename(serialize = "x", deserialize = "y")`.
fn names(arg: &Arg<'_>, session: &mut Session) -> Directions<String> {
    let mut names = Draft::<Directions<String>>::default();
    if let ArgValue::List(directions) = &arg.value {
        names.read_known(directions, DIRECTIONS, session);
    } else {
        let name = arg.text(session);
        names.value = Directions {
            read: name.clone(),
            written: name,
            span: None,
        };
    }
    Directions {
        span: Some(arg.span),
        ..names.value
    }
}

fn cases(arg: &Arg<'_>, session: &mut Session) -> Directions<Case> {
    let Directions { read, written, span } = names(arg, session);
    for rule in [
        read.as_deref(),
        written.as_deref().filter(|rule| Some(*rule) != read.as_deref()),
    ] {
        // In the compiler, serde's derive reports unknown rules.
        if let Some(rule) = rule.filter(|rule| Case::parse(rule).is_none() && !session.is_of_derive()) {
            let message = format!("unknown rule `{rule}` of `{}`", arg.name);
            let help = suggest::describe_candidates(rule, Case::names());
            session.error_help(arg.value_span(), message, help);
        }
    }
    Directions {
        read: read.as_deref().and_then(Case::parse),
        written: written.as_deref().and_then(Case::parse),
        span,
    }
}

impl Directions<Case> {
    /// Fills gaps from the rules of the container.
    pub(crate) fn or(self, other: &Directions<Case>) -> Directions<Case> {
        Directions {
            read: self.read.or(other.read),
            written: self.written.or(other.written),
            span: self.span.or(other.span),
        }
    }
}

/// Returns the name that serde reads, and warns if serde writes a different one.
pub(crate) fn wire_name(
    ident: &str,
    rename: &Directions<String>,
    rename_all: &Directions<Case>,
    by_case: fn(Case, &str) -> String,
    session: &mut Session,
) -> String {
    let read = pick(&rename.read, rename_all.read, ident, by_case);
    // Most fields have the same rules in both directions and don't need the second name.
    let has_two_rules = rename.read != rename.written || rename_all.read != rename_all.written;
    if has_two_rules
        && pick(&rename.written, rename_all.written, ident, by_case) != read
        && let Some(span) = rename.span.or(rename_all.span)
    {
        let message = "the names for serializing and deserializing differ";
        let help = "use one name for both: the schema has the name for deserializing";
        session.report(Diagnostic::warning(span, message).help(help));
    }
    read
}

/// Reports keys with which schemars describes JSON other than what serde reads. Only for types that
/// derive `Deserialize`, since other types are never read.
pub(crate) fn check_foreign(foreign: &Foreign, session: &mut Session) {
    for (key, at) in &foreign.keys {
        let message = format!("`{key}` is set for schemars but not for serde");
        let help = format!("move `{key}` to `#[serde(…)]`, which schemars reads as well");
        session.error_help(*at, message, help);
    }
}

/// Reports a field or variant called `shown` in the schema if serde reads a different name.
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
        let message = format!("the schema has the name `{shown}`, but serde expects `{own}`");
        let help = format!("write `#[serde(rename = \"{shown}\")]`, which schemars reads as well");
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
