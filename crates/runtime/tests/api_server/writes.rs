//! Creating and replacing objects.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::{Api, Error, ResourceExt};
use serde_json::json;

use crate::servers::{Server, on_both_servers};
use crate::support::{Place, jar, jar_kind, map, refusal, refused};

on_both_servers!(
    new_object_gets_server_metadata,
    duplicate_name_is_rejected,
    generate_name_appends_a_suffix,
    invalid_names_are_rejected,
    namespace_must_exist_and_match,
    unknown_kinds_are_not_found,
    object_of_another_kind_is_rejected,
    custom_resource_update_requires_a_version,
    configmap_update_needs_no_version,
    server_metadata_is_immutable,
    generation_counts_spec_changes,
    update_without_changes_keeps_the_version,
    dry_run_stores_nothing,
    built_in_kinds_are_defaulted,
    bytes_of_built_in_kinds_are_decoded,
    managed_fields_record_the_writer,
);

async fn new_object_gets_server_metadata(server: Server) {
    let place = Place::new(server).await;
    let mut wanted = jar("a", json!({ "size": 2 }));
    // The server ignores all of these.
    wanted.metadata.generation = Some(7);
    wanted.metadata.uid = Some("mine".to_owned());
    wanted.data["status"] = json!({ "text": "not yet" });
    let made = place
        .jars()
        .create(&PostParams::default(), &wanted)
        .await
        .unwrap();
    assert_eq!(made.metadata.namespace.as_deref(), Some(&*place.namespace));
    assert_eq!(made.metadata.generation, Some(1));
    assert_eq!(made.uid().unwrap().len(), 36);
    assert!(made.creation_timestamp().is_some());
    assert!(made.resource_version().unwrap().parse::<u64>().unwrap() > 0);
    assert_eq!(made.data, json!({ "spec": { "size": 2, "colour": "white" } }));
    assert_eq!(place.jars().get("a").await.unwrap(), made);

    // Built-in kinds may not have a generation.
    let map = place.map("m", json!({ "k": "v" })).await;
    assert_eq!(map.metadata.generation, None);
    assert_ne!(map.uid(), made.uid());
}

async fn duplicate_name_is_rejected(server: Server) {
    let place = Place::new(server).await;
    place.jar("a", json!({})).await;
    let again = place
        .jars()
        .create(&PostParams::default(), &jar("a", json!({})))
        .await;
    refused(
        again,
        409,
        "AlreadyExists",
        "jars.apiserver.example.com \"a\" already exists",
    );
    refused(
        place.jars().get("b").await,
        404,
        "NotFound",
        "jars.apiserver.example.com \"b\" not found",
    );
    let status = refusal(place.maps().get("b").await);
    let details = status.details.unwrap();
    assert_eq!(
        (
            details.name.as_str(),
            details.kind.as_str(),
            details.group.as_str()
        ),
        ("b", "configmaps", "")
    );
}

async fn generate_name_appends_a_suffix(server: Server) {
    let place = Place::new(server).await;
    let mut wanted = map("", json!({}));
    wanted.metadata.name = None;
    wanted.metadata.generate_name = Some("new-".to_owned());
    let make = async || {
        place
            .maps()
            .create(&PostParams::default(), &wanted)
            .await
            .unwrap()
            .name_any()
    };
    let (first, second) = (make().await, make().await);
    assert_ne!(first, second);
    for name in [first, second] {
        let suffix = name.strip_prefix("new-").unwrap();
        assert!(
            suffix.len() == 5 && suffix.chars().all(|c| c.is_ascii_alphanumeric()),
            "{name}"
        );
    }
}

