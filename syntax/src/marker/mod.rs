//! `#[kube(…)]` and `#[crd(…)]` on types, fields and variants: the marker table and its reader.
//!
//! A family of markers is a file here with its rows; a new marker is a row. What a marker does to a schema
//! is `rbuilder-schema`'s to know.

mod about;
mod cel;
mod check;
mod constraint;
mod kind;
mod nested;
mod one_of;
mod override_type;
mod presence;
mod raw;
mod schemars;
mod topology;
mod unknown;
mod value;
mod x_kube;

use rbuilder_reader::{Attribute, Span, TypeRef};
use rbuilder_schema::{Markers, Pattern};

use crate::args::{self, Arg};
use crate::csv::{read_descriptor, report_misplaced_csv};
use crate::custom_resource::CRD_KEYS;
use crate::table::{Row, Seen, Target, read_args};
use crate::{SchemaFunction, Session};

pub(crate) use about::describe_external_docs_args;
pub(crate) use cel::{describe_cel_args, read_cel_rule};
pub use constraint::{CONSTRAINTS, Constraint, Subject};
pub(crate) use kind::{Kind, is_option, takes_rest};
pub use raw::ROOT_SCHEMA_KEYS;
pub(crate) use raw::read_root_schema;
pub(crate) use schemars::{is_required_elsewhere, schemars_description};
pub(crate) use unknown::{Owner, describe_unknown};

/// Why the API server cannot use a regular expression, which it reads as Go's RE2 does; nothing if it can.
pub fn pattern_problem(text: &str) -> Option<String> {
    Pattern::parse(text).err()
}

/// The places of markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On a struct or enum.
    Type,
    /// On a named field.
    Field,
    /// On the one unnamed field of a newtype.
    Newtype,
    /// On an enum variant.
    Variant,
    /// Inside `items(…)`, `keys(…)` or `values(…)`.
    Value,
}

impl Place {
    fn noun(self) -> &'static str {
        match self {
            Place::Type => "a type",
            Place::Field => "a field",
            Place::Newtype => "the field of a newtype",
            Place::Variant => "a variant",
            Place::Value => "items, keys or values",
        }
    }
}

/// One marker: a row of the reference page, and all that the reader knows of it.
pub struct Marker {
    /// Its name.
    pub name: &'static str,
    /// Its form in source.
    pub form: &'static str,
    /// Its meaning, one line.
    pub doc: &'static str,
    /// The places that it may stand at.
    pub places: &'static [Place],
    /// True if it may be written more than once in one place.
    pub repeatable: bool,
    read: fn(&Arg, &mut Reading, &mut Session),
}

const ANYWHERE: &[Place] = &[
    Place::Type,
    Place::Field,
    Place::Newtype,
    Place::Variant,
    Place::Value,
];
const FIELD: &[Place] = &[Place::Field];
const TYPE: &[Place] = &[Place::Type];

/// Every marker, by family.
const FAMILIES: &[&[Marker]] = &[
    constraint::MARKERS,
    nested::MARKERS,
    cel::MARKERS,
    one_of::MARKERS,
    value::MARKERS,
    presence::MARKERS,
    topology::MARKERS,
    override_type::MARKERS,
    raw::MARKERS,
    about::MARKERS,
];

/// Every marker, in the order of the reference page.
pub fn markers() -> impl Iterator<Item = &'static Marker> + Clone {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// Returns true if there is a marker of this name.
pub(crate) fn is_marker(name: &str) -> bool {
    find(name).is_some()
}

fn find(name: &str) -> Option<&'static Marker> {
    markers().find(|marker| marker.name == name)
}

/// The markers of one place while they are read.
struct Reading {
    place: Place,
    /// True on a kind, whose `#[crd(…)]` has keys beside markers.
    is_root: bool,
    kind: Kind,
    markers: Markers,
    /// Each marker and constraint read.
    seen: Seen,
    /// The fields that `exactly_one_of` and its kin name.
    one_of_fields: Vec<(String, Span)>,
    /// The type that `schema_type` names, and how it is written.
    schema_type: Option<(TypeRef, String)>,
    /// The function that `schema_with` names.
    schema_function: Option<SchemaFunction>,
    /// True if schemars is told of another type, of which serde knows nothing.
    is_with: bool,
    /// The value of `serde_defaults`.
    serde_defaults: Option<bool>,
    /// True if something could not be read: a marker that seems to be missing may be that.
    is_incomplete: bool,
}

