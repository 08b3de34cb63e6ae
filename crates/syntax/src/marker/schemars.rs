//! Translates `#[schemars(…)]`, `#[validate(…)]` and `#[garde(…)]` to markers.
//!
//! Like schemars, this reads constraints from all three attributes, so that the attributes in an
//! existing kube-rs project apply to the derive and to the generator. `serde_attrs` reads the keys
//! that serde also supports. A key whose effect depends on running code is an error, unless a
//! marker specifies the effect.

use rbuilder_reader::token::lex;
use rbuilder_reader::{Attribute, Expr, ExprKind, Json, Span, is_path};
use rbuilder_schema::{Form, Key};
use serde_json::{Map, Value};

use super::{Kind, Place, Reading, x_kube};
use crate::args::{self, Arg, ArgValue, Literal, ReadArg as _};
use crate::{SchemaFunction, Session, suggest};

/// The tool that defines the attribute, and thus the valid keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Schemars,
    /// validator or garde. Only their constraints are read.
    Validator,
}

/// Ignored keys of `#[schemars(…)]`. Some belong to serde and are read elsewhere; others only
/// affect schemars' own output.
const PASSED: &[&str] = &[
    "alias",
    "bound",
    "content",
    "crate",
    "default",
    "deny_unknown_fields",
    "deprecated",
    "description",
    "flatten",
    "from",
    "getter",
    "inline",
    "into",
    "other",
    "remote",
    "rename",
    "rename_all",
    "rename_all_fields",
    "repr",
    "serialize_with",
    "deserialize_with",
    "skip",
    "skip_deserializing",
    "skip_serializing",
    "skip_serializing_if",
    "tag",
    "transparent",
    "try_from",
    "untagged",
    "ref_variants",
];

/// Suggestions for misspelled keys.
const READ: &[&str] = &[
    "contains",
    "email",
    "example",
    "extend",
    "inner",
    "ip",
    "ipv4",
    "ipv6",
    "length",
    "pattern",
    "range",
    "regex",
    "required",
    "schema_with",
    "title",
    "transform",
    "url",
    "with",
];

pub(super) fn read_attribute(attr: &Attribute<'_>, reading: &mut Reading, session: &mut Session) {
    let owner = if attr.is("schemars") {
        Owner::Schemars
    } else if attr.is("validate") || attr.is("garde") {
        Owner::Validator
    } else if attr.is("x_kube") || attr.is("cel_validate") {
        let args = args::check_args(attr, session);
        return x_kube::read_x_kube(args, reading, session);
    } else {
        return;
    };
    let args = match owner {
        Owner::Schemars => args::check_args(attr, session),
        // The derives of these tools already report errors in their attributes.
        Owner::Validator => &attr.args().list,
    };
    let mut markers = Vec::new();
    for arg in args {
        reading.is_with |= owner == Owner::Schemars && arg.name == "with" && reading.place == Place::Field;
        match schema_function(arg) {
            Some(function) if owner == Owner::Schemars && reading.place != Place::Variant => {
                reading.schema_function = Some(function);
            }
            _ => translate(arg, owner, &reading.kind, reading, &mut markers, session),
        }
    }
    if owner == Owner::Validator {
        // Users may repeat a constraint for each tool that checks it. schemars' constraint wins.
        markers.iter_mut().for_each(|marker| drop_read(marker, reading));
        markers.retain(|marker| marker.name == "validation" || !reading.is_read(marker.name));
    }
    reading.read(&markers, session);
}

fn schema_function(arg: &Arg<'_>) -> Option<SchemaFunction> {
    let literal = arg.literal().filter(|_| arg.name == "schema_with")?;
    let path = literal.value.as_str()?;
    let tokens = lex(path).ok()?;
    let mut cursor = tokens.cursor();
    let is_path = Expr::read(&mut cursor).is_ok_and(|expr| matches!(expr.kind, ExprKind::Path(_)));
    (is_path && cursor.is_end()).then(|| SchemaFunction {
        path: path.to_owned(),
        span: literal.span,
    })
}

