//! A struct or enum to a [`Type`]: serde's attributes, doc comments and markers put together.

use rbuilder_schema::{Container, Content, Field, Markers, Presence, Shape, Variant};

use crate::attribute::Attribute;
use crate::grammar::{Body, FieldItem, Fields, Generic, Generics, TypeItem, VariantItem};
use crate::marker::{self, Kind, Place};
use crate::serde_attrs::{ContainerAttrs, FieldAttrs};
use crate::session::SlotType;
use crate::{Session, SpanId, Type, TypeRef, custom_resource, docs, names, serde_attrs, suggest, types};

/// What the type certainly is on the wire.
fn kind(body: &Body<'_>) -> Kind {
    match body {
        Body::Struct(Fields::Named(_)) => Kind::Object,
        Body::Struct(Fields::Unnamed(fields)) if fields.len() == 1 => Kind::of(&fields[0].ty),
        _ => Kind::Unknown,
    }
}

/// Reads one struct or enum. Nothing comes back where its shape cannot be said at all; the session then holds
/// the reason. A type that does come back may still have errors against it.
pub fn parse_type(attrs: &[Attribute<'_>], item: TypeItem<'_>, session: &mut Session) -> Option<Type> {
    session.start_item();
    let TypeItem {
        ident,
        generics: parameters,
        body,
    } = item;
    let span = ident.span;
    let mut reader = Reader {
        session,
        slots: Vec::new(),
        sites: Vec::new(),
        variant_sites: Vec::new(),
    };
    let serde = serde_attrs::container(attrs, reader.session);
    let custom_resource = custom_resource::parse(attrs, ident, reader.session);
    let is_root = custom_resource::is_kind(attrs);
    let read = marker::parse_container(attrs, is_root, kind(&body), reader.session);
    let mut markers = read.markers;
    let shape = reader.shape(body, &serde, span, &mut markers)?;
    check_one_of(&read.one_of_fields, &shape, reader.session);
    let Reader {
        slots,
        sites,
        variant_sites,
        ..
    } = reader;
    let generics = generics(parameters, session);
    let description = described(attrs);
    let container = Container {
        name: ident.text.to_owned(),
        description,
        markers,
        shape,
        tag: None,
        transparent: false,
    };
    Some(Type {
        ident: ident.text.to_owned(),
        span,
        generics,
        container,
        slots,
        sites,
        variant_sites,
        custom_resource,
    })
}

/// Reads fields into slots; holds what grows while it goes.
struct Reader<'s> {
    session: &'s mut Session,
    slots: Vec<TypeRef>,
    sites: Vec<SpanId>,
    variant_sites: Vec<Vec<SpanId>>,
}

/// What decides the names and presence of a list of fields.
#[derive(Clone, Copy)]
struct FieldRules {
    rename_all: Option<names::Case>,
    all_default: bool,
}

