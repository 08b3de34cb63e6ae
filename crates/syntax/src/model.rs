//! The model of an item before types are resolved. It owns its values, and refers to the source
//! only by [`Span`].

use std::collections::BTreeMap;

use rbuilder_reader::{Span, TypeRef};
use rbuilder_schema::{Container, Content, CsvKind, Field, ObjectParts, Shape, Site};

use crate::names;

/// A struct or enum that derives `CrdSchema` or `CustomResource`.
#[derive(Clone, Debug)]
pub struct Type {
    /// The Rust identifier without `r#`.
    pub ident: String,
    /// True if we failed to parse a marker. Other errors may be just a consequence of that.
    pub is_incomplete: bool,
    /// True if a marker makes the type nullable. Serde then accepts the `null` only inside of an
    /// `Option`.
    pub needs_option: bool,
    /// The span of the identifier.
    pub span: Span,
    /// Where the first attribute starts, or the identifier if there are no attributes.
    pub start: u32,
    /// The type parameters in order, each with its default type.
    pub generics: Vec<(String, Option<TypeRef>)>,
    /// What it looks like in JSON. The slots in there are indexes into `slots`.
    pub container: Container,
    /// The types that the container refers to, the way they are written.
    pub slots: Vec<TypeRef>,
    /// The types of the values in those slots for which `#[schemars(with)]` changes the type in the
    /// schema, but not the value.
    pub value_types: BTreeMap<usize, TypeRef>,
    /// The functions that generate the schemas of some slots for schemars, by slot.
    pub schema_functions: BTreeMap<usize, SchemaFunction>,
    /// Where each `Site` of the container is, i.e. each field of a struct or each variant of an
    /// enum.
    pub sites: Vec<Span>,
    /// Where the named fields of each variant are.
    pub variant_sites: Vec<Vec<Span>>,
    /// Where the markers on the type, on its fields and on its variants are.
    pub marker_spans: Vec<MarkerSpan>,
    /// `#[kube(group, version, kind, …)]`, if the type derives `CustomResource`.
    pub custom_resource: Option<CustomResource>,
    /// Set if there is a `from` without an `into` or the other way round, although serde derives
    /// both directions.
    pub one_way: Option<OneWay>,
    /// What serde's attributes say about the values of a struct's fields, in the order of the
    /// fields.
    pub values: Vec<FieldValue>,
    /// The same for the named fields of each variant.
    pub variant_values: Vec<Vec<FieldValue>>,
    /// The default of the container, from which absent fields take their values.
    pub whole_default: Option<DefaultSource>,
    /// True if another type or an explicit schema takes the place of the type in JSON.
    pub is_replaced: bool,
    /// The discriminants of the variants of an enum, provided that we know all of them.
    pub numbers: Option<Vec<i64>>,
    /// The integer type in `#[repr(…)]`.
    pub repr: Option<String>,
    /// The index of the variant that has `#[default]`.
    pub default_variant: Option<usize>,
}

/// Where a marker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerSpan {
    /// The name of the type, field or variant that has the marker.
    pub owner: Span,
    /// The name of the marker or constraint.
    pub name: &'static str,
    /// Where its value is, or its name if it has no value.
    pub span: Span,
}

/// A function that returns a schema, as in `#[schemars(schema_with = "path")]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaFunction {
    /// The path the way it's written, possibly with type arguments.
    pub path: String,
    /// Where the path is.
    pub span: Span,
}

/// A field whose default becomes part of the schema.
#[derive(Clone, Copy, Debug)]
pub struct AbsentField<'a> {
    /// The field.
    pub field: &'a Field,
    /// Where its name is.
    pub span: Span,
    /// The index of its variant, if it's a field of an enum.
    pub variant: Option<usize>,
    /// Its index among the fields.
    pub position: usize,
    /// What serde's attributes say about its value.
    pub said: &'a FieldValue,
    /// What its value is if the field is absent.
    pub value: &'a AbsentValue,
}

impl AbsentField<'_> {
    /// Returns the site of the field in the container.
    pub fn site(&self) -> Site {
        match self.variant {
            Some(variant) => Site::VariantField(variant, self.position),
            None => Site::Field(self.position),
        }
    }
}

impl Type {
    /// Returns where a marker on the type, field or variant is whose name is at `owner`. It's
    /// `None` if the marker isn't written there, e.g. because an attribute of another tool implies
    /// it.
    pub fn marker_span(&self, owner: Span, name: &str) -> Option<Span> {
        let mut spans = self.marker_spans.iter();
        let found = spans.find(|marker| marker.owner == owner && marker.name == name)?;
        Some(found.span)
    }

