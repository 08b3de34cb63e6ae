//! The model of an item before types are resolved. It owns its values, and refers to the source
//! only by [`Span`].

use std::collections::BTreeMap;

use rbuilder_reader::{Span, TypeRef};
use rbuilder_schema::{Container, Content, CsvKind, Field, ObjectParts, Shape, Site};

use crate::names;

/// A struct or enum that derives `CrdSchema` or `CustomResource`.
#[derive(Clone, Debug)]
pub struct Type {
    /// The Rust identifier, without `r#`.
    pub ident: String,
    /// Whether a marker could not be parsed. Other errors may only be a consequence of that.
    pub is_incomplete: bool,
    /// Whether a marker makes the type nullable, so that serde accepts the `null` only inside an
    /// `Option`.
    pub needs_option: bool,
    /// The span of the identifier.
    pub span: Span,
    /// The offset of the first attribute, or of the identifier if there are no attributes.
    pub start: u32,
    /// The type parameters in order, with their default types.
    pub generics: Vec<(String, Option<TypeRef>)>,
    /// The JSON form. Its slots are indices into `slots`.
    pub container: Container,
    /// The types that the container refers to, as written.
    pub slots: Vec<TypeRef>,
    /// The types of the values in some slots, where `#[schemars(with)]` only changes the type in
    /// the schema.
    pub value_types: BTreeMap<usize, TypeRef>,
    /// The schemars functions that generate the schemas of some slots, by slot index.
    pub schema_functions: BTreeMap<usize, SchemaFunction>,
    /// The span of each `Site` of the container: the fields of a struct, or the variants of an
    /// enum.
    pub sites: Vec<Span>,
    /// The spans of each variant's named fields.
    pub variant_sites: Vec<Vec<Span>>,
    /// The spans of markers on the type, its fields and its variants.
    pub marker_spans: Vec<MarkerSpan>,
    /// `#[kube(group, version, kind, …)]`, if the type derives `CustomResource`.
    pub custom_resource: Option<CustomResource>,
    /// `from` or `into` without its counterpart, if serde derives both directions.
    pub one_way: Option<OneWay>,
    /// The serde attributes that affect the values of a struct's fields, in field order.
    pub values: Vec<FieldValue>,
    /// The same for the named fields of each variant.
    pub variant_values: Vec<Vec<FieldValue>>,
    /// The container default, which provides the values of absent fields.
    pub whole_default: Option<DefaultSource>,
    /// Whether another type or an explicit schema replaces the type in JSON.
    pub is_replaced: bool,
    /// The discriminants of an enum's variants, if all are known.
    pub numbers: Option<Vec<i64>>,
    /// The integer type in `#[repr(…)]`.
    pub repr: Option<String>,
    /// The index of the variant with `#[default]`.
    pub default_variant: Option<usize>,
}

/// The span of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerSpan {
    /// The span of the name of the type, field or variant with the marker.
    pub owner: Span,
    /// The name of the marker or constraint.
    pub name: &'static str,
    /// The span of its value, or of its name if it has none.
    pub span: Span,
}

/// A function that returns a schema: `#[schemars(schema_with = "path")]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaFunction {
    /// The path as written. It may have type arguments.
    pub path: String,
    /// The span of the path.
    pub span: Span,
}

/// A field whose default is part of the schema.
#[derive(Clone, Copy, Debug)]
pub struct AbsentField<'a> {
    /// The field.
    pub field: &'a Field,
    /// The span of its name.
    pub span: Span,
    /// The index of its variant, for fields of an enum.
    pub variant: Option<usize>,
    /// The index among the fields.
    pub position: usize,
    /// The serde attributes that affect its value.
    pub said: &'a FieldValue,
    /// The value of the field when it is absent.
    pub value: &'a AbsentValue,
}

impl AbsentField<'_> {
    /// Returns the field's site in the container.
    pub fn site(&self) -> Site {
        match self.variant {
            Some(variant) => Site::VariantField(variant, self.position),
            None => Site::Field(self.position),
        }
    }
}

impl Type {
    /// Returns the span of a marker on the type, field or variant named at `owner`. Returns `None`
    /// if the marker does not occur there, e.g. because another tool's attribute implies it.
    pub fn marker_span(&self, owner: Span, name: &str) -> Option<Span> {
        let mut spans = self.marker_spans.iter();
        let found = spans.find(|marker| marker.owner == owner && marker.name == name)?;
        Some(found.span)
    }

    /// Returns the type of the values in a slot, which can differ from the type of its schema.
    pub fn value_type(&self, slot: usize) -> Option<&TypeRef> {
        self.value_types.get(&slot).or_else(|| self.slots.get(slot))
    }

    /// Returns the fields whose default is part of the schema, in source order.
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

/// The serde attributes that affect the value of a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldValue {
    /// The default of the field, if it should be part of the schema.
    pub absent: Option<AbsentValue>,
    /// The function in `skip_serializing_if`.
    pub skip_if: Option<String>,
    /// Whether serde never serializes the field.
    pub is_unwritten: bool,
    /// Whether a function serializes the field, so that the type does not determine the JSON.
    pub is_opaque: bool,
}

/// The value of an absent field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentValue {
    /// Where the value comes from.
    pub source: DefaultSource,
    /// Whether only schemars knows the default: serde still requires the field.
    pub is_shown_only: bool,
}

