//! A struct or enum to a [`Type`]: serde's attributes, doc comments and markers put together.

use rbuilder_reader::grammar::{Body, FieldItem, Fields, GenericKind, Generics, TypeItem, VariantItem};
use rbuilder_reader::token::Ident;
use rbuilder_reader::{Attribute, Span, TypeKind, TypeRef, has_derive};
use rbuilder_schema::{Container, Content, ESCAPE, Field, Markers, Presence, SchemaType, Shape, Variant};

use crate::marker::{self, Kind, Place};
use crate::names::Case;
use crate::serde_attrs::{ContainerAttrs, Directions, FieldAttrs, Foreign};
use crate::session::SlotType;
use crate::{Diagnostic, OneWay, Session, Type, custom_resource, docs, serde_attrs, suggest};

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
        attrs,
        slots: Vec::new(),
        sites: Vec::new(),
        variant_sites: Vec::new(),
    };
    let serde = serde_attrs::container(attrs, reader.session);
    reader.check_foreign(&serde.foreign);
    if let Some(at) = serde.shown_default {
        report_shown_default(at, reader.session);
    }
    let custom_resource = custom_resource::parse(attrs, ident, reader.session);
    let is_root = custom_resource::is_kind(attrs);
    let read = marker::parse_container(attrs, is_root, kind(&body), reader.session);
    let mut markers = read.markers;
    let stand_in = read.schema_type.is_some() || serde.stands_for.is_some();
    let one_way = match read.schema_type {
        None if markers.schema.is_none() => one_way(attrs, &serde, &body),
        _ => None,
    };
    let is_struct = matches!(body, Body::Struct(_));
    let shape = match read.schema_type {
        // The type itself is not looked at.
        _ if markers.schema.is_some() => Shape::default(),
        Some((slot, text)) => Shape::Transparent(reader.add_slot(slot, || SlotType::Text(text))),
        None => reader.shape(body, &serde, span, &mut markers)?,
    };
    check_one_of(&read.one_of_fields, &shape, reader.session);
    if !stand_in && markers.schema.is_none() {
        reader.check_container(&markers, &serde, &shape, span);
    }
    let Reader {
        slots,
        sites,
        variant_sites,
        ..
    } = reader;
    let generics = generics(parameters, session);
    let description = described(attrs, session);
    let tag = serde.struct_tag(ident.text);
    let container = Container {
        name: ident.text.to_owned(),
        description,
        markers,
        tag: tag.filter(|_| is_struct && matches!(shape, Shape::Object(_))),
        transparent: stand_in || serde.transparent,
        shape,
    };
    Some(Type {
        ident: ident.text.to_owned(),
        is_incomplete: session.is_incomplete,
        span,
        generics,
        container,
        slots,
        sites,
        variant_sites,
        custom_resource,
        one_way,
    })
}

/// The forms of a type that is read as another and written as itself, or the other way round. What the compiler hands to
/// the derive does not say which ways serde derives, so that this is seen in source text only.
fn one_way(attrs: &[Attribute<'_>], serde: &ContainerAttrs, body: &Body<'_>) -> Option<OneWay> {
    let is_read = serde.is_one_way?;
    let own_way = if is_read { "Serialize" } else { "Deserialize" };
    let (_, span) = serde.stands_for.as_ref()?;
    let mut ignored = Session::default();
    let fields = match body {
        Body::Struct(Fields::Named(fields)) => {
            let name = |field: &FieldItem<'_>| {
                let attrs = serde_attrs::field(&field.attrs, &mut ignored);
                let ident = field.ident.filter(|_| !attrs.skip)?.text;
                let name =
                    serde_attrs::name(ident, &attrs.rename, &serde.rename_all, Case::field, &mut ignored);
                Some(name)
            };
            let mut names: Vec<String> = fields.iter().filter_map(name).collect();
            names.sort();
            Some(names)
        }
        _ => None,
    };
    has_derive(attrs, own_way).then_some(OneWay {
        span: *span,
        is_read,
        fields,
    })
}

/// Reads fields into slots; holds what grows while it goes.
struct Reader<'s, 'a> {
    session: &'s mut Session,
    /// The attributes of the item.
    attrs: &'s [Attribute<'a>],
    slots: Vec<TypeRef>,
    sites: Vec<Span>,
    variant_sites: Vec<Vec<Span>>,
}

/// What decides the names and presence of a list of fields.
struct FieldRules {
    rename_all: Directions<Case>,
    all_default: bool,
}

