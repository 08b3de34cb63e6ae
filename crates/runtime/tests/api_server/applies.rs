//! Server-side apply: ownership of fields, merging, removal and conflicts.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::servers::{Server, on_both_servers};
use crate::support::{Place, apply, map, refusal, refused};

on_both_servers!(
    apply_creates_a_missing_object,
    apply_without_changes_keeps_the_version,
    namespace_has_its_finalizer_from_the_start,
    field_that_is_no_longer_applied_is_removed,
    field_of_another_manager_is_kept,
    emptied_map_is_null,
    emptied_map_of_a_builtin_kind_is_absent,
    conflict_names_the_manager_and_the_field,
    force_takes_over_fields,
    field_with_the_same_value_is_shared,
    update_takes_over_applied_fields,
    map_lists_are_merged_by_key,
    sets_are_merged_by_value,
    atomic_lists_and_scalars_are_replaced,
    schemaless_content_is_merged_by_field,
    status_has_separate_managers,
    labels_finalizers_and_owners_are_merged,
    deployment_is_merged_by_its_schema,
    removed_field_has_its_default_again,
    applied_string_data_becomes_data,
    lists_have_the_applied_order,
    invalid_applies_are_rejected,
    apply_checks_the_resource_version,
    apply_checks_the_uid,
);

fn jar(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "apiserver.example.com/v1", "kind": "Jar", "metadata": { "name": name }, "spec": spec,
    })
}

fn cm(data: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data })
}

fn owned(object: &impl kube::ResourceExt, manager: &str) -> Value {
    let mut entries = object.managed_fields().iter();
    let entry = entries.find(|entry| entry.manager.as_deref() == Some(manager));
    entry.map_or(Value::Null, |entry| entry.fields_v1.as_ref().unwrap().0.clone())
}

async fn spec(place: &Place, manager: &str, spec: Value) -> Value {
    apply(&place.jars(), "a", manager, jar("a", spec))
        .await
        .unwrap()
        .data["spec"]
        .clone()
}

async fn apply_creates_a_missing_object(server: Server) {
    let place = Place::new(server).await;
    let made = apply(
        &place.jars(),
        "a",
        "one",
        jar("a", json!({ "size": 2, "tags": ["x"] })),
    )
    .await
    .unwrap();
    assert_eq!(
        made.data["spec"],
        json!({ "size": 2, "colour": "white", "tags": ["x"] })
    );
    let entry = &made.metadata.managed_fields.as_ref().unwrap()[0];
    assert_eq!(
        (entry.manager.as_deref(), entry.operation.as_deref()),
        (Some("one"), Some("Apply"))
    );
    // Fields set by a default have no manager.
    assert_eq!(
        owned(&made, "one"),
        json!({ "f:spec": { "f:size": {}, "f:tags": { "v:\"x\"": {} } } })
    );
}

async fn apply_without_changes_keeps_the_version(server: Server) {
    let place = Place::new(server).await;
    let wanted = jar("a", json!({ "size": 2, "lids": [{ "name": "l", "fits": true }] }));
    let made = apply(&place.jars(), "a", "one", wanted.clone()).await.unwrap();
    let again = apply(&place.jars(), "a", "one", wanted.clone()).await.unwrap();
    assert_eq!(again, made);
    let other = apply(&place.jars(), "a", "two", wanted).await.unwrap();
    assert_ne!(
        other.metadata.resource_version, made.metadata.resource_version,
        "another manager is a change of the object"
    );
    assert_eq!(other.metadata.generation, Some(1));
}

async fn namespace_has_its_finalizer_from_the_start(server: Server) {
    let place = Place::new(server).await;
    let api: Api<Namespace> = Api::all(place.client.clone());
    let name = format!("{}-other", place.namespace);
    let wanted = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let made = apply(&api, &name, "one", wanted.clone()).await.unwrap();
    let finalizers = made.spec.clone().unwrap().finalizers;
    assert_eq!(finalizers.unwrap(), ["kubernetes"]);
    // Nothing of it has a manager. The second apply records that.
    assert_eq!(made.metadata.managed_fields, None);
    let again = apply(&api, &name, "one", wanted).await.unwrap();
    let managed = again.metadata.managed_fields.as_ref().unwrap();
    let managers: Vec<_> = managed.iter().map(|entry| entry.manager.as_deref()).collect();
    assert_eq!(managers, [Some("before-first-apply")]);
    assert_eq!(again.spec, made.spec);
}

