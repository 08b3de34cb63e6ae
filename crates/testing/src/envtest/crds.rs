//! Installs CRDs from files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use rbuilder_kubernetes::crd::{Crd, is_crd};
use rbuilder_kubernetes::gvk;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::installed::Installed;
use super::{Error, FIELD_MANAGER, POLL_INTERVAL};
use crate::manifests::read_documents;

const SERVED_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn install_crds(client: &Client, path: &Path, installed: &Installed) -> Result<(), Error> {
    install(client, read(path)?, installed).await
}

/// Like [`install_crds`], but for CRDs in memory.
pub(super) async fn install_values(
    client: &Client,
    crds: impl IntoIterator<Item = Value>,
    installed: &Installed,
) -> Result<(), Error> {
    let definitions = crds.into_iter().map(|value| Definition {
        name: Crd::of(&value).name().to_owned(),
        value,
        file: None,
    });
    install(client, definitions.collect(), installed).await
}

async fn install(client: &Client, definitions: Vec<Definition>, installed: &Installed) -> Result<(), Error> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in &definitions {
        installed
            .note_if_absent::<CustomResourceDefinition>(client, &definition.name)
            .await;
        apply(&api, definition).await?;
    }
    let deadline = Instant::now() + SERVED_TIMEOUT;
    for definition in &definitions {
        wait_established(&api, definition, deadline).await?;
        wait_served(client, definition, deadline).await?;
    }
    Ok(())
}

/// A CRD as written. Parsing it as a `CustomResourceDefinition` would drop unknown fields before
/// the API server can validate them.
#[derive(Debug)]
struct Definition {
    name: String,
    value: Value,
    file: Option<PathBuf>,
}

fn read(path: &Path) -> Result<Vec<Definition>, Error> {
    let documents = read_documents(path).map_err(Error::read)?.into_iter();
    let crds = documents.filter(|(_, document)| is_crd(document));
    let definitions: Result<Vec<_>, _> = crds.map(|(file, value)| definition(&file, value)).collect();
    match definitions {
        Ok(none) if none.is_empty() => Err(Error::file(
            "no CRD in",
            path,
            "run `rbuilder manifests` to generate the project's",
        )),
        definitions => definitions,
    }
}

fn definition(file: &Path, value: Value) -> Result<Definition, Error> {
    match value["metadata"]["name"].as_str() {
        Some(name) => Ok(Definition {
            name: name.to_owned(),
            file: Some(file.to_owned()),
            value,
        }),
        None => Err(Error::file(
            "cannot use",
            file,
            "a CRD in it has no metadata.name",
        )),
    }
}

/// Serializes CRD updates, or a test that installs a CRD could overwrite the conversion set by a
/// concurrent test.
static WRITING: Mutex<()> = Mutex::const_new(());

async fn apply(api: &Api<CustomResourceDefinition>, definition: &Definition) -> Result<(), Error> {
    let action = || {
        let file = definition.file.as_ref();
        let from = file.map_or(String::new(), |file| format!(" from {}", file.display()));
        format!("cannot install {}{from}", definition.name)
    };
    let written = async {
        let _writing = WRITING.lock().await;
        let mut value = definition.value.clone();
        if let Some(present) = api.get_opt(&definition.name).await? {
            keep_redirection(&mut value, &present);
        }
        let params = PatchParams::apply(FIELD_MANAGER).force();
        api.patch(&definition.name, &params, &Patch::Apply(value)).await
    };
    written
        .await
        .map(drop)
        .map_err(|err| Error::request(action(), &err))
}

fn keep_redirection(value: &mut Value, present: &CustomResourceDefinition) {
    let conversion = present.spec.conversion.as_ref();
    let client = conversion.and_then(|conversion| conversion.webhook.as_ref()?.client_config.as_ref());
    // Preserve the URL set by `redirect_conversion`; the Service in the manifest doesn't exist
    // here.
    if client.is_some_and(|client| client.url.is_some())
        && value["spec"]["conversion"]["webhook"]["clientConfig"]["url"].is_null()
    {
        value["spec"]["conversion"] = json!(conversion);
    }
}

/// Points an installed CRD's conversion webhook at the given URL.
pub(super) async fn redirect_conversion(
    client: Client,
    name: &str,
    url: &str,
    authority: &ByteString,
) -> Result<(), Error> {
    let _writing = WRITING.lock().await;
    let patch = json!({ "spec": { "conversion": {
        "strategy": "Webhook",
        "webhook": {
            // `service` and `url` are mutually exclusive.
            "clientConfig": { "service": null, "url": url, "caBundle": authority },
            "conversionReviewVersions": ["v1"],
        },
    }}});
    let api: Api<CustomResourceDefinition> = Api::all(client);
    let patched = api
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await;
    patched
        .map(drop)
        .map_err(|err| Error::request(format!("cannot set the conversion of {name}"), &err))
}

