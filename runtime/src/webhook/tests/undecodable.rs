//! Stored objects that do not match their type.

use super::*;

/// An object that is stored although it does not match its type, with this finalizer.
fn stored(text: Value, finalizer: Option<&str>) -> Value {
    json!({ "metadata": { "name": "a", "finalizers": finalizer.as_slice() }, "data": { "text": text } })
}

/// Asks both endpoints, which must allow the request, and returns the warnings of the validating one.
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
async fn an_undecodable_object_can_be_deleted() {
    let warnings = assert_let_through("DELETE", Value::Null, stored(json!(1), None)).await;
    let expected = "the stored ConfigMap cannot be decoded, its deletion is not checked: .data.text: invalid type: \
                    integer `1`, expected a string";
    assert_eq!(warnings, [expected]);
}

#[tokio::test]
async fn the_finalizer_of_an_undecodable_object_can_be_removed() {
    let (new, old) = (stored(json!(1), None), stored(json!(1), Some("example.com/held")));
    let warnings = assert_let_through("UPDATE", new, old).await;
    assert!(
        warnings[0].contains("this update of its metadata is not checked"),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn an_undecodable_object_can_be_repaired() {
    let (new, old) = (stored(json!("fine"), None), stored(json!(1), None));
    let warnings = assert_let_through("UPDATE", new, old).await;
    assert!(
        warnings[0].contains("the new object is checked without it"),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn an_update_that_leaves_or_makes_an_object_undecodable_is_denied() {
    let webhooks = Webhook::<ConfigMap>::new().validator(validate).defaulter(default);
    let served = webhook(webhooks).await;
    for old in [stored(json!(2), None), stored(json!("fine"), None)] {
        for path in [MUTATE, VALIDATE] {
            let new = stored(json!(1), None);
            let request = json!({ "operation": "UPDATE", "object": new, "oldObject": old });
            let response = served.ask(path, request).await;
            assert_eq!(response["status"]["code"], 400, "{path} {response}");
        }
    }
}

#[tokio::test]
async fn a_repaired_object_is_validated() {
    let served = webhook(Webhook::<ConfigMap>::new().validator(validate)).await;
    let request = json!({ "operation": "UPDATE", "object": stored(json!("bad"), None), "oldObject": stored(json!(1), None) });
    assert_eq!(served.ask(VALIDATE, request).await["allowed"], false);
}
