//! A struct or enum to a [`Type`]: serde's attributes, doc comments and markers put together.

use rbuilder_schema::{Container, Content, Field, Markers, Presence, Shape, Variant};
use syn::ext::IdentExt;
use syn::{Attribute, Data, DeriveInput, Fields, Generics, Ident, ItemEnum, ItemStruct};

use crate::marker::{self, Kind, Place};
use crate::serde_attrs::{ContainerAttrs, FieldAttrs};
use crate::{
    Session, SpanId, Type, TypeKind, TypeRef, custom_resource, docs, names, serde_attrs, suggest, types,
};

/// A struct or enum, wherever `syn` found it.
pub struct Item<'a> {
    attrs: &'a [Attribute],
    ident: &'a Ident,
    generics: &'a Generics,
    body: Body<'a>,
}

enum Body<'a> {
    Struct(&'a Fields),
    Enum(Vec<&'a syn::Variant>),
    Union,
}

impl<'a> Item<'a> {
    pub(crate) fn attrs(&self) -> &'a [Attribute] {
        self.attrs
    }

    /// What the type certainly is on the wire.
    fn kind(&self) -> Kind {
        match &self.body {
            Body::Struct(Fields::Named(_)) => Kind::Object,
            Body::Struct(Fields::Unnamed(fields)) if fields.unnamed.len() == 1 => {
                Kind::of(&fields.unnamed[0].ty)
            }
            _ => Kind::Unknown,
        }
    }

    pub(crate) fn ident(&self) -> &'a Ident {
        self.ident
    }
}

impl<'a> From<&'a DeriveInput> for Item<'a> {
    fn from(item: &'a DeriveInput) -> Self {
        let body = match &item.data {
            Data::Struct(data) => Body::Struct(&data.fields),
            Data::Enum(data) => Body::Enum(data.variants.iter().collect()),
            Data::Union(_) => Body::Union,
        };
        Item {
            attrs: &item.attrs,
            ident: &item.ident,
            generics: &item.generics,
            body,
        }
    }
}

impl<'a> From<&'a ItemStruct> for Item<'a> {
    fn from(item: &'a ItemStruct) -> Self {
        let body = Body::Struct(&item.fields);
        Item {
            attrs: &item.attrs,
            ident: &item.ident,
            generics: &item.generics,
            body,
        }
    }
}

impl<'a> From<&'a ItemEnum> for Item<'a> {
    fn from(item: &'a ItemEnum) -> Self {
        let body = Body::Enum(item.variants.iter().collect());
        Item {
            attrs: &item.attrs,
            ident: &item.ident,
            generics: &item.generics,
            body,
        }
    }
}

