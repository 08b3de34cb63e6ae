//! Equivalents of Go markers for types whose schema comes from schemars, where `#[crd(…)]` does not
//! compile.

use super::Spelling::{self, As, Else, Json, List, Text, Value};

/// Accepts any JSON, regardless of what serde writes.
const ANY: Spelling<'static> =
    As("#[schemars(with = \"serde_json::Value\", extend(\"x-kubernetes-preserve-unknown-fields\" = true))]");

/// Attributes of `CrdSchema` and their equivalents in schemars. `extend`, which sets a schema key,
/// is only used where schemars has no attribute.
#[rustfmt::skip] // one row per line
pub(super) const SPELLINGS: &[(&str, Spelling<'static>)] = &[
    ("#[crd(at_least_one_of({}))]", Else("write a rule for the fields: `#[schemars(extend(\"x-kubernetes-validations\" = [{ \"rule\": \"has(self.a) || has(self.b)\" }]))]`")),
    ("#[crd(at_most_one_of({}))]", Else("write a rule for the fields: `#[schemars(extend(\"x-kubernetes-validations\" = [{ \"rule\": \"!has(self.a) || !has(self.b)\" }]))]`")),
    ("#[crd(cel({}))]", Json("#[schemars(extend(\"x-kubernetes-validations\" = [{}]))]")),
    ("#[crd(default = {})]", Value("#[schemars(extend(\"default\" = {}))]")),
    ("#[crd(embedded_resource)]", As("#[schemars(with = \"serde_json::Value\", extend(\"type\" = \"object\", \"x-kubernetes-embedded-resource\" = true, \"x-kubernetes-preserve-unknown-fields\" = true))]")),
    ("#[crd(exactly_one_of({}))]", Else("write a rule for the fields: `#[schemars(extend(\"x-kubernetes-validations\" = [{ \"rule\": \"has(self.a) != has(self.b)\" }]))]`")),
    ("#[crd(example = {})]", Value("#[schemars(extend(\"example\" = {}))]")),
    ("#[crd(external_docs({}))]", Else("write the address in the doc comment: schemars has no `externalDocs`")),
    ("#[crd(immutable)]", As("#[schemars(extend(\"x-kubernetes-validations\" = [{ \"rule\": \"self == oldSelf\", \"message\": \"the field is immutable\" }]))]")),
    ("#[crd(int_or_string)]", As("#[schemars(with = \"k8s_openapi::apimachinery::pkg::util::intstr::IntOrString\")]")),
    ("#[crd(list_map_keys = {})]", List("#[schemars(extend(\"x-kubernetes-list-map-keys\" = {}))]")),
    ("#[crd(list_type = \"set\")]", As("#[schemars(extend(\"x-kubernetes-list-type\" = \"set\"))]")),
    ("#[crd(list_type = {})]", Text("#[schemars(extend(\"x-kubernetes-list-type\" = {}))]")),
    ("#[crd(map_type = {})]", Text("#[schemars(extend(\"x-kubernetes-map-type\" = {}))]")),
    ("#[crd(nullable)]", As("#[schemars(extend(\"nullable\" = true))]")),
    ("#[crd(optional)]", Else("make the type of the field an `Option`")),
    ("#[crd(preserve_unknown_fields)]", As("#[schemars(extend(\"x-kubernetes-preserve-unknown-fields\" = true))]")),
    ("#[crd(required)]", Else("make the type of the field no `Option`, and remove `#[serde(default)]` from it")),
    ("#[crd(schemaless)]", ANY),
    ("#[crd(struct_type = {})]", Text("#[schemars(extend(\"x-kubernetes-map-type\" = {}))]")),
    ("#[crd(title = {})]", Text("#[schemars(title = {})]")),
    ("#[crd(validation(max_items = {}))]", Value("#[schemars(length(max = {}))]")),
    ("#[crd(validation(max_length = {}))]", Value("#[schemars(length(max = {}))]")),
    ("#[crd(validation(maximum = {}))]", Value("#[schemars(range(max = {}))]")),
    ("#[crd(validation(min_items = {}))]", Value("#[schemars(length(min = {}))]")),
    ("#[crd(validation(min_length = {}))]", Value("#[schemars(length(min = {}))]")),
    ("#[crd(validation(minimum = {}))]", Value("#[schemars(range(min = {}))]")),
    ("#[crd(validation(pattern = {}))]", Text("#[schemars(regex(pattern = {}))]")),
    (super::ITEMS, Else("write the constraint in `#[schemars(inner(…))]`, such as `length(min = 1)`")),
];
