//! The container keys of a kind: `#[kube(…)]` as kube-derive reads it, and what `#[crd(…)]` adds.

mod column;
mod conversion;
mod scale;
mod selectable;

use rbuilder_reader::token::Ident;
use rbuilder_reader::{Attribute, ExprKind, Span, TypeKind, TypeRef, has_derive};

use crate::args::{self, Arg, ArgValue, Literal, ReadArg as _};
use crate::{CustomResource, SchemaMode, Session, marker, object_name, suggest};

/// One container key: a row of the reference page and what "did you mean" chooses from.
pub struct ContainerKey {
    /// Its name.
    pub name: &'static str,
    /// What it says, one line.
    pub doc: &'static str,
    /// Whether it may be written more than once.
    pub repeatable: bool,
    read: fn(&Arg, &mut Draft, &mut Session),
}

/// kube-derive's container keys.
pub const KUBE_KEYS: &[ContainerKey] = &[
    once("group", "API group, a DNS name.", |arg, draft, session| {
        draft.group = arg.text(session)
    }),
    once(
        "version",
        "API version: `v1`, `v1alpha1`, `v2beta3`.",
        |arg, draft, session| {
            draft.version = arg.text(session);
        },
    ),
    once(
        "kind",
        "Kind in upper camel case; not the name of the struct.",
        |arg, draft, session| {
            draft.kind = arg.text(session);
        },
    ),
    once(
        "root",
        "Name of the generated struct [default: the kind].",
        |arg, draft, session| {
            draft.made.root = arg.text(session);
        },
    ),
    once(
        "plural",
        "Plural in lower case [default: the plural of the singular, by kube's rules].",
        |arg, draft, session| {
            draft.made.plural = arg.text(session);
        },
    ),
    once(
        "singular",
        "Singular in lower case [default: the kind].",
        |arg, draft, session| {
            draft.made.singular = arg.text(session);
        },
    ),
    many("shortname", "Short name for kubectl.", |arg, draft, session| {
        draft.made.short_names.extend(arg.text(session));
    }),
    many(
        "category",
        "Category of kinds that kubectl lists together, such as `all`.",
        |arg, draft, session| {
            draft.made.categories.extend(arg.text(session));
        },
    ),
    once(
        "namespaced",
        "The kind is namespaced [default: cluster-scoped].",
        |arg, draft, session| {
            draft.made.namespaced = kube_bool(arg, session).unwrap_or_default();
        },
    ),
    once(
        "no_spec",
        "The fields are at the top level, next to `metadata`, without `spec`.",
        |arg, draft, session| {
            draft.made.no_spec = kube_bool(arg, session).unwrap_or_default();
        },
    ),
    once(
        "cel",
        "kube also checks the CEL rules in the client.",
        |_, _, _| {},
    ),
    once(
        "status",
        "Type of the status; enables the status subresource.",
        |arg, draft, session| {
            draft.made.status = type_path(arg, session);
        },
    ),
    many("derive", "Derive for the generated struct.", |_, _, _| {}),
    many("attr", "Attribute for the generated struct.", |_, _, _| {}),
    once(
        "schema",
        "`derived`, `manual` or `disabled`: source of kube's own schema.",
        |arg, draft, session| {
            draft.made.schema_mode = schema_mode(arg, session);
            draft.made.schema_span = arg.span;
        },
    ),
    once(
        "scale",
        "Scale subresource, with its JSON paths.",
        |arg, draft, session| {
            draft.made.scale = scale::scale(arg, session);
        },
    ),
    many(
        "printcolumn",
        "Additional column for `kubectl get`.",
        |arg, draft, session| {
            draft
                .made
                .print_columns
                .extend(column::print_column(arg, session));
        },
    ),
    many(
        "selectable",
        "JSON path of a field that can be used in field selectors.",
        |arg, draft, session| {
            if let Some(path) = arg.text(session) {
                selectable::check_selectable(&path, arg.value_span(), &draft.made.selectable, session);
                draft.made.selectable.push(path);
            }
        },
    ),
    once("doc", "Description of the kind.", |arg, draft, session| {
        draft.made.doc = arg.text(session)
    }),
    many(
        "annotation",
        "Annotation, `annotation(\"key\", \"value\")`.",
        |arg, draft, session| {
            add_pair(arg, &mut draft.made.annotations, session);
        },
    ),
    many(
        "label",
        "Label, `label(\"key\", \"value\")`.",
        |arg, draft, session| {
            add_pair(arg, &mut draft.made.labels, session);
        },
    ),
    once(
        "storage",
        "True for the storage version [default: true].",
        |arg, draft, session| {
            draft.made.storage = kube_bool(arg, session).unwrap_or(true);
        },
    ),
    once(
        "served",
        "True if the API server serves this version [default: true].",
        |arg, draft, session| {
            draft.made.served = kube_bool(arg, session).unwrap_or(true);
        },
    ),
    once(
        "deprecated",
        "The version is deprecated; a string is the warning.",
        |arg, draft, session| {
            draft.made.deprecated = Some(deprecation(arg, session));
        },
    ),
    many(
        "validation",
        "CEL validation rule for the whole object.",
        |arg, draft, session| {
            draft.made.validations.extend(root_rule(arg, session));
        },
    ),
    once(
        "crates",
        "Paths of the crates that generated code uses.",
        |_, _, _| {},
    ),
];

