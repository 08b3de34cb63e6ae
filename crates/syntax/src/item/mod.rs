//! Parses a struct or enum into a [`Type`], using its fields, serde attributes, doc comments and
//! markers.

mod default;
mod field;
mod retype;
mod slot;
mod variant;

use std::collections::BTreeMap;

use rbuilder_reader::grammar::{Body, FieldItem, Fields, GenericKind, Generics, TypeItem};
use rbuilder_reader::{Attribute, Span, TypeKind, TypeRef, has_derive};
use rbuilder_schema::{Container, Field, Markers, Shape};

use crate::csv::report_csv_beside_metadata;
use crate::kubebuilder::Commented;
use crate::marker::{self, Kind, Place};
use crate::names::Case;
use crate::serde_attrs::{ContainerAttrs, Directions, Foreign};
use crate::session::SlotType;
use crate::table::Seen;
use crate::versioned::at_version;
use crate::{
    DefaultSource, FieldValue, MarkerSpan, OneWay, SchemaFunction, SchemaSource, Session, Type,
    custom_resource, docs, serde_attrs, suggest,
};
use default::Defaults;
use field::ReadFields;

fn kind(body: &Body<'_>) -> Kind {
    match body {
        Body::Struct(Fields::Named(_)) => Kind::Object,
        Body::Struct(Fields::Unnamed(fields)) if fields.len() == 1 => Kind::of(&fields[0].ty),
        _ => Kind::Unknown,
    }
}