async fn field_that_is_no_longer_applied_is_removed(server: Server) {
    let place = Place::new(server).await;
    let wanted =
        json!({ "size": 2, "note": "n", "tags": ["x", "y"], "lids": [{ "name": "a" }, { "name": "b" }] });
    spec(&place, "one", wanted).await;
    let left = spec(&place, "one", json!({ "tags": ["y"], "lids": [{ "name": "b" }] })).await;
    // The size is required, but it has a default.
    assert_eq!(
        left,
        json!({ "size": 1, "colour": "white", "tags": ["y"], "lids": [{ "name": "b" }] })
    );
    let left = spec(&place, "one", json!({ "size": 3 })).await;
    assert_eq!(left, json!({ "size": 3, "colour": "white" }));
}

async fn field_of_another_manager_is_kept(server: Server) {
    let place = Place::new(server).await;
    apply(&place.maps(), "a", "one", cm(json!({ "x": "1", "y": "1" })))
        .await
        .unwrap();
    apply(&place.maps(), "a", "two", cm(json!({ "y": "1", "z": "1" })))
        .await
        .unwrap();
    let patch = Patch::Merge(json!({ "data": { "hand": "1" } }));
    place
        .maps()
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let left = apply(&place.maps(), "a", "one", cm(json!({}))).await.unwrap();
    assert_eq!(
        serde_json::to_value(left.data).unwrap(),
        json!({ "y": "1", "z": "1", "hand": "1" })
    );
    let left = apply(&place.maps(), "a", "two", cm(json!({ "z": "1" })))
        .await
        .unwrap();
    assert_eq!(
        serde_json::to_value(left.data).unwrap(),
        json!({ "z": "1", "hand": "1" })
    );
}

async fn emptied_map_is_null(server: Server) {
    let place = Place::new(server).await;
    spec(&place, "one", json!({ "free": { "x": { "y": 1 } } })).await;
    let left = spec(&place, "one", json!({ "free": { "x": {} } })).await;
    assert_eq!(
        left,
        json!({ "size": 1, "colour": "white", "free": { "x": null } })
    );
    let emptied = apply(&place.jars(), "a", "one", jar("a", json!({ "free": {} }))).await;
    refused(
        emptied,
        422,
        "Invalid",
        "Jar.apiserver.example.com \"a\" is invalid: spec.free: Invalid value: \"null\": spec.free in body \
         must be of type object: \"null\"",
    );
    // A map that was applied as empty from the beginning is kept.
    let created = apply(&place.jars(), "b", "one", jar("b", json!({ "free": {} })))
        .await
        .unwrap();
    assert_eq!(created.data["spec"]["free"], json!({}));
    let again = apply(&place.jars(), "b", "one", jar("b", json!({ "free": {} })))
        .await
        .unwrap();
    assert_eq!(again, created);

    let labelled = |labels: Value| {
        let mut object = jar("c", json!({}));
        object["metadata"]["labels"] = labels;
        object
    };
    apply(&place.jars(), "c", "one", labelled(json!({ "a": "b" })))
        .await
        .unwrap();
    let left = apply(&place.jars(), "c", "one", labelled(json!({})))
        .await
        .unwrap();
    assert_eq!(left.metadata.labels, None);
}