impl Reader<'_, '_> {
    /// Markers on a type that serde, by its attributes, does not follow.
    fn check_container(&mut self, markers: &Markers, serde: &ContainerAttrs, shape: &Shape, span: Span) {
        if let Some(at) = serde.denies_unknown
            && markers.preserve_unknown_fields
        {
            let message = "the API server keeps unknown fields here, and serde refuses to read them";
            self.session
                .error_help(at, message, "remove `deny_unknown_fields`");
        }
        let holds_option = match shape {
            Shape::Transparent(slot) => self.slots.get(*slot).is_some_and(marker::is_option),
            Shape::Object(_) | Shape::Enum { .. } => false,
        };
        if markers.nullable && !holds_option {
            let message = "serde reads `null` as this type only where it stands in an `Option`";
            let help = "write `nullable` on the fields of that type, which are `Option`s";
            self.session.report(Diagnostic::warning(span, message).help(help));
        }
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
                    all_default: serde.default,
                };
                let (fields, sites) = self.fields(fields, &rules);
                self.sites = sites;
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
    fn stand_in(&mut self, text: &str, at: Span) -> Option<usize> {
        match TypeRef::parse(text, at) {
            Some(slot) => Some(self.add_slot(slot, || SlotType::Text(text.to_owned()))),
            None => {
                self.session.error(at, format!("`{text}` is not a type"));
                None
            }
        }
    }

    fn transparent(&mut self, fields: Fields<'_>, span: Span, markers: &mut Markers) -> Option<Shape> {
        let mut kept = fields.into_list().into_iter().map(|field| {
            let attrs = serde_attrs::field(&field.attrs, self.session);
            (field, attrs)
        });
        let Some((field, attrs)) = kept.find(|(field, attrs)| !attrs.skip && !is_phantom(&field.ty)) else {
            self.session
                .error(span, "a transparent struct needs a field that is not skipped");
            return None;
        };
        let read = marker::parse_field(&field.attrs, &field.ty, Place::Newtype, self.session);
        let slot = self.slot(field.ty, &attrs, &read);
        *markers = std::mem::take(markers).or(read.markers);
        Some(Shape::Transparent(slot))
    }

    /// Fields, and where each of them is.
    fn fields(&mut self, items: Vec<FieldItem<'_>>, rules: &FieldRules) -> (Vec<Field>, Vec<Span>) {
        let (mut fields, mut sites) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
        for item in items {
            if let Some((field, site)) = self.field(item, rules) {
                fields.push(field);
                sites.push(site);
            }
        }
        (fields, sites)
    }

