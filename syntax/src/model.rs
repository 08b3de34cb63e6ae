//! The model of one item, unresolved: owned values and [`Span`]s, no tokens beyond this point.

use std::collections::BTreeMap;

use rbuilder_reader::{Span, TypeRef};
use rbuilder_schema::{Container, Content, CsvKind, Field, ObjectParts, Shape, Site};

use crate::names;

/// A struct or enum that derives `CrdSchema` or `CustomResource`.
#[derive(Clone, Debug)]
pub struct Type {
    /// The Rust identifier, without `r#`.
    pub ident: String,
    /// True if a marker could not be read: another mistake may only seem to be one for want of it.
    pub is_incomplete: bool,
    /// True if a marker makes it nullable, although serde reads it from `null` only in an `Option`.
    pub needs_option: bool,
    /// The place of the identifier.
    pub span: Span,
    /// The first byte of its attributes, or of the identifier if there are none.
    pub start: u32,
    /// Type parameters in order, with their default types.
    pub generics: Vec<(String, Option<TypeRef>)>,
    /// The form that serde gives it; slots index `slots`.
    pub container: Container,
    /// The types that the container mentions, as written.
    pub slots: Vec<TypeRef>,
    /// The types of the values of some slots, where only schemars is told of the type of the slot.
    pub value_types: BTreeMap<usize, TypeRef>,
    /// The functions of schemars that give the schemas of some slots, by the position of the slot.
    pub schema_functions: BTreeMap<usize, SchemaFunction>,
    /// The place of each `Site` of the container: fields of a struct, or variants of an enum.
    pub sites: Vec<Span>,
    /// For each variant, where each of its named fields is.
    pub variant_sites: Vec<Vec<Span>>,
    /// The places of markers on the type, its fields and its variants.
    pub marker_spans: Vec<MarkerSpan>,
    /// `#[kube(group, version, kind, …)]`, when it derives `CustomResource`.
    pub custom_resource: Option<CustomResource>,
    /// `from` or `into` without the other, where serde derives both ways.
    pub one_way: Option<OneWay>,
    /// serde's view of the values of the fields of a struct, in their order.
    pub values: Vec<FieldValue>,
    /// The same for the named fields of each variant.
    pub variant_values: Vec<Vec<FieldValue>>,
    /// The value of the whole struct whose fields stand for absent ones.
    pub whole_default: Option<DefaultSource>,
    /// True if another type or a schema that is written out stands for it in JSON.
    pub is_replaced: bool,
    /// The numbers of the variants of an enum, where each is known.
    pub numbers: Option<Vec<i64>>,
    /// The integer type of `#[repr(…)]`.
    pub repr: Option<String>,
    /// The position of the variant with `#[default]`.
    pub default_variant: Option<usize>,
}

/// The place of one marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerSpan {
    /// The place of the name of the type, field or variant that has it.
    pub owner: Span,
    /// The name of the marker or constraint.
    pub name: &'static str,
    /// The place of its value, or of its name if it has none.
    pub span: Span,
}

/// A function of the program that returns a schema: `#[schemars(schema_with = "path")]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaFunction {
    /// Its path as written, which may have type arguments.
    pub path: String,
    /// The place of the path.
    pub span: Span,
}

/// A field whose default counts for the schema.
#[derive(Clone, Copy, Debug)]
pub struct AbsentField<'a> {
    /// The field.
    pub field: &'a Field,
    /// The place of its name.
    pub span: Span,
    /// The position of the variant that it is in.
    pub variant: Option<usize>,
    /// Its position among the fields.
    pub position: usize,
    /// serde's view of its value.
    pub said: &'a FieldValue,
    /// The value in its place where it is absent.
    pub value: &'a AbsentValue,
}

impl AbsentField<'_> {
    /// The part of the container that it is.
    pub fn site(&self) -> Site {
        match self.variant {
            Some(variant) => Site::VariantField(variant, self.position),
            None => Site::Field(self.position),
        }
    }
}

impl Type {
    /// Returns the place of a marker on the part of the type that is named at `owner`; `None` if it is not written there, as
    /// where another tool's attribute stands for it.
    pub fn marker_span(&self, owner: Span, name: &str) -> Option<Span> {
        let mut spans = self.marker_spans.iter();
        let found = spans.find(|marker| marker.owner == owner && marker.name == name)?;
        Some(found.span)
    }

    /// The type of the values of a slot, which need not be that of its schema.
    pub fn value_type(&self, slot: usize) -> Option<&TypeRef> {
        self.value_types.get(&slot).or_else(|| self.slots.get(slot))
    }

    /// The fields whose default counts for the schema, in source order.
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

/// The value of a field, as far as serde's attributes speak of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldValue {
    /// The value of the field where it is absent, if the schema is to have it as a default.
    pub absent: Option<AbsentValue>,
    /// The function of `skip_serializing_if`.
    pub skip_if: Option<String>,
    /// True if serde never writes the field.
    pub is_unwritten: bool,
    /// True if a function of the program writes it, so that its type does not say its form.
    pub is_opaque: bool,
}

/// The value that takes the place of an absent field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentValue {
    /// Its origin.
    pub source: DefaultSource,
    /// True if only schemars is told of it: serde reads no object without the field.
    pub is_shown_only: bool,
}