/// Reads one struct or enum. Nothing comes back where its shape cannot be said at all; the session then holds
/// the reason. A type that does come back may still have errors against it.
pub fn parse_type<'a>(item: impl Into<Item<'a>>, session: &mut Session) -> Option<Type> {
    let item = item.into();
    session.start_item();
    let span = session.place(item.ident);
    let mut reader = Reader {
        session,
        slots: Vec::new(),
        sites: Vec::new(),
        variant_sites: Vec::new(),
    };
    let serde = serde_attrs::container(item.attrs, reader.session);
    let custom_resource = custom_resource::parse(&item, reader.session);
    let is_root = custom_resource::is_kind(item.attrs);
    let read = marker::parse_container(item.attrs, is_root, item.kind(), reader.session);
    let mut markers = read.markers;
    let shape = reader.shape(&item, &serde, span, &mut markers)?;
    check_one_of(&read.one_of_fields, &shape, reader.session);
    let Reader {
        slots,
        sites,
        variant_sites,
        ..
    } = reader;
    let generics = generics(item.generics, session);
    let ident = item.ident.unraw().to_string();
    let description = docs::description(item.attrs);
    let container = Container {
        name: ident.clone(),
        description,
        markers,
        shape,
        tag: None,
        transparent: false,
    };
    Some(Type {
        ident,
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
        item: &Item<'_>,
        serde: &ContainerAttrs,
        span: SpanId,
        markers: &mut Markers,
    ) -> Option<Shape> {
        if let Some((text, at)) = &serde.stands_for {
            return self.stand_in(text, *at).map(Shape::Transparent);
        }
        match &item.body {
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
                let read = self.fields(&fields.named, rules);
                self.sites = read.iter().map(|(_, site)| *site).collect();
                let fields: Vec<_> = read.into_iter().map(|(field, _)| field).collect();
                Some(Shape::Object(fields))
            }
            Body::Struct(fields @ Fields::Unnamed(_)) if fields.len() == 1 => {
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
        match syn::parse_str::<syn::Type>(text) {
            Ok(ty) => {
                let mut slot = types::read(&ty, self.session);
                place_within(&mut slot, at);
                Some(self.add_slot(slot, &ty))
            }
            Err(_) => {
                self.session.error(at, format!("`{text}` is not a type"));
                None
            }
        }
    }

    fn transparent(&mut self, fields: &Fields, span: SpanId, markers: &mut Markers) -> Option<Shape> {
        let mut kept = fields
            .iter()
            .map(|field| (field, serde_attrs::field(&field.attrs, self.session)));
        let Some((field, attrs)) = kept.find(|(_, attrs)| !attrs.skip) else {
            self.session
                .error(span, "a transparent struct needs a field that is not skipped");
            return None;
        };
        let read = marker::parse_field(&field.attrs, &field.ty, Place::Newtype, self.session);
        let slot = self.slot(field, &attrs, &read);
        *markers = std::mem::take(markers).or(read.markers);
        Some(Shape::Transparent(slot))
    }

    fn fields<'f>(
        &mut self,
        fields: impl IntoIterator<Item = &'f syn::Field>,
        rules: FieldRules,
    ) -> Vec<(Field, SpanId)> {
        fields
            .into_iter()
            .filter_map(|field| self.field(field, rules))
            .collect()
    }

    fn field(&mut self, field: &syn::Field, rules: FieldRules) -> Option<(Field, SpanId)> {
        let attrs = serde_attrs::field(&field.attrs, self.session);
        if attrs.skip {
            return None;
        }
        let place = field.ident.as_ref()?;
        let site = self.session.place(place);
        let ident = place.unraw().to_string();
        let name = match (&attrs.rename, rules.rename_all) {
            (Some(name), _) => name.clone(),
            (None, Some(case)) => case.field(&ident),
            (None, None) => ident.clone(),
        };
        let read = marker::parse_field(&field.attrs, &field.ty, Place::Field, self.session);
        let slot = self.slot(field, &attrs, &read);
        let presence = match &attrs {
            FieldAttrs { default: true, .. }
            | FieldAttrs {
                output_only: true, ..
            } => Presence::Defaulted,
            _ if rules.all_default => Presence::Defaulted,
            FieldAttrs { opaque: Some(_), .. } => Presence::Required,
            _ => Presence::ByType,
        };
        let description = docs::description(&field.attrs);
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
            site,
        ))
    }

    /// The slot of a field, after the markers that replace its type.
    fn slot(&mut self, field: &syn::Field, attrs: &FieldAttrs, read: &marker::FieldMarkers) -> usize {
        if let Some(ty) = &read.schema_type {
            let mut slot = types::read(ty, self.session);
            place_within(&mut slot, read.schema_type_span);
            return self.add_slot(slot, ty);
        }
        if read.markers.schemaless {
            return self.schemaless(&field.ty);
        }
        if let Some(at) = attrs.opaque {
            self.session.error_help(
                at,
                "what this function writes cannot be read from the type of the field",
                "say it: `#[kube(schema_type = \"String\")]` names a type with the same wire form, \
                 `#[kube(schemaless)]` leaves all to the markers",
            );
            return self.schemaless(&field.ty);
        }
        let slot = types::read(&field.ty, self.session);
        self.add_slot(slot, &field.ty)
    }

    /// A slot for a type that must not be looked at, so that the type need not have a schema: text stands in
    /// for it, and only whether it is an `Option` is kept.
    fn schemaless(&mut self, ty: &syn::Type) -> usize {
        let stand_in: syn::Type = if marker::is_option(ty) {
            syn::parse_quote!(::core::option::Option<::std::string::String>)
        } else {
            syn::parse_quote!(::std::string::String)
        };
        let at = self.session.place(ty);
        let mut slot = types::read(&stand_in, self.session);
        place_within(&mut slot, at);
        self.add_slot(slot, &stand_in)
    }

    fn add_slot(&mut self, slot: TypeRef, ty: &syn::Type) -> usize {
        self.session.keep_slot_type(ty);
        self.slots.push(slot);
        self.slots.len() - 1
    }

    fn enumeration(&mut self, variants: &[&syn::Variant], serde: &ContainerAttrs) -> Option<Shape> {
        let mut read = Vec::with_capacity(variants.len());
        for variant in variants {
            let attrs = serde_attrs::variant(&variant.attrs, self.session);
            if attrs.skip {
                continue;
            }
            let site = self.session.place(&variant.ident);
            self.sites.push(site);
            read.push(self.variant(variant, &attrs, serde, site)?);
        }
        Some(Shape::Enum {
            tagging: serde.tagging(),
            variants: read,
        })
    }

    fn variant(
        &mut self,
        variant: &syn::Variant,
        attrs: &serde_attrs::VariantAttrs,
        serde: &ContainerAttrs,
        site: SpanId,
    ) -> Option<Variant> {
        let ident = variant.ident.unraw().to_string();
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
        let content = match &variant.fields {
            Fields::Unit => Content::Unit,
            Fields::Named(fields) => {
                let rename_all = attrs.rename_all.or(serde.rename_all_fields);
                let read = self.fields(
                    &fields.named,
                    FieldRules {
                        rename_all,
                        all_default: false,
                    },
                );
                field_sites = read.iter().map(|(_, site)| *site).collect();
                Content::Object(read.into_iter().map(|(field, _)| field).collect())
            }
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                let field = &fields.unnamed[0];
                let attrs = serde_attrs::field(&field.attrs, self.session);
                let read = marker::parse_field(&field.attrs, &field.ty, Place::Newtype, self.session);
                let slot = self.slot(field, &attrs, &read);
                markers = markers.or(read.markers);
                Content::Newtype(slot)
            }
            Fields::Unnamed(_) => {
                let help = "give the fields names, or put one struct into the variant";
                self.session.error_help(
                    site,
                    format!("the variant `{ident}` is a tuple, which has no structural schema"),
                    help,
                );
                return None;
            }
        };
        self.variant_sites.push(field_sites);
        let description = docs::description(&variant.attrs);
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

/// Moves a type that was written inside a text to the place of the text.
fn place_within(slot: &mut TypeRef, at: SpanId) {
    slot.span = at;
    match &mut slot.kind {
        TypeKind::Path(_, args) | TypeKind::Tuple(args) => {
            args.iter_mut().for_each(|arg| place_within(arg, at))
        }
        TypeKind::Array(item, _) => place_within(item, at),
        TypeKind::Other(_) => {}
    }
}

fn generics(generics: &Generics, session: &mut Session) -> Vec<(String, Option<TypeRef>)> {
    let mut read = Vec::new();
    for param in &generics.params {
        match param {
            syn::GenericParam::Type(param) => {
                let default = param.default.as_ref().map(|(_, ty)| types::read(ty, session));
                read.push((param.ident.unraw().to_string(), default));
            }
            syn::GenericParam::Const(param) => {
                let span = session.place(param);
                let help = "write the type out for each value, or use a list with `max_items`";
                session.error_help(span, "a const parameter cannot be followed into a schema", help);
            }
            _ => {}
        }
    }
    read
}
