//! The types of fields that the lifecycle manager reads in catalogs and ClusterServiceVersions.
//!
//! It unmarshals into Go structs, so a single value of the wrong type fails the entire catalog,
//! while `null` is the same as absent, unknown fields are ignored, and field names are
//! case-insensitive. See `declcfg.go` and `property.go` in operator-registry 1.61, and
//! `clusterserviceversion_types.go` in operator-framework/api.

use serde_json::Value;

pub(super) enum Shape {
    Any,
    Text,
    Bool,
    /// Base64-encoded bytes.
    Bytes,
    List(&'static Shape),
    /// A map with string values.
    Texts,
    Fields(Fields),
}

pub(super) type Fields = &'static [(&'static str, Shape)];

use Shape::{Any, Bool, Bytes, List, Text, Texts};

const TEXT: Shape = Text;
const PROPERTY: Shape = Shape::Fields(&[("type", Text), ("value", Any)]);
const ICON: Shape = Shape::Fields(&[("base64data", Bytes), ("mediatype", Text)]);
const LINK: Shape = Shape::Fields(&[("name", Text), ("url", Text)]);
const MAINTAINER: Shape = Shape::Fields(&[("name", Text), ("email", Text)]);
const INSTALL_MODE: Shape = Shape::Fields(&[("type", Text), ("supported", Bool)]);
const RELATED_IMAGE: Shape = Shape::Fields(&[("name", Text), ("image", Text)]);
const GVK_FIELDS: Fields = &[("group", Text), ("version", Text), ("kind", Text)];
const GVK: Shape = Shape::Fields(GVK_FIELDS);
const RESOURCE: Shape = Shape::Fields(&[("name", Text), ("kind", Text), ("version", Text)]);
const DESCRIPTOR: Shape = Shape::Fields(&[
    ("path", Text),
    ("displayName", Text),
    ("description", Text),
    ("x-descriptors", List(&TEXT)),
    ("value", Any),
]);
const CRD: Shape = Shape::Fields(&[
    ("name", Text),
    ("version", Text),
    ("kind", Text),
    ("displayName", Text),
    ("description", Text),
    ("resources", List(&RESOURCE)),
    ("specDescriptors", List(&DESCRIPTOR)),
    ("statusDescriptors", List(&DESCRIPTOR)),
    ("actionDescriptors", List(&DESCRIPTOR)),
]);
const CRDS: Shape = Shape::Fields(&[("owned", List(&CRD)), ("required", List(&CRD))]);

pub(super) const PACKAGE: Fields = &[
    ("name", Text),
    ("defaultChannel", Text),
    ("description", Text),
    ("icon", ICON),
    ("properties", List(&PROPERTY)),
];

const ENTRY: Shape = Shape::Fields(&[
    ("name", Text),
    ("replaces", Text),
    ("skips", List(&TEXT)),
    ("skipRange", Text),
]);
pub(super) const CHANNEL: Fields = &[
    ("package", Text),
    ("name", Text),
    ("entries", List(&ENTRY)),
    ("properties", List(&PROPERTY)),
];

pub(super) const BUNDLE: Fields = &[
    ("package", Text),
    ("name", Text),
    ("image", Text),
    ("properties", List(&PROPERTY)),
    ("relatedImages", List(&RELATED_IMAGE)),
];

const REFERENCE: Shape = Shape::Fields(&[("schema", Text), ("name", Text)]);
const DEPRECATION: Shape = Shape::Fields(&[("reference", REFERENCE), ("message", Text)]);
pub(super) const DEPRECATIONS: Fields = &[("package", Text), ("entries", List(&DEPRECATION))];

pub(super) const PROPERTY_VALUES: &[(&str, Fields)] = &[
    ("olm.package", &[("packageName", Text), ("version", Text)]),
    (
        "olm.package.required",
        &[("packageName", Text), ("versionRange", Text)],
    ),
    ("olm.gvk", GVK_FIELDS),
    ("olm.gvk.required", GVK_FIELDS),
    ("olm.bundle.object", &[("data", Bytes)]),
    (
        "olm.csv.metadata",
        &[
            ("annotations", Texts),
            ("crdDescriptions", CRDS),
            ("description", Text),
            ("displayName", Text),
            ("installModes", List(&INSTALL_MODE)),
            ("keywords", List(&TEXT)),
            ("labels", Texts),
            ("links", List(&LINK)),
            ("maintainers", List(&MAINTAINER)),
            ("maturity", Text),
            ("minKubeVersion", Text),
            ("nativeAPIs", List(&GVK)),
            ("provider", LINK),
        ],
    ),
];

pub(super) const CSV: Fields = &[
    (
        "metadata",
        Shape::Fields(&[("name", Text), ("annotations", Texts), ("labels", Texts)]),
    ),
    (
        "spec",
        Shape::Fields(&[
            ("customresourcedefinitions", CRDS),
            ("description", Text),
            ("displayName", Text),
            ("icon", List(&ICON)),
            ("installModes", List(&INSTALL_MODE)),
            ("keywords", List(&TEXT)),
            ("links", List(&LINK)),
            ("maintainers", List(&MAINTAINER)),
            ("maturity", Text),
            ("minKubeVersion", Text),
            ("provider", LINK),
            ("relatedImages", List(&RELATED_IMAGE)),
            ("replaces", Text),
            ("skips", List(&TEXT)),
            ("version", Text),
        ]),
    ),
];

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShapeFault {
    pub(super) path: String,
    expected: String,
    found: String,
}