/// The origin of a default value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultSource {
    /// `Default` of the field's type, or of the struct.
    Type,
    /// The function of this path.
    Function(String),
    /// The field of the same name in the value of the whole struct.
    Container,
}

/// A type that another one stands for when serde reads it, or when serde writes it, and not both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneWay {
    /// The place of the other type.
    pub span: Span,
    /// True if the other type is the one read.
    pub is_read: bool,
    /// The wire names of the type's own fields, sorted; nothing for what is not a struct with named fields.
    pub fields: Option<Vec<String>>,
}

/// kube-derive's container keys, read as kube-derive reads them, and the keys of `#[crd(…)]`.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // each field is kube's key of the same name
pub struct CustomResource {
    pub span: Span,
    pub group: String,
    pub version: String,
    pub kind: String,
    pub kind_span: Span,
    /// Name of the struct that kube makes; the kind without it.
    pub root: Option<String>,
    pub plural: Option<String>,
    pub singular: Option<String>,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    /// The fields stand at the root of the object, with no `spec` between.
    pub no_spec: bool,
    /// `#[crd(optional_spec)]`: the API server accepts objects without a spec.
    pub optional_spec: bool,
    /// `#[crd(root_schema = { … })]`: keys of the schema of the whole object, beside those that every kind has.
    pub root_schema: Option<Box<rbuilder_schema::Schema>>,
    /// `#[crd(status_subresource = …)]`; nothing where the type of the status decides.
    pub status_subresource: Option<bool>,
    /// The type of the status, as written.
    pub status: Option<TypeRef>,
    pub scale: Option<Scale>,
    pub print_columns: Vec<PrintColumn>,
    /// The fields that field selectors may use: `selectable`.
    pub selectable_fields: Vec<SelectableField>,
    /// Description of the root; kube's `doc`.
    pub doc: Option<String>,
    pub storage: bool,
    /// True if `storage` is written.
    pub is_storage_written: bool,
    pub served: bool,
    /// `None`: not deprecated; `Some(None)`: deprecated without a warning of its own.
    pub deprecated: Option<Option<String>>,
    /// Root-level CEL rules.
    pub validations: Vec<rbuilder_schema::Cel>,
    pub annotations: Vec<(String, String)>,
    pub labels: Vec<(String, String)>,
    /// `#[crd(conversion(…))]`.
    pub conversion: Option<Conversion>,
    /// Origin of the schema in `Kind::crd()`.
    pub schema_mode: SchemaMode,
    /// Place of kube's key `schema`; of the item without one.
    pub schema_span: Span,
    /// `#[csv(…)]`.
    pub csv: CsvKind,
}

/// kube's key `schema`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaMode {
    /// The Rust types' own schemas.
    #[default]
    Derived,
    /// An `impl JsonSchema` of the kind that is written by hand.
    Manual,
    /// None: the program has no schema of the kind.
    Disabled,
}

impl CustomResource {
    /// Returns whether the status is a subresource.
    pub fn has_status_subresource(&self) -> bool {
        self.status_subresource.unwrap_or(self.status.is_some())
    }

    /// Returns the parts of its objects.
    pub fn object_parts(&self) -> ObjectParts {
        ObjectParts {
            has_spec: !self.no_spec,
            has_status_subresource: self.has_status_subresource(),
        }
    }

    /// Returns the singular under which the program knows the resource: kube-derive's where none is written.
    pub fn singular_name(&self) -> String {
        self.singular
            .clone()
            .unwrap_or_else(|| names::singular(&self.kind))
    }

    /// Returns the plural under which the program asks the API server for the resource: kube-derive's where none is
    /// written, which follows the singular and not the kind.
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
    /// True if a webhook converts; otherwise only the version is written again.
    pub webhook: bool,
    pub service_name: String,
    pub service_namespace: String,
    pub service_port: Option<u16>,
    pub path: String,
    /// In place of the service.
    pub url: Option<String>,
    pub ca_bundle: Option<String>,
    pub review_versions: Vec<String>,
}

/// `scale(…)`, in either of kube's spellings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields of CustomResourceSubresourceScale
pub struct Scale {
    pub span: Span,
    pub spec_replicas_path: String,
    pub status_replicas_path: String,
    pub label_selector_path: Option<String>,
    /// The places of the paths, by the names above; none for kube's JSON.
    pub path_spans: Vec<(&'static str, Span)>,
}

impl Scale {
    /// Returns the place of a path, or of the whole marker.
    pub fn span_of(&self, name: &str) -> Span {
        let found = self.path_spans.iter().find(|(known, _)| *known == name);
        found.map_or(self.span, |(_, span)| *span)
    }
}

/// `printcolumn(…)`, in either of kube's spellings.
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

/// A field that field selectors may use.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectableField {
    /// Place of the path.
    pub span: Span,
    /// Path from the root of the object, as in `.spec.size`.
    pub json_path: String,
}

/// One `#[rbac(…)]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the marker's argument of the same name
pub struct RbacRule {
    pub span: Span,
    pub groups: Vec<String>,
    /// The place of the groups.
    pub groups_span: Span,
    pub resources: Vec<String>,
    /// The place of the resources.
    pub resources_span: Span,
    pub resource_names: Vec<String>,
    pub verbs: Vec<String>,
    pub urls: Vec<String>,
    pub namespace: Option<String>,
    pub role_name: Option<String>,
}