async fn invalid_names_are_rejected(server: Server) {
    let place = Place::new(server).await;
    let budget: PodDisruptionBudget =
        serde_json::from_value(json!({ "metadata": { "name": "My_App" }, "spec": {} })).unwrap();
    let budgets = Api::namespaced(place.client.clone(), &place.namespace);
    budgets.create(&PostParams::default(), &budget).await.unwrap();
    let set: StatefulSet = serde_json::from_value(json!({
        "metadata": { "name": "a.b" },
        "spec": {
            "selector": { "matchLabels": { "app": "a" } },
            "template": {
                "metadata": { "labels": { "app": "a" } },
                "spec": { "containers": [{ "name": "a", "image": "a" }] },
            },
        },
    }))
    .unwrap();
    let sets = Api::namespaced(place.client.clone(), &place.namespace);
    let message = refusal(sets.create(&PostParams::default(), &set).await).message;
    assert!(message.ends_with("must not contain dots"), "{message}");
    let check = async |name: &str, message: &str| {
        let answer = place
            .maps()
            .create(&PostParams::default(), &map(name, json!({})))
            .await;
        let status = refusal(answer);
        assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
        assert!(status.message.starts_with(message), "{}", status.message);
        assert_eq!(status.details.unwrap().causes[0].field, "metadata.name");
    };
    check(
        "A_b",
        "ConfigMap \"A_b\" is invalid: metadata.name: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain must",
    )
    .await;
    check(
        "-a",
        "ConfigMap \"-a\" is invalid: metadata.name: Invalid value: \"-a\"",
    )
    .await;
    check(
        "a..b",
        "ConfigMap \"a..b\" is invalid: metadata.name: Invalid value",
    )
    .await;
    check(
        "",
        "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required",
    )
    .await;
    for (name, words) in [
        ("a.b", "must not contain dots"),
        ("A", "a lowercase RFC 1123 label must consist of"),
    ] {
        let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
        let answer = Api::all(place.client.clone())
            .create(&PostParams::default(), &namespace)
            .await;
        let message = refusal(answer).message;
        assert!(message.contains(words), "{message}");
    }
}

async fn namespace_must_exist_and_match(server: Server) {
    let place = Place::new(server).await;
    let nowhere: Api<ConfigMap> = Api::namespaced(place.client.clone(), "nowhere");
    refused(
        nowhere.create(&PostParams::default(), &map("a", json!({}))).await,
        404,
        "NotFound",
        "namespaces \"nowhere\" not found",
    );
    let mut elsewhere = map("a", json!({}));
    elsewhere.metadata.namespace = Some("default".to_owned());
    refused(
        place.maps().create(&PostParams::default(), &elsewhere).await,
        400,
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
    );
    let mut versioned = map("a", json!({}));
    versioned.metadata.resource_version = Some("3".to_owned());
    let status = refusal(place.maps().create(&PostParams::default(), &versioned).await);
    assert_eq!(
        status.message,
        "resourceVersion should not be set on objects to be created"
    );
}

async fn unknown_kinds_are_not_found(server: Server) {
    let place = Place::new(server).await;
    let mut kind = jar_kind("v1");
    kind.plural = "pots".to_owned();
    let pots: Api<DynamicObject> = Api::namespaced_with(place.client.clone(), &place.namespace, &kind);
    assert_eq!(refusal(pots.get("a").await).code, 404);
    assert_eq!(refusal(pots.list(&Default::default()).await).code, 404);
    let other_version: Api<DynamicObject> =
        Api::namespaced_with(place.client.clone(), &place.namespace, &jar_kind("v9"));
    assert_eq!(refusal(other_version.get("a").await).code, 404);
    let (code, text) = place.raw("GET", "/apis/none.example.com/v1/pots", &[], "").await;
    assert_eq!((code, text.as_str()), (404, "404 page not found\n"));
}