impl Reading {
    fn new(place: Place, kind: Kind) -> Self {
        Reading {
            place,
            is_root: false,
            kind,
            markers: Markers::default(),
            seen: Seen::default(),
            one_of_fields: Vec::new(),
            schema_type: None,
            schema_function: None,
            is_with: false,
            serde_defaults: None,
            is_incomplete: false,
        }
    }

    /// Returns the owner of the names that are read.
    fn owner(&self) -> Owner {
        match self.is_root {
            true => Owner::KindMarkers,
            false => Owner::Elsewhere(self.place),
        }
    }

    fn is_read(&self, name: &str) -> bool {
        self.seen.has(name)
    }

    /// Returns the place of the value of a marker or constraint.
    fn at(&self, name: &str) -> Span {
        self.seen.at(name).unwrap_or_default()
    }

    fn read(&mut self, args: &[Arg<'_>], session: &mut Session) {
        let report_unknown = |arg: &Arg<'_>, reading: &mut Self, session: &mut Session| {
            report_unknown_marker(arg, reading.owner(), session);
            reading.is_incomplete = true;
        };
        read_args(args, self, find, report_unknown, session);
    }

    /// Checks what has been read.
    fn check(&self, session: &mut Session) {
        session.is_incomplete |= self.is_incomplete;
        if !self.seen.is_empty() {
            check::check_reading(self, session);
        }
    }

    /// Checks what has been read at a place of its own, of which nothing has been reported since there were `had` errors.
    fn check_whole(&self, had: usize, session: &mut Session) {
        self.check(session);
        if !self.seen.is_empty() && !self.is_incomplete && session.diagnostics.error_count() == had {
            check::check_consistency(self, session);
        }
    }
}

impl Target for Reading {
    fn seen(&mut self) -> &mut Seen {
        &mut self.seen
    }
}

impl Row<Reading> for Marker {
    fn name(&self) -> &'static str {
        self.name
    }

    /// `validation(…)` and `validation = "…"` are two things; the constraints inside have rows of their own.
    fn is_repeatable(&self) -> bool {
        self.repeatable
    }

    fn check_place(&self, arg: &Arg<'_>, reading: &mut Reading, session: &mut Session) -> bool {
        let is_in_place = self.places.contains(&reading.place);
        if !is_in_place {
            misplaced(arg, self, reading.place, session);
            reading.is_incomplete = true;
        }
        is_in_place
    }

    fn read(&self, arg: &Arg<'_>, reading: &mut Reading, session: &mut Session) {
        (self.read)(arg, reading, session);
    }
}

fn report_unknown_marker(arg: &Arg<'_>, owner: Owner, session: &mut Session) {
    let name = arg.name;
    if name.is_empty() {
        session.error_help(
            arg.span,
            "expected the name of a marker",
            "write `name`, `name = value` or `name(…)`",
        );
        return;
    }
    let help = describe_unknown(name, owner);
    session.error_help(arg.span, format!("unknown marker `{name}`"), help);
}

fn misplaced(arg: &Arg<'_>, marker: &Marker, place: Place, session: &mut Session) {
    let places: Vec<_> = marker.places.iter().map(|place| place.noun()).collect();
    session.error_help(
        arg.span,
        format!("`{}` is not allowed on {}", marker.name, place.noun()),
        format!("use it on {}", places.join(", ")),
    );
}

/// The markers of one container.
#[derive(Default)]
pub(crate) struct ContainerMarkers {
    pub(crate) markers: Markers,
    /// The fields that `exactly_one_of` and its kin name, to be looked up among the container's.
    pub(crate) one_of_fields: Vec<(String, Span)>,
    /// The type that `schema_type` names, and how it is written.
    pub(crate) schema_type: Option<(TypeRef, String)>,
    /// The function that `schema_with` names.
    pub(crate) schema_function: Option<SchemaFunction>,
    /// The value of `serde_defaults`.
    pub(crate) serde_defaults: Option<bool>,
    /// The places of the markers and constraints.
    pub(crate) seen: Seen,
}

