//! Tests with objects that don't match their Rust type.

use super::*;

/// A stored object that may not match its type.
fn stored(text: Value, finalizer: Option<&str>) -> Value {
    json!({ "metadata": { "name": "a", "finalizers": finalizer.as_slice() }, "data": { "text": text } })
}

/// Asserts that both endpoints allow the request. Returns the warnings of the validating endpoint.
async fn assert_let_through(operation: &str, new: Value, old: Value) -> Vec<String> {
    let webhooks = Webhook::<ConfigMap>::new().validator(validate).defaulter(default);
    let served = webhook(webhooks).await;
    let request = json!({ "operation": operation, "object": new, "oldObject": old });
    let response = served.ask(MUTATE, request.clone()).await;
    assert_eq!(response["allowed"], true, "{response}");
    let response = served.ask(VALIDATE, request).await;
    assert_eq!(response["allowed"], true, "{response}");
    serde_json::from_value(response["warnings"].clone()).unwrap()
}

#[tokio::test]
async fn undecodable_object_can_be_deleted() {
    let warnings = assert_let_through("DELETE", Value::Null, stored(json!(1), None)).await;
    let expected = "the stored ConfigMap cannot be decoded, its deletion is not checked: .data.text: invalid type: \
                    integer `1`, expected a string";
    assert_eq!(warnings, [expected]);
}

#[tokio::test]
async fn finalizer_of_an_undecodable_object_can_be_removed() {
    let (new, old) = (stored(json!(1), None), stored(json!(1), Some("example.com/held")));
    let warnings = assert_let_through("UPDATE", new, old).await;
    assert!(
        warnings[0].contains("this update of its metadata is not checked"),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn undecodable_object_can_be_repaired() {
    let (new, old) = (stored(json!("fine"), None), stored(json!(1), None));
    let warnings = assert_let_through("UPDATE", new, old).await;
    assert!(
        warnings[0].contains("the new object is checked without it"),
        "{warnings:?}"
    );
}

/// The API server will validate it, and report all invalid fields.
#[tokio::test]
async fn undecodable_new_object_is_admitted_without_defaults() {
    let served = webhook(Webhook::<ConfigMap>::new().defaulter(default)).await;
    for request in [
        json!({ "operation": "CREATE", "object": stored(json!(1), None) }),
        json!({ "operation": "UPDATE", "object": stored(json!(1), None), "oldObject": stored(json!("fine"), None) }),
    ] {
        let response = served.ask(MUTATE, request).await;
        let warning = "defaults are not set, the ConfigMap cannot be decoded: .data.text: invalid type: integer `1`, \
                       expected a string";
        assert_eq!(
            response,
            json!({ "uid": "1", "allowed": true, "warnings": [warning] })
        );
    }
}

#[tokio::test]
async fn validator_denies_updates_that_leave_or_make_an_object_undecodable() {
    let served = webhook(Webhook::<ConfigMap>::new().validator(validate)).await;
    let new = stored(json!(1), None);
    for request in [
        json!({ "operation": "CREATE", "object": new.clone() }),
        json!({ "operation": "UPDATE", "object": new.clone(), "oldObject": stored(json!(2), None) }),
        json!({ "operation": "UPDATE", "object": new.clone(), "oldObject": stored(json!("fine"), None) }),
    ] {
        let status = &served.ask(VALIDATE, request).await["status"];
        assert_eq!(
            (&status["code"], &status["reason"]),
            (&json!(422), &json!("Invalid"))
        );
        let cause = &status["details"]["causes"][0];
        assert_eq!(cause["field"], "data.text");
        assert_eq!(cause["message"], "invalid type: integer `1`, expected a string");
        let message = "ConfigMap \"a\" is invalid: data.text: invalid type: integer `1`, expected a string";
        assert_eq!(status["message"], message);
    }
}

/// Belongs to a different version, even though it can be decoded.
#[tokio::test]
async fn unconverted_object_is_neither_defaulted_nor_valid() {
    let served = webhook(Webhook::<ConfigMap>::new().validator(validate).defaulter(default)).await;
    let mut object = map(json!({ "text": "good" }));
    object["metadata"]["annotations"] =
        json!({ "rbuilder/unconverted": "example.com/v2 .spec.mode: unknown variant `x`" });
    let request = json!({ "operation": "CREATE", "object": object });
    let defaulted = served.ask(MUTATE, request.clone()).await;
    assert_eq!(
        (&defaulted["allowed"], &defaulted["patch"]),
        (&json!(true), &Value::Null)
    );
    let status = &served.ask(VALIDATE, request).await["status"];
    assert_eq!(status["details"]["causes"][0]["field"], "spec.mode");
}

#[tokio::test]
async fn repaired_object_is_validated() {
    let served = webhook(Webhook::<ConfigMap>::new().validator(validate)).await;
    let request = json!({ "operation": "UPDATE", "object": stored(json!("bad"), None), "oldObject": stored(json!(1), None) });
    assert_eq!(served.ask(VALIDATE, request).await["allowed"], false);
}
