//! Kinds with a conversion webhook, which is called over HTTPS by kube-apiserver, and within the
//! process by the fake server.

mod webhook;

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, ResourceExt};
use rbuilder::testing::eventually;
use serde_json::{Value, json};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use self::webhook::{ConversionWebhook, serve};
use crate::servers::{Server, on_both_servers};
use crate::support::Place;

on_both_servers!(
    objects_are_read_in_every_version,
    objects_are_written_in_every_version,
    every_version_judges_and_defaults_what_is_written_in_it,
    watches_deliver_the_requested_version,
    selectors_select_converted_objects,
    managers_own_fields_of_their_version,
    conversions_change_only_labels_and_annotations,
    failed_conversions_have_the_words_of_the_server,
    failed_conversions_prevent_writes_and_deletions,
);

const SOON: Duration = Duration::from_secs(20);
const GROUP: &str = "conversions.example.com";

struct Flasks {
    place: Place,
    plural: &'static str,
    serving: Option<AbortHandle>,
}

impl Drop for Flasks {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

/// Each test needs its own kind, since a CRD has a single webhook for all of its objects.
fn crd(plural: &str) -> Value {
    let spec = |fields: Value| {
        json!({ "openAPIV3Schema": { "type": "object", "properties": {
            "spec": { "type": "object", "properties": fields },
            "status": { "type": "object", "properties": { "size": { "type": "integer" } } },
        } } })
    };
    let first = spec(json!({
        "size": { "type": "integer", "maximum": 9 },
        "colour": { "type": "string", "default": "white" },
        "note": { "type": "string" },
    }));
    let second = spec(json!({
        "dimensions": { "type": "object", "properties": { "size": { "type": "integer", "maximum": 5 } } },
        "paint": { "type": "string", "default": "red" },
        "note": { "type": "string" },
    }));
    let subresources = json!({ "status": {} });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{GROUP}") },
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": { "kind": "Flask", "listKind": "FlaskList", "plural": plural, "singular": plural },
            "versions": [
                { "name": "v1", "served": true, "storage": true, "schema": first, "subresources": subresources },
                {
                    "name": "v2", "served": true, "storage": false, "schema": second, "subresources": subresources,
                    "selectableFields": [{ "jsonPath": ".spec.paint" }],
                },
            ],
        },
    })
}

impl Flasks {
    async fn install(server: Server, plural: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crd.yaml");
        let mut crd = crd(plural);
        crd["spec"]["names"]["kind"] = kind(plural).into();
        crd["spec"]["names"]["listKind"] = format!("{}List", kind(plural)).into();
        std::fs::write(&path, crd.to_string()).unwrap();
        server.install_crds(&path).await;
        let place = Place::new(server).await;
        let name = format!("{plural}.{GROUP}");
        let serving = match &place.server {
            Server::Fake(server) => {
                server.install_conversions(&mut ConversionWebhook { crd: name });
                None
            }
            Server::Real(environment) => {
                let server = environment.webhook_server().unwrap();
                let serving = serve(&server).await;
                server.convert(&name).await.unwrap();
                Some(serving)
            }
        };
        let flasks = Self {
            place,
            plural,
            serving,
        };
        // A real server takes a while to start calling the webhook for this kind.
        flasks
            .send(
                "POST",
                "v1",
                "",
                json!({ "metadata": { "name": "probe" }, "spec": { "size": 1 } }),
            )
            .await;
        eventually(SOON, async || {
            let (_, found) = flasks.send("GET", "v2", "/probe", Value::Null).await;
            found["spec"]["dimensions"]["size"] == 1
        })
        .await;
        flasks.send("DELETE", "v1", "/probe", Value::Null).await;
        flasks
    }

