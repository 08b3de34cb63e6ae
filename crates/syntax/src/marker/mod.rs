//! `#[kube(…)]` and `#[crd(…)]` on types, fields and variants: the table of markers and their
//! parser.
//!
//! Each family of markers is a module with a table of rows, listed in `FAMILIES`. The effect of a
//! marker on the schema is implemented in `rbuilder-schema`.
//!
//! # Adding a marker
//!
//! A key of `validation(…)` is a row in `crates/schema/src/keys/table.rs`, which covers steps 1 to
//! 5 and the advice in step 6: see `crates/schema/src/schema.rs`.
//!
//! 1. Add a row and its parser to a family. `check` is where we report markers that contradict each
//!    other. A marker with arguments, such as `cel(…)`, has a table of arguments and a function
//!    `describe_…_args`: re-export the function below, and list the marker in
//!    `crates/syntax/src/nested_args.rs` for the reference.
//! 2. A marker that writes a new schema key needs the key first: see `crates/schema/src/schema.rs`.
//!    If the key only describes the value, the parser just sets it in `Markers::stated`: go on at
//!    step 5. For other keys, add a field to `crates/schema/src/markers.rs`, and its effect to
//!    `crates/schema/src/apply/` or, for presence and one-of rules, to
//!    `crates/schema/src/object.rs`.
//! 3. If it sets a key that is invalid for some entire objects, add it to
//!    `custom_resource/whole_object.rs`, so that an error about a kind with `no_spec` points to the
//!    marker.
//! 4. To import CRDs, set it in `crates/importer/src/fit.rs` and print it in
//!    `crates/importer/src/print/markers.rs`.
//! 5. If schemars, validator, garde or kube's `x_kube` has an equivalent, translate it: `schemars`
//!    and `x_kube`, next to this file.
//! 6. If Go has an equivalent, add advice: `crates/syntax/src/kubebuilder/mod.rs`, `schemars.rs`
//!    there for types with `derive(JsonSchema)`, `crates/generator/tests/advice/go_markers.rs` and
//!    docs/from-kubebuilder.md.
//! 7. Test it: a field in `crates/runtime/tests/twin/markers.rs` (`kinds_use_every_marker` in
//!    `twin.rs` fails without one) and one in `crates/generator/tests/cases/markers/in/src/lib.rs`,
//!    a mistake in `derive/tests/ui/`, and rows in `crates/generator/tests/mutations/tables/`.
//! 8. Run `cargo xtask docs`.

mod about;
mod allow;
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

use rbuilder_re2::Pattern;
use rbuilder_reader::{Attribute, Span, TypeRef};
use rbuilder_schema::Markers;

use crate::args::{self, Arg};
use crate::csv::{read_descriptor, report_misplaced_csv};
use crate::custom_resource::CRD_KEYS;
use crate::table::{Row, Seen, Target, read_args};
use crate::{SchemaFunction, Session};

pub(crate) use about::describe_external_docs_args;
pub(crate) use cel::{describe_cel_args, read_cel_rule};
pub(crate) use kind::{Kind, is_option, takes_rest};
pub(crate) use raw::read_root_schema;
pub(crate) use schemars::{is_required_elsewhere, schemars_description};
pub(crate) use unknown::{Owner, describe_unknown};

/// Returns the reason why the API server would reject a regular expression, or `None` if it's
/// valid. The syntax is RE2, as in Go.
pub fn pattern_problem(text: &str) -> Option<String> {
    Pattern::parse(text).err()
}

/// Where a marker is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A struct or enum.
    Type,
    /// A named field.
    Field,
    /// The only field of a newtype.
    Newtype,
    /// An enum variant.
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

/// A marker: its row in the reference, and its parser.
pub struct Marker {
    /// The name of the marker.
    pub name: &'static str,
    /// The form in source.
    pub form: &'static str,
    /// A one-line description.
    pub doc: &'static str,
    /// Where the marker is allowed.
    pub places: &'static [Place],
    /// True if the marker may occur more than once on the same item.
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
    allow::MARKERS,
];

/// Returns all markers, in the order of the reference.
pub fn markers() -> impl Iterator<Item = &'static Marker> + Clone {
    FAMILIES.iter().flat_map(|family| family.iter())
}

pub(crate) fn is_marker(name: &str) -> bool {
    find(name).is_some()
}

fn find(name: &str) -> Option<&'static Marker> {
    markers().find(|marker| marker.name == name)
}

/// The markers on a single item, while they are being read.
struct Reading {
    place: Place,
    /// Set on a kind, whose `#[crd(…)]` also contains container keys.
    is_root: bool,
    kind: Kind,
    /// The scope of `allow(…)`.
    scope: Span,
    markers: Markers,
    seen: Seen,
    /// The fields named in e.g. `exactly_one_of`.
    one_of_fields: Vec<(String, Span)>,
    /// From `schema_type`, parsed and as written.
    schema_type: Option<(TypeRef, String)>,
    schema_function: Option<SchemaFunction>,
    /// Set if the type comes from schemars' `with`, which serde ignores.
    is_with: bool,
    serde_defaults: Option<bool>,
    /// An argument failed to parse; it may have contained a marker that seems to be missing.
    is_incomplete: bool,
}