/// The markers of one field.
#[derive(Default)]
pub(crate) struct FieldMarkers {
    pub(crate) markers: Markers,
    /// The type that `schema_type` names, and how it is written.
    pub(crate) schema_type: Option<(TypeRef, String)>,
    /// The function that `schema_with` names.
    pub(crate) schema_function: Option<SchemaFunction>,
    /// True if schemars is told of another type, of which serde knows nothing.
    pub(crate) is_with: bool,
    /// The places of the markers and constraints.
    pub(crate) seen: Seen,
}

/// Reads the markers on a type. On a kind, `#[kube(…)]` holds kube's own keys, so only `#[crd(…)]` is read.
pub(crate) fn parse_container(
    attrs: &[Attribute<'_>],
    is_root: bool,
    kind: Kind,
    session: &mut Session,
) -> ContainerMarkers {
    let had = session.diagnostics.error_count();
    let mut reading = Reading {
        is_root,
        ..Reading::new(Place::Type, kind)
    };
    for attr in attrs {
        if attr.is("crd") || (attr.is("kube") && !is_root) {
            let mut args = args::of_attribute(attr, session);
            args.retain(|arg| !is_container_key(arg, is_root));
            reading.read(&args, session);
        }
    }
    if !is_root {
        report_misplaced_csv(attrs, "a type other than a kind", session);
    }
    read_foreign(attrs, &mut reading, session);
    reading.check_whole(had, session);
    ContainerMarkers {
        markers: reading.markers,
        one_of_fields: reading.one_of_fields,
        schema_type: reading.schema_type,
        schema_function: reading.schema_function,
        serde_defaults: reading.serde_defaults,
        seen: reading.seen,
    }
}

/// `#[crd(crate = "…")]` is for the derive, and a kind's keys are read with the kind.
fn is_container_key(arg: &Arg<'_>, is_root: bool) -> bool {
    arg.name == "crate" || (is_root && CRD_KEYS.iter().any(|key| key.name == arg.name))
}

/// Reads the markers on a field.
pub(crate) fn parse_field(
    attrs: &[Attribute<'_>],
    ty: &TypeRef,
    place: Place,
    session: &mut Session,
) -> FieldMarkers {
    let mut reading = Reading::new(place, Kind::of(ty));
    read(attrs, &mut reading, session);
    match place {
        Place::Field => reading.markers.descriptor = read_descriptor(attrs, session),
        _ => report_misplaced_csv(attrs, place.noun(), session),
    }
    FieldMarkers {
        markers: reading.markers,
        schema_type: reading.schema_type,
        schema_function: reading.schema_function,
        is_with: reading.is_with,
        seen: reading.seen,
    }
}

/// Reads the markers on a variant, with the places of markers and constraints.
pub(crate) fn parse_variant(attrs: &[Attribute<'_>], session: &mut Session) -> (Markers, Seen) {
    let mut reading = Reading::new(Place::Variant, Kind::Unknown);
    read(attrs, &mut reading, session);
    report_misplaced_csv(attrs, Place::Variant.noun(), session);
    (reading.markers, reading.seen)
}

fn read(attrs: &[Attribute<'_>], reading: &mut Reading, session: &mut Session) {
    let had = session.diagnostics.error_count();
    for attr in attrs {
        if attr.is("crd") || attr.is("kube") {
            let args = args::of_attribute(attr, session);
            reading.read(&args, session);
        }
    }
    read_foreign(attrs, reading, session);
    reading.check_whole(had, session);
}

/// Reads other tools' attributes about the schema, after our own: where those say it, nothing is opaque.
fn read_foreign(attrs: &[Attribute<'_>], reading: &mut Reading, session: &mut Session) {
    for names in [
        &["schemars", "x_kube", "cel_validate"][..],
        &["validate"],
        &["garde"],
    ] {
        for attr in attrs.iter().filter(|attr| names.iter().any(|name| attr.is(name))) {
            schemars::read_attribute(attr, reading, session);
        }
    }
}
