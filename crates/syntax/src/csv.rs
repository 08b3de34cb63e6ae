//! `#[csv(…)]` on kinds and fields: descriptions for catalogs and consoles in the
//! ClusterServiceVersion.
//!
//! To add an argument, add a row here, its value in `crates/schema/src/csv.rs`, and print it in
//! `crates/products/src/bundle/csv.rs` or `crates/products/src/bundle/descriptors.rs`. If
//! operator-sdk's base can contain it, also convert it in
//! `crates/products/src/bundle/entry_markers.rs` and `crates/importer/src/print/csv.rs`.

use std::sync::Arc;

use rbuilder_reader::{Attribute, Form, Span};
use rbuilder_schema::{CsvKind, CsvResource, Descriptor, Field, RequiredCrd};

use crate::Session;
use crate::args::{self, Arg, ReadArg as _, origin_at};
use crate::custom_resource::{check_kind_name, check_version, is_crd_name};
use crate::table::{ArgRow, Draft};

const CSV: &str = "csv";

/// The arguments of `#[csv(…)]` on a field.
pub const CSV_FIELD_ARGS: &[ArgRow<Descriptor>] = &[
    ArgRow::once(
        "display_name",
        "Name in forms [default: the name of the field as words].",
        |arg, descriptor, session| descriptor.display_name = read_filled(arg, session),
    ),
    ArgRow::once(
        "description",
        "Text shown below the name [default: the description of the field].",
        |arg, descriptor, session| descriptor.description = read_filled(arg, session),
    ),
    ArgRow::once(
        "x_descriptors",
        "Controls and hints: `[\"urn:alm:descriptor:com.tectonic.ui:podCount\"]` [default: those of the field's type].",
        |arg, descriptor, session| {
            descriptor.x_descriptors = arg.texts(session).unwrap_or_default();
            if descriptor.x_descriptors.iter().any(|text| text.trim().is_empty()) {
                report_empty(arg, session);
            }
        },
    ),
    ArgRow::once(
        "order",
        "Position: lower numbers come first [default: after all numbers].",
        |arg, descriptor, session| descriptor.order = arg.count(session),
    ),
    ArgRow::once(
        "skip",
        "Leaves out the field and all below it.",
        |arg, descriptor, session| {
            descriptor.skip = arg.flag(session);
        },
    ),
];

/// The arguments of `#[csv(…)]` on a kind.
pub const CSV_KIND_ARGS: &[ArgRow<CsvKind>] = &[
    ArgRow::once(
        "display_name",
        "Name in catalogs [default: the name of the kind as words].",
        |arg, kind, session| kind.display_name = read_filled(arg, session),
    ),
    ArgRow::once(
        "description",
        "Text shown below the name [default: the description of the kind].",
        |arg, kind, session| kind.description = read_filled(arg, session),
    ),
    ArgRow::once(
        "order",
        "Position: lower numbers come first [default: after all numbers].",
        |arg, kind, session| kind.order = arg.count(session),
    ),
    ArgRow::repeatable(
        "resource",
        "A kind of objects that belong to an object of this kind: `resource(kind = \"Deployment\", version = \"v1\")`, with `name` for a CRD [default: the kinds of Kubernetes that the manager may create].",
        add_resource,
    ),
    ArgRow::repeatable(
        "required",
        "A CRD of another project that must be installed: `required(name = \"certificates.cert-manager.io\", version = \"v1\", kind = \"Certificate\", description = \"…\")`, with `display_name`.",
        add_required,
    ),
];

const RESOURCE_ARGS: &[ArgRow<CsvResource>] = &[
    ArgRow::once("kind", "Kind.", |arg, resource, session| {
        resource.kind = read_kind_name(arg, session).unwrap_or_default();
    }),
    ArgRow::once("version", "Version.", |arg, resource, session| {
        resource.version = read_version(arg, session).unwrap_or_default();
    }),
    ArgRow::once("name", "Name of the CRD.", |arg, resource, session| {
        resource.name = read_crd_name(arg, session).unwrap_or_default();
    }),
];

const REQUIRED_ARGS: &[ArgRow<RequiredCrd>] = &[
    ArgRow::once("name", "Name of the CRD.", |arg, required, session| {
        required.name = read_crd_name(arg, session).unwrap_or_default();
    }),
    ArgRow::once("version", "Version.", |arg, required, session| {
        required.version = read_version(arg, session).unwrap_or_default();
    }),
    ArgRow::once("kind", "Kind.", |arg, required, session| {
        required.kind = read_kind_name(arg, session).unwrap_or_default();
    }),
    ArgRow::once("display_name", "Name in catalogs.", |arg, required, session| {
        required.display_name = read_filled(arg, session);
    }),
    ArgRow::once("description", "The purpose of it.", |arg, required, session| {
        required.description = read_filled(arg, session).unwrap_or_default();
    }),
];