async fn emptied_map_of_a_builtin_kind_is_absent(server: Server) {
    let place = Place::new(server).await;
    let deployments: Api<DynamicObject> = Api::namespaced_with(
        place.client.clone(),
        &place.namespace,
        &ApiResource::erase::<Deployment>(&()),
    );
    let wanted = |annotations: Value, pod: Value| {
        let labels = json!({ "app": "a" });
        let mut spec = json!({ "containers": [{ "name": "web", "image": "x" }] });
        for (name, value) in pod.as_object().unwrap() {
            spec["containers"][0][name] = value.clone();
        }
        let metadata = json!({ "labels": labels, "annotations": annotations });
        let template = json!({ "metadata": metadata, "spec": spec });
        let spec = json!({ "selector": { "matchLabels": labels }, "template": template });
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a" }, "spec": spec })
    };
    let hook = json!({ "preStop": { "exec": { "command": ["true"] } } });
    let full = wanted(
        json!({ "x": "y" }),
        json!({ "lifecycle": hook, "securityContext": { "privileged": false } }),
    );
    apply(&deployments, "a", "one", full).await.unwrap();
    let empty = wanted(json!({}), json!({ "lifecycle": {}, "securityContext": {} }));
    let left = apply(&deployments, "a", "one", empty).await.unwrap();
    let template = &left.data["spec"]["template"];
    assert_eq!(template["metadata"].get("annotations"), None);
    let container = &template["spec"]["containers"][0];
    assert_eq!(container.get("lifecycle"), None);
    assert_eq!(container.get("securityContext"), None);
}

async fn conflict_names_the_manager_and_the_field(server: Server) {
    let place = Place::new(server).await;
    apply(&place.maps(), "a", "one", cm(json!({ "x": "1", "y": "1" })))
        .await
        .unwrap();
    refused(
        apply(&place.maps(), "a", "two", cm(json!({ "x": "2" }))).await,
        409,
        "Conflict",
        "Apply failed with 1 conflict: conflict with \"one\": .data.x",
    );
    let status = refusal(apply(&place.maps(), "a", "two", cm(json!({ "x": "2", "y": "2" }))).await);
    assert_eq!(
        status.message,
        "Apply failed with 2 conflicts: conflicts with \"one\":\n- .data.x\n- .data.y"
    );
    let causes = status.details.unwrap().causes;
    let fields: Vec<_> = causes
        .iter()
        .map(|cause| (cause.reason.as_str(), cause.field.as_str()))
        .collect();
    assert_eq!(
        fields,
        [
            ("FieldManagerConflict", ".data.x"),
            ("FieldManagerConflict", ".data.y")
        ]
    );

    let params = PostParams {
        field_manager: Some("hand".to_owned()),
        ..PostParams::default()
    };
    place
        .maps()
        .create(&params, &map("b", json!({ "x": "1" })))
        .await
        .unwrap();
    let mut wanted = cm(json!({ "x": "2" }));
    wanted["metadata"]["name"] = "b".into();
    let message = refusal(apply(&place.maps(), "b", "two", wanted).await).message;
    assert!(
        message.starts_with("Apply failed with 1 conflict: conflict with \"hand\" using v1"),
        "{message}"
    );
    assert!(message.ends_with(": .data.x"), "{message}");
}

async fn force_takes_over_fields(server: Server) {
    let place = Place::new(server).await;
    apply(&place.maps(), "a", "one", cm(json!({ "x": "1", "y": "1" })))
        .await
        .unwrap();
    let force = PatchParams::apply("two").force();
    let taken = place
        .maps()
        .patch("a", &force, &Patch::Apply(cm(json!({ "x": "2" }))))
        .await
        .unwrap();
    assert_eq!(
        serde_json::to_value(&taken.data).unwrap(),
        json!({ "x": "2", "y": "1" })
    );
    assert_eq!(owned(&taken, "one"), json!({ "f:data": { "f:y": {} } }));
    assert_eq!(owned(&taken, "two"), json!({ "f:data": { "f:x": {} } }));
    // The manager no longer owns the field, so it can't remove it.
    let left = apply(&place.maps(), "a", "one", cm(json!({ "y": "1" })))
        .await
        .unwrap();
    assert_eq!(
        serde_json::to_value(&left.data).unwrap(),
        json!({ "x": "2", "y": "1" })
    );
}

async fn field_with_the_same_value_is_shared(server: Server) {
    let place = Place::new(server).await;
    apply(&place.maps(), "a", "one", cm(json!({ "x": "1" })))
        .await
        .unwrap();
    let shared = apply(&place.maps(), "a", "two", cm(json!({ "x": "1" })))
        .await
        .unwrap();
    assert_eq!(owned(&shared, "one"), owned(&shared, "two"));
    let status = refusal(apply(&place.maps(), "a", "one", cm(json!({ "x": "2" }))).await);
    assert_eq!(
        status.message,
        "Apply failed with 1 conflict: conflict with \"two\": .data.x"
    );
    let left = apply(&place.maps(), "a", "one", cm(json!({}))).await.unwrap();
    assert_eq!(serde_json::to_value(left.data).unwrap(), json!({ "x": "1" }));
}