fn drop_read(marker: &mut Arg<'_>, reading: &Reading) {
    if let ArgValue::List(constraints) = &mut marker.value
        && marker.name == "validation"
    {
        constraints.retain(|constraint| !reading.is_read(constraint.name));
    }
}

/// Returns `description = "…"`, which takes precedence over the doc comment.
pub(crate) fn schemars_description(attrs: &[Attribute<'_>]) -> Option<String> {
    let mut args = args::list_args(attrs, &["schemars"]);
    match args.find(|arg| arg.name == "description")?.literal() {
        Some(Literal {
            value: Value::String(text),
            ..
        }) => Some(text.clone()),
        _ => None,
    }
}

/// Returns true if `required` only occurs in attributes of other tools. There, it means that an
/// `Option` must be present, and on a field with a default it is a no-op.
pub(crate) fn is_required_elsewhere(attrs: &[Attribute<'_>]) -> bool {
    let says = |names| args::list_args(attrs, names).any(|arg| arg.name == "required");
    says(&["schemars", "validate", "garde"]) && !says(&["kube", "crd"])
}

fn translate<'a>(
    arg: &Arg<'a>,
    owner: Owner,
    kind: &Kind,
    reading: &Reading,
    markers: &mut Vec<Arg<'a>>,
    session: &mut Session,
) {
    let span = arg.span;
    match arg.name {
        "range" => markers.extend(range(arg, session)),
        "length" => markers.extend(length(arg, kind, session)),
        "pattern" | "regex" => markers.extend(pattern(arg, reading, session)),
        "contains" => markers.extend(contains(arg, session)),
        "email" | "ipv4" | "ipv6" => {
            let name = arg.name;
            markers.push(constraint("format", span, Value::from(name)));
        }
        "url" => markers.push(constraint("format", span, Value::from("uri"))),
        "ip" => session.report(
            crate::Diagnostic::warning(
                span,
                "the API server does not support the format `ip`; it is left out",
            )
            .help("write `ipv4` or `ipv6`, or the CEL rule `isIP(self)`"),
        ),
        "required" if !matches!(arg.value, ArgValue::Literal(_)) => markers.push(flag("required", span)),
        "inner" => markers.extend(inner(arg, owner, kind, reading, session)),
        // No other key of validator or garde affects the schema.
        _ if owner == Owner::Validator => {}
        // On a type, `with` is read along with serde's `from`.
        "with" if reading.place == Place::Type => {}
        "title" | "with" => match &arg.value {
            ArgValue::Literal(_) => markers.push(Arg {
                name: if arg.name == "with" {
                    "schema_type"
                } else {
                    "title"
                },
                ..arg.clone()
            }),
            _ => opaque(arg, "the title", reading, session),
        },
        "example" => {
            // A computed example is just documentation, which kube omits as well.
            let is_first = !markers.iter().any(|marker| marker.name == "example");
            if let Some(value) = literal(&arg.value)
                && is_first
            {
                markers.push(valued("example", span, value));
            }
        }
        "extend" => extend(arg, kind, markers, session),
        "schema_with" => opaque(arg, "the schema that this function returns", reading, session),
        "transform" => opaque(
            arg,
            "the effect of this transform on the schema",
            reading,
            session,
        ),
        name if PASSED.contains(&name) => {}
        name => {
            let help = suggest::describe_candidates(name, READ.iter().chain(PASSED).copied());
            session.error_help(span, format!("unknown argument `{name}` of `schemars`"), help);
        }
    }
}

/// Reports a key whose effect depends on running code, unless a marker specifies the effect.
fn opaque(arg: &Arg<'_>, what: &str, reading: &Reading, session: &mut Session) {
    if ["schema", "schema_type", "schemaless"]
        .iter()
        .any(|name| reading.is_read(name))
    {
        return;
    }
    session.error_help(
        arg.span,
        format!("{what} is unknown: rbuilder does not run the program"),
        "name a type with the same form: `#[schemars(with = \"String\")]`; or derive `CrdSchema` instead of `JsonSchema` and use `#[kube(schema = { \"type\": \"string\" })]` or `#[kube(schemaless)]`",
    );
}

fn valued<'a>(name: &'static str, span: Span, value: Value) -> Arg<'a> {
    Arg {
        name,
        span,
        value: ArgValue::Literal(Literal { value, span }),
    }
}

