//! Compares what an operator registers with its manager with what its project contains.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde_json::Value;

use crate::manifests::read_documents;

const PROJECT: &str = "PROJECT";
const CONFIGURATIONS: &str = "config/webhook/manifests.yaml";

/// What an operator has registered with its manager.
///
/// Kinds are written with their group, for example `Cup.shop.example.com`.
#[derive(Clone, Debug, Default)]
pub struct Registered {
    /// The kind of each controller. A kind with two controllers is listed twice.
    pub controllers: Vec<String>,
    /// The paths of the admission webhooks.
    pub paths: Vec<String>,
    /// The kinds that are converted.
    pub converted: Vec<String>,
}

impl Registered {
    /// Returns a description of each controller and webhook of a project that is not registered. The
    /// project is the directory with the file PROJECT.
    ///
    /// Controllers and conversions are listed in PROJECT, and admission webhooks in
    /// `config/webhook/manifests.yaml`, which `rbuilder manifests` generates from the markers.
    ///
    /// # Errors
    ///
    /// Returns an error if one of the files cannot be read.
    pub fn find_missing(&self, project: &Path) -> io::Result<Vec<String>> {
        let mut missing = Vec::new();
        let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
        for (_, project) in read_documents(&project.join(PROJECT))? {
            for resource in project["resources"].as_array().into_iter().flatten() {
                let kind = group_kind(resource);
                if resource["webhooks"]["conversion"] == true && !self.converted.contains(&kind) {
                    missing.push(format!(
                        "{PROJECT} has a conversion of `{kind}`, but the manager converts no such kind: add its `webhook()` to \
                         `webhook::register`, with `.spoke::<…>()`"
                    ));
                }
                *wanted.entry(kind).or_default() += count_controllers(resource);
            }
        }
        for (kind, wanted) in wanted {
            let found = self.controllers.iter().filter(|known| **known == kind).count();
            if found < wanted {
                missing.push(format!(
                    "{PROJECT} has {wanted} controller(s) of `{kind}`, but the manager has {found}: add its `controller()` to \
                     `controller::register`"
                ));
            }
        }
        let configurations = project.join(CONFIGURATIONS);
        if configurations.exists() {
            for (_, configuration) in read_documents(&configurations)? {
                missing.extend(self.find_unserved(&configuration));
            }
        }
        Ok(missing)
    }

    fn find_unserved(&self, configuration: &Value) -> Vec<String> {
        let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
        let paths = webhooks.filter_map(|webhook| webhook["clientConfig"]["service"]["path"].as_str());
        let unserved = paths.filter(|path| !self.paths.iter().any(|known| known == path));
        unserved
            .map(|path| {
                format!(
                    "{CONFIGURATIONS} calls `{path}`, but no webhook of the manager serves it: add the function to `webhook()` in \
                     its file, and that to `webhook::register`"
                )
            })
            .collect()
    }
}

/// The controllers of a kind: a flag, or a list of names.
fn count_controllers(resource: &Value) -> usize {
    match resource["controllers"].as_array() {
        Some(names) if !names.is_empty() => names.len(),
        _ => usize::from(resource["controller"] == true),
    }
}

fn group_kind(resource: &Value) -> String {
    let part = |name: &str| resource[name].as_str().unwrap_or_default();
    let is_core_group = resource["core"] == true && part("group") == "core";
    let group = if is_core_group { "" } else { part("group") };
    let domain = if is_core_group { "" } else { part("domain") };
    let parts = [part("kind"), group, domain];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const RESOURCES: &str = "\
resources:
- controller: true
  domain: example.com
  group: shop
  kind: Cup
  version: v1
  webhooks:
    conversion: true
    defaulting: true
- domain: example.com
  group: shop
  kind: Cup
  version: v2
- controllers:
  - name: pod
  - name: pod-backup
  core: true
  group: core
  kind: Pod
  version: v1
- controller: true
  core: true
  domain: authorization.k8s.io
  group: rbac
  kind: Role
  version: v1
";

    const WEBHOOKS: &str = "\
kind: MutatingWebhookConfiguration
webhooks:
- clientConfig:
    service:
      path: /mutate-shop-example-com-v1-cup
---
kind: ValidatingWebhookConfiguration
webhooks:
- clientConfig:
    url: https://example.com
";

    fn find_missing(registered: &Registered, webhooks: Option<&str>) -> Vec<String> {
        let project = tempfile::tempdir().unwrap();
        fs::write(project.path().join(PROJECT), RESOURCES).unwrap();
        if let Some(webhooks) = webhooks {
            fs::create_dir_all(project.path().join("config/webhook")).unwrap();
            fs::write(project.path().join(CONFIGURATIONS), webhooks).unwrap();
        }
        registered.find_missing(project.path()).unwrap()
    }

    fn all() -> Registered {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Registered {
            controllers: owned(&[
                "Pod",
                "Cup.shop.example.com",
                "Pod",
                "Role.rbac.authorization.k8s.io",
                "Other.example.com",
            ]),
            paths: owned(&["/mutate-shop-example-com-v1-cup"]),
            converted: owned(&["Cup.shop.example.com"]),
        }
    }

    #[test]
    fn complete_registration_lacks_nothing() {
        for webhooks in [None, Some(WEBHOOKS)] {
            assert_eq!(find_missing(&all(), webhooks), Vec::<String>::new());
        }
    }

    #[test]
    fn what_is_not_registered_is_missing() {
        let check = |registered: Registered, expected: &str| {
            let missing = find_missing(&registered, Some(WEBHOOKS));
            assert_eq!(missing.len(), 1, "{missing:#?}");
            assert!(missing[0].starts_with(expected), "{}", missing[0]);
        };
        for (index, expected) in [
            (0, "PROJECT has 2 controller(s) of `Pod`, but the manager has 1:"),
            (
                1,
                "PROJECT has 1 controller(s) of `Cup.shop.example.com`, but the manager has 0:",
            ),
            (
                3,
                "PROJECT has 1 controller(s) of `Role.rbac.authorization.k8s.io`, but",
            ),
        ] {
            let mut registered = all();
            registered.controllers.remove(index);
            check(registered, expected);
        }
        let registered = Registered {
            paths: Vec::new(),
            ..all()
        };
        check(
            registered,
            "config/webhook/manifests.yaml calls `/mutate-shop-example-com-v1-cup`, but",
        );
        let registered = Registered {
            converted: Vec::new(),
            ..all()
        };
        check(
            registered,
            "PROJECT has a conversion of `Cup.shop.example.com`, but",
        );
    }
}
