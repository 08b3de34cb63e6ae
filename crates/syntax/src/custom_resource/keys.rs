//! The tables of container keys.

use rbuilder_diagnostic::suggest;
use rbuilder_reader::{ExprKind, TypeKind, TypeRef};

use super::deprecation::read_deprecation;
use super::{Parts, column, conversion, metadata, scale, selectable};
use crate::args::{Arg, ArgValue, Literal, ReadArg as _};
use crate::table::ArgRow;
use crate::{SchemaMode, SelectableField, Session, marker};

/// A key of `#[kube(…)]` or `#[crd(…)]` on a kind.
pub type ContainerKey = ArgRow<Parts>;

/// The keys that kube-derive supports on a kind.
pub const KUBE_KEYS: &[ContainerKey] = &[
    ArgRow::once("group", "API group, a DNS name.", |arg, parts, session| {
        parts.group = arg.text(session)
    }),
    ArgRow::once(
        "version",
        "API version: `v1`, `v1alpha1`, `v2beta3`.",
        |arg, parts, session| {
            parts.version = arg.text(session);
        },
    ),
    ArgRow::once(
        "kind",
        "Kind in upper camel case; not the name of the struct.",
        |arg, parts, session| {
            parts.kind = arg.text(session);
        },
    ),
    ArgRow::once(
        "root",
        "Name of the generated struct [default: the kind].",
        |arg, parts, session| {
            parts.made.root = arg.text(session);
        },
    ),
    ArgRow::once(
        "plural",
        "Plural in lower case [default: the plural of the singular, by kube's rules].",
        |arg, parts, session| {
            parts.made.plural = arg.text(session);
        },
    ),
    ArgRow::once(
        "singular",
        "Singular in lower case [default: the kind].",
        |arg, parts, session| {
            parts.made.singular = arg.text(session);
        },
    ),
    ArgRow::repeatable("shortname", "Short name for kubectl.", |arg, parts, session| {
        parts.made.short_names.extend(arg.text(session));
    }),
    ArgRow::repeatable(
        "category",
        "Category of kinds that kubectl lists together, such as `all`.",
        |arg, parts, session| {
            parts.made.categories.extend(arg.text(session));
        },
    ),
    ArgRow::once(
        "namespaced",
        "The kind is namespaced [default: cluster-scoped].",
        |arg, parts, session| {
            parts.made.namespaced = kube_bool(arg, session).unwrap_or_default();
        },
    ),
    ArgRow::once(
        "no_spec",
        "The fields are at the top level, next to `metadata`, without `spec`.",
        |arg, parts, session| {
            parts.made.no_spec = kube_bool(arg, session).unwrap_or_default();
        },
    ),
    ArgRow::once(
        "cel",
        "kube also checks the CEL rules in the client.",
        |arg, _, session| {
            if matches!(arg.value, ArgValue::List(_)) {
                let message = "`cel` of a kind is a flag: kube checks the CEL rules in the client as well";
                let help =
                    "write the rule in `#[crd(cel(…))]`, or, for the whole object, in `validation = \"…\"`";
                session.error_help(arg.span, message, help);
            }
        },
    ),
    ArgRow::once(
        "status",
        "Type of the status; enables the status subresource.",
        |arg, parts, session| {
            parts.made.status = type_path(arg, session);
        },
    ),
    ArgRow::repeatable("derive", "Derive for the generated struct.", |_, _, _| {}),
    ArgRow::repeatable("attr", "Attribute for the generated struct.", |_, _, _| {}),
    ArgRow::once(
        "schema",
        "`derived`, `manual` or `disabled`: source of kube's own schema.",
        |arg, parts, session| {
            parts.made.schema_mode = schema_mode(arg, session);
            parts.made.schema_span = arg.span;
        },
    ),
    ArgRow::once(
        "scale",
        "Scale subresource, with its JSON paths.",
        |arg, parts, session| {
            parts.made.scale = scale::read_scale(arg, session);
        },
    ),
    ArgRow::repeatable(
        "printcolumn",
        "Additional column for `kubectl get`.",
        |arg, parts, session| {
            parts
                .made
                .print_columns
                .extend(column::read_print_columns(arg, session));
        },
    ),
    ArgRow::repeatable(
        "selectable",
        "JSON path of a field that can be used in field selectors.",
        |arg, parts, session| {
            if let Some(json_path) = arg.text(session) {
                let field = SelectableField {
                    span: arg.value_span(),
                    json_path,
                };
                selectable::check_selectable(&field, &parts.made.selectable_fields, session);
                parts.made.selectable_fields.push(field);
            }
        },
    ),
    ArgRow::once("doc", "Description of the kind.", |arg, parts, session| {
        parts.made.doc = arg.text(session)
    }),
    ArgRow::repeatable(
        "annotation",
        "Annotation, `annotation(\"key\", \"value\")`.",
        |arg, parts, session| {
            metadata::add_pair(arg, &mut parts.made.annotations, session);
        },
    ),
    ArgRow::repeatable(
        "label",
        "Label, `label(\"key\", \"value\")`.",
        |arg, parts, session| {
            metadata::add_pair(arg, &mut parts.made.labels, session);
        },
    ),
    ArgRow::once(
        "storage",
        "True for the storage version [default: true].",
        |arg, parts, session| {
            parts.made.storage = kube_bool(arg, session).unwrap_or(true);
            parts.made.is_storage_written = true;
        },
    ),
    ArgRow::once(
        "served",
        "True if the API server serves this version [default: true].",
        |arg, parts, session| {
            parts.made.served = kube_bool(arg, session).unwrap_or(true);
        },
    ),
    ArgRow::once(
        "deprecated",
        "The version is deprecated; a string is the warning.",
        |arg, parts, session| {
            parts.made.deprecated = Some(read_deprecation(arg, session));
        },
    ),
    ArgRow::repeatable(
        "validation",
        "CEL validation rule for the whole object.",
        |arg, parts, session| {
            parts.made.validations.extend(root_rule(arg, session));
        },
    ),
    ArgRow::repeatable("rule", "`validation` in kube 0.98.", |arg, parts, session| {
        parts.made.validations.extend(root_rule(arg, session));
    }),
    ArgRow::once(
        "crates",
        "Paths of the crates that generated code uses.",
        |_, _, _| {},
    ),
];