    /// Returns the type of the values in a slot, which isn't always the type of its schema.
    pub fn value_type(&self, slot: usize) -> Option<&TypeRef> {
        self.value_types.get(&slot).or_else(|| self.slots.get(slot))
    }

    /// Returns the fields whose default becomes part of the schema, in source order.
    pub fn absent_fields(&self) -> Vec<AbsentField<'_>> {
        let mut found = Vec::new();
        match &self.container.shape {
            Shape::Object(fields) => add_absent(fields, &self.values, &self.sites, None, &mut found),
            Shape::Transparent(_) => {}
            Shape::Enum { variants, .. } => {
                let parts = variants.iter().zip(&self.variant_values).zip(&self.variant_sites);
                for (position, ((variant, values), sites)) in parts.enumerate() {
                    if let Content::Object(fields) = &variant.content {
                        add_absent(fields, values, sites, Some(position), &mut found);
                    }
                }
            }
        }
        found
    }
}

fn add_absent<'a>(
    fields: &'a [Field],
    values: &'a [FieldValue],
    sites: &[Span],
    variant: Option<usize>,
    to: &mut Vec<AbsentField<'a>>,
) {
    for (position, ((field, said), span)) in fields.iter().zip(values).zip(sites).enumerate() {
        if let Some(value) = &said.absent {
            to.push(AbsentField {
                field,
                span: *span,
                variant,
                position,
                said,
                value,
            });
        }
    }
}

/// What serde's attributes say about the value of a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldValue {
    /// The default of the field, if it's to be part of the schema.
    pub absent: Option<AbsentValue>,
    /// The function in `skip_serializing_if`.
    pub skip_if: Option<String>,
    /// True if serde never serializes the field.
    pub is_unwritten: bool,
    /// True if a function serializes the field, because the type does not tell us the JSON then.
    pub is_opaque: bool,
}

/// The value that an absent field has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentValue {
    /// Where the value comes from.
    pub source: DefaultSource,
    /// True if only schemars knows of the default, and serde still requires the field.
    pub is_shown_only: bool,
}

/// Where a default comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultSource {
    /// The `Default` of the field's type, or that of the struct.
    Type,
    /// The function with this path.
    Function(String),
    /// The field of the same name in the default of the container.
    Container,
}

/// A `from` or an `into` that converts in one direction only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneWay {
    /// Where the other type is.
    pub span: Span,
    /// True if it's the other type that is deserialized.
    pub is_read: bool,
    /// The names that the type's own fields have in JSON, sorted. It's `None` unless the type is a
    /// struct with named fields.
    pub fields: Option<Vec<String>>,
}

/// The keys of kube-derive, which we parse the same way, and those of `#[crd(…)]`.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // kube's keys of the same names
pub struct CustomResource {
    pub span: Span,
    pub group: String,
    pub version: String,
    pub kind: String,
    pub kind_span: Span,
    /// The name of the struct that kube-derive generates, if it isn't the kind.
    pub root: Option<String>,
    pub plural: Option<String>,
    pub singular: Option<String>,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    /// True if the fields are at the root of the object, which has no `spec` then.
    pub no_spec: bool,
    /// `#[crd(optional_spec)]`, with which the API server accepts objects that have no spec.
    pub optional_spec: bool,
    /// `#[crd(root_schema = { … })]`, i.e. keys that the schema of the object has on top of those
    /// that every kind has.
    pub root_schema: Option<Box<rbuilder_schema::Schema>>,
    /// `#[crd(status_subresource = …)]`. Without it, a kind has the subresource if it has a type
    /// for the status.
    pub status_subresource: Option<bool>,
    /// The type of the status, the way it's written.
    pub status: Option<TypeRef>,
    /// The struct that stackable-versioned generates and then uses as the type of the status.
    pub tracked_status: Option<TrackedStatus>,
    pub scale: Option<Scale>,
    pub print_columns: Vec<PrintColumn>,
    /// The fields that field selectors can use (`selectable`).
    pub selectable_fields: Vec<SelectableField>,
    /// The description of the root, which is kube's `doc`.
    pub doc: Option<String>,
    pub storage: bool,
    /// True if `storage` is written out.
    pub is_storage_written: bool,
    pub served: bool,
    /// `None` if it isn't deprecated, and `Some(None)` if it is, but without a warning of its own.
    pub deprecated: Option<Option<String>>,
    /// The CEL rules at the root.
    pub validations: Vec<rbuilder_schema::Cel>,
    pub annotations: Vec<(String, String)>,
    pub labels: Vec<(String, String)>,
    /// `#[crd(conversion(…))]`.
    pub conversion: Option<Conversion>,
    /// Where the schema in `Kind::crd()` comes from.
    pub schema_mode: SchemaMode,
    /// Where kube's key `schema` is, or else the item.
    pub schema_span: Span,
    /// `#[csv(…)]`.
    pub csv: CsvKind,
}

