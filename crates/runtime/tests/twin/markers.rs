//! Every marker, in each place where it is allowed.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// Markers.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "twin.example.com",
    version = "v1",
    kind = "Marked",
    plural = "markeds"
)]
#[crd(
    validation = "!has(self.lists.tags) || self.lists.tags.size() < 9",
    external_docs(url = "https://example.com/marked", description = "All of it"),
    conversion(strategy = "None"),
    label("only", "on-the-crd")
)]
#[csv(display_name = "All markers", resource(kind = "Pod", version = "v1"))]
#[serde(rename_all = "camelCase")]
pub struct MarkedSpec {
    #[csv(display_name = "Limits", order = 1)]
    pub bounds: Bounds,
    pub rules: Rules,
    pub lists: Lists,
    pub presence: PresenceOf,
    pub values: Values,
    pub overrides: Overrides,
    /// The tighter bound of the two holds.
    #[kube(validation(minimum = 2, maximum = 300))]
    pub small: Small,
    #[kube(validation(enum = ["b", "c"]))]
    pub letter: Letter,
    #[kube(embedded_object_meta)]
    pub template: Template,
    /// Kept. All below is cut. This sentence is too long to be kept whole.
    #[kube(max_description_length = 30)]
    pub briefly: Bounds,
    pub nested: Nested,
    pub choice: Choice,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Template {
    pub metadata: ObjectMeta,
    #[kube(allow(RB0312, reason = "the name of another API"))]
    pub last_seen: Option<String>,
    /// Metadata by another name.
    #[kube(embedded_object_meta)]
    pub meta: ObjectMeta,
}

/// Metadata that the API server may drop, unless a field of this type overrides that.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Unneeded {
    #[kube(embedded_object_meta = false)]
    pub metadata: ObjectMeta,
}

/// Markers in markers.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Nested {
    #[kube(
        validation(max_items = 4),
        items(
            validation(max_items = 3),
            list_type = "set",
            items(validation(min_length = 1, max_length = 9, enum = ["a", "b"]), example = "a")
        )
    )]
    pub matrix: Vec<Vec<String>>,
    #[kube(
        validation(max_properties = 2),
        values(
            validation(max_properties = 3),
            map_type = "atomic",
            keys(validation(max_length = 5), cel(rule = "self != 'x'")),
            values(items(validation(max_length = 4)), validation(max_items = 2))
        )
    )]
    pub tree: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    #[kube(items(validation(max_length = 5)), list_type = "set")]
    pub hosts: Hosts,
    #[csv]
    #[kube(items(validation(max_length = 6)), validation(max_items = 3))]
    pub aliased: HostAlias,
    #[kube(validation(minimum = 5, maximum = 300), title = "The field's", example = 7)]
    pub bounded: Small,
    #[kube(default = [{ "name": "a", "port": 2 }], example = [{ "name": "b", "port": 1 }])]
    pub list: Vec<PortOf>,
}

/// A list by another name.
pub type HostAlias = Vec<String>;

/// A list of its own type.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    validation(max_items = 8, min_items = 1),
    items(validation(min_length = 2, max_length = 10))
)]
pub struct Hosts(pub Vec<String>);

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
#[kube(
    exactly_one_of(first_one, second),
    exactly_one_of(r#if, namespace),
    at_least_one_of(second, first_one)
)]
pub struct Choice {
    pub first_one: Option<String>,
    pub second: Option<String>,
    #[kube(immutable)]
    pub namespace: Option<String>,
    pub r#if: Option<String>,
}