/// Reads `#[csv(…)]` on a field. With a bare `#[csv]`, the description comes from the field's
/// schema.
pub(crate) fn read_descriptor(attrs: &[Attribute<'_>], session: &mut Session) -> Option<Arc<Descriptor>> {
    let descriptor: Descriptor = read_attributes(attrs, CSV_FIELD_ARGS, session)?;
    let first = attrs.iter().find(|attr| attr.is(CSV))?;
    Some(Arc::new(Descriptor {
        origin: origin_at(first.span()),
        ..descriptor
    }))
}

/// Reads `#[csv(…)]` on a kind. A bare `#[csv]` is an error: kinds are described even without the
/// attribute.
pub(crate) fn read_csv_kind(attrs: &[Attribute<'_>], session: &mut Session) -> CsvKind {
    for attr in attrs.iter().filter(|attr| attr.is(CSV)) {
        let is_bare = match attr.form() {
            Form::Path => true,
            Form::List(args) => args.is_end(),
            Form::Value(_) => false,
        };
        if is_bare {
            let help = "write `#[csv(display_name = \"…\")]`, or remove it";
            session.error_help(attr.span(), "expected arguments for `csv` on a kind", help);
        }
    }
    read_attributes(attrs, CSV_KIND_ARGS, session).unwrap_or_default()
}

pub(crate) fn report_misplaced_csv(attrs: &[Attribute<'_>], place: &str, session: &mut Session) {
    if let Some(attr) = attrs.iter().find(|attr| attr.is(CSV)) {
        report_misplaced(attr.span(), place, session);
    }
}

/// Reports `#[csv(…)]` on fields of a kind without a spec: the path of a descriptor starts in
/// `spec` or `status`.
pub(crate) fn report_csv_beside_metadata(fields: &[Field], session: &mut Session) {
    for field in fields {
        let origin = field
            .markers
            .descriptor
            .as_ref()
            .map(|descriptor| descriptor.origin);
        if let Some((start, end)) = origin.and_then(|origin| origin.span) {
            report_misplaced(Span { start, end }, "a field beside `metadata`", session);
        }
    }
}

fn report_misplaced(at: Span, place: &str, session: &mut Session) {
    session.error_help(
        at,
        format!("`{CSV}` is not allowed on {place}"),
        "use it on a kind, or on a field of its spec or status",
    );
}

fn read_attributes<T: Default + 'static>(
    attrs: &[Attribute<'_>],
    rows: &'static [ArgRow<T>],
    session: &mut Session,
) -> Option<T> {
    let mut draft = None;
    for attr in attrs.iter().filter(|attr| attr.is(CSV)) {
        let args = args::check_args(attr, session);
        let draft = draft.get_or_insert_with(Draft::<T>::default);
        draft.read(CSV, args, rows, &[], session);
    }
    draft.map(|draft| draft.value)
}

fn add_resource(arg: &Arg<'_>, kind: &mut CsvKind, session: &mut Session) {
    let Some(resource) = read_resource(arg, session) else {
        return;
    };
    // An invalid kind is left empty and has already been reported.
    if !resource.kind.is_empty() && kind.resources.contains(&resource) {
        let message = format!("duplicate `resource` of kind `{}`", resource.kind);
        session.error_help(arg.span, message, "remove one of the two");
        return;
    }
    kind.resources.push(resource);
}

fn add_required(arg: &Arg<'_>, kind: &mut CsvKind, session: &mut Session) {
    let Some(required) = read_required(arg, session) else {
        return;
    };
    // A ClusterServiceVersion lists every version of a CRD as a separate entry.
    let is_same = |known: &RequiredCrd| known.name == required.name && known.version == required.version;
    // An invalid name is left empty and has already been reported.
    if !required.name.is_empty() && kind.required.iter().any(is_same) {
        let message = format!(
            "duplicate `required` of CRD `{}` in version `{}`",
            required.name, required.version
        );
        session.error_help(arg.span, message, "remove one of the two");
        return;
    }
    kind.required.push(required);
}

fn read_resource(arg: &Arg<'_>, session: &mut Session) -> Option<CsvResource> {
    let draft = Draft::of_list(arg, RESOURCE_ARGS, session)?;
    let samples = [("kind", "Deployment"), ("version", "v1")];
    draft.require(arg, &samples, session).then_some(draft.value)
}

fn read_required(arg: &Arg<'_>, session: &mut Session) -> Option<RequiredCrd> {
    let draft = Draft::of_list(arg, REQUIRED_ARGS, session)?;
    let samples = [
        ("name", "certificates.cert-manager.io"),
        ("version", "v1"),
        ("kind", "Certificate"),
        ("description", "Certificates of the servers."),
    ];
    let is_complete = draft.require(arg, &samples, session);
    is_complete.then(|| RequiredCrd {
        origin: arg.origin(),
        ..draft.value
    })
}

fn read_filled(arg: &Arg<'_>, session: &mut Session) -> Option<String> {
    let text = arg.text(session)?;
    if text.trim().is_empty() {
        report_empty(arg, session);
        return None;
    }
    Some(text)
}

fn report_empty(arg: &Arg<'_>, session: &mut Session) {
    let message = format!("`{}` must not be empty", arg.name);
    session.error_help(arg.value_span(), message, "write a string, or remove it");
}

fn read_version(arg: &Arg<'_>, session: &mut Session) -> Option<String> {
    let version = read_filled(arg, session)?;
    check_version(&version, arg.value_span(), session);
    Some(version)
}

fn read_kind_name(arg: &Arg<'_>, session: &mut Session) -> Option<String> {
    let kind = read_filled(arg, session)?;
    check_kind_name(&kind, 63, arg.value_span(), session).then_some(kind)
}

fn read_crd_name(arg: &Arg<'_>, session: &mut Session) -> Option<String> {
    let name = read_filled(arg, session)?;
    if is_crd_name(&name) {
        return Some(name);
    }
    session.error_help(
        arg.value_span(),
        format!("expected the name of a CRD for `{}`, found `{name}`", arg.name),
        "write its plural and its group: `certificates.cert-manager.io`",
    );
    None
}