impl Reader<'_> {
    fn shape(
        &mut self,
        body: Body<'_>,
        serde: &ContainerAttrs,
        span: SpanId,
        markers: &mut Markers,
    ) -> Option<Shape> {
        if let Some((text, at)) = &serde.stands_for {
            return self.stand_in(text, *at).map(Shape::Transparent);
        }
        match body {
            Body::Struct(fields) if serde.transparent => self.transparent(fields, span, markers),
            Body::Struct(Fields::Named(fields)) => {
                if let Some(tag) = serde.struct_tag() {
                    let message =
                        format!("serde adds the field \"{tag}\" here, which no Rust field describes");
                    self.session
                        .error_help(span, message, "write the tag as a field, or make this an enum");
                }
                let rules = FieldRules {
                    rename_all: serde.rename_all,
                    all_default: serde.default,
                };
                let read = self.fields(fields, rules);
                self.sites = read.iter().map(|(_, site)| *site).collect();
                let fields: Vec<_> = read.into_iter().map(|(field, _)| field).collect();
                Some(Shape::Object(fields))
            }
            Body::Struct(fields @ Fields::Unnamed(_)) if fields.list().len() == 1 => {
                self.transparent(fields, span, markers)
            }
            Body::Struct(Fields::Unnamed(_)) => {
                let help = "give the fields names: a list in a CRD has items of one type";
                self.session
                    .error_help(span, "a tuple struct has no structural schema", help);
                None
            }
            Body::Struct(Fields::Unit) => {
                let help = "write `{}` after the name: serde then reads and writes an empty object";
                self.session.error_help(
                    span,
                    "a unit struct is `null` on the wire, which a CRD cannot hold",
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

    /// The slot of `from`, `try_from` or `into`.
    fn stand_in(&mut self, text: &str, at: SpanId) -> Option<usize> {
        match types::read_text(text, at) {
            Some(slot) => Some(self.add_slot(slot, || SlotType::Text(text.to_owned()))),
            None => {
                self.session.error(at, format!("`{text}` is not a type"));
                None
            }
        }
    }

    fn transparent(&mut self, fields: Fields<'_>, span: SpanId, markers: &mut Markers) -> Option<Shape> {
        let mut kept = fields.into_list().into_iter().map(|field| {
            let attrs = serde_attrs::field(&field.attrs, self.session);
            (field, attrs)
        });
        let Some((field, attrs)) = kept.find(|(_, attrs)| !attrs.skip) else {
            self.session
                .error(span, "a transparent struct needs a field that is not skipped");
            return None;
        };
        let read = marker::parse_field(&field.attrs, &field.ty, Place::Newtype, self.session);
        let slot = self.slot(field.ty, &attrs, &read);
        *markers = std::mem::take(markers).or(read.markers);
        Some(Shape::Transparent(slot))
    }

    fn fields(&mut self, fields: Vec<FieldItem<'_>>, rules: FieldRules) -> Vec<(Field, SpanId)> {
        fields
            .into_iter()
            .filter_map(|field| self.field(field, rules))
            .collect()
    }

    fn field(&mut self, field: FieldItem<'_>, rules: FieldRules) -> Option<(Field, SpanId)> {
        let attrs = serde_attrs::field(&field.attrs, self.session);
        if attrs.skip {
            return None;
        }
        let place = field.ident?;
        let ident = place.text.to_owned();
        let name = match (&attrs.rename, rules.rename_all) {
            (Some(name), _) => name.clone(),
            (None, Some(case)) => case.field(&ident),
            (None, None) => ident.clone(),
        };
        let read = marker::parse_field(&field.attrs, &field.ty, Place::Field, self.session);
        let description = described(&field.attrs);
        let slot = self.slot(field.ty, &attrs, &read);
        let presence = match &attrs {
            FieldAttrs { default: true, .. }
            | FieldAttrs {
                output_only: true, ..
            } => Presence::Defaulted,
            _ if rules.all_default => Presence::Defaulted,
            FieldAttrs { opaque: Some(_), .. } => Presence::Required,
            _ => Presence::ByType,
        };
        let flatten = attrs.flatten;
        Some((
            Field {
                ident,
                name,
                description,
                slot,
                flatten,
                presence,
                markers: read.markers,
            },
            place.span,
        ))
    }

    /// The slot of a field, after the markers that replace its type.
    fn slot(&mut self, ty: TypeRef, attrs: &FieldAttrs, read: &marker::FieldMarkers) -> usize {
        if let Some((slot, text)) = &read.schema_type {
            return self.add_slot(slot.clone(), || SlotType::Text(text.clone()));
        }
        if read.markers.schemaless {
            return self.schemaless(&ty);
        }
        if let Some(at) = attrs.opaque {
            self.session.error_help(
                at,
                "what this function writes cannot be read from the type of the field",
                "say it: `#[kube(schema_type = \"String\")]` names a type with the same wire form, \
                 `#[kube(schemaless)]` leaves all to the markers",
            );
            return self.schemaless(&ty);
        }
        let span = ty.span;
        self.add_slot(ty, || SlotType::Written(span))
    }

    /// A slot for a type that must not be looked at, so that the type need not have a schema: text stands in
    /// for it, and only whether it is an `Option` is kept.
    fn schemaless(&mut self, ty: &TypeRef) -> usize {
        let stand_in = if marker::is_option(ty) {
            "::core::option::Option<::std::string::String>"
        } else {
            "::std::string::String"
        };
        let slot = types::read_text(stand_in, ty.span).unwrap_or_else(|| ty.clone());
        self.add_slot(slot, || SlotType::Text(stand_in.to_owned()))
    }

    fn add_slot(&mut self, slot: TypeRef, ty: impl FnOnce() -> SlotType) -> usize {
        self.session.keep_slot_type(ty);
        self.slots.push(slot);
        self.slots.len() - 1
    }

    fn enumeration(&mut self, variants: Vec<VariantItem<'_>>, serde: &ContainerAttrs) -> Option<Shape> {
        let mut read = Vec::with_capacity(variants.len());
        for variant in variants {
            let attrs = serde_attrs::variant(&variant.attrs, self.session);
            if attrs.skip {
                continue;
            }
            self.sites.push(variant.ident.span);
            read.push(self.variant(variant, &attrs, serde)?);
        }
        Some(Shape::Enum {
            tagging: serde.tagging(),
            variants: read,
        })
    }

    fn variant(
        &mut self,
        variant: VariantItem<'_>,
        attrs: &serde_attrs::VariantAttrs,
        serde: &ContainerAttrs,
    ) -> Option<Variant> {
        let ident = variant.ident.text.to_owned();
        let name = match (&attrs.rename, serde.rename_all) {
            (Some(name), _) => name.clone(),
            (None, Some(case)) => case.variant(&ident),
            (None, None) => ident.clone(),
        };
        if let Some(at) = attrs.untagged {
            let help = "put `#[serde(untagged)]` on the enum, or give every variant its tag";
            self.session.error_help(
                at,
                "an enum that is tagged in part has no structural schema",
                help,
            );
        }
        if let Some(at) = attrs.opaque {
            let help = "put a type with a schema of its own into the variant";
            self.session.error_help(
                at,
                "what this function writes cannot be read from the variant",
                help,
            );
        }
        let mut markers = marker::parse_variant(&variant.attrs, self.session);
        let mut field_sites = Vec::new();
        let content = match variant.fields {
            Fields::Unit => Content::Unit,
            Fields::Named(fields) => {
                let rename_all = attrs.rename_all.or(serde.rename_all_fields);
                let read = self.fields(
                    fields,
                    FieldRules {
                        rename_all,
                        all_default: false,
                    },
                );
                field_sites = read.iter().map(|(_, site)| *site).collect();
                Content::Object(read.into_iter().map(|(field, _)| field).collect())
            }
            Fields::Unnamed(fields) if fields.len() == 1 => {
                let field = fields.into_iter().next()?;
                let attrs = serde_attrs::field(&field.attrs, self.session);
                let read = marker::parse_field(&field.attrs, &field.ty, Place::Newtype, self.session);
                let slot = self.slot(field.ty, &attrs, &read);
                markers = markers.or(read.markers);
                Content::Newtype(slot)
            }
            Fields::Unnamed(_) => {
                let help = "give the fields names, or put one struct into the variant";
                self.session.error_help(
                    variant.ident.span,
                    format!("the variant `{ident}` is a tuple, which has no structural schema"),
                    help,
                );
                return None;
            }
        };
        self.variant_sites.push(field_sites);
        let description = described(&variant.attrs);
        Some(Variant {
            ident,
            name,
            description,
            content,
            markers,
            other: false,
            untagged: false,
        })
    }
}

/// The fields that a rule about several fields names must be there.
fn check_one_of(names: &[(String, SpanId)], shape: &Shape, session: &mut Session) {
    let fields: &[Field] = match shape {
        Shape::Object(fields) => fields,
        _ => &[],
    };
    for (name, at) in names {
        if fields.is_empty() {
            session.error(*at, "only a struct with named fields has fields to choose from");
        } else if !fields.iter().any(|field| field.ident == *name) {
            let help = suggest::help(name, fields.iter().map(|field| field.ident.as_str()));
            session.error_help(*at, format!("there is no field `{name}`"), help);
        }
    }
}

/// What is said for readers: schemars' `description`, else the doc comment.
fn described(attrs: &[Attribute<'_>]) -> Option<String> {
    marker::description(attrs).or_else(|| docs::description(attrs))
}

fn generics(parameters: Generics<'_>, session: &mut Session) -> Vec<(String, Option<TypeRef>)> {
    let mut read = Vec::new();
    for parameter in parameters.list {
        match parameter {
            Generic::Type(ident, default) => read.push((ident.text.to_owned(), default)),
            Generic::Const(span) => {
                let help = "write the type out for each value, or use a list with `max_items`";
                session.error_help(span, "a const parameter cannot be followed into a schema", help);
            }
        }
    }
    read
}