/// Plain constraints.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(min_properties = 1, max_properties = 20))]
pub struct Bounds {
    #[kube(validation(minimum = -5, maximum = 5, exclusive_minimum, exclusive_maximum = true))]
    pub exclusive: i32,
    #[kube(validation(multiple_of = 4))]
    pub fours: i64,
    #[kube(validation(minimum = 0.5, maximum = 1e3, multiple_of = 0.25))]
    pub fraction: f64,
    #[kube(validation(min_length = 2, max_length = 8, pattern = r"^[a-z]+\d?$"))]
    pub word: String,
    #[kube(validation(format = "uuid"))]
    pub id: Option<String>,
    #[kube(validation(enum = ["x", "y"]))]
    pub chosen: String,
    #[kube(validation(enum = [1, 2, 3]))]
    pub counted: i32,
    #[kube(validation(min_items = 1, max_items = 3))]
    pub few: Vec<i32>,
    #[kube(validation(min_properties = 1, max_properties = 4))]
    pub some: BTreeMap<String, String>,
    #[kube(validation(type = "string", max_length = 5))]
    pub retyped: serde_json::Value,
    #[kube(
        validation(max_items = 4),
        items(validation(max_items = 2), items(validation(min_length = 1, max_length = 9)))
    )]
    pub deep: Vec<Vec<String>>,
    #[kube(
        validation(max_properties = 8),
        keys(validation(min_length = 1, max_length = 6, pattern = "^[a-z]*$", enum = ["a", "b"])),
        values(validation(maximum = 10), title = "A value")
    )]
    pub keyed: BTreeMap<String, i32>,
}

/// CEL.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
#[crd(
    cel(
        rule = "self.low <= self.high",
        message = "low is above high",
        field_path = ".low"
    ),
    validation = "self.low > -100",
    exactly_one_of(first_choice, second_choice),
    at_most_one_of(first_choice, r#in),
    at_least_one_of(second_choice, first_choice, r#in)
)]
pub struct Rules {
    pub low: i32,
    pub high: i32,
    pub first_choice: Option<String>,
    pub second_choice: Option<String>,
    pub r#in: Option<bool>,
    #[kube(cel(
        rule = "self >= oldSelf.orValue(0)",
        message_expression = "self < 0 ? 'is below zero' : 'must not fall'",
        reason = "FieldValueForbidden",
        optional_old_self = true
    ))]
    pub rising: i32,
    #[kube(
        validation = "self != 'x'",
        cel(rule = "self != 'y'"),
        validation(max_length = 9)
    )]
    pub not_x: String,
    #[kube(validation = Rule::new("self != 'z'").message("not z").reason(Reason::FieldValueInvalid))]
    #[kube(validation(max_length = 5))]
    pub not_z: String,
    #[kube(items(cel(rule = "self > 0")), validation(max_items = 5))]
    pub positive: Vec<i32>,
}

/// Server-side apply.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Lists {
    #[kube(list_type = "map", list_map_keys = ["name", "port"])]
    pub ports: Vec<PortOf>,
    #[kube(list_type = "set")]
    pub tags: Option<Vec<String>>,
    #[kube(list_type = "atomic")]
    pub whole: Vec<PortOf>,
    #[kube(map_type = "atomic")]
    pub labels: BTreeMap<String, String>,
    #[kube(map_type = "granular")]
    pub annotations: BTreeMap<String, String>,
    #[kube(struct_type = "granular")]
    pub part: Part,
    pub whole_part: WholePart,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct PortOf {
    pub name: String,
    #[kube(default = 80)]
    pub port: i32,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Part {
    pub a: i32,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(struct_type = "atomic")]
pub struct WholePart {
    pub a: i32,
}

/// Presence.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct PresenceOf {
    #[kube(optional)]
    #[serde(default)]
    pub may_be_absent: i32,
    #[kube(required)]
    pub must_be_present: Option<i32>,
    #[kube(nullable)]
    pub may_be_null: Option<String>,
    #[kube(immutable)]
    pub fixed: String,
    #[kube(immutable)]
    pub fixed_once_set: Option<String>,
    #[kube(items(nullable))]
    pub holes: Vec<Option<i32>>,
}

/// Values.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Values {
    #[kube(default = -3, example = -4)]
    pub negative: i32,
    #[kube(default = 2.5)]
    pub fraction: f64,
    #[kube(default = true)]
    pub boolean: bool,
    #[kube(default = "on")]
    pub text: String,
    #[kube(default = ["a", "b"], example = [])]
    pub list: Vec<String>,
    #[kube(default = { "k": 1, "minus": -1 })]
    pub map: BTreeMap<String, i32>,
    #[kube(default = { "name": "http", "port": 8080 }, title = "A port", external_docs(url = "https://example.com"))]
    pub object: PortOf,
    pub with_default: WithDefault,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(default = { "a": 7 }, example = { "a": 8 }, title = "Seven")]
pub struct WithDefault {
    pub a: i32,
}