async fn update_takes_over_applied_fields(server: Server) {
    let place = Place::new(server).await;
    spec(&place, "one", json!({ "size": 1, "note": "a" })).await;
    let patch = Patch::Merge(json!({ "spec": { "size": 2 } }));
    let params = PatchParams {
        field_manager: Some("hand".to_owned()),
        ..PatchParams::default()
    };
    let changed: DynamicObject = place.jars().patch("a", &params, &patch).await.unwrap();
    assert_eq!(owned(&changed, "one"), json!({ "f:spec": { "f:note": {} } }));
    assert_eq!(owned(&changed, "hand"), json!({ "f:spec": { "f:size": {} } }));
    let status = refusal(
        apply(
            &place.jars(),
            "a",
            "one",
            jar("a", json!({ "size": 1, "note": "a" })),
        )
        .await,
    );
    assert_eq!(status.code, 409);
    // A manager that applies the same value becomes an owner again.
    let agreed = apply(
        &place.jars(),
        "a",
        "one",
        jar("a", json!({ "size": 2, "note": "a" })),
    )
    .await
    .unwrap();
    assert_eq!(
        owned(&agreed, "one"),
        json!({ "f:spec": { "f:note": {}, "f:size": {} } })
    );
}

async fn map_lists_are_merged_by_key(server: Server) {
    let place = Place::new(server).await;
    spec(
        &place,
        "one",
        json!({ "size": 1, "lids": [{ "name": "a" }, { "name": "b", "fits": true }] }),
    )
    .await;
    let both = spec(
        &place,
        "two",
        json!({ "lids": [{ "name": "a", "fits": false }, { "name": "c" }] }),
    )
    .await;
    assert_eq!(
        both["lids"],
        json!([{ "name": "a", "fits": false }, { "name": "b", "fits": true }, { "name": "c" }])
    );
    let left = spec(&place, "one", json!({ "size": 1, "lids": [{ "name": "b" }] })).await;
    assert_eq!(
        left["lids"],
        json!([{ "name": "a", "fits": false }, { "name": "b" }, { "name": "c" }]),
        "an item goes when nobody has it, a field of an item too"
    );
    let left = spec(&place, "two", json!({ "lids": [] })).await;
    assert_eq!(left["lids"], json!([{ "name": "b" }]));
    let left = spec(&place, "one", json!({ "size": 1, "lids": [] })).await;
    assert_eq!(left["lids"], Value::Null, "a list without items goes");
}

async fn sets_are_merged_by_value(server: Server) {
    let place = Place::new(server).await;
    spec(&place, "one", json!({ "size": 1, "tags": ["a", "b"] })).await;
    let both = spec(&place, "two", json!({ "tags": ["b", "c"] })).await;
    assert_eq!(both["tags"], json!(["a", "b", "c"]));
    let left = spec(&place, "one", json!({ "size": 1 })).await;
    assert_eq!(left["tags"], json!(["b", "c"]));
}

async fn atomic_lists_and_scalars_are_replaced(server: Server) {
    let place = Place::new(server).await;
    spec(&place, "one", json!({ "size": 1, "order": ["a", "b"] })).await;
    let wanted = jar("a", json!({ "order": ["a"] }));
    let status = refusal(apply(&place.jars(), "a", "two", wanted).await);
    assert_eq!(
        status.message,
        "Apply failed with 1 conflict: conflict with \"one\": .spec.order"
    );
    let replaced = spec(&place, "one", json!({ "size": 1, "order": ["c"] })).await;
    assert_eq!(replaced["order"], json!(["c"]));
}