/// What `#[crd(…)]` may say on a kind and kube cannot: about the definition only, not about its objects.
pub const CRD_KEYS: &[ContainerKey] = &[
    many(
        "annotation",
        "Annotation on the CRD only.",
        |arg, draft, session| {
            add_pair(arg, &mut draft.made.annotations, session);
        },
    ),
    many("label", "Label on the CRD only.", |arg, draft, session| {
        add_pair(arg, &mut draft.made.labels, session);
    }),
    once(
        "conversion",
        "Conversion webhook: `strategy`, `service_name`, `service_namespace`, `service_port`, \
         `path`, `url`, `ca_bundle`, `review_versions`; without arguments, as scaffolded by kubebuilder.",
        |arg, draft, session| {
            if draft.made.conversion.is_some() {
                session.error(arg.span, "`conversion` is written twice");
            }
            draft.made.conversion = conversion::conversion(arg, session);
        },
    ),
];

const fn once(
    name: &'static str,
    doc: &'static str,
    read: fn(&Arg, &mut Draft, &mut Session),
) -> ContainerKey {
    ContainerKey {
        name,
        doc,
        repeatable: false,
        read,
    }
}

const fn many(
    name: &'static str,
    doc: &'static str,
    read: fn(&Arg, &mut Draft, &mut Session),
) -> ContainerKey {
    ContainerKey {
        name,
        doc,
        repeatable: true,
        read,
    }
}