/// The keys of `#[crd(…)]` that kube lacks. They only affect the CRD, not the objects.
pub const CRD_KEYS: &[ContainerKey] = &[
    ArgRow::repeatable(
        "annotation",
        "Annotation on the CRD only.",
        |arg, parts, session| {
            metadata::add_pair(arg, &mut parts.made.annotations, session);
        },
    ),
    ArgRow::repeatable("label", "Label on the CRD only.", |arg, parts, session| {
        metadata::add_pair(arg, &mut parts.made.labels, session);
    }),
    ArgRow::once(
        "optional_spec",
        "The API server accepts objects without a spec, although kube's types do not.",
        |arg, parts, session| {
            parts.made.optional_spec = arg.boolean(session).unwrap_or_default();
        },
    ),
    ArgRow::once(
        "root_schema",
        "Keys of the schema of the whole object, as in a manifest: `{ \"properties\": { \"metadata\": { … } } }`.",
        |arg, parts, session| {
            parts.made.root_schema = marker::read_root_schema(arg, session).map(Box::new);
        },
    ),
    ArgRow::once(
        "status_subresource",
        "True if the status is a subresource [default: true if it has a type].",
        |arg, parts, session| {
            parts.made.status_subresource = arg.boolean(session);
        },
    ),
    ArgRow::once(
        "conversion",
        "Conversion webhook; without arguments, as scaffolded by kubebuilder.",
        |arg, parts, session| {
            parts.made.conversion = conversion::read_conversion(arg, session);
        },
    ),
];

/// Like kube, accepts `true`, `false`, a bare name, and either word in quotes.
fn kube_bool(arg: &Arg, session: &mut Session) -> Option<bool> {
    match arg.literal().and_then(|literal| literal.value.as_str()) {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => arg.boolean(session),
    }
}

fn schema_mode(arg: &Arg, session: &mut Session) -> SchemaMode {
    match arg.text(session).as_deref() {
        Some("derived") | None => SchemaMode::Derived,
        Some("manual") => SchemaMode::Manual,
        Some("disabled") => SchemaMode::Disabled,
        Some(other) => {
            let message = format!("expected `derived`, `manual` or `disabled` for `schema`, found `{other}`");
            let help = suggest::describe_candidates(other, ["derived", "manual", "disabled"]);
            session.error_help(arg.value_span(), message, help);
            SchemaMode::Derived
        }
    }
}

/// Reads `status = "path::Status"`, with optional quotes.
fn type_path(arg: &Arg, session: &mut Session) -> Option<TypeRef> {
    let span = arg.value_span();
    let ty = match &arg.value {
        ArgValue::Expr(expr) => match &expr.kind {
            // The parsed path has lost its type arguments, so parse the text again.
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
                format!("expected a type for `{}`", arg.name),
                "write `status = \"MemcachedStatus\"`",
            );
            None
        }
    }
}

fn root_rule(arg: &Arg, session: &mut Session) -> Option<rbuilder_schema::Cel> {
    if matches!(arg.value, ArgValue::List(_)) {
        session.error_help(
            arg.span,
            "`validation(…)` cannot constrain a whole kind",
            "write a CEL rule, `validation = \"…\"`, or move the constraint to a field",
        );
        return None;
    }
    marker::read_cel_rule(arg, session)
}

/// Reads JSON, an alternative to arguments in kube.
pub(super) fn from_json<T: serde::de::DeserializeOwned>(arg: &Arg, session: &mut Session) -> Option<T> {
    let text = arg.text(session)?;
    serde_json::from_str(&text)
        .map_err(|error| {
            let help = format!("write `{}(…)` with named arguments", arg.name);
            session.error_help(
                arg.value_span(),
                format!("invalid JSON in `{}`: {error}", arg.name),
                help,
            );
        })
        .ok()
}