/// Constraints that Rust's types cannot express.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Overrides {
    #[kube(embedded_resource, preserve_unknown_fields)]
    pub object: RawExtension,
    #[kube(preserve_unknown_fields)]
    pub loose: Part,
    #[kube(int_or_string)]
    pub number_or_text: serde_json::Value,
    #[kube(schemaless, preserve_unknown_fields)]
    pub pod: PodSpec,
    #[kube(schemaless, validation(type = "object"), preserve_unknown_fields)]
    pub maybe_pod: Option<PodSpec>,
    #[kube(embedded_object_meta)]
    pub kept_metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    #[kube(embedded_object_meta = false)]
    pub dropped_metadata: ObjectMeta,
    pub dropped_within: Unneeded,
    #[kube(embedded_object_meta)]
    pub kept_within: Unneeded,
    /// A description that is cut, since nobody reads it whole.
    #[kube(max_description_length = 24)]
    pub briefly: Part,
    #[kube(schema_type = "Option<super::names::inner::Deep>")]
    pub looks_like: serde_json::Value,
    #[kube(schema_type = "i64")]
    #[serde(with = "as_number")]
    pub as_number: String,
    pub newtype: NewtypeOf,
    #[kube(schemaless, preserve_unknown_fields)]
    pub tree: Vec<Tree>,
    #[serde(default)]
    #[schemars(schema_with = "ports")]
    pub ports: Vec<i32>,
    #[schemars(schema_with = "at_least_one::<Part>")]
    pub parts: Option<Vec<Part>>,
    pub color: Option<Color>,
    pub shade: Shade,
}

fn ports(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "items": { "type": "integer", "format": "int32", "minimum": 1 },
        "x-kubernetes-list-type": "set",
        "maxItems": MOST_PORTS,
    })
}

const MOST_PORTS: u8 = 8;

fn at_least_one<T: schemars::JsonSchema>(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = <Vec<T> as schemars::JsonSchema>::json_schema(generator);
    schema.insert("minItems".to_owned(), 1.into());
    schema.insert("description".to_owned(), "One part at least.".into());
    schema
}

/// A type with a schema that is written by hand.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Color(String);

impl schemars::JsonSchema for Color {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Color".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^#[0-9a-f]{6}$", "title": "A color" })
    }
}

/// The same for a whole type, by a function.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[schemars(schema_with = "shade")]
pub struct Shade(Vec<Color>);

fn shade(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let color = generator.subschema_for::<Color>();
    schemars::json_schema!({ "type": "array", "items": color, "maxItems": 2 })
}

/// A kind of another operator. Its schema accepts objects that the Rust type cannot decode, because
/// kube's types always have a spec.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "twin.example.com", version = "v1", kind = "Published")]
#[crd(
    optional_spec,
    root_schema = { "properties": { "metadata": { "type": "object", "properties": { "name": { "type": "string", "maxLength": 99 } } } } }
)]
pub struct PublishedSpec {
    /// Not this.
    #[crd(
        description = "TODO: this, which a doc comment cannot have.",
        items(description = "")
    )]
    pub described: Option<Vec<Alternatives>>,
    #[crd(items(schema = { "type": "integer" }))]
    pub unformatted: Option<Vec<i64>>,
}

/// Alternatives.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(
    all_of = [{ "properties": { "left": { "maxLength": 9 } } }],
    any_of = [{ "required": ["left"] }, { "required": ["right"] }],
    one_of = [{ "required": ["left"] }, { "required": ["right"] }],
    not = { "required": ["left", "right"] }
))]
pub struct Alternatives {
    pub left: Option<String>,
    pub right: Option<String>,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct NewtypeOf(#[kube(schema_type = "Vec<String>", validation(max_items = 2))] pub serde_json::Value);

/// A recursive type. The schema ends at the recursion.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Tree {
    #[kube(schemaless, preserve_unknown_fields)]
    pub children: Vec<Tree>,
}

/// Bounded by its type.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(minimum = 1, maximum = 250))]
pub struct Small(pub u8);

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Letter {
    A,
    B,
    C,
}

mod as_number {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(text.parse().unwrap_or_default())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
        Ok(i64::deserialize(deserializer)?.to_string())
    }
}