fn flag<'a>(name: &'static str, span: Span) -> Arg<'a> {
    Arg {
        name,
        span,
        value: ArgValue::Flag,
    }
}

fn list<'a>(name: &'static str, span: Span, args: Vec<Arg<'a>>) -> Arg<'a> {
    Arg {
        name,
        span,
        value: ArgValue::List(args),
    }
}

fn constraint<'a>(name: &'static str, span: Span, value: Value) -> Arg<'a> {
    list("validation", span, vec![valued(name, span, value)])
}

/// Parses `range(min = 1, max = 5)`, including validator's `exclusive_min` and `exclusive_max`.
fn range<'a>(arg: &Arg<'a>, session: &mut Session) -> Option<Arg<'a>> {
    let mut constraints = Vec::new();
    for bound in arg.list(session)? {
        let (name, exclusive) = match bound.name {
            "min" => ("minimum", None),
            "max" => ("maximum", None),
            "exclusive_min" => ("minimum", Some("exclusive_minimum")),
            "exclusive_max" => ("maximum", Some("exclusive_maximum")),
            "equal" => ("minimum", Some("")),
            _ => continue,
        };
        let Some(value) = number(bound, session) else {
            continue;
        };
        let span = bound.value_span();
        // `equal` sets both bounds to the same value.
        if exclusive == Some("") {
            constraints.push(valued("maximum", span, value.clone()));
        } else if let Some(exclusive) = exclusive {
            constraints.push(flag(exclusive, span));
        }
        constraints.push(valued(name, span, value));
    }
    Some(list("validation", arg.span, constraints))
}

/// Parses `length(min = 1, max = 5)` or `length(equal = 3)`, on a string, list or map.
fn length<'a>(arg: &Arg<'a>, kind: &Kind, session: &mut Session) -> Option<Arg<'a>> {
    let (least, most) = match kind {
        Kind::List(_) => ("min_items", "max_items"),
        Kind::Map(_) => ("min_properties", "max_properties"),
        Kind::Unknown => ("min_size", "max_size"),
        _ => ("min_length", "max_length"),
    };
    let mut constraints = Vec::new();
    for bound in arg.list(session)? {
        let names: &[&'static str] = match bound.name {
            "min" => &[least],
            "max" => &[most],
            "equal" => &[least, most],
            _ => continue,
        };
        let Some(value) = number(bound, session) else {
            continue;
        };
        let span = bound.value_span();
        constraints.extend(names.iter().map(|name| valued(name, span, value.clone())));
    }
    Some(list("validation", arg.span, constraints))
}

/// Parses `regex(pattern = "…")`, garde's `pattern("…")`, or validator's `regex(path = …)`, whose
/// argument is the path to a static.
fn pattern<'a>(arg: &Arg<'a>, reading: &Reading, session: &mut Session) -> Option<Arg<'a>> {
    let written = match &arg.value {
        ArgValue::List(args) => args.iter().find_map(|inner| match inner.name {
            "" | "pattern" => literal(&inner.value).or_else(|| named_pattern(&inner.value, session)),
            "path" => named_pattern(&inner.value, session),
            _ => None,
        }),
        ArgValue::Literal(literal) if arg.name == "pattern" => Some(literal.value.clone()),
        value => named_pattern(value, session),
    };
    match written {
        Some(text @ Value::String(_)) => Some(constraint("pattern", arg.span, text)),
        _ => {
            if !reading.is_read("pattern") {
                session.error_help(
                    arg.span,
                    "expected a string literal for the pattern",
                    "write `#[schemars(regex(pattern = \"…\"))]`, or name a static with `Regex::new(\"…\")`",
                );
            }
            None
        }
    }
}