/// Parses a struct or enum. Returns `None`, with an error in the session, if its shape is unclear.
/// There may also be errors along with a type.
pub fn parse_type(attrs: &[Attribute<'_>], mut item: TypeItem<'_>, session: &mut Session) -> Option<Type> {
    let is_ours = session.is_of_derive() || has_derive(attrs, "CrdSchema");
    session.start_item(if is_ours {
        SchemaSource::CrdSchema
    } else {
        SchemaSource::Schemars
    });
    let version = session.module_version.clone();
    if let Some(version) = &version {
        at_version(&mut item, version, session);
    }
    let TypeItem {
        ident,
        generics: parameters,
        body,
    } = item;
    let span = ident.span;
    let type_parameters = default::type_parameters(&parameters);
    let mut reader = Reader {
        session,
        ident: ident.text,
        attrs,
        is_ours,
        defaults: Defaults::Serde,
        type_parameters,
        slots: Vec::new(),
        schema_functions: BTreeMap::new(),
        value_types: BTreeMap::new(),
        sites: Vec::new(),
        variant_sites: Vec::new(),
        marker_spans: Vec::new(),
        values: Vec::new(),
        variant_values: Vec::new(),
        default_variant: None,
        numbers: Some(Vec::new()),
    };
    let serde = serde_attrs::read_container_attrs(attrs, reader.session);
    reader.check_foreign(&serde.foreign);
    let custom_resource = custom_resource::parse_custom_resource(attrs, ident, reader.session);
    // A kind even if its keys couldn't be parsed; otherwise they'd be taken for markers.
    let is_root = custom_resource::is_kind(attrs);
    let read = marker::parse_container(attrs, is_root, kind(&body), reader.session);
    let mut markers = read.markers;
    if let Some(resource) = &custom_resource {
        custom_resource::check_markers(resource, &mut markers, &read.seen, reader.session);
    }
    reader.keep_marker_spans(span, &read.seen);
    reader.defaults = Defaults::choose(read.serde_defaults, attrs, reader.session);
    let stand_in = read.schema_type.is_some() || read.schema_function.is_some() || serde.stands_for.is_some();
    let one_way = match (&read.schema_type, &read.schema_function) {
        (None, None) if markers.schema.is_none() => one_way(attrs, &serde, &body),
        _ => None,
    };
    let is_struct = matches!(body, Body::Struct(_));
    let is_whole_object = custom_resource.as_ref().is_some_and(|kind| kind.no_spec);
    if is_whole_object {
        let has_fields = matches!(body, Body::Struct(Fields::Named(_)));
        custom_resource::check_has_fields(has_fields, span, reader.session);
    }
    let mut shape = match read.schema_type {
        // The schema replaces the fields, so don't parse them.
        _ if markers.schema.is_some() => Shape::default(),
        Some((slot, text)) => Shape::Transparent(reader.add_slot(slot, || SlotType::Text(text))),
        None if let Some(function) = read.schema_function => {
            let stand_in = TypeRef::parse("::std::string::String", span)?;
            Shape::Transparent(reader.add_function(stand_in, None, function))
        }
        None => reader.shape(body, &serde, span, &mut markers)?,
    };
    if let (true, Shape::Object(fields)) = (is_whole_object, &mut shape) {
        let (sites, values) = (&mut reader.sites, &mut reader.values);
        custom_resource::drop_fields_of_objects(fields, sites, values, reader.session);
        report_csv_beside_metadata(fields, reader.session);
    }
    check_one_of(&read.one_of_fields, &shape, reader.session);
    let tag = serde.struct_tag(ident.text);
    let has_own_fields = markers.schema.is_none() && !markers.preserve_unknown_fields && tag.is_none();
    if let (Some(resource), Shape::Object(fields), true, true) =
        (&custom_resource, &shape, is_struct, has_own_fields)
    {
        custom_resource::check_selected_fields(resource, fields, reader.session);
    }
    let needs_option =
        !stand_in && markers.schema.is_none() && reader.check_container(&markers, &serde, &shape);
    let Reader {
        slots,
        schema_functions,
        value_types,
        sites,
        variant_sites,
        marker_spans,
        values,
        variant_values,
        default_variant,
        numbers,
        ..
    } = reader;
    let generics = generics(parameters, session);
    let mut description = described(attrs, Commented::Item, session);
    if let Some(docs) = version
        .map(|version| version.docs)
        .filter(|docs| !docs.is_empty())
    {
        let own = description.map_or(String::new(), |own| format!("\n{own}"));
        description = Some(format!("{docs}{own}"));
    }
    let is_replaced = stand_in || markers.schema.is_some();
    let container = Container {
        name: ident.text.to_owned(),
        description,
        markers,
        tag: tag.filter(|_| is_struct && matches!(shape, Shape::Object(_))),
        transparent: stand_in || serde.transparent,
        denies_unknown: serde.denies_unknown.is_some(),
        shape,
    };
    Some(Type {
        ident: ident.text.to_owned(),
        is_incomplete: session.is_incomplete,
        needs_option,
        span,
        start: attrs.first().map_or(span, Attribute::span).start,
        generics,
        container,
        slots,
        value_types,
        schema_functions,
        sites,
        variant_sites,
        marker_spans,
        custom_resource,
        one_way,
        values,
        variant_values,
        is_replaced,
        numbers: numbers.filter(|numbers| !numbers.is_empty()),
        repr: read_repr(attrs),
        whole_default: serde.shown_default.or(serde.default),
        default_variant,
    })
}

/// Returns the conversion of a type that has just one of `from` and `into`, with the other
/// direction derived by serde.
fn one_way(attrs: &[Attribute<'_>], serde: &ContainerAttrs, body: &Body<'_>) -> Option<OneWay> {
    let is_read = serde.is_one_way?;
    let own_way = if is_read { "Serialize" } else { "Deserialize" };
    let (_, span) = serde.stands_for.as_ref()?;
    // The schema doesn't depend on these fields, so discard any errors in them.
    let mut ignored = Session::default();
    let fields = match body {
        Body::Struct(Fields::Named(fields)) => {
            let name = |field: &FieldItem<'_>| {
                let attrs = serde_attrs::read_field_attrs(&field.attrs, &mut ignored);
                let ident = field.ident.filter(|_| !attrs.skip)?.text;
                let name = serde_attrs::wire_name(
                    ident,
                    &attrs.rename,
                    &serde.rename_all,
                    Case::field,
                    &mut ignored,
                );
                Some(name)
            };
            let mut names: Vec<String> = fields.iter().filter_map(name).collect();
            names.sort();
            Some(names)
        }
        _ => None,
    };
    // Finds nothing in a derive macro, which does not see the other derives.
    has_derive(attrs, own_way).then_some(OneWay {
        span: *span,
        is_read,
        fields,
    })
}

struct Reader<'s, 'a> {
    session: &'s mut Session,
    ident: &'s str,
    attrs: &'s [Attribute<'a>],
    /// True if `derive(CrdSchema)` generates the schema.
    is_ours: bool,
    slots: Vec<TypeRef>,
    schema_functions: BTreeMap<usize, SchemaFunction>,
    /// Types of values that differ from the schema, by slot.
    value_types: BTreeMap<usize, TypeRef>,
    defaults: Defaults,
    type_parameters: Vec<String>,
    sites: Vec<Span>,
    variant_sites: Vec<Vec<Span>>,
    marker_spans: Vec<MarkerSpan>,
    values: Vec<FieldValue>,
    variant_values: Vec<Vec<FieldValue>>,
    default_variant: Option<usize>,
    /// Discriminants of the variants so far. `None` once one of them is unknown.
    numbers: Option<Vec<i64>>,
}

