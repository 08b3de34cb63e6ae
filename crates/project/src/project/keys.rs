//! Finds misspelled keys in PROJECT. Other unknown keys are kept silently, since kubebuilder and
//! its plugins add their own.

use rbuilder_diagnostic::suggest::find_nearest;
use serde_json::{Map, Value};

struct Keys {
    names: &'static [&'static str],
    within: &'static [(&'static str, &'static Keys)],
}

const fn flat(names: &'static [&'static str]) -> Keys {
    Keys { names, within: &[] }
}

const PROJECT: Keys = Keys {
    names: &[
        "cliVersion",
        "domain",
        "layout",
        "multigroup",
        "namespaced",
        "plugins",
        "projectName",
        "rbuilder",
        "repo",
        "resources",
        "version",
    ],
    within: &[("rbuilder", &OWN), ("resources", &RESOURCE)],
};

const OWN: Keys = Keys {
    names: &[
        "directory",
        "files",
        "kubernetes",
        "library",
        "license",
        "member",
        "names",
        "owner",
        "package",
        "workspace",
    ],
    within: &[
        ("library", &flat(&["git", "path", "rev", "version"])),
        (
            "names",
            &flat(&[
                "container",
                "deployment",
                "label",
                "lease",
                "metricsService",
                "namePrefix",
                "namespace",
                "selector",
                "serviceAccount",
                "webhookService",
            ]),
        ),
        (
            "package",
            &flat(&["binary", "leftOut", "library", "main", "manager", "name"]),
        ),
    ],
};

const RESOURCE: Keys = Keys {
    names: &[
        "api",
        "controller",
        "controllers",
        "core",
        "domain",
        "external",
        "group",
        "image",
        "kind",
        "module",
        "path",
        "plural",
        "scope",
        "version",
        "webhooks",
    ],
    within: &[
        ("api", &flat(&["crdVersion", "imported", "namespaced"])),
        ("controllers", &flat(&["name"])),
        ("image", &flat(&["command", "name", "port", "runAsUser"])),
        (
            "webhooks",
            &flat(&[
                "conversion",
                "defaulting",
                "defaultingPath",
                "spoke",
                "validation",
                "validationPath",
                "webhookVersion",
            ]),
        ),
    ],
};

/// An unknown key that resembles a missing key.
#[derive(Debug, PartialEq, Eq)]
pub struct MisspelledKey {
    /// Path of the key, e.g. `resources[0].controler`.
    pub path: String,
    /// The key itself, e.g. `controler`.
    pub key: String,
    /// The suggested key.
    pub meant: &'static str,
}

pub(super) fn find_misspelled_keys(all: &Map<String, Value>) -> Vec<MisspelledKey> {
    let mut found = Vec::new();
    check_object(all, &PROJECT, "", &mut found);
    found
}

fn check_object(object: &Map<String, Value>, keys: &Keys, path: &str, found: &mut Vec<MisspelledKey>) {
    for (key, value) in object {
        let path = format!("{path}{key}");
        if let Some((_, inner)) = keys.within.iter().find(|(name, _)| name == key) {
            check_value(value, inner, &path, found);
        } else if !keys.names.contains(&key.as_str()) {
            let absent = keys.names.iter().filter(|name| !object.contains_key(**name));
            let meant = find_nearest(key, absent.copied());
            found.extend(meant.map(|meant| MisspelledKey {
                path,
                key: key.clone(),
                meant,
            }));
        }
    }
}

fn check_value(value: &Value, keys: &Keys, path: &str, found: &mut Vec<MisspelledKey>) {
    match value {
        Value::Object(object) => check_object(object, keys, &format!("{path}."), found),
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                check_value(value, keys, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let all: Map<String, Value> = serde_saphyr::from_str(text).expect(text);
        let found = find_misspelled_keys(&all);
        let found: Vec<(&str, &str)> = found.iter().map(|key| (&*key.path, key.meant)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn finds_misspelled_keys() {
        check("domian: example.com\n", &[("domian", "domain")]);
        check(
            "resources:\n- apis: {}\n- controler: true\n  webhooks:\n    defaultng: true\n",
            &[
                ("resources[0].apis", "api"),
                ("resources[1].controler", "controller"),
                ("resources[1].webhooks.defaultng", "defaulting"),
            ],
        );
        check(
            "rbuilder:\n  package:\n    leftout: []\n",
            &[("rbuilder.package.leftout", "leftOut")],
        );
    }

    #[test]
    fn ignores_keys_of_plugins() {
        check(
            "plugins:\n  manifests.sdk.operatorframework.io/v2: {}\nsomething: 1\n",
            &[],
        );
        // Both keys are present, so neither is a misspelling of the other.
        check(
            "resources:\n- controller: true\n  controllerz: 1\n",
            &[("resources[0].controllerz", "controllers")],
        );
        check("domain: a\ndomains: b\n", &[]);
    }
}
