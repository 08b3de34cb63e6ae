//! The container keys of a kind: those of kube-derive in `#[kube(…)]`, and our own in `#[crd(…)]`.

mod column;
mod conversion;
mod deprecation;
mod keys;
mod metadata;
mod naming;
mod scale;
mod selectable;
mod versioned;
mod whole_object;

use rbuilder_reader::token::Ident;
use rbuilder_reader::{Attribute, Span, has_derive};
use rbuilder_schema::{CsvKind, check_root};

pub(crate) use self::column::describe_column_args;
pub(crate) use self::conversion::describe_conversion_args;
use self::naming::{check_derived_plural, check_group, check_kind, check_label};
pub(crate) use self::naming::{check_kind_name, check_version, is_crd_name};
pub(crate) use self::scale::describe_scale_args;
pub(crate) use self::selectable::check_selected_fields;
pub(crate) use self::whole_object::{check_has_fields, check_markers, drop_fields_of_objects};
use crate::args::{self, Arg};
use crate::csv::read_csv_kind;
use crate::marker::{Owner, describe_unknown};
use crate::table::{Draft, find_row, read_args};
use crate::{CustomResource, Diagnostic, SchemaMode, Session};

pub use keys::{CRD_KEYS, ContainerKey, KUBE_KEYS};

/// The keys of a kind read so far. Required ones may still be missing.
pub struct Parts {
    group: Option<String>,
    version: Option<String>,
    kind: Option<String>,
    /// The optional keys.
    made: CustomResource,
}

pub(crate) fn is_kind(attrs: &[Attribute<'_>]) -> bool {
    // The compiler removes `#[derive(…)]` from the item passed to a derive macro, so detect a kind
    // by keys that only a kind can have.
    has_derive(attrs, "CustomResource")
        || args::list_args(attrs, &["kube"]).any(|arg| matches!(arg.name, "group" | "version" | "kind"))
}

/// Reads the keys of a kind. Returns `None` if the type isn't a kind, or lacks a required key.
pub(crate) fn parse_custom_resource(
    attrs: &[Attribute<'_>],
    ident: Ident<'_>,
    session: &mut Session,
) -> Option<CustomResource> {
    if !is_kind(attrs) {
        return None;
    }
    let mut draft = Draft::new(Parts {
        group: None,
        version: None,
        kind: None,
        made: empty(ident.span),
    });
    let owner = Owner::KindKeys {
        takes_markers: session.is_ours() || !has_derive(attrs, "JsonSchema"),
    };
    for attr in attrs {
        if attr.is("kube") {
            let args = args::check_args(attr, session);
            let report_unknown = |arg: &Arg<'_>, draft: &mut Draft<Parts>, session: &mut Session| {
                report_unknown_key(arg, owner, session);
                draft.has_unknown = true;
            };
            read_args(args, &mut draft, find_row(KUBE_KEYS), report_unknown, session);
        } else if attr.is("versioned") && session.module_version.is_some() {
            versioned::read_versioned(attr, ident, owner, &mut draft, session);
        } else if attr.is("crd") {
            // `marker::parse_container` reads the other keys, which are markers, and reports
            // errors.
            draft.read_known(&attr.args().list, CRD_KEYS, session);
        }
    }
    draft.value.made.csv = read_csv_kind(attrs, session);
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
        optional_spec: false,
        root_schema: None,
        status_subresource: None,
        status: None,
        tracked_status: None,
        scale: None,
        print_columns: Vec::new(),
        selectable_fields: Vec::new(),
        doc: None,
        storage: true,
        is_storage_written: false,
        served: true,
        deprecated: None,
        validations: Vec::new(),
        annotations: Vec::new(),
        labels: Vec::new(),
        conversion: None,
        schema_mode: SchemaMode::Derived,
        schema_span: span,
        csv: CsvKind::default(),
    }
}

fn report_unknown_key(arg: &Arg, owner: Owner, session: &mut Session) {
    if arg.name.is_empty() {
        let help = "write `name`, `name = value` or `name(…)`";
        return session.error_help(arg.span, "expected the name of a key", help);
    }
    let help = describe_unknown(arg.name, owner);
    session.error_help(arg.span, format!("unknown key `{}` of a kind", arg.name), help);
}

fn check_root_schema(made: &mut CustomResource, at: Span, session: &mut Session) {
    let parts = made.object_parts();
    let Some(keys) = &made.root_schema else { return };
    let diagnostics = check_root(keys, parts);
    if diagnostics.is_empty() {
        return;
    }
    for diagnostic in diagnostics {
        session.report(diagnostic.at(at));
    }
    // The final schema would otherwise report the same errors again.
    made.root_schema = None;
}

fn finish(draft: Draft<Parts>, ident: Ident<'_>, session: &mut Session) -> Option<CustomResource> {
    let Draft {
        value,
        seen,
        has_unknown,
    } = draft;
    let Parts {
        group,
        version,
        kind,
        mut made,
    } = value;
    let span = made.span;
    let at = |name: &str| seen.at(name).unwrap_or(span);
    let wanted = [
        ("group", &group, "example.com"),
        ("version", &version, "v1alpha1"),
        ("kind", &kind, "Memcached"),
    ];
    for (name, value, sample) in wanted {
        if value.is_none() && !seen.has(name) && !has_unknown {
            let help = format!("add `{name} = \"{sample}\"` to `#[kube(…)]`");
            session.error_help(made.span, format!("missing `{name}` of the kind"), help);
        }
    }
    let (group, version, kind) = (group?, version?, kind?);
    check_group(&group, at("group"), session);
    check_version(&version, at("version"), session);
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
                session.error(at(name), format!("duplicate {name} `{value}`"));
            }
        }
    }
    if made.scale.is_some() && !made.has_status_subresource() {
        let help = "add `status = \"…\"` with the type of the status";
        let message = "`scale` has no effect without a status";
        if session.is_ours() {
            session.error_help(at("scale"), message, help);
        } else {
            // Only a warning: kube ignores `scale` here, so projects that use kube alone may well
            // have it.
            session.report(Diagnostic::warning(at("scale"), message).help(help));
            made.scale = None;
        }
    }
    check_root_schema(&mut made, at("root_schema"), session);
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
