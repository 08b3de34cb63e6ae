//! Reading fields of an object.

use rbuilder_kubernetes::time::parse_time;
use serde_json::Value;

use crate::age::print_duration;

const UNKNOWN: &str = "<unknown>";

/// An object, and the time at which it is printed.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) object: &'a Value,
    pub(crate) now: i128,
}

impl<'a> View<'a> {
    /// Returns the value at a JSON pointer. Null if there is none.
    pub(crate) fn at(&self, pointer: &str) -> &'a Value {
        at(self.object, pointer)
    }

    /// Returns a string, empty if there is none.
    pub(crate) fn text(&self, pointer: &str) -> &'a str {
        text(self.object, pointer)
    }

    /// Returns an integer, 0 if there is none.
    pub(crate) fn number(&self, pointer: &str) -> i64 {
        number(self.object, pointer)
    }

    /// Returns the items of a list.
    pub(crate) fn items(&self, pointer: &str) -> &'a [Value] {
        items(self.object, pointer)
    }

    /// Returns an annotation or a label.
    pub(crate) fn entry(&self, map: &str, key: &str) -> Option<&'a str> {
        self.at(map).get(key)?.as_str()
    }

    /// Returns how long ago the time at a JSON pointer was.
    pub(crate) fn age(&self, pointer: &str) -> String {
        self.since(self.at(pointer))
    }

    /// Returns how long ago a time was.
    pub(crate) fn since(&self, time: &Value) -> String {
        match time.as_str().and_then(parse_time) {
            Some(time) => print_duration(self.now - time),
            None => UNKNOWN.to_owned(),
        }
    }

    /// Returns whether the object has a condition that is true.
    pub(crate) fn is_true(&self, condition: &str) -> bool {
        let found = self.condition(condition);
        found.is_some_and(|found| found["status"] == "True")
    }

    /// Returns the first condition of a type.
    pub(crate) fn condition(&self, condition: &str) -> Option<&'a Value> {
        let mut all = self.items("/status/conditions").iter();
        all.find(|found| found["type"] == condition)
    }
}

pub(crate) fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    at(value, pointer).as_str().unwrap_or_default()
}

pub(crate) fn number(value: &Value, pointer: &str) -> i64 {
    at(value, pointer).as_i64().unwrap_or(0)
}

pub(crate) fn items<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    at(value, pointer).as_array().map_or(&[], Vec::as_slice)
}

/// Returns a string, number or boolean as text.
pub(crate) fn scalar(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
