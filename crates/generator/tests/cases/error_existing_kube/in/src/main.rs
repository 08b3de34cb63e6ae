mod gateway {
    pub use gateway_api::experimental::*;
}

use schemars::JsonSchema;

#[derive(kube::CustomResource, JsonSchema)]
#[kube(group = "brewery.example.com", version = "v1", kind = "Brew")]
pub struct BrewSpec {
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<String>,
    pub by_hand: ByHand,
    pub route: gateway::Route,
    pub network: macaddr::MacAddr6,
    pub nested: Nested,
}

#[derive(JsonSchema)]
#[schemars(transform = tidy)]
pub struct Nested {
    #[schemars(regex(path = *PATTERN))]
    pub name: String,
    #[schemars(range(max = LIMIT))]
    pub size: i32,
    #[schemars(lenght(max = 1))]
    pub note: String,
}

pub struct ByHand;

impl JsonSchema for ByHand {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ByHand".into()
    }
}

fn main() {}

fn conditions(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = generator.subschema_for::<Vec<String>>();
    if cfg!(feature = "strict") {
        schema.insert("maxItems".into(), 8.into());
    }
    schema
}