/// The struct that stackable-versioned puts around the status of a kind, to store the values that
/// other versions don't have.
#[derive(Clone, Debug)]
pub struct TrackedStatus {
    /// The name of the struct.
    pub name: String,
    /// The type that the kind has for its status in the source. It's resolved outside of the
    /// versions.
    pub original: Option<TypeRef>,
    /// Where that type is, or else the kind.
    pub span: Span,
}

/// What kube's key `schema` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaMode {
    /// The schema is derived from the Rust types.
    #[default]
    Derived,
    /// The kind has a handwritten `impl JsonSchema`.
    Manual,
    /// The program doesn't give the kind a schema.
    Disabled,
}

impl CustomResource {
    /// Returns whether the status is a subresource.
    pub fn has_status_subresource(&self) -> bool {
        self.status_subresource.unwrap_or(self.status.is_some())
    }

    /// Returns which parts the objects of the kind have.
    pub fn object_parts(&self) -> ObjectParts {
        ObjectParts {
            has_spec: !self.no_spec,
            has_status_subresource: self.has_status_subresource(),
        }
    }

    /// Returns the singular of the resource. If there is none in the source, it's that of
    /// kube-derive.
    pub fn singular_name(&self) -> String {
        self.singular
            .clone()
            .unwrap_or_else(|| names::singular(&self.kind))
    }

    /// Returns the plural of the resource, by which the program refers to it in requests. If there
    /// is none in the source, it's that of kube-derive, which depends on the singular rather than
    /// on the kind.
    pub fn plural_name(&self) -> String {
        self.plural
            .clone()
            .unwrap_or_else(|| names::plural(&self.singular_name()))
    }
}

/// How objects are converted between versions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields of CustomResourceConversion and WebhookClientConfig
pub struct Conversion {
    pub span: Span,
    /// True if a webhook converts them. Otherwise the API server only changes the version.
    pub webhook: bool,
    pub service_name: String,
    pub service_namespace: String,
    pub service_port: Option<u16>,
    pub path: String,
    /// If there is a URL, it takes the place of the service.
    pub url: Option<String>,
    pub ca_bundle: Option<String>,
    pub review_versions: Vec<String>,
}

/// `scale(…)`, in either of the two notations that kube accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields of CustomResourceSubresourceScale
pub struct Scale {
    pub span: Span,
    pub spec_replicas_path: String,
    pub status_replicas_path: String,
    pub label_selector_path: Option<String>,
    /// Where the paths are, by the name of the field. There are none if the scale is written as
    /// JSON.
    pub path_spans: Vec<(&'static str, Span)>,
}

impl Scale {
    /// Returns where a path is, or else the whole marker.
    pub fn span_of(&self, name: &str) -> Span {
        let found = self.path_spans.iter().find(|(known, _)| *known == name);
        found.map_or(self.span, |(_, span)| *span)
    }
}

/// `printcolumn(…)`, in either of the two notations that kube accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields of CustomResourceColumnDefinition
pub struct PrintColumn {
    pub span: Span,
    pub name: String,
    pub column_type: String,
    pub json_path: String,
    pub description: Option<String>,
    pub format: Option<String>,
    pub priority: Option<i32>,
}

/// A field that field selectors can use.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectableField {
    /// Where the path is.
    pub span: Span,
    /// The path from the root of the object, e.g. `.spec.size`.
    pub json_path: String,
}

/// A rule of `#[rbac(…)]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the marker's arguments of the same names
pub struct RbacRule {
    pub span: Span,
    pub groups: Vec<String>,
    /// Where the groups are.
    pub groups_span: Span,
    pub resources: Vec<String>,
    /// Where the resources are.
    pub resources_span: Span,
    pub resource_names: Vec<String>,
    pub verbs: Vec<String>,
    pub urls: Vec<String>,
    pub namespace: Option<String>,
    pub role_name: Option<String>,
    pub derived: bool,
}