fn named_pattern(value: &ArgValue<'_>, session: &mut Session) -> Option<Value> {
    match value {
        ArgValue::Literal(literal) => named_constant(literal.value.as_str()?, session),
        ArgValue::Expr(expr) => match &expr.kind {
            ExprKind::Path(names) => session.constant(&names.join("::")),
            // A function returning the regular expression.
            ExprKind::Call(function, args) if args.is_empty() => match &function.kind {
                ExprKind::Path(names) => session.constant(&names.join("::")),
                _ => None,
            },
            _ => None,
        },
        ArgValue::Flag | ArgValue::List(_) => None,
    }
}

/// Parses `contains(pattern = "…")`, whose text isn't a regular expression.
fn contains<'a>(arg: &Arg<'a>, session: &mut Session) -> Option<Arg<'a>> {
    let text = match &arg.value {
        ArgValue::List(args) => args.iter().find_map(|inner| literal(&inner.value)),
        other => literal(other),
    };
    let Some(Value::String(text)) = text else {
        session.error_help(
            arg.span,
            "expected a string literal for `contains`",
            "write `contains(pattern = \"…\")`",
        );
        return None;
    };
    let escaped: String = text
        .chars()
        .flat_map(|letter| {
            let special = "\\.+*?()|[]{}^$#&-~".contains(letter);
            special.then_some('\\').into_iter().chain([letter])
        })
        .collect();
    Some(constraint("pattern", arg.span, Value::String(escaped)))
}

/// Parses `inner(…)`, which applies to the items of a list or the values of a map.
fn inner<'a>(
    arg: &Arg<'a>,
    owner: Owner,
    kind: &Kind,
    reading: &Reading,
    session: &mut Session,
) -> Option<Arg<'a>> {
    let item = match kind {
        Kind::List(item) | Kind::Map(item) => (**item).clone(),
        Kind::Unknown => Kind::Unknown,
        _ if reading.is_with => Kind::Unknown,
        // garde also applies `inner` to the content of an `Option`. schemars finds no items there
        // and omits the constraint from `Kind::crd()`.
        other => {
            warn_of_inner(arg, other, session);
            return None;
        }
    };
    let mut markers = Vec::new();
    for arg in arg.list(session)? {
        translate(arg, owner, &item, reading, &mut markers, session);
    }
    let name = match kind {
        Kind::Map(_) => "values",
        _ => "items",
    };
    (!markers.is_empty()).then(|| list(name, arg.span, markers))
}

fn warn_of_inner(arg: &Arg<'_>, kind: &Kind, session: &mut Session) {
    let message = format!(
        "`inner` is left out, as in `Kind::crd()`: schemars applies it to the items of a list; this field is {}",
        kind.noun()
    );
    let help = match kind {
        Kind::Map(_) => {
            "to have it in the schema, derive `CrdSchema` and write `#[kube(values(validation(…)))]`"
        }
        _ => {
            "to have its constraints in the schema, write them with one `inner` less in `#[schemars(…)]`, which sees through an `Option`"
        }
    };
    session.report(crate::Diagnostic::warning(arg.span, message).help(help));
}