/// What has been read of a kind before it is known to be whole.
struct Draft {
    group: Option<String>,
    version: Option<String>,
    kind: Option<String>,
    /// Where each key's value is.
    places: Vec<(&'static str, Span)>,
    /// The rest, in its final place.
    made: CustomResource,
}

/// Whether a type is a kind: it derives `CustomResource`, or has the keys that only a kind has. The compiler
/// takes `#[derive(…)]` away before a derive sees the item, so there the keys must tell.
pub(crate) fn is_kind(attrs: &[Attribute<'_>]) -> bool {
    has_derive(attrs, "CustomResource")
        || attrs.iter().filter(|attr| attr.is("kube")).any(|attr| {
            let args = args::of_attribute(attr, &mut Session::default());
            args.iter()
                .any(|arg| matches!(arg.name, "group" | "version" | "kind"))
        })
}

/// Reads the kind of an item that derives `CustomResource`.
pub(crate) fn parse(
    attrs: &[Attribute<'_>],
    ident: Ident<'_>,
    session: &mut Session,
) -> Option<CustomResource> {
    if !is_kind(attrs) {
        return None;
    }
    let mut draft = Draft {
        group: None,
        version: None,
        kind: None,
        places: Vec::new(),
        made: empty(ident.span),
    };
    for attr in attrs {
        if attr.is("kube") {
            for arg in args::of_attribute(attr, session) {
                read_key(&arg, &mut draft, session);
            }
        } else if attr.is("crd") {
            for arg in args::of_attribute(attr, session) {
                if let Some(key) = CRD_KEYS.iter().find(|key| key.name == arg.name) {
                    (key.read)(&arg, &mut draft, session);
                }
            }
        }
    }
    finish(draft, ident, session)
}

fn empty(span: Span) -> CustomResource {
    CustomResource {
        span,
        group: String::new(),
        version: String::new(),
        kind: String::new(),
        kind_span: span,
        root: None,
        plural: None,
        singular: None,
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: false,
        no_spec: false,
        status: None,
        scale: None,
        print_columns: Vec::new(),
        selectable: Vec::new(),
        doc: None,
        storage: true,
        served: true,
        deprecated: None,
        validations: Vec::new(),
        annotations: Vec::new(),
        labels: Vec::new(),
        conversion: None,
        schema_mode: SchemaMode::Derived,
        schema_span: span,
    }
}

/// `true`, `false`, the bare name, or either word in quotes: kube takes them all.
fn kube_bool(arg: &Arg, session: &mut Session) -> Option<bool> {
    match arg.literal().and_then(|literal| literal.value.as_str()) {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => arg.truth(session),
    }
}

/// `schema = "…"`.
fn schema_mode(arg: &Arg, session: &mut Session) -> SchemaMode {
    match arg.text(session).as_deref() {
        Some("derived") | None => SchemaMode::Derived,
        Some("manual") => SchemaMode::Manual,
        Some("disabled") => SchemaMode::Disabled,
        Some(other) => {
            let message = format!("expected `derived`, `manual` or `disabled` for `schema`, found `{other}`");
            let help = suggest::help(other, ["derived", "manual", "disabled"]);
            session.error_help(arg.value_span(), message, help);
            SchemaMode::Derived
        }
    }
}

fn read_key(arg: &Arg, draft: &mut Draft, session: &mut Session) {
    let Some(key) = KUBE_KEYS.iter().find(|key| key.name == arg.name) else {
        return unknown_key(arg, session);
    };
    if !key.repeatable && draft.places.iter().any(|(name, _)| *name == key.name) {
        session.error(arg.span, format!("`{}` is written twice", key.name));
        return;
    }
    draft.places.push((key.name, arg.value_span()));
    (key.read)(arg, draft, session);
}

fn unknown_key(arg: &Arg, session: &mut Session) {
    let help = if arg.name == "struct" {
        // The key's name before kube 1.0.
        "write `root = \"…\"`".to_owned()
    } else if marker::exists(arg.name) {
        format!("kube takes no markers on a kind: write `#[crd({}…)]`", arg.name)
    } else {
        suggest::help(arg.name, KUBE_KEYS.iter().map(|key| key.name))
    };
    session.error_help(arg.span, format!("unknown key `{}` of a kind", arg.name), help);
}

/// Checks what needs the whole kind.
fn finish(draft: Draft, ident: Ident<'_>, session: &mut Session) -> Option<CustomResource> {
    let Draft {
        group,
        version,
        kind,
        places,
        mut made,
    } = draft;
    let at = |name: &str| {
        places
            .iter()
            .find(|(key, _)| *key == name)
            .map_or(made.span, |(_, span)| *span)
    };
    let wanted = [
        ("group", &group, "example.com"),
        ("version", &version, "v1alpha1"),
        ("kind", &kind, "Memcached"),
    ];
    for (name, value, sample) in wanted {
        if value.is_none() && !places.iter().any(|(key, _)| *key == name) {
            let help = format!("add `{name} = \"{sample}\"` to `#[kube(…)]`");
            session.error_help(made.span, format!("the kind has no {name}"), help);
        }
    }
    let (group, version, kind) = (group?, version?, kind?);
    check_group(&group, at("group"), session);
    check_label(
        "version",
        &version,
        "`v1`, `v1alpha1` or `v2beta3`",
        at("version"),
        session,
    );
    check_kind(&kind, &made, ident, at("kind"), session);
    for (name, value) in [("plural", &made.plural), ("singular", &made.singular)] {
        if let Some(value) = value {
            check_label(
                name,
                value,
                "lower-case letters, digits and `-`",
                at(name),
                session,
            );
        }
    }
    for (name, values) in [("shortname", &made.short_names), ("category", &made.categories)] {
        for (position, value) in values.iter().enumerate() {
            check_label(
                name,
                value,
                "lower-case letters, digits and `-`",
                at(name),
                session,
            );
            if values[..position].contains(value) {
                session.error(at(name), format!("the {name} `{value}` is written twice"));
            }
        }
    }
    if made.scale.is_some() && made.status.is_none() {
        let help = "add `status = \"…\"` with the type of the status";
        session.error_help(
            at("scale"),
            "`scale` has no effect without a status: kube leaves it out",
            help,
        );
    }
    made.kind_span = at("kind");
    let resource = CustomResource {
        group,
        version,
        kind,
        ..made
    };
    let named_by = if resource.singular.is_some() {
        "singular"
    } else {
        "kind"
    };
    check_derived_plural(&resource, at(named_by), session);
    Some(resource)
}

/// kube-derive panics over a singular of the letter `y`, and does not look whether its plural can be one.
fn check_derived_plural(resource: &CustomResource, at: Span, session: &mut Session) {
    let singular = resource.singular_name();
    // A wrong singular has been reported, and a kind of these lengths is one that fits.
    if resource.plural.is_some() || !is_label(&singular, true) {
        return;
    }
    let plural = resource.plural_name();
    if singular == "y" || !is_label(&plural, true) {
        let help = format!("write `plural = \"…\"` beside `kind = \"{}\"`", resource.kind);
        session.error_help(
            at,
            format!("kube derives no usable plural from `{singular}`"),
            help,
        );
    }
}

fn check_group(group: &str, at: Span, session: &mut Session) {
    let labels = group.split('.').collect::<Vec<_>>();
    // The API server counts the letters of the whole name, not those of a label.
    let is_part = |label: &&str| is_label_of_any_length(label, false);
    if labels.len() < 2 || group.len() > 253 || !labels.iter().all(is_part) {
        let help = "write a domain with a dot, as in `cache.example.com`";
        session.error_help(at, format!("`{group}` is not an API group"), help);
    }
}

fn check_label(what: &str, value: &str, help: &str, at: Span, session: &mut Session) {
    if !is_label(value, true) {
        session.error_help(
            at,
            format!("`{value}` cannot be the {what} of a kind"),
            format!("write {help}"),
        );
    }
}

fn check_kind(kind: &str, made: &CustomResource, ident: Ident<'_>, at: Span, session: &mut Session) {
    let upper = kind
        .chars()
        .next()
        .is_some_and(|first| first.is_ascii_uppercase());
    if !upper || !kind.chars().all(|letter| letter.is_ascii_alphanumeric()) || kind.len() > 59 {
        let help = "write it in UpperCamelCase, as in `CronJob`";
        session.error_help(at, format!("`{kind}` cannot be a kind"), help);
    }
    if ident.text == made.root.as_deref().unwrap_or(kind) {
        let help = format!("name this struct `{kind}Spec`: kube makes the struct `{kind}` around it");
        session.error_help(made.span, "the struct has the name of the kind", help);
    }
}

/// A DNS label; with `letter_first` as RFC 1035 has it, else as RFC 1123.
fn is_label(text: &str, letter_first: bool) -> bool {
    text.len() <= 63 && is_label_of_any_length(text, letter_first)
}

fn is_label_of_any_length(text: &str, letter_first: bool) -> bool {
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    bytes.iter().all(inner)
        && *first != b'-'
        && *last != b'-'
        && (!letter_first || first.is_ascii_lowercase())
}

/// `status = "path::Status"`, or the path without quotes.
fn type_path(arg: &Arg, session: &mut Session) -> Option<TypeRef> {
    let span = arg.value_span();
    let ty = match &arg.value {
        ArgValue::Expr(expr) => match &expr.kind {
            // With type arguments, the path is more than its names.
            ExprKind::Path(_) => TypeRef::parse(expr.text, span),
            _ => None,
        },
        ArgValue::Literal(Literal {
            value: serde_json::Value::String(text),
            ..
        }) => TypeRef::parse(text, span),
        _ => None,
    };
    match ty.filter(|ty| matches!(ty.kind, TypeKind::Path(..))) {
        Some(ty) => Some(ty),
        None => {
            session.error_help(
                span,
                format!("`{}` wants a type", arg.name),
                "write `status = \"MemcachedStatus\"`",
            );
            None
        }
    }
}

/// Reads a pair and adds it to those that are read; a key stands once.
fn add_pair(arg: &Arg, pairs: &mut Vec<(String, String)>, session: &mut Session) {
    let Some((key, value)) = pair(arg, session) else {
        return;
    };
    if pairs.iter().any(|(earlier, _)| *earlier == key) {
        let message = format!("the {} `{key}` is written twice", arg.name);
        session.error_help(arg.span, message, "remove one: the definition holds a key once");
    }
    pairs.push((key, value));
}

fn pair(arg: &Arg, session: &mut Session) -> Option<(String, String)> {
    if let ArgValue::List(items) = &arg.value
        && let [key, value] = items.as_slice()
        && key.name.is_empty()
        && value.name.is_empty()
    {
        let (name, text) = (key.text(session)?, value.text(session)?);
        check_pair(arg, (key, &name), (value, &text), session);
        return Some((name, text));
    }
    let message = format!("`{}` wants a key and a value", arg.name);
    session.error_help(
        arg.span,
        message,
        format!("write `{}(\"key\", \"value\")`", arg.name),
    );
    None
}

/// Keys of annotations and labels have one form; values have one in labels only.
fn check_pair(arg: &Arg, (key, name): (&Arg, &str), (value, text): (&Arg, &str), session: &mut Session) {
    // The domain of an annotation's key may be in upper case; nobody writes it so.
    if !object_name::is_label_key(name) {
        let help = "write a name, as in `tier`, or a domain and a name, as in `example.com/tier`";
        let message = format!("`{name}` cannot be the key of {}", with_article(arg.name));
        session.error_help(key.value_span(), message, help);
    }
    if arg.name == "label" && !object_name::is_label_value(text) {
        let help = "write at most 63 letters, digits, `-`, `_` and `.`, or make it an annotation";
        session.error_help(
            value.value_span(),
            format!("`{text}` cannot be the value of a label"),
            help,
        );
    }
}

fn with_article(noun: &str) -> String {
    let article = if noun.starts_with('a') { "an" } else { "a" };
    format!("{article} {noun}")
}

fn deprecation(arg: &Arg, session: &mut Session) -> Option<String> {
    if matches!(arg.value, ArgValue::Flag) {
        return None;
    }
    let warning = arg.text(session)?;
    let problem = if warning.is_empty() {
        Some("is empty")
    } else if warning.len() > 256 {
        Some("is longer than 256 bytes")
    } else if !warning.chars().all(is_printable) {
        Some("holds a character that cannot be printed")
    } else {
        None
    };
    if let Some(problem) = problem {
        let help =
            "write one line of at most 256 bytes, or `deprecated` alone for the API server's own warning";
        session.error_help(
            arg.value_span(),
            format!("the deprecation warning {problem}"),
            help,
        );
    }
    Some(warning)
}

/// Go's `unicode.IsPrint`, which the API server asks, but for characters that no version of Unicode has assigned.
fn is_printable(c: char) -> bool {
    let is_format = matches!(
        c,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    );
    let is_private = matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}');
    c == ' ' || !(c.is_control() || c.is_whitespace() || is_format || is_private)
}

fn root_rule(arg: &Arg, session: &mut Session) -> Option<rbuilder_schema::Cel> {
    if matches!(arg.value, ArgValue::List(_)) {
        session.error_help(
            arg.span,
            "`validation(…)` cannot constrain a whole kind",
            "write a CEL rule, `validation = \"…\"`, or put the constraint on a field",
        );
        return None;
    }
    marker::cel_rule(arg, session)
}

/// The arguments of `key(…)`, after checking that each is known and written once.
fn named<'a, 't>(arg: &'t Arg<'a>, names: &[&'static str], session: &mut Session) -> Option<&'t [Arg<'a>]> {
    let args = arg.list(session)?;
    for (position, inner) in args.iter().enumerate() {
        if !names.contains(&inner.name) {
            let message = format!("unknown argument `{}` of `{}`", inner.name, arg.name);
            session.error_help(
                inner.span,
                message,
                suggest::help(inner.name, names.iter().copied()),
            );
        } else if args[..position].iter().any(|earlier| earlier.name == inner.name) {
            session.error(inner.span, format!("`{}` is written twice", inner.name));
        }
    }
    Some(args)
}

fn required(outer: &Arg<'_>, args: &[Arg<'_>], name: &str, session: &mut Session) -> Option<String> {
    match args.iter().find(|arg| arg.name == name) {
        Some(arg) => arg.text(session),
        None => {
            let message = format!("`{}` needs `{name}`", outer.name);
            session.error_help(outer.span, message, format!("add `{name} = \"…\"`"));
            None
        }
    }
}

fn optional(args: &[Arg<'_>], name: &str, session: &mut Session) -> Option<String> {
    args.iter().find(|arg| arg.name == name)?.text(session)
}

fn from_json<T: serde::de::DeserializeOwned>(arg: &Arg, session: &mut Session) -> Option<T> {
    let text = arg.text(session)?;
    serde_json::from_str(&text)
        .map_err(|error| {
            let help = format!("write `{}(…)` with named arguments", arg.name);
            session.error_help(
                arg.value_span(),
                format!("the JSON of `{}` is wrong: {error}", arg.name),
                help,
            );
        })
        .ok()
}
