//! Finishes classes, i.e. finds the markers that give each field its schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use rbuilder_schema::{
    Container, Field, Markers, Presence, Schema, SchemaType, Shape, Site, Slot, any_object, array_of,
    assemble, dropped_object_meta, is_bare, known, map_of, of_type, or_null,
};

use crate::classes::{Body, Class, Classes, Member, Ty};
use crate::fit::{fit, literal, state_description};
use crate::lints::has_example;
use crate::recognize::ANY_OBJECT;
use crate::words::{camel_case, field_name};

#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) fields: Vec<FieldText>,
    pub(crate) keeps_unknown: bool,
    pub(crate) markers: Markers,
    pub(crate) own: Arc<Schema>,
    pub(crate) has_default: bool,
    /// What could not be preserved, as field name and message. The name is empty for the type
    /// itself.
    pub(crate) lost: Vec<(String, String)>,
}

#[derive(Debug)]
pub(crate) struct FieldText {
    /// Without `r#`.
    pub(crate) ident: String,
    pub(crate) wire: Arc<str>,
    pub(crate) ty: Ty,
    pub(crate) is_option: bool,
    pub(crate) is_optional: bool,
    pub(crate) doc: Option<String>,
    pub(crate) markers: Markers,
}

pub(crate) fn finish(classes: &Classes<'_>) -> BTreeMap<usize, Finished> {
    let mut finished = BTreeMap::new();
    for id in 0..classes.list.len() {
        finish_class(classes, id, &mut finished);
    }
    finished
}

fn finish_class(classes: &Classes<'_>, id: usize, finished: &mut BTreeMap<usize, Finished>) {
    if finished.contains_key(&id) {
        return;
    }
    let class = &classes.list[id];
    let made = match &class.body {
        Body::Enum(_) => finish_enum(class),
        Body::Struct(members) => {
            for member in members {
                member
                    .ty
                    .each_class(&mut |inner| finish_class(classes, inner, finished));
            }
            finish_struct(class, finished)
        }
    };
    finished.insert(id, made);
}

fn finish_enum(class: &Class) -> Finished {
    let own = Schema {
        description: class.doc.clone(),
        ..Schema::clone(&class.schema)
    };
    Finished {
        fields: Vec::new(),
        keeps_unknown: false,
        markers: Markers {
            stated: state_description(undocumented(class.doc.as_deref())),
            ..Markers::default()
        },
        own: own.into(),
        has_default: false,
        lost: Vec::new(),
    }
}

fn finish_struct(class: &Class, finished: &BTreeMap<usize, Finished>) -> Finished {
    let Body::Struct(members) = &class.body else {
        return finish_enum(class);
    };
    let mut lost = Vec::new();
    let mut taken: Vec<String> = Vec::new();
    let mut fields: Vec<FieldText> = Vec::new();
    let mut slots = Vec::new();
    for member in members {
        let own = own_schema(&member.ty, finished);
        let doc = member
            .schema
            .description
            .as_deref()
            .filter(|text| is_doc_comment(text));
        let is_optional = !class.schema.required.contains(&member.wire);
        let is_any = member.ty == Ty::Leaf("serde_json::Value");
        let is_option = is_optional || (member.schema.nullable && !is_any);
        let base = with_description(&own, doc);
        let mut markers = fit(&member.schema, &base).unwrap_or_else(|misfit| {
            lost.push((member.wire.to_string(), misfit.reason));
            misfit.markers
        });
        markers.optional = (is_option && !is_optional).then_some(false);
        markers.embedded_object_meta = drops_object_meta(class, member).then_some(false);
        let mut ident = field_name(&member.wire);
        while taken.contains(&ident) {
            ident.push('_');
        }
        taken.push(ident.clone());
        slots.push(Slot {
            schema: own,
            optional: is_option,
        });
        fields.push(FieldText {
            ident,
            wire: Arc::clone(&member.wire),
            ty: member.ty.clone(),
            is_option,
            is_optional,
            doc: doc.map(str::to_owned),
            markers,
        });
    }
    let keeps_unknown = class.schema.preserve_unknown_fields;
    if keeps_unknown {
        slots.push(Slot {
            schema: any_object().into(),
            optional: false,
        });
    }
    let assembled = assemble_fields(members, &mut fields, &slots, keeps_unknown);
    let doc = class.doc.as_deref().filter(|text| is_doc_comment(text));
    let base = with_description(&Arc::new(assembled), doc);
    let wanted = Schema {
        description: class.doc.clone(),
        ..Schema::clone(&class.schema)
    };
    let mut markers = fit(&wanted, &base).unwrap_or_else(|misfit| {
        lost.push((String::new(), misfit.reason));
        Markers::default()
    });
    // Writing out a schema drops the markers of its fields.
    if markers.schema.is_some() && dropped_object_meta(&wanted).is_some() {
        markers.embedded_object_meta = Some(false);
    }
    let has_default = fields
        .iter()
        .all(|field| field.is_option || can_default(&field.ty, finished));
    let own = crate::fit::apply(&markers, &base).unwrap_or(wanted);
    Finished {
        fields,
        keeps_unknown,
        markers,
        own: own.into(),
        has_default,
        lost,
    }
}