async fn schemaless_content_is_merged_by_field(server: Server) {
    let place = Place::new(server).await;
    spec(
        &place,
        "one",
        json!({ "size": 1, "free": { "x": 1, "list": [1], "deep": { "a": 1 } } }),
    )
    .await;
    let both = spec(&place, "two", json!({ "free": { "y": 1, "deep": { "b": 1 } } })).await;
    assert_eq!(
        both["free"],
        json!({ "x": 1, "y": 1, "list": [1], "deep": { "a": 1, "b": 1 } })
    );
    let left = spec(&place, "one", json!({ "size": 1, "free": { "x": 1 } })).await;
    assert_eq!(left["free"], json!({ "x": 1, "y": 1, "deep": { "b": 1 } }));
}

async fn status_has_separate_managers(server: Server) {
    let place = Place::new(server).await;
    spec(&place, "one", json!({ "size": 1 })).await;
    let status = |text: &str| {
        let mut object = jar("a", json!({ "size": 4 }));
        object["status"] = json!({ "text": text });
        Patch::Apply(object)
    };
    let params = PatchParams::apply("one");
    let written: DynamicObject = place
        .jars()
        .patch_status("a", &params, &status("good"))
        .await
        .unwrap();
    assert_eq!(
        written.data["spec"]["size"], 1,
        "the spec is not written this way"
    );
    assert_eq!(written.data["status"], json!({ "text": "good" }));
    assert_eq!(written.metadata.generation, Some(1));
    let entries = written.metadata.managed_fields.clone().unwrap();
    let entry = entries.iter().find(|entry| entry.subresource.is_some()).unwrap();
    assert_eq!(
        entry.fields_v1.as_ref().unwrap().0,
        json!({ "f:status": { "f:text": {} } })
    );
    // Without a status, the existing status is kept.
    let kept = apply(&place.jars(), "a", "one", jar("a", json!({ "size": 2 })))
        .await
        .unwrap();
    assert_eq!(kept.data["status"], json!({ "text": "good" }));
    let conflict = place
        .jars()
        .patch_status("a", &PatchParams::apply("two"), &status("bad"))
        .await;
    assert_eq!(
        refusal(conflict).message,
        "Apply failed with 1 conflict: conflict with \"one\" with subresource \"status\": .status.text"
    );
    let none = place.jars().patch_status("none", &params, &status("x")).await;
    assert_eq!(refusal(none).code, 404);
}

async fn labels_finalizers_and_owners_are_merged(server: Server) {
    let place = Place::new(server).await;
    let owner =
        |name: &str, uid: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid });
    let with = |metadata: Value| {
        let mut object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
        object["metadata"]["name"] = "a".into();
        object
    };
    let one = with(json!({
        "labels": { "a": "1", "b": "1" }, "finalizers": ["one.example.com/x"], "ownerReferences": [owner("p", "u1")],
    }));
    let two = with(json!({
        "labels": { "c": "1" }, "finalizers": ["two.example.com/x"], "ownerReferences": [owner("q", "u2")],
    }));
    apply(&place.maps(), "a", "one", one).await.unwrap();
    let both = apply(&place.maps(), "a", "two", two).await.unwrap().metadata;
    assert_eq!(
        both.labels.unwrap().into_keys().collect::<Vec<_>>(),
        ["a", "b", "c"]
    );
    assert_eq!(
        both.finalizers.unwrap(),
        ["one.example.com/x", "two.example.com/x"]
    );
    assert_eq!(both.owner_references.unwrap().len(), 2);
    let left = apply(&place.maps(), "a", "one", with(json!({ "labels": { "a": "1" } })))
        .await
        .unwrap()
        .metadata;
    assert_eq!(left.labels.unwrap().into_keys().collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(left.finalizers.unwrap(), ["two.example.com/x"]);
    assert_eq!(left.owner_references.unwrap()[0].uid, "u2");
}

