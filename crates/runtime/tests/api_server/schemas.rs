//! Validation, defaulting and pruning according to a CRD.

use kube::api::{PatchParams, PostParams};
use serde_json::{Value, json};

use crate::servers::{Server, on_both_servers};
use crate::support::{Place, jar, refusal};

on_both_servers!(
    defaults_are_set_and_unknown_fields_pruned,
    nulls_are_pruned_unless_nullable,
    validation_errors_match_the_server,
    strict_validation_rejects_unknown_fields,
);

async fn defaults_are_set_and_unknown_fields_pruned(server: Server) {
    let place = Place::new(server).await;
    let wanted = json!({ "typo": 1, "lids": [{ "name": "a", "typo": 1 }], "free": { "any": 1 }, "either": { "a": 1 } });
    let made = place.jar("a", wanted).await;
    let expected = json!({
        "size": 1, "colour": "white", "lids": [{ "name": "a" }], "free": { "any": 1 }, "either": { "a": 1 },
    });
    assert_eq!(made.data["spec"], expected);
}

async fn nulls_are_pruned_unless_nullable(server: Server) {
    let place = Place::new(server).await;
    let made = place
        .jar(
            "a",
            json!({ "size": null, "note": null, "tags": null, "free": { "x": null } }),
        )
        .await;
    assert_eq!(
        made.data["spec"],
        json!({ "size": 1, "colour": "white", "note": null, "free": { "x": null } })
    );
}

async fn validation_errors_match_the_server(server: Server) {
    let place = Place::new(server).await;
    let check = async |spec: Value, expected: &[&str]| {
        let answer = place
            .jars()
            .create(&PostParams::default(), &jar("a", spec.clone()))
            .await;
        let status = refusal(answer);
        assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"), "{spec}");
        let causes = status.details.unwrap().causes;
        let mut found: Vec<String> = causes
            .iter()
            .map(|cause| format!("{} {}: {}", cause.reason, cause.field, cause.message))
            .collect();
        found.sort();
        assert_eq!(found, expected, "{spec}");
        let subject = "Jar.apiserver.example.com \"a\" is invalid: ";
        assert!(status.message.starts_with(subject), "{}", status.message);
    };
    check(
        json!({ "size": 9 }),
        &["FieldValueInvalid spec.size: Invalid value: 9: spec.size in body should be less than or equal to 5"],
    )
    .await;
    check(
        json!({ "size": "many" }),
        &["FieldValueInvalid .spec.size: Invalid value: 0: .spec.size accessor error: many is of the type string, \
           expected int64",
          "FieldValueTypeInvalid spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \
           \"string\""],
    )
    .await;
    check(
        json!({ "size": -1, "colour": "red" }),
        &[
            "FieldValueInvalid .spec.size: Invalid value: -1: should be a non-negative integer",
            "FieldValueInvalid spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0",
            "FieldValueNotSupported spec.colour: Unsupported value: \"red\": supported values: \"white\", \"blue\"",
        ],
    )
    .await;
    check(
        json!({ "order": ["a", "b", "c", "d"] }),
        &["FieldValueTooMany spec.order: Too many: 4: must have at most 3 items"],
    )
    .await;
    check(
        json!({ "note": "a long note" }),
        &["FieldValueTooLong spec.note: Too long: may not be more than 9 bytes"],
    )
    .await;
    check(
        json!({ "tags": ["a", "a"] }),
        &["FieldValueDuplicate spec.tags[1]: Duplicate value: \"a\""],
    )
    .await;
    check(
        json!({ "lids": [{ "name": "a" }, { "name": "a" }] }),
        &["FieldValueDuplicate spec.lids[1]: Duplicate value: {\"name\":\"a\"}"],
    )
    .await;
    check(
        json!({ "lids": [{ "fits": true }] }),
        &["FieldValueRequired spec.lids[0].name: Required value"],
    )
    .await;
    check(
        json!({ "port": true }),
        &[
            "FieldValueTypeInvalid spec.port: Invalid value: \"boolean\": spec.port in body must be of type \
           integer,string: \"boolean\"",
        ],
    )
    .await;
    let status = refusal(
        place
            .jars()
            .create(&PostParams::default(), &jar("a", json!({ "either": {} })))
            .await,
    );
    assert!(status.message.contains("(oneOf)"), "{}", status.message);
}

async fn strict_validation_rejects_unknown_fields(server: Server) {
    let place = Place::new(server).await;
    place.jar("a", json!({})).await;
    let patch = kube::api::Patch::Merge(json!({ "spec": { "typo": 1 } }));
    let params = PatchParams {
        field_validation: Some(kube::api::ValidationDirective::Strict),
        ..PatchParams::default()
    };
    let status = refusal(place.jars().patch("a", &params, &patch).await);
    assert!(
        status.message.contains("unknown field \"spec.typo\""),
        "{}",
        status.message
    );
    place
        .jars()
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
}