async fn object_of_another_kind_is_rejected(server: Server) {
    let place = Place::new(server).await;
    let json = [("content-type", "application/json")];
    let maps = "/api/v1/namespaces/{ns}/configmaps";
    for body in [
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}"#,
        r#"{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"a"}}"#,
        "{nonsense",
        "[]",
    ] {
        let (code, text) = place.raw("POST", maps, &json, body).await;
        assert_eq!(code, 400, "{body}: {text}");
        assert!(text.contains("\"reason\":\"BadRequest\""), "{text}");
    }
    let (code, _) = place
        .raw("POST", maps, &json, r#"{"metadata":{"name":"bare"}}"#)
        .await;
    assert_eq!(code, 201, "the path says what it is");
    // For custom resources, the body must contain the kind.
    let jars = "/apis/apiserver.example.com/v1/namespaces/{ns}/jars";
    let (code, text) = place
        .raw("POST", jars, &json, r#"{"metadata":{"name":"bare"}}"#)
        .await;
    assert_eq!(code, 400, "{text}");
}

async fn custom_resource_update_requires_a_version(server: Server) {
    let place = Place::new(server).await;
    let first = place.jar("a", json!({ "size": 1 })).await;
    let mut changed = first.clone();
    changed.data["spec"]["size"] = 2.into();
    let replace =
        async |object: &DynamicObject| place.jars().replace("a", &PostParams::default(), object).await;
    let second = replace(&changed).await.unwrap();
    assert_eq!(second.data["spec"]["size"], 2);
    assert_ne!(second.resource_version(), first.resource_version());
    refused(
        replace(&changed).await,
        409,
        "Conflict",
        "Operation cannot be fulfilled on jars.apiserver.example.com \"a\": the object has been modified; please \
         apply your changes to the latest version and try again",
    );
    changed.metadata.resource_version = None;
    refused(
        replace(&changed).await,
        422,
        "Invalid",
        "jars.apiserver.example.com \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified \
         for an update",
    );
    let mut other = jar("b", json!({}));
    other.metadata.resource_version = Some("1".to_owned());
    refused(
        place.jars().replace("a", &PostParams::default(), &other).await,
        400,
        "BadRequest",
        "the name of the object (b) does not match the name on the URL (a)",
    );
    assert_eq!(
        refusal(place.jars().replace("b", &PostParams::default(), &other).await).code,
        404
    );
}

async fn configmap_update_needs_no_version(server: Server) {
    let place = Place::new(server).await;
    place.map("a", json!({ "k": "1" })).await;
    let changed = place
        .maps()
        .replace("a", &PostParams::default(), &map("a", json!({ "n": "2" })))
        .await
        .unwrap();
    assert_eq!(changed.data.unwrap().into_keys().collect::<Vec<_>>(), ["n"]);
    let mut stranger = map("a", json!({}));
    stranger.metadata.uid = Some("another".to_owned());
    let status = refusal(place.maps().replace("a", &PostParams::default(), &stranger).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert!(
        status
            .message
            .contains("Precondition failed: UID in precondition: another"),
        "{}",
        status.message
    );
}

async fn server_metadata_is_immutable(server: Server) {
    let place = Place::new(server).await;
    let made = place.jar("a", json!({})).await;
    let mut changed = made.clone();
    // The server ignores all of these changes.
    changed.metadata.generation = Some(70);
    changed.metadata.creation_timestamp = None;
    changed.metadata.managed_fields = None;
    changed.data["status"] = json!({ "text": "sneaked in" });
    let kept = place
        .jars()
        .replace("a", &PostParams::default(), &changed)
        .await
        .unwrap();
    assert_eq!(kept, made, "not even the version changes");
    changed.metadata.deletion_timestamp = made.metadata.creation_timestamp.clone();
    let status = refusal(place.jars().replace("a", &PostParams::default(), &changed).await);
    assert_eq!(status.code, 422);
    assert!(
        status
            .message
            .contains("metadata.deletionTimestamp: Invalid value"),
        "{}",
        status.message
    );
}

async fn generation_counts_spec_changes(server: Server) {
    let place = Place::new(server).await;
    let mut object = place.jar("a", json!({ "size": 1 })).await;
    let replace = async |object: &DynamicObject| {
        place
            .jars()
            .replace("a", &PostParams::default(), object)
            .await
            .unwrap()
    };
    object.labels_mut().insert("a".to_owned(), "b".to_owned());
    object = replace(&object).await;
    assert_eq!(object.metadata.generation, Some(1));
    object.data["spec"]["size"] = 2.into();
    object = replace(&object).await;
    assert_eq!(object.metadata.generation, Some(2));
    object.data["status"] = json!({ "text": "done" });
    object = place
        .jars()
        .replace_status("a", &PostParams::default(), &object)
        .await
        .unwrap();
    assert_eq!(
        (object.metadata.generation, object.data["status"]["text"].as_str()),
        (Some(2), Some("done"))
    );
}

async fn update_without_changes_keeps_the_version(server: Server) {
    let place = Place::new(server).await;
    let made = place.map("a", json!({ "k": "1" })).await;
    let same = place
        .maps()
        .replace("a", &PostParams::default(), &made)
        .await
        .unwrap();
    assert_eq!(same, made);
    let patch = kube::api::Patch::Merge(json!({ "data": { "k": "1" } }));
    let same = place
        .maps()
        .patch("a", &Default::default(), &patch)
        .await
        .unwrap();
    assert_eq!(same, made);
}

async fn dry_run_stores_nothing(server: Server) {
    let place = Place::new(server).await;
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let shown = place
        .jars()
        .create(&dry, &jar("a", json!({ "size": 3 })))
        .await
        .unwrap();
    assert_eq!(shown.data["spec"]["colour"], "white");
    assert!(place.jars().get_opt("a").await.unwrap().is_none());
    let made = place.jar("a", json!({})).await;
    let mut changed = made.clone();
    changed.data["spec"]["size"] = 4.into();
    let shown = place.jars().replace("a", &dry, &changed).await.unwrap();
    assert_eq!(shown.data["spec"]["size"], 4);
    let refused = place.jars().create(&dry, &jar("a", json!({}))).await;
    assert_eq!(refusal(refused).code, 409);
    let delete = kube::api::DeleteParams {
        dry_run: true,
        ..Default::default()
    };
    place.jars().delete("a", &delete).await.unwrap();
    assert_eq!(place.jars().get("a").await.unwrap(), made);
}

async fn built_in_kinds_are_defaulted(server: Server) {
    let place = Place::new(server).await;
    let namespace = Api::<Namespace>::all(place.client.clone())
        .get(&place.namespace)
        .await
        .unwrap();
    assert_eq!(namespace.labels()["kubernetes.io/metadata.name"], place.namespace);
    assert_eq!(namespace.status.unwrap().phase.as_deref(), Some("Active"));
    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "word": "sesame" } });
    let secret: Secret = serde_json::from_value(secret).unwrap();
    let made = place
        .api::<Secret>()
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    assert_eq!(made.type_.as_deref(), Some("Opaque"));
    assert_eq!(made.data.unwrap()["word"].0, b"sesame");
    assert_eq!(made.string_data, None);
}