impl Reading {
    fn new(place: Place, kind: Kind) -> Self {
        Reading {
            place,
            is_root: false,
            kind,
            scope: Span::default(),
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

    fn owner(&self) -> Owner {
        match self.is_root {
            true => Owner::KindMarkers,
            false => Owner::Elsewhere(self.place),
        }
    }

    fn is_read(&self, name: &str) -> bool {
        self.seen.has(name)
    }

    fn at(&self, name: &str) -> Span {
        self.seen.at(name).unwrap_or_default()
    }

    fn read<'t, 'a: 't>(&mut self, args: impl IntoIterator<Item = &'t Arg<'a>>, session: &mut Session) {
        let report_unknown = |arg: &Arg<'_>, reading: &mut Self, session: &mut Session| {
            report_unknown_marker(arg, reading.owner(), session);
            // The unknown marker may be a misspelling of one that the checks would miss.
            reading.is_incomplete = true;
        };
        read_args(args, self, find, report_unknown, session);
    }

    fn check(&self, session: &mut Session) {
        session.is_incomplete |= self.is_incomplete;
        if !self.seen.is_empty() {
            check::check_reading(self, session);
        }
    }

    /// Checks the markers, and their consistency if this place caused no errors. `had` is the
    /// number of errors before it was read.
    fn check_whole(&self, had: usize, session: &mut Session) {
        self.check(session);
        // After an error, any further findings would probably be mere consequences.
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

    /// `validation` is repeatable: `validation(…)` and `validation = "…"` are different markers,
    /// and the constraints inside have separate rows.
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

#[derive(Default)]
pub(crate) struct ContainerMarkers {
    pub(crate) markers: Markers,
    /// The fields named in e.g. `exactly_one_of`, which may not exist.
    pub(crate) one_of_fields: Vec<(String, Span)>,
    pub(crate) schema_type: Option<(TypeRef, String)>,
    pub(crate) schema_function: Option<SchemaFunction>,
    pub(crate) serde_defaults: Option<bool>,
    pub(crate) seen: Seen,
}

#[derive(Default)]
pub(crate) struct FieldMarkers {
    pub(crate) markers: Markers,
    pub(crate) schema_type: Option<(TypeRef, String)>,
    pub(crate) schema_function: Option<SchemaFunction>,
    pub(crate) is_with: bool,
    pub(crate) seen: Seen,
}

pub(crate) fn parse_container(
    attrs: &[Attribute<'_>],
    is_root: bool,
    kind: Kind,
    session: &mut Session,
) -> ContainerMarkers {
    // On a kind, `#[kube(…)]` contains kube's own keys, so only parse `#[crd(…)]` there.
    let had = session.diagnostics.error_count();
    let mut reading = Reading {
        is_root,
        scope: session.scope,
        ..Reading::new(Place::Type, kind)
    };
    for attr in attrs {
        if attr.is("crd") || (attr.is("kube") && !is_root) {
            let args = args::check_args(attr, session).iter();
            reading.read(args.filter(|arg| !is_container_key(arg, is_root)), session);
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

/// Returns true if the argument isn't a marker. `crate` is for the derive, and a container's keys
/// are parsed along with the kind.
fn is_container_key(arg: &Arg<'_>, is_root: bool) -> bool {
    arg.name == "crate" || (is_root && CRD_KEYS.iter().any(|key| key.name == arg.name))
}

/// Reads the markers of a field. `allow(…)` applies to `scope`.
pub(crate) fn parse_field(
    attrs: &[Attribute<'_>],
    ty: &TypeRef,
    place: Place,
    scope: Span,
    session: &mut Session,
) -> FieldMarkers {
    let mut reading = Reading {
        scope,
        ..Reading::new(place, Kind::of(ty))
    };
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

/// Returns the markers with their spans. `allow(…)` applies to `scope`.
pub(crate) fn parse_variant(attrs: &[Attribute<'_>], scope: Span, session: &mut Session) -> (Markers, Seen) {
    let mut reading = Reading {
        scope,
        ..Reading::new(Place::Variant, Kind::Unknown)
    };
    read(attrs, &mut reading, session);
    report_misplaced_csv(attrs, Place::Variant.noun(), session);
    (reading.markers, reading.seen)
}

fn read(attrs: &[Attribute<'_>], reading: &mut Reading, session: &mut Session) {
    let had = session.diagnostics.error_count();
    for attr in attrs {
        if attr.is("crd") || attr.is("kube") {
            let args = args::check_args(attr, session);
            reading.read(args, session);
        }
    }
    read_foreign(attrs, reading, session);
    reading.check_whole(had, session);
}

fn read_foreign(attrs: &[Attribute<'_>], reading: &mut Reading, session: &mut Session) {
    // Must come after our own markers, which can specify what these attributes leave open.
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