/// Whether the API server drops metadata in the value of a field. A struct in this file doesn't
/// count, since its fields have their own markers.
///
/// Such a definition is imported as is: only the user knows whether the metadata is needed.
fn drops_object_meta(class: &Class, member: &Member) -> bool {
    let is_metadata =
        &*member.wire == "metadata" && is_bare(&member.schema) && !class.schema.embedded_resource;
    !member.ty.has_class() && (is_metadata || dropped_object_meta(&member.schema).is_some())
}

/// Assembles the schema from the fields, as both front ends do. If there is an error about a field,
/// its schema is written out instead.
fn assemble_fields(
    members: &[Member],
    fields: &mut [FieldText],
    slots: &[Slot],
    keeps_unknown: bool,
) -> Schema {
    // After errors, retry with the schemas of those fields written out.
    for _ in 0..2 {
        let mut list: Vec<Field> = fields
            .iter()
            .enumerate()
            .map(|(slot, field)| container_field(field, slot))
            .collect();
        if keeps_unknown {
            list.push(flattened(fields.len()));
        }
        let container = Container {
            shape: Shape::Object(list),
            ..Container::default()
        };
        match assemble(&container, slots) {
            Ok(schema) => return schema,
            Err(diagnostics) => {
                for diagnostic in diagnostics {
                    if let Site::Field(at) = diagnostic.place.site
                        && let (Some(field), Some(member), Some(slot)) =
                            (fields.get_mut(at), members.get(at), slots.get(at))
                    {
                        let base = with_description(&slot.schema, field.doc.as_deref());
                        field.markers = Markers {
                            optional: field.markers.optional,
                            embedded_object_meta: field.markers.embedded_object_meta,
                            ..literal(&member.schema, &base)
                        };
                    }
                }
            }
        }
    }
    of_type(SchemaType::Object)
}

fn container_field(field: &FieldText, slot: usize) -> Field {
    Field {
        ident: field.ident.clone(),
        name: field.wire.to_string(),
        description: field.doc.clone(),
        slot,
        flatten: false,
        presence: Presence::ByType,
        stated: field.markers.schema.is_some(),
        markers: field.markers.clone(),
    }
}

fn flattened(slot: usize) -> Field {
    Field {
        ident: "other".into(),
        name: "other".into(),
        description: None,
        slot,
        flatten: true,
        presence: Presence::ByType,
        stated: false,
        markers: Markers::default(),
    }
}

fn own_schema(ty: &Ty, finished: &BTreeMap<usize, Finished>) -> Arc<Schema> {
    match ty {
        Ty::Leaf("String") => of_type(SchemaType::String).into(),
        Ty::Leaf(ANY_OBJECT) => any_object().into(),
        Ty::Leaf(path) => known(path).unwrap_or_default(),
        Ty::Kubernetes(_, schema) => Arc::clone(schema),
        Ty::Class(id) => finished
            .get(id)
            .map(|class| Arc::clone(&class.own))
            .unwrap_or_default(),
        Ty::List(items) => array_of(own_schema(items, finished)).into(),
        Ty::Map(values) => map_of(&of_type(SchemaType::String), own_schema(values, finished)).into(),
        Ty::Nullable(inner) => or_null(own_schema(inner, finished)),
    }
}

/// Whether a type is known to implement `Default`.
fn can_default(ty: &Ty, finished: &BTreeMap<usize, Finished>) -> bool {
    match ty {
        Ty::Class(id) => finished.get(id).is_some_and(|class| class.has_default),
        Ty::Leaf(path) => !path.starts_with("k8s_openapi::"),
        Ty::Kubernetes(..) => false,
        Ty::List(_) | Ty::Map(_) | Ty::Nullable(_) => true,
    }
}

fn with_description(own: &Arc<Schema>, doc: Option<&str>) -> Arc<Schema> {
    match doc {
        Some(doc) if own.description.as_deref() != Some(doc) => Arc::new(Schema {
            description: Some(doc.into()),
            ..Schema::clone(own)
        }),
        _ => Arc::clone(own),
    }
}

fn undocumented(text: Option<&str>) -> Option<Arc<str>> {
    text.filter(|text| !is_doc_comment(text)).map(Arc::from)
}

/// Whether a description can be a doc comment: `rbuilder-syntax` must read it back unchanged, and
/// rustdoc must not compile any part of it.
pub(crate) fn is_doc_comment(text: &str) -> bool {
    let is_lost = |line: &str| {
        let start = line.trim_start();
        line != line.trim_end()
            || line.starts_with("TODO")
            || line.starts_with("---")
            || start.starts_with('+')
    };
    // rustc rejects these in comments.
    let turns_text = |letter: char| matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !text.is_empty()
        && text == text.trim()
        && !text.starts_with("# ")
        && !text.contains(['\r', '\0'])
        && !text.contains(turns_text)
        && !text.split('\n').any(is_lost)
        && !has_example(text)
}

pub(crate) fn is_camel_case(field: &FieldText) -> bool {
    camel_case(&field.ident) == *field.wire
}