impl ShapeFault {
    /// `of` names what contains the value, e.g. "channel `stable`".
    pub(super) fn message(&self, of: &str) -> String {
        let ShapeFault {
            path,
            expected,
            found,
        } = self;
        match path.is_empty() {
            true => format!("expected {expected} as {of}, found {found}"),
            false => format!("expected {expected} for `{path}` of {of}, found {found}"),
        }
    }
}

pub(super) fn check_fields(value: &Value, fields: Fields) -> Result<(), ShapeFault> {
    check_map(value, fields, "")
}

fn check_map(value: &Value, fields: Fields, path: &str) -> Result<(), ShapeFault> {
    let Some(map) = value.as_object() else {
        return Err(fault(path, "a mapping", value));
    };
    for (key, value) in map {
        let at = match path {
            "" => key.clone(),
            path => format!("{path}.{key}"),
        };
        match fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)) {
            Some((name, shape)) if name == key => check_value(value, shape, &at)?,
            // Go accepts this spelling too, but we wouldn't find the field.
            Some((name, _)) => {
                return Err(ShapeFault {
                    path: path.to_owned(),
                    expected: format!("the key `{name}`"),
                    found: format!("`{key}`"),
                });
            }
            None => {}
        }
    }
    Ok(())
}

fn check_value(value: &Value, shape: &Shape, path: &str) -> Result<(), ShapeFault> {
    if value.is_null() {
        return Ok(());
    }
    let is_right = match shape {
        Any => true,
        Text => value.is_string(),
        Bool => value.is_boolean(),
        Bytes => value.as_str().is_some_and(is_base64),
        List(item) => {
            let Some(items) = value.as_array() else {
                return Err(fault(path, "a list", value));
            };
            return (0..)
                .zip(items)
                .try_for_each(|(index, value)| check_value(value, item, &format!("{path}[{index}]")));
        }
        Texts => {
            let Some(map) = value.as_object() else {
                return Err(fault(path, "a mapping", value));
            };
            return map
                .iter()
                .try_for_each(|(key, value)| check_value(value, &Text, &format!("{path}.{key}")));
        }
        Shape::Fields(fields) => return check_map(value, fields, path),
    };
    match is_right {
        true => Ok(()),
        false => Err(fault(path, shape.noun(), value)),
    }
}

impl Shape {
    fn noun(&self) -> &'static str {
        match self {
            Any => "a value",
            Text => "a string",
            Bool => "`true` or `false`",
            Bytes => "a string in base64",
            List(_) => "a list",
            Texts | Shape::Fields(_) => "a mapping",
        }
    }
}

fn is_base64(text: &str) -> bool {
    let text = text.trim_end();
    let digits = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
    text.len().is_multiple_of(4) && text.len() - digits.len() <= 2 && digits.bytes().all(is_digit)
}

fn fault(path: &str, expected: &str, value: &Value) -> ShapeFault {
    let found = match value {
        Value::Null => "nothing".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
        Value::String(text) if text.len() > 60 => "a string".to_owned(),
        scalar => format!("`{scalar}`"),
    };
    ShapeFault {
        path: path.to_owned(),
        expected: expected.to_owned(),
        found,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reports_path_of_wrong_type() {
        let check = |value: Value, fields: Fields, expected: &str| {
            let found = check_fields(&value, fields)
                .err()
                .map_or_else(String::new, |fault| fault.message("it"));
            assert_eq!(found, expected, "{value}");
        };
        check(
            json!({ "entries": [{ "name": "a", "other": 5, "skips": null }] }),
            CHANNEL,
            "",
        );
        check(json!({ "entries": null, "name": null }), CHANNEL, "");
        for (value, expected) in [
            (json!(null), "expected a mapping as it, found nothing"),
            (json!("x"), "expected a mapping as it, found `\"x\"`"),
            (
                json!({ "Entries": [] }),
                "expected the key `entries` as it, found `Entries`",
            ),
            (
                json!({ "entries": {} }),
                "expected a list for `entries` of it, found a mapping",
            ),
            (
                json!({ "entries": [{}, { "replaces": 5 }] }),
                "expected a string for `entries[1].replaces` of it, found `5`",
            ),
            (
                json!({ "entries": [{ "skips": ["a", true] }] }),
                "expected a string for `entries[0].skips[1]` of it, found `true`",
            ),
        ] {
            check(value, CHANNEL, expected);
        }
        check(
            json!({ "icon": { "base64data": "a" } }),
            PACKAGE,
            "expected a string in base64 for `icon.base64data` of it, found `\"a\"`",
        );
        check(json!({ "icon": { "base64data": "YQ==" } }), PACKAGE, "");
        check(
            json!({ "metadata": { "annotations": { "a": 1 } } }),
            CSV,
            "expected a string for `metadata.annotations.a` of it, found `1`",
        );
    }
}
