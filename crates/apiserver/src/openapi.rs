//! OpenAPI v3 documents, as far as kubectl reads them: `kubectl explain` looks up the kind of a
//! path and its schema, and `kubectl apply` asks whether patches have the parameter
//! `fieldValidation`.
//!
//! Schemas are inlined, as in CRDs. Strategic merge patches aren't mentioned, because kubectl would
//! read merge keys from the schemas instead of its own types.

use rbuilder_catalogue::Catalogue;
use serde_json::{Map, Value, json};

use super::kinds::{Definition, Version};
use super::store::State;

const FIELD_PARAMETERS: [&str; 4] = ["dryRun", "fieldManager", "fieldValidation", "force"];

impl State {
    /// The documents, each with its URL.
    pub(super) fn openapi_index(&self) -> Value {
        let mut paths = Map::new();
        for (group, versions) in self.groups() {
            for version in versions {
                let path = prefix(group, version);
                paths.insert(
                    path.clone(),
                    json!({ "serverRelativeURL": format!("/openapi/v3/{path}") }),
                );
            }
        }
        json!({ "paths": paths })
    }

    /// The document of a group and version, or `None` if it isn't served.
    pub(super) fn openapi(&self, group: &str, version: &str) -> Option<Value> {
        let kinds = self.kinds_in(group, version);
        if kinds.is_empty() {
            return None;
        }
        let catalogue = Catalogue::new(self.minor);
        let (mut schemas, mut paths) = (Map::new(), Map::new());
        for (definition, version) in kinds {
            let kind = json!({
                "group": definition.id.group, "version": version.name, "kind": definition.kind,
            });
            let mut schema = version.described_schema(&catalogue);
            schema["x-kubernetes-group-version-kind"] = json!([kind]);
            schemas.insert(schema_name(definition, version), schema);
            let collection = collection(definition, version);
            paths.insert(
                format!("{collection}/{{name}}"),
                json!({
                    "get": operation("get", &kind, &[]),
                    "put": operation("put", &kind, &FIELD_PARAMETERS[..3]),
                    "patch": operation("patch", &kind, &FIELD_PARAMETERS),
                    "delete": operation("delete", &kind, &FIELD_PARAMETERS[..1]),
                }),
            );
            paths.insert(
                collection,
                json!({
                    "get": operation("list", &kind, &[]),
                    "post": operation("post", &kind, &FIELD_PARAMETERS[..3]),
                }),
            );
        }
        Some(json!({
            "openapi": "3.0.0", "info": { "title": "Kubernetes", "version": format!("v{}.0", self.minor) },
            "paths": paths, "components": { "schemas": schemas },
        }))
    }
}

fn prefix(group: &str, version: &str) -> String {
    match group {
        "" => format!("api/{version}"),
        group => format!("apis/{group}/{version}"),
    }
}

fn collection(definition: &Definition, version: &Version) -> String {
    let namespace = if definition.namespaced {
        "/namespaces/{namespace}"
    } else {
        ""
    };
    let prefix = prefix(&definition.id.group, &version.name);
    format!("/{prefix}{namespace}/{}", definition.id.plural)
}

/// E.g. `com.example.v1.Memo`.
fn schema_name(definition: &Definition, version: &Version) -> String {
    let group = match definition.id.group.as_str() {
        "" => "core",
        group => group,
    };
    let reversed: Vec<&str> = group.split('.').rev().collect();
    format!("{}.{}.{}", reversed.join("."), version.name, definition.kind)
}

fn operation(action: &str, kind: &Value, parameters: &[&str]) -> Value {
    let parameters = parameters.iter().map(|name| {
        let schema = if *name == "force" { "boolean" } else { "string" };
        json!({ "name": name, "in": "query", "schema": { "type": schema } })
    });
    json!({
        "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind,
        "parameters": parameters.collect::<Vec<_>>(),
        "responses": { "200": { "description": "OK" } },
    })
}
