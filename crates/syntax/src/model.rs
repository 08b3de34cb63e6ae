//! The model of an item before types are resolved. Owns its values, and refers to the source only
//! by [`Span`].

use std::collections::BTreeMap;

use rbuilder_reader::{Span, TypeRef};
use rbuilder_schema::{Container, Content, CsvKind, Field, ObjectParts, Shape, Site};

use crate::names;

/// A struct or enum that derives `CrdSchema` or `CustomResource`.
#[derive(Clone, Debug)]
pub struct Type {
    /// The Rust identifier without `r#`.
    pub ident: String,
    /// True if a marker failed to parse, in which case other errors may just be consequences.
    pub is_incomplete: bool,
    /// True if a marker makes the type nullable. Serde then accepts `null` only inside of an
    /// `Option`.
    pub needs_option: bool,
    /// The span of the identifier.
    pub span: Span,
    /// The start of the first attribute, or of the identifier if there are no attributes.
    pub start: u32,
    /// The type parameters in order, each with its default type.
    pub generics: Vec<(String, Option<TypeRef>)>,
    /// The JSON representation. Slots are indexes into `slots`.
    pub container: Container,
    /// The types that the container refers to, as written.
    pub slots: Vec<TypeRef>,
    /// For slots with `#[schemars(with)]`, which changes the type in the schema but not the value:
    /// the type of the value.
    pub value_types: BTreeMap<usize, TypeRef>,
    /// Functions that generate the schema for schemars, by slot.
    pub schema_functions: BTreeMap<usize, SchemaFunction>,
    /// The span of each `Site` of the container, i.e. of each field of a struct or variant of an
    /// enum.
    pub sites: Vec<Span>,
    /// The spans of the named fields of each variant.
    pub variant_sites: Vec<Vec<Span>>,
    /// The spans of the markers on the type, its fields and its variants.
    pub marker_spans: Vec<MarkerSpan>,
    /// `#[kube(group, version, kind, …)]`, if the type derives `CustomResource`.
    pub custom_resource: Option<CustomResource>,
    /// Set if there is a `from` without an `into` or vice versa, although serde derives both
    /// directions.
    pub one_way: Option<OneWay>,
    /// The values of a struct's fields according to serde's attributes, in the order of the fields.
    pub values: Vec<FieldValue>,
    /// The values of the named fields of each variant.
    pub variant_values: Vec<Vec<FieldValue>>,
    /// The container's default, which provides the values of absent fields.
    pub whole_default: Option<DefaultSource>,
    /// True if another type or an explicit schema replaces the type in JSON.
    pub is_replaced: bool,
    /// The discriminants of an enum's variants, or `None` if any of them is unknown.
    pub numbers: Option<Vec<i64>>,
    /// The integer type in `#[repr(…)]`.
    pub repr: Option<String>,
    /// The index of the variant with `#[default]`.
    pub default_variant: Option<usize>,
}

/// The location of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerSpan {
    /// The name of the type, field or variant with the marker.
    pub owner: Span,
    /// The name of the marker or constraint.
    pub name: &'static str,
    /// The span of its value, or of its name if it has no value.
    pub span: Span,
}

/// A function that returns a schema, as in `#[schemars(schema_with = "path")]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaFunction {
    /// The path as written, possibly with type arguments.
    pub path: String,
    /// The span of the path.
    pub span: Span,
}

/// A field whose default becomes part of the schema.
#[derive(Clone, Copy, Debug)]
pub struct AbsentField<'a> {
    /// The field.
    pub field: &'a Field,
    /// The span of the field's name.
    pub span: Span,
    /// The index of the variant, for a field of an enum.
    pub variant: Option<usize>,
    /// The index among the fields.
    pub position: usize,
    /// The field's value according to serde's attributes.
    pub said: &'a FieldValue,
    /// The value if the field is absent.
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
    /// Returns the span of a marker on the type, field or variant whose name is at `owner`. `None`
    /// if the marker isn't written there, e.g. because an attribute of another tool implies it.
    pub fn marker_span(&self, owner: Span, name: &str) -> Option<Span> {
        let mut spans = self.marker_spans.iter();
        let found = spans.find(|marker| marker.owner == owner && marker.name == name)?;
        Some(found.span)
    }

    /// Returns the type of the values in a slot, which can differ from the type of its schema.
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

/// The value of a field according to serde's attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldValue {
    /// The default of the field, if it's supposed to be part of the schema.
    pub absent: Option<AbsentValue>,
    /// The function in `skip_serializing_if`.
    pub skip_if: Option<String>,
    /// True if serde never serializes the field.
    pub is_unwritten: bool,
    /// True if a function serializes the field, so that the type does not determine the JSON.
    pub is_opaque: bool,
}

/// The value of an absent field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentValue {
    /// The source of the value.
    pub source: DefaultSource,
    /// True if only schemars knows of the default and serde still requires the field.
    pub is_shown_only: bool,
}

/// The source of a default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultSource {
    /// The `Default` of the field's type, or of the struct.
    Type,
    /// The function with this path.
    Function(String),
    /// The field of the same name in the container's default.
    Container,
}

