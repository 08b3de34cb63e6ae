//! Types that derive schemars' `JsonSchema`, after applying each piece of advice. `../advice.rs`
//! checks that the advice is given and that rbuilder can read the result. `crates/runtime/tests/advice.rs`
//! compiles this file with the current schemars.

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
    pub struct Foreign;

    #[derive(schemars::JsonSchema)]
    pub struct Root {
        #[schemars(schema_with = "foreign")]
        pub a: Foreign,
    }

    fn foreign(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
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
    #[derive(schemars::JsonSchema)]
    pub struct Root {
        #[schemars(
            with = "serde_json::Value",
            extend("x-kubernetes-preserve-unknown-fields" = true)
        )]
        pub inner: Vec<Root>,
    }
}

pub mod by_hand {
    use schemars::{JsonSchema, Schema, SchemaGenerator};

    pub struct Name(pub String);

    impl JsonSchema for Name {
        fn schema_name() -> std::borrow::Cow<'static, str> {
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
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

    pub enum Either {
        Number(i32),
        List(Vec<String>),
    }

    impl JsonSchema for Either {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Either".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
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
    #[derive(schemars::JsonSchema)]
    pub struct Root {
        #[schemars(extend("maxProperties" = 64, "x-kubernetes-validations" = [{ "rule": "self.all(key, key.matches('^[0-9]{1,9}$'))" }]))]
        pub a: std::collections::BTreeMap<u32, String>,
    }
}

pub mod default {
    #[derive(schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
    pub struct Root {
        #[serde(default = "port")]
        #[schemars(extend("default" = 80))]
        pub a: i32,
    }

    fn port() -> i32 {
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

    fn made(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<Option<String>>()
    }
}

pub mod whole_object {
    pub struct Whole;

    #[derive(schemars::JsonSchema)]
    pub struct Root {
        #[schemars(
            with = "serde_json::Value",
            extend("x-kubernetes-preserve-unknown-fields" = true)
        )]
        pub a: Whole,
    }
}
