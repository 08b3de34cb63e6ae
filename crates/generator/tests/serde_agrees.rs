//! Compares the schema of a type with serde on random values. If the API server stored a value that
//! the program can't deserialize, its controller would stop.

#[path = "serde_agrees/types.rs"]
mod types;

use rbuilder_schema::{Schema, SchemaType, validate};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::fuzz::random::Random;
use super::support::{kind, run};

type Read = fn(Value) -> Result<(), String>;

/// A type, its deserializer, and how the warning starts if the schema accepts more than serde.
type Row = (&'static str, Read, Option<&'static str>);

fn read<T: DeserializeOwned>(value: Value) -> Result<(), String> {
    serde_json::from_value::<T>(value)
        .map(drop)
        .map_err(|error| error.to_string())
}

const OTHERS: Option<&str> = Some("the API server accepts fields of other variants here");
const MAP_OF_VARIANT: Option<&str> =
    Some("the API server does not check the values of this map, because the variants");
const FLATTENED: Option<&str> =
    Some("the API server does not check the values of this map, because a schema has");
const CONTENT: Option<&str> = Some("the API server accepts any content, because the variants hold");
const BESIDE_NAMES: Option<&str> = Some("the API server accepts any content of variants with data");

#[rustfmt::skip] // a table
const ROWS: &[Row] = &[
    ("Open", read::<types::Open>, None),
    ("Strict", read::<types::Strict>, None),
    ("TaggedStrict", read::<types::TaggedStrict>, None),
    ("TaggedOpen", read::<types::TaggedOpen>, None),
    ("TaggedHolder", read::<types::TaggedHolder>, OTHERS),
    ("TaggedMap", read::<types::TaggedMap>, MAP_OF_VARIANT),
    ("TaggedByColour", read::<types::TaggedByColour>, OTHERS),
    ("AdjacentStrict", read::<types::AdjacentStrict>, None),
    ("AdjacentOther", read::<types::AdjacentOther>, None),
    ("AdjacentOpen", read::<types::AdjacentOpen>, None),
    ("AdjacentTypes", read::<types::AdjacentTypes>, CONTENT),
    ("AdjacentHolder", read::<types::AdjacentHolder>, OTHERS),
    ("UntaggedStrict", read::<types::UntaggedStrict>, None),
    ("UntaggedOpen", read::<types::UntaggedOpen>, None),
    ("UntaggedMap", read::<types::UntaggedMap>, MAP_OF_VARIANT),
    ("UntaggedOneMap", read::<types::UntaggedOneMap>, None),
    ("UntaggedHolder", read::<types::UntaggedHolder>, None),
    ("UntaggedStrictFirst", read::<types::UntaggedStrictFirst>, OTHERS),
    ("UntaggedScalars", read::<types::UntaggedScalars>, None),
    ("FlattenedMap", read::<types::FlattenedMap>, FLATTENED),
    ("FlattenedAlone", read::<types::FlattenedAlone>, None),
    ("FlattenedAny", read::<types::FlattenedAny>, None),
    ("FlattenedByColour", read::<types::FlattenedByColour>, None),
    ("ByColour", read::<types::ByColour>, None),
    ("External", read::<types::External>, None),
    ("Mixed", read::<types::Mixed>, BESIDE_NAMES),
];

/// Returns the schema and the warnings.
fn generated(name: &str) -> (Schema, Vec<String>) {
    let types = include_str!("serde_agrees/types.rs").replace("#[derive(", "#[derive(rbuilder::CrdSchema, ");
    let source = format!("mod types;\n{}", kind(&format!("pub field: types::{name}"), ""));
    let made = run(&[("src/lib.rs", &source), ("src/types.rs", &types)]);
    let crd = made.files.iter().find(|file| file.path.starts_with("crd/"));
    let crd = crd.unwrap_or_else(|| panic!("{name}: {:?}", made.diagnostics));
    let crd: Value = serde_saphyr::from_str(&crd.text).expect("YAML");
    let schema = crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/field");
    let schema = schema
        .cloned()
        .and_then(|schema| serde_json::from_value(schema).ok());
    let warnings = made.diagnostics.into_iter().map(|found| found.message).collect();
    (schema.unwrap_or_else(|| panic!("{name} has no schema")), warnings)
}

/// The API server may store such a value. It has fields from the schema, and unknown fields where
/// the schema preserves them.
fn value(schema: &Schema, random: &mut Random) -> Value {
    if !schema.enumeration.is_empty() {
        return schema.enumeration[random.below(schema.enumeration.len())].clone();
    }
    match schema.schema_type {
        Some(SchemaType::Object) => object(schema, random),
        Some(SchemaType::Integer) => json!(random.below(9)),
        Some(SchemaType::Boolean) => json!(random.below(2) == 0),
        Some(SchemaType::String) => json!(["a", "red", "1"][random.below(3)]),
        _ if schema.preserve_unknown_fields && random.below(2) == 0 => object(schema, random),
        _ => anything(random),
    }
}

fn anything(random: &mut Random) -> Value {
    let values = [
        json!(1),
        json!("a"),
        json!("Nothing"),
        json!(true),
        json!({}),
        json!([]),
        json!({ "a": "b" }),
        json!({ "size": 1 }),
        json!({ "Bucket": 5 }),
        json!({ "Bucket": { "name": "a" } }),
    ];
    values[random.below(values.len())].clone()
}

fn object(schema: &Schema, random: &mut Random) -> Value {
    let mut fields = Map::new();
    for (name, property) in &schema.properties {
        if schema.required.contains(name) || random.below(2) == 0 {
            fields.insert(name.to_string(), value(property, random));
        }
    }
    for name in ["red", "other"] {
        match &schema.additional_properties {
            Some(values) if random.below(2) == 0 => fields.insert(name.into(), value(values, random)),
            None if schema.preserve_unknown_fields && random.below(2) == 0 => {
                fields.insert(name.into(), anything(random))
            }
            _ => None,
        };
    }
    Value::Object(fields)
}

#[test]
fn serde_accepts_valid_values_or_there_is_a_warning() {
    const VALUES: usize = 4000;
    for (name, read, expected) in ROWS {
        let (schema, warnings) = generated(name);
        let mut random = Random::new(0);
        let mut accepted = 0;
        let mut gap = None;
        for _ in 0..VALUES {
            let value = value(&schema, &mut random);
            if validate(&value, &schema).is_ok() {
                accepted += 1;
                gap = gap.or(read(value.clone()).err().map(|error| (value, error)));
            }
        }
        assert!(accepted > VALUES / 50, "{name}: {accepted} values fit the schema");
        let said = expected.is_some_and(|start| warnings.iter().any(|warning| warning.starts_with(start)));
        assert_eq!(said, expected.is_some(), "{name}: {warnings:?}");
        assert_eq!(gap.is_some(), expected.is_some(), "{name}: {gap:?}");
        let others = warnings
            .iter()
            .filter(|warning| warning.contains("serde rejects"));
        assert_eq!(
            others.count(),
            usize::from(expected.is_some()),
            "{name}: {warnings:?}"
        );
    }
}