    fn field(&mut self, field: FieldItem<'_>, rules: &FieldRules) -> Option<(Field, Span)> {
        let attrs = serde_attrs::field(&field.attrs, self.session);
        let place = field.ident?;
        let ident = place.text.to_owned();
        // A default of the whole is no help to a flattened field either: serde reads it from what is there.
        let has_default = (attrs.default || rules.all_default) && !attrs.flatten;
        if let Some(at) = attrs.foreign.skip {
            self.check_hidden(at, &attrs, has_default, &field.ty);
        }
        if attrs.skip || attrs.foreign.skip.is_some() {
            return None;
        }
        self.check_foreign_field(&attrs, &ident, rules);
        let name = serde_attrs::name(
            &ident,
            &attrs.rename,
            &rules.rename_all,
            Case::field,
            self.session,
        );
        let mut read = marker::parse_field(&field.attrs, &field.ty, Place::Field, self.session);
        let description = described(&field.attrs, self.session);
        if has_default && marker::is_required_elsewhere(&field.attrs) {
            read.markers.optional = None;
        }
        // The API server passes over a default of `null`.
        let shows_null = attrs.shows_type_default && marker::is_option(&field.ty);
        if let Some(at) = attrs.shown_default
            && !shows_null
            && !has_default
            && read.markers.default.is_none()
        {
            report_shown_default(at, self.session);
        }
        self.check_written(&attrs, has_default, &field.ty, &read.markers);
        if attrs.opaque.is_none() && may_retype(&read.markers) {
            check_retyped(&Kind::of(&field.ty), &read, place.span, self.session);
        }
        let stated = read.schema_type.is_some() || read.markers.schemaless || read.markers.schema.is_some();
        let slot = self.slot(field.ty, &attrs, &read);
        let presence = match &attrs {
            _ if has_default || attrs.output_only => Presence::Defaulted,
            _ if attrs.read_by_function => Presence::Required,
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
                stated: stated || attrs.opaque.is_some(),
                markers: read.markers,
            },
            place.span,
        ))
    }

    /// Warns of a field that serde can leave out and cannot do without, so that what the program writes is refused: by the
    /// API server, or at the next read.
    fn check_written(&mut self, attrs: &FieldAttrs, has_default: bool, ty: &TypeRef, markers: &Markers) {
        // An alias of `Option` shows in the function's name only.
        let is_option = |path: &str| marker::is_option(ty) || path.ends_with("is_none");
        if let Some((path, at)) = &attrs.skip_if
            && !(has_default || attrs.output_only || attrs.flatten)
            && (attrs.read_by_function || !is_option(path))
        {
            let message = "serde can leave this field out, and cannot read it back without";
            let help = "add `default` to `#[serde(…)]`";
            self.session.report(Diagnostic::warning(*at, message).help(help));
        }
        let is_needed = !has_default && (attrs.read_by_function || !marker::is_option(ty));
        if let Some(at) = attrs.input_only
            && markers.optional.map_or(is_needed, |optional| !optional)
            && markers.default.is_none()
            && !attrs.flatten
        {
            let message = "serde never writes this field, and the schema requires it: the API server refuses every \
                           object that the program writes whole";
            let help = "add `default` to `#[serde(…)]`, or write the object by patches of other fields only";
            self.session.report(Diagnostic::warning(at, message).help(help));
        }
    }

    /// A field that schemars is told to skip has no place in the schema, so that the API server drops it.
    fn check_hidden(&mut self, at: Span, attrs: &FieldAttrs, has_default: bool, ty: &TypeRef) {
        let is_needed = attrs.read_by_function || !(marker::is_option(ty) || attrs.output_only);
        if is_needed && !has_default && self.reads_by_derive() {
            let message = "the schema is without this field, and serde reads no object without it";
            let help = "write `#[serde(skip)]`, or add `default` to `#[serde(…)]`";
            self.session.error_help(at, message, help);
        }
    }

    /// Whether serde's derive reads the item. The compiler hides the derives of an item from each other, so that this is
    /// seen in source text only.
    fn reads_by_derive(&self) -> bool {
        has_derive(self.attrs, "Deserialize")
    }

    fn check_foreign(&mut self, foreign: &Foreign) {
        if !foreign.keys.is_empty() && self.reads_by_derive() {
            serde_attrs::check_foreign(foreign, self.session);
        }
    }

    fn check_foreign_field(&mut self, attrs: &FieldAttrs, ident: &str, rules: &FieldRules) {
        self.check_foreign(&attrs.foreign);
        self.check_foreign_name(
            &attrs.foreign,
            &attrs.rename,
            ident,
            &rules.rename_all,
            Case::field,
        );
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

    /// The slot of a field, after the markers that replace its type.
    fn slot(&mut self, ty: TypeRef, attrs: &FieldAttrs, read: &marker::FieldMarkers) -> usize {
        if let Some((slot, text)) = &read.schema_type {
            return self.add_slot(slot.clone(), || SlotType::Text(text.clone()));
        }
        if read.markers.schemaless || read.markers.schema.is_some() {
            return self.schemaless(&ty);
        }
        if let Some(at) = attrs.opaque {
            self.session.error_help(
                at,
                "what this function writes cannot be read from the type of the field",
                ESCAPE,
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
        let slot = TypeRef::parse(stand_in, ty.span).unwrap_or_else(|| ty.clone());
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
            if let Some(at) = attrs.output_only {
                report_unread_variant(variant.ident, at, self.session);
                continue;
            }
            if let Some(at) = attrs.input_only {
                report_unwritten_variant(variant.ident, at, self.session);
            }
            self.check_foreign(&attrs.foreign);
            self.check_foreign_name(
                &attrs.foreign,
                &attrs.rename,
                variant.ident.text,
                &serde.rename_all,
                Case::variant,
            );
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
        let name = serde_attrs::name(
            &ident,
            &attrs.rename,
            &serde.rename_all,
            Case::variant,
            self.session,
        );
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
                let rules = FieldRules {
                    rename_all: attrs.rename_all.clone().or(&serde.rename_all_fields),
                    all_default: false,
                };
                let (fields, sites) = self.fields(fields, &rules);
                field_sites = sites;
                Content::Object(fields)
            }
            Fields::Unnamed(fields) if fields.len() == 1 => {
                let field = fields.into_iter().next()?;
                let attrs = serde_attrs::field(&field.attrs, self.session);
                if attrs.skip {
                    Content::Unit
                } else {
                    let read = marker::parse_field(&field.attrs, &field.ty, Place::Newtype, self.session);
                    let slot = self.slot(field.ty, &attrs, &read);
                    markers = markers.or(read.markers);
                    Content::Newtype(slot)
                }
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
        let description = described(&variant.attrs, self.session);
        Some(Variant {
            ident,
            name,
            description,
            content,
            markers,
            other: attrs.other,
            untagged: attrs.untagged,
        })
    }
}

/// Whether markers say a type at all: what the type of a field is need not be known otherwise.
fn may_retype(markers: &Markers) -> bool {
    markers.int_or_string
        || markers.validation.schema_type.is_some()
        || markers.items.is_some()
        || markers.values.is_some()
}

/// A marker that gives another type to a value of one of Rust's own types: serde would refuse what the schema says.
fn check_retyped(kind: &Kind, read: &marker::FieldMarkers, at: Span, session: &mut Session) {
    let is_stated = read.schema_type.is_some() || read.markers.schemaless || read.markers.schema.is_some();
    if !is_stated && let Some(kind) = retyped(kind, &read.markers) {
        let message = format!(
            "a marker changes the type of the value, and serde reads {} here",
            kind.noun()
        );
        let help = "change the type of the field, or let a function read it: `#[serde(with = \"…\")]`";
        session.error_help(at, message, help);
    }
}

/// The kind, or that of its items or values, whose type a marker changes.
fn retyped<'k>(kind: &'k Kind, markers: &Markers) -> Option<&'k Kind> {
    let is_other = |own: SchemaType| {
        let written = markers.validation.schema_type;
        markers.int_or_string || written.is_some_and(|written| written != own)
    };
    match kind {
        Kind::Text => is_other(SchemaType::String).then_some(kind),
        Kind::Integer => is_other(SchemaType::Integer).then_some(kind),
        // A float reads whole numbers too.
        Kind::Number if markers.validation.schema_type == Some(SchemaType::Integer) => None,
        Kind::Number => is_other(SchemaType::Number).then_some(kind),
        Kind::Boolean => is_other(SchemaType::Boolean).then_some(kind),
        Kind::List(item) => retyped(item, markers.items.as_deref()?),
        Kind::Map(value) => retyped(value, markers.values.as_deref()?),
        Kind::Object | Kind::Unknown => None,
    }
}

