//! Preserves the notation of values that a conversion doesn't affect.
//!
//! A value may have several notations, but is always serialized in the same way. For example,
//! suppose that `{"every": "24h", "on": "a"}` is decoded to a type with a duration. The duration is
//! copied to the other version, which is serialized as `{"every": "86400s", "on": "b"}`. From then
//! on, `kubectl diff` always shows a difference, and clients that apply the object again conflict
//! with themselves.
//!
//! To detect values that were merely copied, we compare the converted object with the original as
//! serialized by its own type, i.e. with `{"every": "86400s", "on": "a"}`. The value of `every` is
//! the same, so it can be restored to `24h`.

use serde_json::Value;

/// Restores the scalars of `written` where the converted object equals `serialized`, i.e. the
/// original as serialized by its own type. Doesn't help with values that moved to another field or
/// to another index of a list.
///
/// `serialize` decodes an object to the type of the converted object, and serializes it again.
pub(super) fn keep_as_written(
    converted: Value,
    written: &Value,
    serialized: &Value,
    serialize: impl Fn(&Value) -> Result<Value, String>,
) -> Value {
    if written == serialized {
        return converted;
    }
    let mut kept = converted.clone();
    let mut differs = false;
    for_each_scalar(
        &mut kept,
        written,
        serialized,
        &mut |kept, written, serialized| {
            if kept == serialized && written != serialized {
                kept.clone_from(written);
                differs = true;
            }
        },
    );
    if !differs {
        return converted;
    }
    // The other type may reject the original notation or read it as a different value. Keep the
    // converted object then.
    let Ok(again) = serialize(&kept) else {
        return converted;
    };
    for_each_scalar(&mut kept, &converted, &again, &mut |kept, converted, again| {
        if converted != again {
            kept.clone_from(converted);
        }
    });
    kept
}

/// Calls `call` on every leaf (string or number) that is present in all three objects.
fn for_each_scalar(
    value: &mut Value,
    one: &Value,
    other: &Value,
    call: &mut impl FnMut(&mut Value, &Value, &Value),
) {
    let is_scalar = |value: &Value| matches!(value, Value::String(_) | Value::Number(_));
    match (value, one, other) {
        (Value::Object(fields), Value::Object(one), Value::Object(other)) => {
            for (name, value) in fields {
                if let (Some(one), Some(other)) = (one.get(name), other.get(name)) {
                    for_each_scalar(value, one, other, call);
                }
            }
        }
        (Value::Array(items), Value::Array(one), Value::Array(other))
            if items.len() == one.len() && items.len() == other.len() =>
        {
            for ((value, one), other) in items.iter_mut().zip(one).zip(other) {
                for_each_scalar(value, one, other, call);
            }
        }
        (value, one, other) if [&*value, one, other].into_iter().all(is_scalar) => call(value, one, other),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// All fields except `text` normalize `24h` and `1.0`.
    #[track_caller]
    fn check(written: Value, serialized: Value, converted: Value, expected: Value) {
        let serialize = |object: &Value| {
            let text = object["text"].clone();
            let canonical = object.to_string().replace("24h", "86400s").replace("1.0", "1");
            let mut object: Value = serde_json::from_str(&canonical).unwrap();
            if !text.is_null() {
                object["text"] = text;
            }
            Ok(object)
        };
        assert_eq!(
            keep_as_written(converted, &written, &serialized, serialize),
            expected
        );
    }

    #[test]
    fn copied_values_keep_the_written_notation() {
        check(
            json!({"every": "24h", "on": "a", "ratio": 1.0}),
            json!({"every": "86400s", "on": "a", "ratio": 1}),
            json!({"every": "86400s", "on": "b", "ratio": 1}),
            json!({"every": "24h", "on": "b", "ratio": 1.0}),
        );
        check(
            json!({"list": [{"every": "24h"}, {"every": "1h"}]}),
            json!({"list": [{"every": "86400s"}, {"every": "3600s"}]}),
            json!({"list": [{"every": "86400s"}, {"every": "7200s"}]}),
            json!({"list": [{"every": "24h"}, {"every": "7200s"}]}),
        );
    }

    #[test]
    fn changed_moved_or_removed_values_are_not_restored() {
        for converted in [
            json!({"every": "3600s"}),
            json!({"interval": "86400s"}),
            json!({"every": {"seconds": 86400}}),
            json!({"every": ["86400s"]}),
            json!({}),
        ] {
            check(
                json!({"every": "24h"}),
                json!({"every": "86400s"}),
                converted.clone(),
                converted,
            );
        }
        let shorter = json!({"list": ["86400s"]});
        check(
            json!({"list": ["1h", "24h"]}),
            json!({"list": ["3600s", "86400s"]}),
            shorter.clone(),
            shorter,
        );
        // Added by the type.
        check(
            json!({}),
            json!({"on": "a"}),
            json!({"on": "a"}),
            json!({"on": "a"}),
        );
    }

    #[test]
    fn values_that_the_other_type_reads_differently_are_not_restored() {
        check(
            json!({"every": "24h", "text": "24h"}),
            json!({"every": "86400s", "text": "86400s"}),
            json!({"every": "86400s", "text": "86400s"}),
            json!({"every": "24h", "text": "86400s"}),
        );
        let refuse = |_: &Value| Err("invalid".to_owned());
        let (written, serialized) = (json!({"every": "24h"}), json!({"every": "86400s"}));
        let kept = keep_as_written(serialized.clone(), &written, &serialized, refuse);
        assert_eq!(kept, serialized);
    }
}