/// A container's rules for the names of its fields and for absent fields.
struct FieldRules {
    rename_all: Directions<Case>,
    /// The source of absent fields in serde.
    default: Option<DefaultSource>,
    /// The source of absent fields in schemars.
    shown_default: Option<DefaultSource>,
}

impl Reader<'_, '_> {
    /// Reports markers on a type that contradict its serde attributes. Returns whether the schema
    /// accepts a `null` that serde only accepts in an `Option`.
    fn check_container(&mut self, markers: &Markers, serde: &ContainerAttrs, shape: &Shape) -> bool {
        if let Some(at) = serde.denies_unknown
            && markers.preserve_unknown_fields
        {
            let message = "the API server keeps unknown fields here, but serde rejects them";
            self.session
                .error_help(at, message, "remove `deny_unknown_fields`");
        }
        // A newtype around an `Option` accepts `null` by itself.
        let holds_option = match shape {
            Shape::Transparent(slot) => self.slots.get(*slot).is_some_and(marker::is_option),
            Shape::Object(_) | Shape::Enum { .. } => false,
        };
        markers.nullable && !holds_option
    }

    fn shape(
        &mut self,
        body: Body<'_>,
        serde: &ContainerAttrs,
        span: Span,
        markers: &mut Markers,
    ) -> Option<Shape> {
        if let Some((text, at)) = &serde.stands_for {
            return self.stand_in(text, *at).map(Shape::Transparent);
        }
        match body {
            Body::Struct(fields) if serde.transparent => self.transparent(fields, span, markers),
            Body::Struct(Fields::Named(fields)) => {
                let rules = FieldRules {
                    rename_all: serde.rename_all.clone(),
                    default: serde.default.clone(),
                    shown_default: serde.shown_default.clone(),
                };
                let ReadFields {
                    fields,
                    sites,
                    values,
                } = self.fields(fields, &rules);
                (self.sites, self.values) = (sites, values);
                self.check_case(&fields, serde);
                Some(Shape::Object(fields))
            }
            Body::Struct(fields @ Fields::Unnamed(_)) if fields.list().len() == 1 => {
                self.transparent(fields, span, markers)
            }
            Body::Struct(Fields::Unnamed(_)) => {
                let help = "name the fields: the items of a list in a CRD have one type";
                self.session
                    .error_help(span, "a tuple struct has no structural schema", help);
                None
            }
            Body::Struct(Fields::Unit) => {
                let help = "write `{}` after the name: serde then uses an empty object";
                self.session.error_help(
                    span,
                    "a unit struct is `null` in JSON, which a CRD cannot store",
                    help,
                );
                None
            }
            Body::Enum(variants) => self.enumeration(variants, serde),
            Body::Union => {
                self.session.error(span, "a union has no schema");
                None
            }
        }
    }

    /// Warns about snake-case names that serde took from Rust by default.
    fn check_case(&mut self, fields: &[Field], serde: &ContainerAttrs) {
        // `rename_all` means that the case was chosen deliberately.
        if !self.session.is_ours() || serde.rename_all.read.is_some() {
            return;
        }
        let is_snake =
            |field: &Field| field.name == field.ident && field.name.trim_matches('_').contains('_');
        let found = fields
            .iter()
            .zip(&self.sites)
            .find(|(field, _)| !field.flatten && is_snake(field));
        if let Some((field, at)) = found {
            let message = format!(
                "the field is \"{}\" in JSON, and a name cannot be changed once objects are stored; Kubernetes writes \"{}\"",
                field.name,
                Case::Camel.field(&field.ident)
            );
            let help = "add `#[serde(rename_all = \"camelCase\")]` to the type, or `rename_all = \"snake_case\"` to keep such names";
            self.session
                .report(crate::Diagnostic::warning(*at, message).help(help));
        }
    }

