//! Like `after.rs`, for kube before 2.0, which uses schemars 0.8. Compiled by `cargo xtask advice`.

#![allow(dead_code, missing_docs, unreachable_pub)]

pub mod same_form {
    pub struct Foreign;

    #[derive(schemars::JsonSchema)]
    pub struct Root {
        #[schemars(with = "String")]
        pub a: Foreign,
        #[schemars(with = "Option<String>")]
        pub b: Option<Foreign>,
    }
}

pub mod function {
    use schemars::gen::SchemaGenerator;
    use schemars::schema::Schema;

    pub struct Foreign;

    #[derive(schemars::JsonSchema)]
    pub struct Root {
        #[schemars(schema_with = "foreign")]
        pub a: Foreign,
    }

    fn foreign(_: &mut SchemaGenerator) -> Schema {
        serde_json::from_value(serde_json::json!({ "type": "string" })).unwrap()
    }
}

pub mod derived {
    #[derive(schemars::JsonSchema)]
    pub struct Foreign {
        pub x: i32,
    }

    #[derive(schemars::JsonSchema)]
    pub struct Root {
        pub a: Foreign,
    }
}

pub mod recursive {
    use schemars::gen::SchemaGenerator;
    use schemars::schema::Schema;
    use serde_json::json;

    #[derive(schemars::JsonSchema)]
    pub struct Root {
        #[schemars(schema_with = "any")]
        pub inner: Vec<Root>,
    }

    fn any(_: &mut SchemaGenerator) -> Schema {
        serde_json::from_value(json!({ "x-kubernetes-preserve-unknown-fields": true })).unwrap()
    }
}

pub mod by_hand {
    use schemars::JsonSchema;
    use schemars::gen::SchemaGenerator;
    use schemars::schema::Schema;

    pub struct Name(pub String);

    impl JsonSchema for Name {
        fn schema_name() -> String {
            "Name".into()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            String::json_schema(generator)
        }
    }

    #[derive(schemars::JsonSchema)]
    pub struct Root {
        pub a: Name,
    }
}

pub mod any_content {
    use schemars::JsonSchema;
    use schemars::gen::SchemaGenerator;
    use schemars::schema::Schema;
    use serde_json::json;

    pub enum Either {
        Number(i32),
        List(Vec<String>),
    }

    impl JsonSchema for Either {
        fn schema_name() -> String {
            "Either".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            serde_json::from_value(json!({ "x-kubernetes-preserve-unknown-fields": true })).unwrap()
        }
    }

    #[derive(schemars::JsonSchema)]
    pub struct Root {
        pub a: Either,
    }
}

pub mod large_number {
    #[derive(schemars::JsonSchema)]
    pub struct Root {
        #[schemars(with = "String")]
        pub a: i128,
    }
}

pub mod keys {
    use schemars::gen::SchemaGenerator;
    use schemars::schema::Schema;
    use serde_json::json;

    #[derive(schemars::JsonSchema)]
    pub struct Root {
        #[schemars(schema_with = "ports")]
        pub a: std::collections::BTreeMap<u32, String>,
    }

    fn ports(_: &mut SchemaGenerator) -> Schema {
        serde_json::from_value(json!({
            "type": "object",
            "additionalProperties": { "type": "string" },
            "maxProperties": 64,
            "x-kubernetes-validations": [{ "rule": "self.all(key, key.matches('^[0-9]{1,9}$'))" }],
        }))
        .unwrap()
    }
}

pub mod default {
    #[derive(schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
    pub struct Root {
        #[serde(default = "port")]
        #[schemars(default = "documented_port")]
        pub a: i32,
    }

    fn port() -> i32 {
        "80".parse().unwrap()
    }

    fn documented_port() -> i32 {
        80
    }
}

pub mod regex {
    #[derive(schemars::JsonSchema)]
    pub struct Root {
        #[schemars(regex(pattern = "^[a-z]+$"))]
        pub a: String,
    }
}

pub mod inner {
    #[derive(schemars::JsonSchema)]
    pub struct Root {
        #[schemars(inner(length(min = 1)))]
        pub a: Option<Vec<String>>,
    }
}

pub mod subschema {
    #[derive(schemars::JsonSchema)]
    pub struct Root {
        #[schemars(schema_with = "made")]
        pub a: String,
    }

    fn made(generator: &mut schemars::gen::SchemaGenerator) -> schemars::schema::Schema {
        generator.subschema_for::<Option<String>>()
    }
}

pub mod whole_object {
    pub struct Whole;

    #[derive(schemars::JsonSchema)]
    pub struct Root {
        #[schemars(schema_with = "whole")]
        pub a: Whole,
    }

    fn whole(_: &mut schemars::gen::SchemaGenerator) -> schemars::schema::Schema {
        serde_json::from_value(serde_json::json!({ "x-kubernetes-preserve-unknown-fields": true })).unwrap()
    }
}
