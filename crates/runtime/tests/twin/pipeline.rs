//! Random containers, passed through kube's schema rewriting. It panics on alternatives that it
//! cannot hoist, so it must accept everything that the schema crate assembles.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube::core::schema::{OptionalEnum, OptionalIntOrString, StructuralSchemaRewriter};
use rbuilder_schema::{
    Container, Content, Field, Markers, Presence, Shape, Slot, Tagging, Variant, array_of, assemble, known,
    map_of,
};
use schemars::transform::{AddNullable, Transform};

const SHAPES: u64 = 4000;

const DEPTH: u32 = 3;

/// A pseudo-random sequence, which is the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn is_one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// Builds random containers, and the schemas of the types that they use.
struct Maker<'n> {
    numbers: &'n mut Numbers,
    slots: Vec<Slot>,
}

impl Maker<'_> {
    fn slot(&mut self, depth: u32) -> usize {
        let schema = match self.numbers.below(if depth == 0 { 3 } else { 8 }) {
            0 => known("i32"),
            1 => known("std::string::String"),
            2 => known("k8s_openapi::apimachinery::pkg::util::intstr::IntOrString"),
            3 => inner(self.numbers, depth).map(|inner| array_of(inner).into()),
            4 => known("std::string::String")
                .zip(inner(self.numbers, depth))
                .map(|(key, inner)| map_of(&key, inner).into()),
            _ => inner(self.numbers, depth),
        };
        self.slots.push(Slot {
            schema: schema.unwrap_or_else(|| known("bool").expect("a schema")),
            optional: self.numbers.is_one_in(3),
        });
        self.slots.len() - 1
    }

    fn fields(&mut self, prefix: &str, depth: u32) -> Vec<Field> {
        let count = self.numbers.below(3);
        let field = |(position, maker): (u64, &mut Self)| {
            let slot = maker.slot(depth);
            // Some names are equal to those of other variants or of the tag.
            let name = match maker.numbers.below(4) {
                0 => format!("shared{position}"),
                _ => format!("{prefix}{position}"),
            };
            Field {
                ident: name.clone(),
                name,
                description: maker.numbers.is_one_in(4).then(|| "A field.".to_owned()),
                slot,
                flatten: depth > 0 && maker.numbers.is_one_in(3),
                presence: if maker.numbers.is_one_in(3) {
                    Presence::Defaulted
                } else {
                    Presence::ByType
                },
                stated: false,
                markers: Markers::default(),
            }
        };
        (0..=count).map(|position| field((position, self))).collect()
    }

    fn variants(&mut self, depth: u32) -> Vec<Variant> {
        let count = self.numbers.below(3);
        (0..=count)
            .map(|position| {
                let content = match self.numbers.below(3) {
                    0 => Content::Unit,
                    1 => Content::Newtype(self.slot(depth)),
                    _ => Content::Object(self.fields(&format!("v{position}f"), depth)),
                };
                Variant {
                    ident: format!("V{position}"),
                    name: format!("V{position}"),
                    description: self.numbers.is_one_in(3).then(|| "A variant.".to_owned()),
                    content,
                    markers: Markers::default(),
                    other: false,
                    untagged: self.numbers.is_one_in(8),
                }
            })
            .collect()
    }

    fn container(&mut self, depth: u32) -> Container {
        let shape = match self.numbers.below(6) {
            0 | 1 => Shape::Object(self.fields("f", depth)),
            2 => Shape::Transparent(self.slot(depth)),
            _ => Shape::Enum {
                tagging: match self.numbers.below(4) {
                    0 => Tagging::External,
                    1 => Tagging::Internal(format!("tag{}", self.numbers.below(2))),
                    2 => Tagging::Adjacent("t".to_owned(), "c".to_owned()),
                    _ => Tagging::Untagged,
                },
                variants: self.variants(depth),
            },
        };
        Container {
            name: "Shape".to_owned(),
            shape,
            ..Container::default()
        }
    }
}

/// Returns the schema of a random type, if it has one.
fn inner(numbers: &mut Numbers, depth: u32) -> Option<Arc<rbuilder_schema::Schema>> {
    let (container, slots) = made(numbers, depth - 1);
    assemble(&container, &slots).ok().map(Arc::new)
}

fn made(numbers: &mut Numbers, depth: u32) -> (Container, Vec<Slot>) {
    let mut maker = Maker {
        numbers,
        slots: Vec::new(),
    };
    let container = maker.container(depth);
    (container, maker.slots)
}

/// Returns a schema as rewritten by `Kind::crd()`.
fn rewritten(container: &Container, slots: Vec<Slot>) -> schemars::Schema {
    let text = serde_json::to_string(container).expect("JSON");
    let mut schema = rbuilder_schema::private::json_schema::<Container>(&text, || slots);
    AddNullable::default().transform(&mut schema);
    StructuralSchemaRewriter.transform(&mut schema);
    OptionalEnum.transform(&mut schema);
    OptionalIntOrString.transform(&mut schema);
    schema
}

#[test]
fn kube_can_rewrite_every_assembled_schema() {
    let mut numbers = Numbers(1);
    let (mut tried, mut wrong) = (0, Vec::new());
    for _ in 0..SHAPES {
        let (container, slots) = made(&mut numbers, DEPTH);
        let Ok(assembled) = assemble(&container, &slots) else {
            continue;
        };
        tried += 1;
        let made = catch_unwind(AssertUnwindSafe(|| rewritten(&container, slots)));
        let assembled = serde_json::to_string(&assembled).expect("JSON");
        match made {
            Ok(made) => {
                let fields = |schema: &serde_json::Value| names(schema);
                let before = fields(&serde_json::from_str(&assembled).expect("JSON"));
                if fields(made.as_value()) != before {
                    wrong.push(format!("{assembled} becomes {}", made.as_value()));
                }
            }
            Err(_) => wrong.push(format!("{assembled} panics")),
        }
    }
    assert!(tried > SHAPES / 8, "only {tried} have a schema");
    wrong.sort_by_key(String::len);
    wrong.truncate(3);
    assert!(wrong.is_empty(), "of {tried}: {}", wrong.join("\n"));
}

/// Drops the alternatives of a schema.
fn names(schema: &serde_json::Value) -> serde_json::Value {
    let inside = |key: &str| schema.get(key).map(names);
    let properties = schema.get("properties").and_then(serde_json::Value::as_object);
    let properties = properties.map(|all| {
        all.iter()
            .map(|(name, inner)| (name.clone(), names(inner)))
            .collect()
    });
    serde_json::json!({
        "type": schema.get("type"),
        "enum": schema.get("enum"),
        "required": schema.get("required"),
        "properties": properties.unwrap_or(serde_json::Value::Null),
        "items": inside("items"),
        "additionalProperties": inside("additionalProperties"),
    })
}
