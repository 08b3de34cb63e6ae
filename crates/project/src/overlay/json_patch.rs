//! JSON patches (RFC 6902) in kustomizations.

use ::json_patch::{PatchErrorKind, PatchOperation};
use serde_json::Value;

/// Applies all operations of a patch, or none if one fails. Only supports `add`, `remove`,
/// `replace` and `test`.
///
/// # Errors
/// Fails with a phrase about the operation that can't be applied.
pub(super) fn apply_json_patch(object: &mut Value, operations: &[Value]) -> Result<(), String> {
    let mut patched = object.clone();
    for operation in operations {
        apply_operation(&mut patched, operation)?;
    }
    *object = patched;
    Ok(())
}

fn apply_operation(object: &mut Value, operation: &Value) -> Result<(), String> {
    let name = operation["op"].as_str().unwrap_or_default();
    let path = operation["path"].as_str().unwrap_or_default();
    let missing = || format!("`{path}` is not there");
    if !["add", "remove", "replace", "test"].contains(&name) {
        return Err(format!("the operation `{name}` is not followed"));
    }
    if name == "add" && path.is_empty() {
        // Adding at the root would replace the whole object.
        return Err(missing());
    }
    let operation: PatchOperation = serde_json::from_value(operation.clone()).map_err(|_| missing())?;
    ::json_patch::patch(object, &[operation]).map_err(|error| match error.kind {
        PatchErrorKind::TestFailed => format!("`{path}` has another value than the one that it tests"),
        _ => missing(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_are_applied_all_or_none() {
        let check = |operations: Value, expected: Result<Value, &str>| {
            let before = json!({ "a": [1, 2], "b/c": { "d": 1 } });
            let mut object = before.clone();
            let result = apply_json_patch(&mut object, operations.as_array().expect("a list"));
            match expected {
                Ok(expected) => assert_eq!((result, object), (Ok(()), expected), "{operations}"),
                Err(expected) => {
                    assert_eq!(result, Err(expected.to_owned()), "{operations}");
                    assert_eq!(object, before, "{operations}");
                }
            }
        };
        let add = |path: &str, value: Value| json!({ "op": "add", "path": path, "value": value });
        check(
            json!([add("/a/0", json!(0)), add("/a/-", json!(3)), add("/e", json!({}))]),
            Ok(json!({ "a": [0, 1, 2, 3], "b/c": { "d": 1 }, "e": {} })),
        );
        check(
            json!([
                { "op": "remove", "path": "/a/1" },
                { "op": "replace", "path": "/b~1c/d", "value": 2 },
                { "op": "test", "path": "/b~1c/d", "value": 2 },
            ]),
            Ok(json!({ "a": [1], "b/c": { "d": 2 } })),
        );
        check(
            json!([{ "op": "remove", "path": "/a/0" }, { "op": "remove", "path": "/a/7" }]),
            Err("`/a/7` is not there"),
        );
        check(json!([add("/a/9", json!(0))]), Err("`/a/9` is not there"));
        check(json!([add("", json!(0))]), Err("`` is not there"));
        check(json!([add("/x/y", json!(0))]), Err("`/x/y` is not there"));
        check(
            json!([{ "op": "test", "path": "/a/0", "value": 5 }]),
            Err("`/a/0` has another value than the one that it tests"),
        );
        check(
            json!([{ "op": "move" }, 5]),
            Err("the operation `move` is not followed"),
        );
    }
}