/// A `from` or an `into` that converts in one direction only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneWay {
    /// The span of the other type.
    pub span: Span,
    /// True if the other type is the one deserialized.
    pub is_read: bool,
    /// The JSON names of the type's own fields, sorted. `None` unless the type is a struct with
    /// named fields.
    pub fields: Option<Vec<String>>,
}

/// The keys of kube-derive, parsed in the same way, and those of `#[crd(…)]`.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // kube's keys of the same names
pub struct CustomResource {
    pub span: Span,
    pub group: String,
    pub version: String,
    pub kind: String,
    pub kind_span: Span,
    /// The name of the struct that kube-derive generates, if it differs from the kind.
    pub root: Option<String>,
    pub plural: Option<String>,
    pub singular: Option<String>,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    /// True if the fields are at the root of the object instead of in `spec`.
    pub no_spec: bool,
    /// `#[crd(optional_spec)]`: the API server accepts objects without a spec.
    pub optional_spec: bool,
    /// `#[crd(root_schema = { … })]`: keys of the object's schema in addition to those that every
    /// kind has.
    pub root_schema: Option<Box<rbuilder_schema::Schema>>,
    /// `#[crd(status_subresource = …)]`. By default, a kind has the subresource if it has a status
    /// type.
    pub status_subresource: Option<bool>,
    /// The type of the status, as written.
    pub status: Option<TypeRef>,
    /// The struct that stackable-versioned generates and then uses as the type of the status.
    pub tracked_status: Option<TrackedStatus>,
    pub scale: Option<Scale>,
    pub print_columns: Vec<PrintColumn>,
    /// The fields available in field selectors (`selectable`).
    pub selectable_fields: Vec<SelectableField>,
    /// The description of the root, from kube's `doc`.
    pub doc: Option<String>,
    pub storage: bool,
    /// True if `storage` is explicit.
    pub is_storage_written: bool,
    pub served: bool,
    /// `None` if the version isn't deprecated, and `Some(None)` if it has the default warning.
    pub deprecated: Option<Option<String>>,
    /// The CEL rules at the root.
    pub validations: Vec<rbuilder_schema::Cel>,
    pub annotations: Vec<(String, String)>,
    pub labels: Vec<(String, String)>,
    /// `#[crd(conversion(…))]`.
    pub conversion: Option<Conversion>,
    /// The source of the schema in `Kind::crd()`.
    pub schema_mode: SchemaMode,
    /// The span of kube's key `schema`, or of the item without this key.
    pub schema_span: Span,
    /// `#[csv(…)]`.
    pub csv: CsvKind,
}

/// The struct in which stackable-versioned wraps the status of a kind, to store values that other
/// versions lack.
#[derive(Clone, Debug)]
pub struct TrackedStatus {
    /// The name of the struct.
    pub name: String,
    /// The kind's status type in the source. Resolved outside of the versions.
    pub original: Option<TypeRef>,
    /// The span of that type, or else of the kind.
    pub span: Span,
}

/// The value of kube's key `schema`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaMode {
    /// The schema is derived from the Rust types.
    #[default]
    Derived,
    /// The kind has a handwritten `impl JsonSchema`.
    Manual,
    /// The program doesn't provide a schema for the kind.
    Disabled,
}

impl CustomResource {
    /// Returns whether the status is a subresource.
    pub fn has_status_subresource(&self) -> bool {
        self.status_subresource.unwrap_or(self.status.is_some())
    }

    /// Returns the parts of the kind's objects.
    pub fn object_parts(&self) -> ObjectParts {
        ObjectParts {
            has_spec: !self.no_spec,
            has_status_subresource: self.has_status_subresource(),
        }
    }

    /// Returns the singular of the resource, which defaults to kube-derive's.
    pub fn singular_name(&self) -> String {
        self.singular
            .clone()
            .unwrap_or_else(|| names::singular(&self.kind))
    }

    /// Returns the plural of the resource, which the program uses in requests. Defaults to
    /// kube-derive's, which depends on the singular rather than on the kind.
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
    /// True if a webhook converts objects. Otherwise the API server only changes the version.
    pub webhook: bool,
    /// `None` is the Service of the scaffold.
    pub service_name: Option<String>,
    pub service_namespace: String,
    pub service_port: Option<u16>,
    pub path: String,
    /// Replaces the service.
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
    /// The spans of the paths, by field name. Empty if the scale is written as JSON.
    pub path_spans: Vec<(&'static str, Span)>,
}

impl Scale {
    /// Returns the span of a path, or else of the entire marker.
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

/// A field available in field selectors.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectableField {
    /// The span of the path.
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
    /// The span of the groups.
    pub groups_span: Span,
    pub resources: Vec<String>,
    /// The span of the resources.
    pub resources_span: Span,
    pub resource_names: Vec<String>,
    pub verbs: Vec<String>,
    pub urls: Vec<String>,
    pub namespace: Option<String>,
    pub role_name: Option<String>,
    pub derived: bool,
}