/// Evaluates a literal, arithmetic on literals, or a constant like `u16::MAX`.
fn number(arg: &Arg<'_>, session: &mut Session) -> Option<Value> {
    let value = match &arg.value {
        ArgValue::Literal(literal) if literal.value.is_number() => return Some(literal.value.clone()),
        // schemars 0.8 accepted quoted numbers.
        ArgValue::Literal(literal) => literal.value.as_str().and_then(|text| {
            let number = text.parse::<i128>().ok();
            number
                .or_else(|| whole(&named_constant(text, session)?))
                .and_then(integer)
        }),
        ArgValue::Expr(expr) => match &expr.kind {
            ExprKind::Path(names) if constant(names).is_none() => {
                session.constant(&names.join("::")).filter(Value::is_number)
            }
            _ => calculate(expr, session).and_then(integer),
        },
        _ => None,
    };
    if value.is_none() {
        session.error_help(
            arg.value_span(),
            format!("expected a literal number for `{}`", arg.name),
            "write the number, or a constant of literals and arithmetic",
        );
    }
    value
}

fn integer(value: i128) -> Option<Value> {
    let small = i64::try_from(value).map(Value::from);
    small.or_else(|_| u64::try_from(value).map(Value::from)).ok()
}

fn named_constant(text: &str, session: &mut Session) -> Option<Value> {
    // Before schemars 1, constants were usually named in strings.
    is_path(text).then(|| session.constant(text))?
}

fn whole(value: &Value) -> Option<i128> {
    let signed = value.as_i64().map(i128::from);
    signed.or_else(|| value.as_u64().map(i128::from))
}

fn calculate(expr: &Expr<'_>, session: &mut Session) -> Option<i128> {
    match &expr.kind {
        ExprKind::Literal(value) => whole(value),
        ExprKind::Path(names) => match constant(names) {
            Some(bound) => Some(bound),
            None => whole(&session.constant(&names.join("::"))?),
        },
        ExprKind::Negative(inner) => calculate(inner, session)?.checked_neg(),
        ExprKind::Binary(left, operator, right) => {
            operator.apply(calculate(left, session)?, calculate(right, session)?)
        }
        _ => None,
    }
}

/// Returns the value of e.g. `u8::MAX`, but not of the platform-dependent `usize::MAX`.
fn constant(names: &[&str]) -> Option<i128> {
    let [.., of, which] = names else { return None };
    let (low, high) = match *of {
        "i8" => (i8::MIN.into(), i8::MAX.into()),
        "i16" => (i16::MIN.into(), i16::MAX.into()),
        "i32" => (i32::MIN.into(), i32::MAX.into()),
        "i64" => (i64::MIN.into(), i64::MAX.into()),
        "u8" => (0, u8::MAX.into()),
        "u16" => (0, u16::MAX.into()),
        "u32" => (0, u32::MAX.into()),
        "u64" => (0i128, u64::MAX.into()),
        _ => return None,
    };
    match *which {
        "MIN" => Some(low),
        "MAX" => Some(high),
        _ => None,
    }
}

/// Also accepts `&"…"` and `"…".to_string()`.
fn literal(value: &ArgValue<'_>) -> Option<Value> {
    match value {
        ArgValue::Literal(literal) => Some(literal.value.clone()),
        ArgValue::Expr(expr) => literal_of(expr),
        _ => None,
    }
}

fn literal_of(expr: &Expr<'_>) -> Option<Value> {
    match &expr.kind {
        ExprKind::Literal(value) => Some(value.clone()),
        ExprKind::Negative(_) => expr.value().ok(),
        ExprKind::Array(items) => items.iter().map(literal_of).collect(),
        ExprKind::Method(inner, "to_string" | "to_owned" | "into", args) if args.is_empty() => {
            literal_of(inner)
        }
        ExprKind::Macro(names, body) if names.last() == Some(&"json") => json_of(&Json::read(*body).ok()?),
        _ => None,
    }
}

/// Evaluates `json!` if it only contains literals.
fn json_of(json: &Json<'_>) -> Option<Value> {
    match json {
        Json::Null => Some(Value::Null),
        Json::Value(expr) => literal_of(expr),
        Json::List(items) => items.iter().map(json_of).collect(),
        Json::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| match literal_of(key)? {
                Value::String(key) => Some((key, json_of(value)?)),
                _ => None,
            });
            entries.collect::<Option<Map<_, _>>>().map(Value::Object)
        }
    }
}