    async fn send(&self, method: &str, version: &str, rest: &str, mut body: Value) -> (u16, Value) {
        let content = match method {
            "PATCH" if rest.contains("fieldManager") => "application/apply-patch+yaml",
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        if body.is_object() && content != "application/merge-patch+json" {
            body["apiVersion"] = format!("{GROUP}/{version}").into();
            body["kind"] = kind(self.plural).into();
        }
        let headers = [("content-type", content), ("user-agent", "suite")];
        let text = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let path = format!("/apis/{GROUP}/{version}/namespaces/{{ns}}/{}{rest}", self.plural);
        let (code, text) = self.place.raw(method, &path, &headers, &text).await;
        (code, serde_json::from_str(&text).unwrap())
    }

    /// The storage version is `v1`.
    async fn store(&self, name: &str, annotations: Value, spec: Value) -> Value {
        let object = json!({ "metadata": { "name": name, "annotations": annotations }, "spec": spec });
        let (code, object) = self.send("POST", "v1", "", object).await;
        assert_eq!(code, 201, "{object}");
        object
    }

    async fn specs(&self, name: &str) -> (Value, Value) {
        let (_, first) = self.send("GET", "v1", &format!("/{name}"), Value::Null).await;
        let (_, second) = self.send("GET", "v2", &format!("/{name}"), Value::Null).await;
        assert_eq!(
            first["metadata"]["resourceVersion"],
            second["metadata"]["resourceVersion"]
        );
        (first["spec"].clone(), second["spec"].clone())
    }

    fn second(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(GROUP, "v2", &kind(self.plural));
        let kind = ApiResource::from_gvk_with_plural(&kind, self.plural);
        Api::namespaced_with(self.place.client.clone(), &self.place.namespace, &kind)
    }

    /// Replaces the placeholder in the server's messages with this kind.
    fn named(&self, message: &str) -> String {
        message.replace("Flask", &kind(self.plural))
    }
}

fn kind(plural: &str) -> String {
    let (first, rest) = plural.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

async fn objects_are_read_in_every_version(server: Server) {
    let flasks = Flasks::install(server, "readflasks").await;
    flasks
        .store(
            "a",
            json!({}),
            json!({ "size": 2, "colour": "blue", "note": "n" }),
        )
        .await;
    flasks.store("b", json!({}), json!({ "size": 3 })).await;
    let (code, read) = flasks.send("GET", "v2", "/a", Value::Null).await;
    assert_eq!((code, &read["apiVersion"]), (200, &json!(format!("{GROUP}/v2"))));
    assert_eq!(
        read["spec"],
        json!({ "dimensions": { "size": 2 }, "paint": "blue", "note": "n" })
    );
    let (_, list) = flasks.send("GET", "v2", "", Value::Null).await;
    assert_eq!(list["apiVersion"], format!("{GROUP}/v2"));
    let items = list["items"].as_array().unwrap().iter();
    let items: Vec<(&Value, &Value)> = items.map(|item| (&item["apiVersion"], &item["spec"])).collect();
    let version = json!(format!("{GROUP}/v2"));
    assert_eq!(
        items,
        [
            (
                &version,
                &json!({ "dimensions": { "size": 2 }, "paint": "blue", "note": "n" })
            ),
            (
                &version,
                &json!({ "dimensions": { "size": 3 }, "paint": "white" })
            ),
        ]
    );
    let (_, page) = flasks.send("GET", "v2", "?limit=1", Value::Null).await;
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    assert_eq!(page["items"][0]["spec"]["dimensions"]["size"], 2);
}

async fn objects_are_written_in_every_version(server: Server) {
    let flasks = Flasks::install(server, "writtenflasks").await;
    let object =
        json!({ "metadata": { "name": "a" }, "spec": { "dimensions": { "size": 2 }, "paint": "blue" } });
    let (code, made) = flasks.send("POST", "v2", "?dryRun=All", object.clone()).await;
    assert_eq!((code, &made["spec"]), (201, &object["spec"]));
    let (code, made) = flasks.send("POST", "v2", "", object).await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(
        made["spec"],
        json!({ "dimensions": { "size": 2 }, "paint": "blue" })
    );
    assert_eq!(made["metadata"]["generation"], 1);
    let mut changed = made.clone();
    changed["spec"]["dimensions"]["size"] = 3.into();
    let (code, changed) = flasks.send("PUT", "v2", "/a", changed).await;
    assert_eq!((code, &changed["metadata"]["generation"]), (200, &json!(2)));
    assert_eq!(
        flasks.specs("a").await,
        (
            json!({ "size": 3, "colour": "blue" }),
            json!({ "dimensions": { "size": 3 }, "paint": "blue" })
        )
    );
    let patch = json!({ "spec": { "dimensions": { "size": 4 }, "paint": null } });
    let (code, patched) = flasks.send("PATCH", "v2", "/a", patch).await;
    assert_eq!((code, &patched["spec"]["dimensions"]["size"]), (200, &json!(4)));
    let patch = json!({ "status": { "size": 4 } });
    let (code, patched) = flasks.send("PATCH", "v2", "/a/status", patch.clone()).await;
    assert_eq!((code, &patched["status"]["size"]), (200, &json!(4)));
    let (_, read) = flasks.send("GET", "v1", "/a", Value::Null).await;
    assert_eq!(read["status"]["size"], 4);
    assert_eq!(read["spec"], json!({ "size": 4, "colour": "red" }));
    // The resource version only changes if the object does.
    let (code, same) = flasks.send("PATCH", "v2", "/a/status", patch).await;
    assert_eq!(code, 200);
    assert_eq!(
        same["metadata"]["resourceVersion"],
        patched["metadata"]["resourceVersion"]
    );
    let (code, deleted) = flasks.send("DELETE", "v2", "/a", Value::Null).await;
    assert_eq!((code, &deleted["status"]), (200, &json!("Success")));
    flasks.store("b", json!({}), json!({ "size": 1 })).await;
    let (code, deleted) = flasks.send("DELETE", "v2", "", Value::Null).await;
    assert_eq!(code, 200);
    assert_eq!(
        deleted["items"][0]["spec"],
        json!({ "dimensions": { "size": 1 }, "paint": "white" })
    );
    let (_, left) = flasks.send("GET", "v1", "", Value::Null).await;
    assert_eq!(left["items"], json!([]));
}

async fn every_version_judges_and_defaults_what_is_written_in_it(server: Server) {
    let flasks = Flasks::install(server, "judgedflasks").await;
    let object =
        |size: u8| json!({ "metadata": { "name": "a" }, "spec": { "dimensions": { "size": size } } });
    let (code, refusal) = flasks.send("POST", "v2", "", object(6)).await;
    assert_eq!(code, 422);
    assert_eq!(
        refusal["message"],
        flasks.named(
            "Flask.conversions.example.com \"a\" is invalid: spec.dimensions.size: Invalid value: 6: \
             spec.dimensions.size in body should be less than or equal to 5"
        )
    );
    let (code, made) = flasks.send("POST", "v2", "", object(5)).await;
    assert_eq!((code, &made["spec"]["paint"]), (201, &json!("red")));
    // The other version permits more values, which can also be read in this version.
    let (code, _) = flasks
        .send("PATCH", "v1", "/a", json!({ "spec": { "size": 8 } }))
        .await;
    assert_eq!(code, 200);
    assert_eq!(
        flasks.specs("a").await,
        (
            json!({ "size": 8, "colour": "red" }),
            json!({ "dimensions": { "size": 8 }, "paint": "red" })
        )
    );
    // A write is accepted as long as it doesn't modify the invalid value.
    let (code, patched) = flasks
        .send("PATCH", "v2", "/a", json!({ "spec": { "note": "n" } }))
        .await;
    assert_eq!((code, &patched["spec"]["note"]), (200, &json!("n")));
}

async fn watches_deliver_the_requested_version(server: Server) {
    let flasks = Flasks::install(server, "watchedflasks").await;
    flasks.store("a", json!({}), json!({ "size": 1 })).await;
    let api = flasks.second();
    let listed = api.list(&ListParams::default()).await.unwrap();
    let from = listed.metadata.resource_version.unwrap();
    let events = api.watch(&WatchParams::default(), &from).await.unwrap();
    let mut events = pin!(events);
    let mut next = async || {
        loop {
            let event = timeout(SOON, events.next()).await.unwrap().unwrap().unwrap();
            let (word, object) = match event {
                WatchEvent::Added(object) => ("added", object),
                WatchEvent::Modified(object) => ("modified", object),
                WatchEvent::Deleted(object) => ("deleted", object),
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(status) => panic!("{status:?}"),
            };
            if object.name_any() != "probe" {
                let version = object.types.as_ref().unwrap().api_version.clone();
                assert_eq!(version, format!("{GROUP}/v2"));
                let size = &object.data["spec"]["dimensions"]["size"];
                return format!("{word} {} {size}", object.name_any());
            }
        }
    };
    flasks
        .send("PATCH", "v1", "/a", json!({ "spec": { "size": 2 } }))
        .await;
    assert_eq!(next().await, "modified a 2");
    flasks.store("b", json!({}), json!({ "size": 3 })).await;
    assert_eq!(next().await, "added b 3");
    flasks.send("DELETE", "v1", "/a", Value::Null).await;
    assert_eq!(next().await, "deleted a 2");
}

async fn selectors_select_converted_objects(server: Server) {
    let flasks = Flasks::install(server, "selectedflasks").await;
    flasks.store("a", json!({}), json!({ "colour": "blue" })).await;
    flasks.store("b", json!({}), json!({ "colour": "green" })).await;
    let labelled = json!({ "patch": { "metadata": { "labels": { "made": "yes" } } } });
    flasks
        .store(
            "c",
            json!({ "answer": labelled.to_string() }),
            json!({ "colour": "green" }),
        )
        .await;
    for (query, expected) in [
        ("fieldSelector=spec.paint%3Dgreen", vec!["b", "c"]),
        ("labelSelector=made%3Dyes", vec!["c"]),
        (
            "labelSelector=made%21%3Dyes&fieldSelector=spec.paint%3Dgreen",
            vec!["b"],
        ),
    ] {
        eventually(SOON, async || {
            let (_, list) = flasks.send("GET", "v2", &format!("?{query}"), Value::Null).await;
            let items = list["items"].as_array().into_iter().flatten();
            let found: Vec<String> = items
                .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
                .collect();
            found == expected
        })
        .await;
    }
    let (code, refusal) = flasks
        .send("GET", "v1", "?fieldSelector=spec.paint%3Dgreen", Value::Null)
        .await;
    assert_eq!(
        (code, refusal["message"].as_str().unwrap()),
        (400, "field label not supported: spec.paint")
    );
}

async fn managers_own_fields_of_their_version(server: Server) {
    let flasks = Flasks::install(server, "managedflasks").await;
    let wanted = |size: u8| json!({ "metadata": { "name": "a" }, "spec": { "dimensions": { "size": size }, "note": "n" } });
    let (code, _) = flasks.send("PATCH", "v2", "/a?fieldManager=m", wanted(1)).await;
    assert_eq!(code, 201);
    let entries = |object: &Value| -> Vec<String> {
        let entries = object["metadata"]["managedFields"].as_array().unwrap().iter();
        let describe = |entry: &Value| {
            format!(
                "{} {} {} {}",
                entry["manager"].as_str().unwrap(),
                entry["operation"].as_str().unwrap(),
                entry["apiVersion"]
                    .as_str()
                    .unwrap()
                    .trim_start_matches("conversions.example.com/"),
                entry["fieldsV1"]
            )
        };
        entries.map(describe).collect()
    };
    // The field has a different path in the other version.
    let (code, patched) = flasks
        .send("PATCH", "v1", "/a", json!({ "spec": { "size": 2 } }))
        .await;
    assert_eq!(code, 200);
    assert_eq!(
        entries(&patched),
        [
            r#"m Apply v2 {"f:spec":{"f:note":{}}}"#,
            r#"suite Update v1 {"f:spec":{"f:size":{}}}"#
        ]
    );
    let (code, refusal) = flasks.send("PATCH", "v2", "/a?fieldManager=m", wanted(3)).await;
    assert_eq!(code, 409);
    assert_eq!(
        refusal["message"],
        "Apply failed with 1 conflict: conflict with \"suite\" using conversions.example.com/v1: .spec.size"
    );
    let (code, applied) = flasks
        .send("PATCH", "v2", "/a?fieldManager=m&force=true", wanted(3))
        .await;
    assert_eq!(code, 200);
    assert_eq!(
        entries(&applied),
        [r#"m Apply v2 {"f:spec":{"f:dimensions":{"f:size":{}},"f:note":{}}}"#]
    );
    // A manager that switches to another version still has a single entry, so fields that it no
    // longer applies are removed.
    let next = json!({ "metadata": { "name": "a" }, "spec": { "size": 3 } });
    let (code, applied) = flasks.send("PATCH", "v1", "/a?fieldManager=m", next).await;
    assert_eq!(code, 200);
    assert_eq!(entries(&applied), [r#"m Apply v1 {"f:spec":{"f:size":{}}}"#]);
    assert_eq!(applied["spec"], json!({ "size": 3, "colour": "red" }));
    // A field is kept if another manager owns it, even through a different version.
    let (code, _) = flasks.send("PATCH", "v2", "/a?fieldManager=n", wanted(3)).await;
    assert_eq!(code, 200);
    let next = json!({ "metadata": { "name": "a" }, "spec": { "colour": "red" } });
    let (code, applied) = flasks.send("PATCH", "v1", "/a?fieldManager=m", next).await;
    assert_eq!(code, 200, "{applied}");
    assert_eq!(
        applied["spec"],
        json!({ "size": 3, "colour": "red", "note": "n" })
    );
}

async fn conversions_change_only_labels_and_annotations(server: Server) {
    let flasks = Flasks::install(server, "annotatedflasks").await;
    let patch = json!({ "patch": { "metadata": {
        "labels": { "made": "yes" }, "annotations": { "more": "text" }, "finalizers": ["example.com/x"],
        "generation": 7, "creationTimestamp": "2001-01-01T00:00:00Z", "ownerReferences": [],
    } } });
    let stored = flasks
        .store("a", json!({ "answer": patch.to_string() }), json!({ "size": 1 }))
        .await;
    let (code, read) = flasks.send("GET", "v2", "/a", Value::Null).await;
    assert_eq!(code, 200, "{read}");
    let mut expected = stored["metadata"].clone();
    expected["labels"] = json!({ "made": "yes" });
    expected["annotations"]["more"] = "text".into();
    assert_eq!(read["metadata"], expected);
}

/// Returns the start of the message for an undecodable object.
fn undecodable(flasks: &Flasks, stored: &Value) -> String {
    let metadata = &stored["metadata"];
    format!(
        "Internal error occurred: StorageError: corrupt object, Code: 7, Key: /{GROUP}/{}/{}/{}, ResourceVersion: 0, \
         AdditionalErrorMsg: object not decodable revision={}: ",
        flasks.plural,
        metadata["namespace"].as_str().unwrap(),
        metadata["name"].as_str().unwrap(),
        metadata["resourceVersion"].as_str().unwrap(),
    )
}

async fn failed_conversions_have_the_words_of_the_server(server: Server) {
    let flasks = Flasks::install(server, "failedflasks").await;
    let start = flasks.named("conversion webhook for conversions.example.com/v1, Kind=Flask ");
    let invalid = "returned invalid object at index 0: ";
    let metadata = "returned invalid metadata: ";
    for (number, (wish, expected)) in [
        (json!({ "result": { "status": "Failure", "message": "no" } }), "failed: no".to_owned()),
        (
            json!({ "result": { "status": "Failure" } }),
            "failed: response.result.status was 'Failure', not 'Success'".to_owned(),
        ),
        (
            json!({ "result": { "message": "no status" } }),
            "failed: no status".to_owned(),
        ),
        (json!({ "drop": true }), "returned 0 objects, expected 1".to_owned()),
        (
            json!({ "patch": { "apiVersion": "conversions.example.com/v1" } }),
            format!(
                "{invalid}invalid groupVersion (expected conversions.example.com/v2, received \
                 conversions.example.com/v1)"
            ),
        ),
        (
            json!({ "patch": { "kind": "Bottle" } }),
            flasks.named(&format!("{invalid}invalid kind (expected Flask, received Bottle)")),
        ),
        (
            json!({ "patch": { "metadata": { "name": "other" } } }),
            "returned invalid object: must have the same name: a3 != other".to_owned(),
        ),
        (
            json!({ "patch": { "metadata": { "namespace": null } } }),
            format!(
                "returned invalid object: must have the same namespace: {} != ",
                flasks.place.namespace
            ),
        ),
        (
            json!({ "patch": { "metadata": { "labels": ["a"] } } }),
            format!("{metadata}invalid metadata.labels of type []interface {{}} in converted object"),
        ),
        (
            json!({ "patch": { "metadata": { "labels": { "a": 1 } } } }),
            format!("{metadata}metadata.labels[a] must be a string, but is int64 in converted object"),
        ),
        (
            json!({ "patch": { "metadata": { "labels": { "a": "b c" } } } }),
            format!(
                "{metadata}metadata.labels: Invalid value: \"b c\": a valid label must be an empty string or consist of \
                 alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
                 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
                 '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ),
        ),
        (
            json!({ "patch": { "metadata": { "annotations": { "a/": "b" } } } }),
            format!(
                "{metadata}[metadata.annotation: Invalid value: \"a/\": name part must be non-empty, \
                 metadata.annotation: Invalid value: \"a/\": name part must consist of alphanumeric characters, '-', '_' \
                 or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
                 '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')]"
            ),
        ),
        (
            json!({ "code": 404 }),
            "failed: the server could not find the requested resource".to_owned(),
        ),
        (
            json!({ "code": 500 }),
            "failed: an error on the server (\"the text\") has prevented the request from succeeding".to_owned(),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let name = match wish["patch"]["metadata"]["name"].is_string() {
            true => "a3".to_owned(),
            false => format!("b{number}"),
        };
        let stored = flasks
            .store(&name, json!({ "answer": wish.to_string() }), json!({ "size": 1 }))
            .await;
        let (code, answer) = flasks.send("GET", "v2", &format!("/{name}"), Value::Null).await;
        assert_eq!(
            (code, answer["message"].as_str().unwrap_or_default()),
            (500, &*format!("{}{start}{expected}", undecodable(&flasks, &stored))),
            "{wish}"
        );
        assert_eq!(answer["reason"], "InternalError", "{answer}");
        let (code, _) = flasks.send("DELETE", "v1", &format!("/{name}"), Value::Null).await;
        assert_eq!(code, 200);
    }
    let wish = json!({ "uid": "another" });
    let stored = flasks
        .store("u", json!({ "answer": wish.to_string() }), json!({}))
        .await;
    let (code, answer) = flasks.send("GET", "v2", "/u", Value::Null).await;
    let message = answer["message"].as_str().unwrap();
    assert_eq!(code, 500);
    let start = format!(
        "{}{start}failed: expected response.uid=\"",
        undecodable(&flasks, &stored)
    );
    assert!(message.starts_with(&start), "{message}");
    assert!(message.ends_with("\", got \"another\""), "{message}");
}

async fn failed_conversions_prevent_writes_and_deletions(server: Server) {
    let flasks = Flasks::install(server, "keptflasks").await;
    let wish = json!({ "result": { "status": "Failure", "message": "no" } }).to_string();
    let from = |version: &str| {
        flasks.named(&format!(
            "conversion webhook for conversions.example.com/{version}, Kind=Flask failed: no"
        ))
    };
    let object = json!({ "metadata": { "name": "a", "annotations": { "answer": wish } }, "spec": {} });
    let (code, answer) = flasks.send("POST", "v2", "", object).await;
    assert_eq!((code, &answer["message"]), (500, &json!(from("v2"))));
    let (code, _) = flasks.send("GET", "v1", "/a", Value::Null).await;
    assert_eq!(code, 404);
    let stored = flasks
        .store("b", json!({ "answer": wish }), json!({ "size": 1 }))
        .await;
    let message = format!(
        "object not decodable revision={}: {}",
        stored["metadata"]["resourceVersion"].as_str().unwrap(),
        from("v1")
    );
    let patch = json!({ "spec": { "note": "n" } });
    for (method, body) in [("PATCH", patch), ("DELETE", Value::Null)] {
        let (code, answer) = flasks.send(method, "v2", "/b", body).await;
        let found = answer["message"].as_str().unwrap();
        assert_eq!((code, found.ends_with(&message)), (500, true), "{method} {found}");
        let is_read_first = method == "DELETE";
        assert_eq!(
            found.contains("StorageError: corrupt object"),
            is_read_first,
            "{found}"
        );
    }
    let (code, kept) = flasks.send("GET", "v1", "/b", Value::Null).await;
    assert_eq!((code, &kept["metadata"]["generation"]), (200, &json!(1)));
}

#[tokio::test]
async fn watch_from_the_start_has_all_objects_in_the_requested_version() {
    let flasks = Flasks::install(Server::fake(), "startflasks").await;
    flasks.store("a", json!({}), json!({ "size": 1 })).await;
    let events = flasks.second().watch(&WatchParams::default(), "0").await.unwrap();
    let event = pin!(events).next().await.unwrap().unwrap();
    let WatchEvent::Added(object) = event else {
        panic!("{event:?}");
    };
    assert_eq!(object.data["spec"]["dimensions"]["size"], 1);
}

/// Requests that don't require a conversion still work.
#[tokio::test]
async fn conversion_without_an_operator_is_explained() {
    let mut crd = crd("lonelyflasks");
    crd["spec"]["names"]["kind"] = "Lonelyflasks".into();
    crd["spec"]["conversion"] = json!({ "strategy": "Webhook" });
    let server = rbuilder::fake::ApiServer::new().crd(serde_json::from_value(crd).unwrap());
    let flasks = Flasks {
        place: Place::new(Server::Fake(server)).await,
        plural: "lonelyflasks",
        serving: None,
    };
    flasks.store("a", json!({}), json!({})).await;
    let (code, answer) = flasks.send("GET", "v2", "", Value::Null).await;
    assert_eq!(code, 500);
    let message = answer["message"].as_str().unwrap();
    let (_, message) = message.split_once(": ").unwrap();
    assert_eq!(
        message,
        "lonelyflasks.conversions.example.com has a conversion webhook, and the fake API server knows no operator to \
         call: hand it over with `server.install_webhooks(…)` or `server.install_conversions(…)`"
    );
}