/// What schemars would write for a default is what a function returns.
fn report_shown_default(at: Span, session: &mut Session) {
    let message = "the default that schemars writes into the schema cannot be known without running it";
    let help = "write the value: `#[kube(default = …)]`; or write `default` in `#[serde(…)]`, so that serde fills it in";
    session.error_help(at, message, help);
}

/// A variant that serde writes and does not read has no place in a schema: the program could not read its own object.
fn report_unread_variant(ident: Ident<'_>, at: Span, session: &mut Session) {
    let message = format!(
        "serde writes `{}` and never reads it, so the schema is without it",
        ident.text
    );
    let help = "the API server refuses an object that has it: remove `skip_deserializing`, or write `#[serde(skip)]`";
    session.report(Diagnostic::warning(at, message).help(help));
}

/// Whoever reads an object with such a variant cannot write it again.
fn report_unwritten_variant(ident: Ident<'_>, at: Span, session: &mut Session) {
    let message = format!("serde reads `{}` and fails to write it", ident.text);
    let help = "an object that has it can be written by patches of other fields only";
    session.report(Diagnostic::warning(at, message).help(help));
}

/// `PhantomData` is nothing to serde where one field stands for the whole struct.
fn is_phantom(ty: &TypeRef) -> bool {
    matches!(&ty.kind, TypeKind::Path(segments, _) if segments.last().is_some_and(|last| last == "PhantomData"))
}

/// The fields that a rule about several fields names must be there.
fn check_one_of(names: &[(String, Span)], shape: &Shape, session: &mut Session) {
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
fn described(attrs: &[Attribute<'_>], session: &mut Session) -> Option<String> {
    marker::description(attrs).or_else(|| docs::description(attrs, session))
}

fn generics(parameters: Generics<'_>, session: &mut Session) -> Vec<(String, Option<TypeRef>)> {
    let mut read = Vec::new();
    for parameter in parameters.list {
        match parameter.kind {
            GenericKind::Lifetime => {}
            GenericKind::Type => read.push((parameter.ident.text.to_owned(), parameter.default)),
            GenericKind::Const => {
                let help = "write the type out for each value, or use a list with `max_items`";
                let message = "a const parameter cannot be followed into a schema";
                session.error_help(parameter.declaration, message, help);
            }
        }
    }
    read
}