    fn transparent(&mut self, fields: Fields<'_>, span: Span, markers: &mut Markers) -> Option<Shape> {
        let mut kept = fields.into_list().into_iter().map(|field| {
            let attrs = serde_attrs::read_field_attrs(&field.attrs, self.session);
            (field, attrs)
        });
        let Some((field, attrs)) = kept.find(|(field, attrs)| !attrs.skip && !is_phantom(&field.ty)) else {
            self.session
                .error(span, "a transparent struct needs a field that is not skipped");
            return None;
        };
        let read = marker::parse_field(
            &field.attrs,
            &field.ty,
            Place::Newtype,
            self.session.scope,
            self.session,
        );
        let slot = self.slot(field.ty, &attrs, &read);
        self.keep_marker_spans(span, &read.seen);
        *markers = std::mem::take(markers).or(read.markers);
        Some(Shape::Transparent(slot))
    }

    fn keep_marker_spans(&mut self, owner: Span, seen: &Seen) {
        let spans = seen.iter().map(|(name, span)| MarkerSpan { owner, name, span });
        self.marker_spans.extend(spans);
    }

    fn reads_by_derive(&self) -> bool {
        // Only works on source text: a derive macro does not see the other derives.
        has_derive(self.attrs, "Deserialize")
    }

    fn check_foreign(&mut self, foreign: &Foreign) {
        if !foreign.keys.is_empty() && self.reads_by_derive() {
            serde_attrs::check_foreign(foreign, self.session);
        }
    }

    fn check_foreign_name(
        &mut self,
        foreign: &Foreign,
        shown: &Directions<String>,
        ident: &str,
        rename_all: &Directions<Case>,
        by_case: fn(Case, &str) -> String,
    ) {
        if foreign.is_renamed() && self.reads_by_derive() {
            serde_attrs::check_foreign_name(foreign, shown, ident, rename_all, by_case, self.session);
        }
    }
}

fn read_repr(attrs: &[Attribute<'_>]) -> Option<String> {
    let repr = attrs.iter().find(|attr| attr.is("repr"))?;
    repr.args().list.first().map(|arg| arg.name.to_owned())
}

fn is_phantom(ty: &TypeRef) -> bool {
    // serde ignores `PhantomData` in a transparent struct.
    matches!(&ty.kind, TypeKind::Path(segments, _) if segments.last().is_some_and(|last| last == "PhantomData"))
}

fn check_one_of(names: &[(String, Span)], shape: &Shape, session: &mut Session) {
    let fields: &[Field] = match shape {
        Shape::Object(fields) => fields,
        _ => &[],
    };
    for (name, at) in names {
        if fields.is_empty() {
            session.error(*at, "expected a struct with named fields");
        } else if !fields.iter().any(|field| field.ident == *name) {
            let help = suggest::describe_candidates(name, fields.iter().map(|field| field.ident.as_str()));
            session.error_help(*at, format!("unknown field `{name}`"), help);
        }
    }
}

fn described(attrs: &[Attribute<'_>], commented: Commented, session: &mut Session) -> Option<String> {
    marker::schemars_description(attrs).or_else(|| docs::read_description(attrs, commented, session))
}

fn generics(parameters: Generics<'_>, session: &mut Session) -> Vec<(String, Option<TypeRef>)> {
    let mut read = Vec::new();
    for parameter in parameters.list {
        match parameter.kind {
            GenericKind::Lifetime => {}
            GenericKind::Type => read.push((parameter.ident.text.to_owned(), parameter.default)),
            GenericKind::Const => {
                let help = "write the type for each value, or use a list with `max_items`";
                let message = "const parameters are not supported in a schema";
                session.error_help(parameter.declaration, message, help);
            }
        }
    }
    read
}