async fn wait_established(
    api: &Api<CustomResourceDefinition>,
    definition: &Definition,
    deadline: Instant,
) -> Result<(), Error> {
    loop {
        let found = api.get(&definition.name).await;
        let found =
            found.map_err(|err| Error::request(format!("cannot look at {}", definition.name), &err))?;
        let conditions = found
            .status
            .and_then(|status| status.conditions)
            .unwrap_or_default();
        if conditions
            .iter()
            .any(|condition| condition.type_ == "Established" && condition.status == "True")
        {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let reasons: Vec<String> = conditions
                .iter()
                .filter(|condition| condition.status != "True")
                .map(|condition| {
                    format!(
                        "{}: {}",
                        condition.type_,
                        condition.message.as_deref().unwrap_or("no message")
                    )
                })
                .collect();
            return Err(not_in_time(definition, &reasons.join("; ")));
        }
        sleep(POLL_INTERVAL).await;
    }
}

// `Established` is set before all handlers are ready, so requests may still fail with 404. Also
// wait for discovery, which lists a version only once it's served.
async fn wait_served(client: &Client, definition: &Definition, deadline: Instant) -> Result<(), Error> {
    let crd = Crd::of(&definition.value);
    let plural = crd.plural();
    for version in crd.served() {
        let api_version = gvk::api_version(crd.group(), version.name);
        while !is_served(client, &api_version, plural).await {
            if Instant::now() >= deadline {
                return Err(not_in_time(
                    definition,
                    &format!("{api_version} does not list {plural}"),
                ));
            }
            sleep(POLL_INTERVAL).await;
        }
    }
    Ok(())
}

async fn is_served(client: &Client, api_version: &str, plural: &str) -> bool {
    let resources = client.list_api_group_resources(api_version).await;
    resources.is_ok_and(|list| list.resources.iter().any(|resource| resource.name == plural))
}

fn not_in_time(definition: &Definition, reason: &str) -> Error {
    Error::new(format!(
        "the API server does not serve {} within {SERVED_TIMEOUT:?}: {reason}",
        definition.name
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const CRD: &str = "kind: CustomResourceDefinition\nmetadata: {name: foos.example.com}\n";

    // `expected` holds the CRD names, or a part of the error message.
    fn check(files: &[(&str, &str)], expected: Result<&[&str], &str>) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        match (read(folder.path()), expected) {
            (Ok(found), Ok(expected)) => {
                let names: Vec<&str> = found.iter().map(|definition| definition.name.as_str()).collect();
                assert_eq!(names, expected);
            }
            (Err(found), Err(expected)) => assert!(found.to_string().contains(expected), "{found}"),
            (found, expected) => panic!("found {found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn finds_crds_in_all_manifests_of_folder() {
        let two = format!(
            "---\n{CRD}---\nkind: Service\nmetadata: {{name: s}}\n---\n{}",
            CRD.replace("foos", "bars")
        );
        let json = r#"{"kind": "CustomResourceDefinition", "metadata": {"name": "bazs.example.com"}}"#;
        check(
            &[
                ("b.yaml", two.as_str()),
                ("a.json", json),
                ("readme.md", "kind: ["),
            ],
            Ok(&["bazs.example.com", "foos.example.com", "bars.example.com"]),
        );
        check(
            &[("kustomization.yaml", "resources: [a.yaml]\n")],
            Err("run `rbuilder manifests`"),
        );
        check(&[("a.yml", "kind: [")], Err("a.yml"));
        check(
            &[("a.yaml", "kind: CustomResourceDefinition\n")],
            Err("has no metadata.name"),
        );
    }

    #[test]
    fn keeps_conversion_set_by_test() {
        let crd = |client: Value| {
            json!({ "spec": {
                "group": "example.com", "scope": "Namespaced", "versions": [],
                "names": { "kind": "Foo", "plural": "foos" },
                "conversion": { "strategy": "Webhook", "webhook": {
                    "clientConfig": client, "conversionReviewVersions": ["v1"],
                }},
            }})
        };
        let service = || crd(json!({ "service": { "name": "s", "namespace": "n" } }));
        let check = |mut written: Value, present: Value, expected: Value| {
            let mut present = present;
            present["metadata"] = json!({});
            keep_redirection(&mut written, &serde_json::from_value(present).unwrap());
            assert_eq!(written, expected);
        };
        let here = crd(json!({ "url": "https://127.0.0.1:1/convert" }));
        let there = crd(json!({ "url": "https://example.com/convert" }));
        check(service(), service(), service());
        check(service(), here.clone(), here.clone());
        check(there.clone(), here, there);
    }

    #[test]
    fn error_names_missing_path() {
        let error = read(Path::new("no/such/folder")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read no/such/folder: "), "{error}");
    }
}