async fn removed_field_has_its_default_again(server: Server) {
    let place = Place::new(server).await;
    let deployments: Api<Deployment> = place.api();
    let wanted = |replicas: Value| {
        let labels = json!({ "app": "a" });
        let containers = json!([{ "name": "web", "image": "x" }]);
        let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": containers } });
        let mut spec = json!({ "selector": { "matchLabels": labels }, "template": template });
        if !replicas.is_null() {
            spec["replicas"] = replicas;
        }
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a" }, "spec": spec })
    };
    let made = apply(&deployments, "a", "one", wanted(json!(3))).await.unwrap();
    assert_eq!(made.spec.replicas, Some(3));
    let changed = apply(&deployments, "a", "one", wanted(Value::Null))
        .await
        .unwrap();
    assert_eq!(
        (changed.metadata.generation, changed.spec.replicas),
        (Some(2), Some(1))
    );

    let secrets: Api<Secret> = place.api();
    let secret =
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" }, "data": { "a": "eA==" } });
    let mut secret: Secret = serde_json::from_value(secret).unwrap();
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    secret.string_data = Some([("b".to_owned(), "y".to_owned())].into());
    let replaced = secrets
        .replace("a", &PostParams::default(), &secret)
        .await
        .unwrap();
    let data = replaced.data.unwrap();
    assert_eq!(
        data.into_iter()
            .map(|(name, data)| (name, data.0))
            .collect::<Vec<_>>(),
        [("a".to_owned(), b"x".to_vec()), ("b".to_owned(), b"y".to_vec()),]
    );
}

async fn lists_have_the_applied_order(server: Server) {
    let place = Place::new(server).await;
    let deployments: Api<Deployment> = place.api();
    let wanted = |names: &str| {
        let letters = names.chars();
        let env: Vec<Value> = letters
            .map(|name| json!({ "name": name, "value": "v" }))
            .collect();
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a" }, "spec": {
            "selector": { "matchLabels": { "app": "a" } },
            "template": {
                "metadata": { "labels": { "app": "a" } },
                "spec": { "containers": [{ "name": "c", "image": "x", "env": env }] },
            },
        } })
    };
    for (manager, names, expected) in [
        ("one", "ab", "ab"),
        ("one", "cb", "cb"),
        ("one", "bdc", "bdc"),
        ("two", "eb", "ebdc"),
        ("one", "dfb", "edfb"),
        ("two", "beg", "dfbeg"),
        ("one", "xfy", "xfbegy"),
        ("one", "yx", "begyx"),
        ("two", "yqx", "yqx"),
        ("one", "pxry", "qpxry"),
    ] {
        let made = apply(&deployments, "a", manager, wanted(names)).await.unwrap();
        let pods = made.spec.template.spec.unwrap();
        let env = pods.containers[0].env.iter().flatten();
        let found: String = env.map(|env| env.name.as_str()).collect();
        assert_eq!(found, expected, "after {manager} applies {names}");
    }
}

async fn applied_string_data_becomes_data(server: Server) {
    let place = Place::new(server).await;
    let secrets: Api<Secret> = place.api();
    let wanted = |word: &str| json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" }, "stringData": { "word": word } });
    let mut versions = Vec::new();
    for word in ["sesame", "sesame", "other", "sesame"] {
        let secret = apply(&secrets, "a", "one", wanted(word)).await.unwrap();
        // Timestamps of managers have a resolution of one second.
        tokio::time::sleep(Duration::from_millis(1100)).await;
        assert_eq!(secret.data.as_ref().unwrap()["word"].0, word.as_bytes());
        assert_eq!(secret.string_data, None);
        assert_eq!(owned(&secret, "one"), json!({ "f:stringData": { "f:word": {} } }));
        versions.push(secret.metadata.resource_version.unwrap());
    }
    assert_eq!(versions[0], versions[1]);
    assert_ne!(versions[1], versions[2]);
}

async fn deployment_is_merged_by_its_schema(server: Server) {
    let place = Place::new(server).await;
    let deployments: Api<Deployment> = place.api();
    let wanted = |containers: Value| {
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a" }, "spec": {
            "selector": { "matchLabels": { "app": "a" } },
            "template": { "metadata": { "labels": { "app": "a" } }, "spec": { "containers": containers } },
        } })
    };
    let port = |number: u16| json!({ "containerPort": number });
    let first = json!([{ "name": "web", "image": "x", "ports": [port(80), port(81)] }]);
    let made = apply(&deployments, "a", "one", wanted(first)).await.unwrap();
    assert_eq!((made.metadata.generation, made.spec.replicas), (Some(1), Some(1)));
    let sidecar = json!([{ "name": "side", "image": "y" }]);
    apply(&deployments, "a", "two", wanted(sidecar)).await.unwrap();
    let second = json!([{ "name": "web", "image": "z", "ports": [port(81)] }]);
    let changed = apply(&deployments, "a", "one", wanted(second)).await.unwrap();
    assert_eq!(changed.metadata.generation, Some(3));
    let containers = changed.spec.template.spec.unwrap().containers;
    let found: Vec<_> = containers
        .iter()
        .map(|one| {
            let ports = one.ports.iter().flatten();
            (
                one.name.as_str(),
                one.image.as_deref().unwrap(),
                ports.map(|port| port.container_port).collect(),
            )
        })
        .collect();
    assert_eq!(found, [("web", "z", vec![81]), ("side", "y", vec![])]);
}