/// Keys with a boolean value, for which the markers are flags.
const FLAGS: &[(&str, &str)] = &[
    ("x-kubernetes-preserve-unknown-fields", "preserve_unknown_fields"),
    ("x-kubernetes-embedded-resource", "embedded_resource"),
    ("x-kubernetes-int-or-string", "int_or_string"),
    ("nullable", "nullable"),
];

/// Keys for which a marker has the same value.
const VALUES: &[(&str, &str)] = &[
    ("x-kubernetes-list-type", "list_type"),
    ("x-kubernetes-list-map-keys", "list_map_keys"),
    ("x-kubernetes-map-type", "map_type"),
    ("title", "title"),
    ("default", "default"),
    ("example", "example"),
];

/// Parses `extend("x-kubernetes-…" = value, …)`.
fn extend<'a>(arg: &Arg<'a>, kind: &Kind, markers: &mut Vec<Arg<'a>>, session: &mut Session) {
    let find = |table: &[(&str, &'static str)], key: &str| {
        table
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, marker)| *marker)
    };
    for extension in arg.list(session).into_iter().flatten() {
        let (key, span) = (extension.name, extension.span);
        let named = |session: &mut Session| named_pattern(&extension.value, session);
        let Some(value) = literal(&extension.value).or_else(|| named(session)) else {
            session.error_help(
                extension.value_span(),
                format!("expected a literal for `{key}`"),
                "write a literal: a string, a number, `true`, `[…]` or `{ \"key\": … }`",
            );
            continue;
        };
        if let Some(name) = constraint_in_extend(key) {
            markers.push(constraint(name, span, value));
        } else if let Some(marker) = find(FLAGS, key) {
            if value == Value::Bool(true) {
                markers.push(flag(marker, span));
            }
        } else if let Some(marker) = find(VALUES, key) {
            // On a struct, this key has a different marker.
            let marker = match (marker, kind) {
                ("map_type", Kind::Object) => "struct_type",
                (marker, _) => marker,
            };
            markers.push(valued(marker, span, value));
        } else if key == "x-kubernetes-validations" {
            rules(value, span, markers, session);
        } else {
            session.report(
                crate::Diagnostic::warning(
                    span,
                    format!("`{key}` is not supported in a CRD and is left out"),
                )
                .help("remove it: only `x-kubernetes-…` and OpenAPI constraints are supported"),
            );
        }
    }
}

/// Returns the name in `validation(…)` for a key of `extend("key" = value)`. Alternatives keep
/// their names, because multiple `extend`s add up.
fn constraint_in_extend(key: &str) -> Option<&'static str> {
    let key = Key::named(key).filter(|key| !key.argument.is_empty())?;
    match key.form {
        // A number in JSON Schema, but a flag in OpenAPI.
        Form::Flag(_) => None,
        Form::Parts(_) => Some(key.name),
        _ => Some(key.argument),
    }
}

fn rules<'a>(value: Value, span: Span, markers: &mut Vec<Arg<'a>>, session: &mut Session) {
    const KEYS: &[(&str, &str)] = &[
        ("rule", "rule"),
        ("message", "message"),
        ("messageExpression", "message_expression"),
        ("reason", "reason"),
        ("fieldPath", "field_path"),
        ("optionalOldSelf", "optional_old_self"),
    ];
    let Value::Array(rules) = value else {
        return session.error_help(
            span,
            "expected a list of rules",
            "write `[{ \"rule\": \"…\", \"message\": \"…\" }]`",
        );
    };
    for rule in rules {
        let parts: Map<String, Value> = rule.as_object().cloned().unwrap_or_default();
        let known = KEYS
            .iter()
            .filter_map(|(key, name)| Some((*name, parts.get(*key)?.clone())));
        let args = known.map(|(name, value)| valued(name, span, value)).collect();
        markers.push(list("cel", span, args));
    }
}