async fn bytes_of_built_in_kinds_are_decoded(server: Server) {
    let place = Place::new(server).await;
    let create = async |name: &str, bytes: &str| {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "data": { "k": bytes }
        });
        let secret: DynamicObject = serde_json::from_value(secret).unwrap();
        let kind = ApiResource::erase::<Secret>(&());
        let secrets: Api<DynamicObject> = Api::namespaced_with(place.client.clone(), &place.namespace, &kind);
        secrets.create(&PostParams::default(), &secret).await
    };
    for (name, bytes, stored) in [("empty", "", ""), ("lines", "aGVs\nbG8=\r\n", "aGVsbG8=")] {
        let made = create(name, bytes).await.unwrap();
        assert_eq!(made.data["data"]["k"], stored);
    }
    for bytes in ["a", "aGVsbG8", "a-_="] {
        let error = create("wrong", bytes).await.unwrap_err();
        let Error::Api(status) = error else {
            panic!("{error}")
        };
        assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"));
    }
}

async fn managed_fields_record_the_writer(server: Server) {
    let place = Place::new(server).await;
    let params = PostParams {
        field_manager: Some("maker".to_owned()),
        ..PostParams::default()
    };
    let mut object = jar("a", json!({ "size": 1, "tags": ["x"] }));
    object.labels_mut().insert("l".to_owned(), "1".to_owned());
    let made = place.jars().create(&params, &object).await.unwrap();
    let entry = &made.managed_fields()[0];
    assert_eq!(
        (
            entry.manager.as_deref(),
            entry.operation.as_deref(),
            entry.subresource.as_deref()
        ),
        (Some("maker"), Some("Update"), None)
    );
    assert_eq!(entry.api_version.as_deref(), Some("apiserver.example.com/v1"));
    let expected = json!({
        "f:metadata": { "f:labels": { ".": {}, "f:l": {} } },
        "f:spec": { ".": {}, "f:colour": {}, "f:size": {}, "f:tags": { ".": {}, "v:\"x\"": {} } },
    });
    assert_eq!(entry.fields_v1.as_ref().unwrap().0, expected);

    let mut changed = made.clone();
    changed.data["spec"]["size"] = 2.into();
    let params = PostParams {
        field_manager: Some("changer".to_owned()),
        ..PostParams::default()
    };
    let changed = place.jars().replace("a", &params, &changed).await.unwrap();
    let noted = |name: &str| {
        let entries = changed.managed_fields().iter();
        let mut found = entries.filter(|entry| entry.manager.as_deref() == Some(name));
        found.next().unwrap().fields_v1.as_ref().unwrap().0["f:spec"].clone()
    };
    assert_eq!(noted("changer"), json!({ "f:size": {} }));
    assert_eq!(
        noted("maker")["f:size"],
        json!(null),
        "it is not the maker's any more"
    );
}