async fn invalid_applies_are_rejected(server: Server) {
    let place = Place::new(server).await;
    let headers = [("content-type", "application/apply-patch+yaml")];
    let path = "/api/v1/namespaces/{ns}/configmaps/a";
    let (code, text) = place
        .raw("PATCH", path, &headers, &cm(json!({})).to_string())
        .await;
    assert_eq!(code, 422, "{text}");
    assert!(
        text.contains("fieldManager: Required value: is required for apply patch"),
        "{text}"
    );
    let mut entries = cm(json!({}));
    entries["metadata"]["managedFields"] = json!([{ "manager": "x" }]);
    refused(
        apply(&place.maps(), "a", "one", entries).await,
        400,
        "BadRequest",
        "metadata.managedFields must be nil",
    );
    let message = refusal(apply(&place.jars(), "a", "one", jar("a", json!({ "sice": 1 }))).await).message;
    assert!(
        message.contains(".spec.sice: field not declared in schema"),
        "{message}"
    );
    let mut wrong = cm(json!({}));
    wrong["metadata"]["name"] = "b".into();
    assert_eq!(refusal(apply(&place.maps(), "a", "one", wrong).await).code, 400);
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata: {x: 'yes'}\n";
    let (code, text) = place
        .raw("PATCH", &format!("{path}?fieldManager=one"), &headers, yaml)
        .await;
    assert_eq!(code, 201, "{text}");
    assert!(text.contains("\"x\":\"yes\""), "{text}");
}

async fn apply_checks_the_resource_version(server: Server) {
    let place = Place::new(server).await;
    let made = apply(&place.maps(), "a", "one", cm(json!({ "x": "1" })))
        .await
        .unwrap();
    let at = |version: &str, value: &str| {
        let mut object = cm(json!({ "x": value }));
        object["metadata"]["resourceVersion"] = version.into();
        object
    };
    let version = made.metadata.resource_version.unwrap();
    apply(&place.maps(), "a", "one", at(&version, "2")).await.unwrap();
    let status = refusal(apply(&place.maps(), "a", "one", at(&version, "3")).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
}

async fn apply_checks_the_uid(server: Server) {
    let place = Place::new(server).await;
    let with = |key: &str, value: &str| {
        let mut object = cm(json!({ "x": "1" }));
        object["metadata"][key] = value.into();
        object
    };
    let check = async |object: Value, code: u16, reason: &str, message: &str| {
        let status = refusal(apply(&place.maps(), "a", "one", object).await);
        assert_eq!(
            (status.code, status.reason.as_str()),
            (code, reason),
            "{}",
            status.message
        );
        assert!(status.message.contains(message), "{}", status.message);
    };
    check(
        with("uid", "other"),
        409,
        "Conflict",
        "uid mismatch: the provided object specified uid other, and no existing object was found",
    )
    .await;
    // No object has this version, so the apply either creates it or fails.
    let absent = || with("resourceVersion", "1");
    let made = apply(&place.maps(), "a", "one", absent()).await.unwrap();
    check(absent(), 409, "Conflict", "the object has been modified").await;
    check(
        with("uid", "other"),
        422,
        "Invalid",
        "metadata.uid: Invalid value: \"other\": field is immutable",
    )
    .await;
    let uid = made.metadata.uid.clone().unwrap();
    let same = apply(&place.maps(), "a", "one", with("uid", &uid)).await.unwrap();
    assert_eq!(same, made);
}