/// The origin of a default value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultSource {
    /// `Default` of the field's type, or of the struct.
    Type,
    /// The function with this path.
    Function(String),
    /// The field of the same name in the container's default.
    Container,
}

/// A conversion with `from` or `into` for a single direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneWay {
    /// The span of the other type.
    pub span: Span,
    /// Whether the other type is the deserialized one.
    pub is_read: bool,
    /// The JSON names of the type's own fields, sorted. `None` unless it is a struct with named
    /// fields.
    pub fields: Option<Vec<String>>,
}

/// kube-derive's container keys, parsed the same way, and the keys of `#[crd(…)]`.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // kube's keys of the same names
pub struct CustomResource {
    pub span: Span,
    pub group: String,
    pub version: String,
    pub kind: String,
    pub kind_span: Span,
    /// The name of the struct that kube-derive generates. Defaults to the kind.
    pub root: Option<String>,
    pub plural: Option<String>,
    pub singular: Option<String>,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    /// Whether the fields are at the root of the object, without a `spec`.
    pub no_spec: bool,
    /// `#[crd(optional_spec)]`: the API server accepts objects without a spec.
    pub optional_spec: bool,
    /// `#[crd(root_schema = { … })]`: keys in the object's schema, in addition to the keys of every
    /// kind.
    pub root_schema: Option<Box<rbuilder_schema::Schema>>,
    /// `#[crd(status_subresource = …)]`. By default, a kind with a status type has the subresource.
    pub status_subresource: Option<bool>,
    /// The type of the status, as written.
    pub status: Option<TypeRef>,
    /// The struct that stackable-versioned generates and uses as the type of the status.
    pub tracked_status: Option<TrackedStatus>,
    pub scale: Option<Scale>,
    pub print_columns: Vec<PrintColumn>,
    /// Fields that field selectors can use: `selectable`.
    pub selectable_fields: Vec<SelectableField>,
    /// The description of the root: kube's `doc`.
    pub doc: Option<String>,
    pub storage: bool,
    /// Whether `storage` is given explicitly.
    pub is_storage_written: bool,
    pub served: bool,
    /// `None` if not deprecated, `Some(None)` if deprecated without a custom warning.
    pub deprecated: Option<Option<String>>,
    /// CEL rules at the root.
    pub validations: Vec<rbuilder_schema::Cel>,
    pub annotations: Vec<(String, String)>,
    pub labels: Vec<(String, String)>,
    /// `#[crd(conversion(…))]`.
    pub conversion: Option<Conversion>,
    /// The origin of the schema in `Kind::crd()`.
    pub schema_mode: SchemaMode,
    /// The span of kube's key `schema`, or of the item if there is no such key.
    pub schema_span: Span,
    /// `#[csv(…)]`.
    pub csv: CsvKind,
}

/// The struct that stackable-versioned generates around a kind's status, to store values that other
/// versions do not have.
#[derive(Clone, Debug)]
pub struct TrackedStatus {
    /// The name of the struct.
    pub name: String,
    /// The type that the kind declares for its status. It is resolved outside of the versions.
    pub original: Option<TypeRef>,
    /// The span of the declared type, or of the kind.
    pub span: Span,
}

/// kube's key `schema`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaMode {
    /// Derived from the Rust types.
    #[default]
    Derived,
    /// A handwritten `impl JsonSchema` of the kind.
    Manual,
    /// The program has no schema for the kind.
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

    /// Returns the singular name of the resource. Defaults to kube-derive's.
    pub fn singular_name(&self) -> String {
        self.singular
            .clone()
            .unwrap_or_else(|| names::singular(&self.kind))
    }

    /// Returns the plural name of the resource, under which the program requests it from the API
    /// server. Defaults to kube-derive's, which depends on the singular instead of the kind.
    pub fn plural_name(&self) -> String {
        self.plural
            .clone()
            .unwrap_or_else(|| names::plural(&self.singular_name()))
    }
}

/// The conversion of objects between versions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields of CustomResourceConversion and WebhookClientConfig
pub struct Conversion {
    pub span: Span,
    /// Whether a webhook converts. Otherwise the API server only changes the version.
    pub webhook: bool,
    pub service_name: String,
    pub service_namespace: String,
    pub service_port: Option<u16>,
    pub path: String,
    /// Replaces the service.
    pub url: Option<String>,
    pub ca_bundle: Option<String>,
    pub review_versions: Vec<String>,
}

/// `scale(…)`, in either syntax that kube accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields of CustomResourceSubresourceScale
pub struct Scale {
    pub span: Span,
    pub spec_replicas_path: String,
    pub status_replicas_path: String,
    pub label_selector_path: Option<String>,
    /// The spans of the paths, by field name. Empty if the scale is given as JSON.
    pub path_spans: Vec<(&'static str, Span)>,
}

impl Scale {
    /// Returns the span of a path, or of the whole marker.
    pub fn span_of(&self, name: &str) -> Span {
        let found = self.path_spans.iter().find(|(known, _)| *known == name);
        found.map_or(self.span, |(_, span)| *span)
    }
}

/// `printcolumn(…)`, in either syntax that kube accepts.
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
    /// The span of the path.
    pub span: Span,
    /// The path from the root of the object, such as `.spec.size`.
    pub json_path: String,
}

/// A `#[rbac(…)]` rule.
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
