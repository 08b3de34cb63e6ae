//! Webhook certificates issued by the manager. A real API server calls the webhooks through a
//! Service. The tests are ignored unless `KUBEBUILDER_ASSETS` is set.

mod replica;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use rbuilder::envtest::{Environment, eventually};
use rbuilder::webhook::ManagedCertificate;
use serde_json::json;
use tokio::time::Instant;

use replica::{CRD, Note, Place, Replica, SECRET, SERVICE};

/// Upper bound for anything to happen, even on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// Only one service can convert a kind, so tests with conversions can't share a server.
async fn own_environment() -> Environment {
    Environment::builder().start().await.unwrap()
}

fn certificate(place: &Place) -> ManagedCertificate {
    ManagedCertificate::for_service(SERVICE).namespace(&place.namespace)
}

/// Returns the CA bundles of all objects that refer to the service.
async fn bundles(place: &Place) -> BTreeSet<Option<ByteString>> {
    let client = || place.env.client();
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client());
    let crds: Api<CustomResourceDefinition> = Api::all(client());
    let mutating = mutating.get(&place.configuration()).await.unwrap();
    let validating = validating.get(&place.configuration()).await.unwrap();
    let crd = crds.get(CRD).await.unwrap();
    let conversion = crd.spec.conversion.and_then(|conversion| conversion.webhook);
    let mut found = BTreeSet::from([conversion.and_then(|webhook| webhook.client_config?.ca_bundle)]);
    let mutating = mutating.webhooks.unwrap_or_default().into_iter();
    found.extend(mutating.map(|webhook| webhook.client_config.ca_bundle));
    let validating = validating.webhooks.unwrap_or_default().into_iter();
    found.extend(validating.map(|webhook| webhook.client_config.ca_bundle));
    found
}

/// Waits until the Secret and all objects that refer to the service have the same CA bundle.
async fn until_injected(place: &Place) {
    eventually(SOON, || async {
        let secret = place.secret().await.ok_or("no Secret")?;
        let expected = BTreeSet::from([secret.data.unwrap_or_default().remove("ca.crt")]);
        let found = bundles(place).await;
        if found == expected {
            Ok(())
        } else {
            Err("other authorities")
        }
    })
    .await;
}

/// The operator only has the permissions documented for `ManagedCertificate`.
#[rbuilder::envtest::test]
async fn api_server_trusts_the_issued_certificate() {
    let place = Place::new(own_environment().await, "made", 1).await;
    place.install().await;
    let secrets = json!([
        { "apiGroups": [""], "resources": ["secrets"], "verbs": ["create"] },
        {
            "apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET],
            "verbs": ["get", "list", "watch", "update"],
        },
    ]);
    let configurations = json!([
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
            "resourceNames": [place.configuration()], "verbs": ["get", "list", "watch", "update"],
        },
        {
            "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
            "resourceNames": [CRD], "verbs": ["get", "list", "watch", "update"],
        },
    ]);
    let user = place.user(secrets, configurations).await;
    let named = certificate(&place)
        .mutating_configuration(place.configuration())
        .validating_configuration(place.configuration());
    let replica = Replica::start(&place, user, named, 0).await;
    replica.until_ready(SOON).await;
    until_injected(&place).await;
    let ready = replica.readyz().await;
    assert!(ready.contains("[+]webhook ok"), "{ready}");
    assert!(
        !ready.contains("caches"),
        "who converts does not wait for its caches: {ready}"
    );

    place.store("first").await;
    let made = place.notes().get("first").await.unwrap();
    assert_eq!(made.spec.size, Some(1), "defaulted");
    let second = eventually(SOON, || async { place.notes_v2().get("first").await }).await;
    assert_eq!(second.spec.words, ["a", "b"], "converted");
    let bad = Note::named("second", "bad");
    let refused = place.notes().create(&PostParams::default(), &bad).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("spec.text: cannot be `bad`"), "{refused}");
    let secret = place.secret().await.unwrap();
    assert_eq!(secret.type_.as_deref(), Some("kubernetes.io/tls"));

    // Without a watch, the next check would only happen after a minute.
    place.install().await;
    until_injected(&place).await;
    replica.stop().await;
}

/// E.g. because of a `namePrefix` on the configurations.
#[rbuilder::envtest::test]
async fn unreferenced_service_keeps_the_process_unready() {
    // All tests in an environment share the CRD.
    let place = Place::new(own_environment().await, "unreferenced", 1).await;
    let named = certificate(&place).mutating_configuration("renamed");
    let replica = Replica::start(&place, place.env.client(), named, 0).await;
    let service = format!("{}/{SERVICE}", place.namespace);
    eventually(SOON, || async {
        let said = replica.get("/readyz/webhook").await;
        let is_complete = [
            "some webhooks are not called by the API server".to_owned(),
            format!("MutatingWebhookConfiguration `renamed` does not exist or does not refer to the service `{service}`"),
            format!("no ValidatingWebhookConfiguration refers to the service `{service}`"),
            format!("CustomResourceDefinition {CRD} does not exist"),
        ]
        .iter()
        .all(|part| said.contains(part));
        if is_complete { Ok(()) } else { Err(said) }
    })
    .await;

    place.install().await;
    eventually(SOON, || async {
        let said = replica.get("/readyz/webhook").await;
        let is_rest = said.contains("`renamed`") && !said.contains("Validating") && !said.contains(CRD);
        if is_rest { Ok(()) } else { Err(said) }
    })
    .await;
    replica.stop().await;
}

#[rbuilder::envtest::test]
async fn ca_bundles_and_secret_are_restored_with_the_same_certificate(env: Environment) {
    let place = Place::new(env, "restored", 1).await;
    place.install().await;
    let replica = Replica::start(&place, place.env.client(), certificate(&place), 0).await;
    replica.until_ready(SOON).await;
    until_injected(&place).await;
    let before = replica.served(&place).await;
    let written = place.text("tls.crt").await;

    // The manifests in the repository contain no CA bundle.
    place.install().await;
    until_injected(&place).await;

    let secrets: Api<Secret> = Api::namespaced(place.env.client(), &place.namespace);
    secrets.delete(SECRET, &DeleteParams::default()).await.unwrap();
    eventually(SOON, || async { place.text("tls.crt").await == written }).await;
    let spoil = Patch::Merge(json!({ "data": { "tls.key": "bm8ga2V5", "tls.crt": "" } }));
    let spoiled = secrets.patch(SECRET, &PatchParams::default(), &spoil).await;
    spoiled.unwrap();
    eventually(SOON, || async { place.text("tls.crt").await == written }).await;
    until_injected(&place).await;
    assert_eq!(replica.served(&place).await, before);
    replica.stop().await;
}

/// Guarantee 16: certificates can be rotated while webhooks are being called. Two replicas share a
/// Secret but have their own webhooks, and certificates are only valid for some seconds.
#[rbuilder::envtest::test]
async fn rotation_of_a_shared_certificate_fails_no_request() {
    let place = Place::new(own_environment().await, "renewed", 2).await;
    place.install().await;
    let client = || place.env.client();
    let lived = || certificate(&place).lifetime(Duration::from_secs(30));
    let first = Replica::start(&place, client(), lived(), 0).await;
    let second = Replica::start(&place, client(), lived(), 1).await;
    first.until_ready(SOON).await;
    second.until_ready(SOON).await;
    assert_eq!(first.served(&place).await, second.served(&place).await);
    place.store("first").await;
    eventually(SOON, || async { place.notes_v2().get("first").await }).await;

    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let (mut seen, mut trusted, mut asked) = (HashSet::new(), BTreeSet::new(), 0);
    let deadline = Instant::now() + 3 * SOON;
    while seen.len() < 3 {
        assert!(
            Instant::now() < deadline,
            "{} certificates were served",
            seen.len()
        );
        let note = Note::named(&format!("n{asked}"), "a b");
        let made = place.notes().create(&dry, &note).await;
        let made = made.unwrap_or_else(|error| panic!("request {asked}: {error}"));
        assert_eq!(made.spec.size, Some(1));
        let read = place.notes_v2().get("first").await;
        read.unwrap_or_else(|error| panic!("conversion {asked}: {error}"));
        asked += 1;
        seen.insert(first.served(&place).await);
        let bundle = place.text("ca.crt").await.unwrap();
        trusted.insert(bundle.matches("BEGIN CERTIFICATE").count());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(
        trusted.contains(&2),
        "old and new are trusted at once: {trusted:?}"
    );
    eventually(SOON, || async {
        first.served(&place).await == second.served(&place).await
    })
    .await;
    for replica in [&first, &second] {
        assert!(replica.asked() >= asked, "{} of {asked}", replica.asked());
    }
    first.stop().await;
    second.stop().await;
}

#[rbuilder::envtest::test]
async fn foreign_secret_is_left_alone_and_named(env: Environment) {
    let place = Place::new(env, "foreign", 1).await;
    let secrets: Api<Secret> = Api::namespaced(place.env.client(), &place.namespace);
    let mut secret = Secret::default();
    secret.metadata.name = Some(SECRET.to_owned());
    let password = ("password".to_owned(), ByteString(b"x".to_vec()));
    secret.data = Some(BTreeMap::from([password]));
    secrets.create(&PostParams::default(), &secret).await.unwrap();

    let replica = Replica::start(&place, place.env.client(), certificate(&place), 0).await;
    let said = replica.ended(SOON).await.unwrap_err().to_string();
    let expected = format!(
        "failed to start the webhook server: Secret {}/{SECRET} holds data that this manager did not write",
        place.namespace
    );
    assert!(said.starts_with(&expected), "{said}");
    assert_eq!(place.secret().await.unwrap().data, secret.data);
}

#[rbuilder::envtest::test]
async fn missing_permissions_are_named_in_the_error(env: Environment) {
    let place = Place::new(env, "forbidden", 1).await;
    let nobody = place.env.user("nobody", &[]).unwrap().client();
    let replica = Replica::start(&place, nobody, certificate(&place), 0).await;
    let said = replica.ended(SOON).await.unwrap_err().to_string();
    let expected = format!(
        "failed to start the webhook server: failed to get Secret {}/{SECRET}: secrets \"{SECRET}\" is forbidden",
        place.namespace
    );
    assert!(said.starts_with(&expected), "{said}");
    assert!(
        said.ends_with("the documentation of `ManagedCertificate` lists the permissions it needs"),
        "{said}"
    );

    // An operator that can write the Secret but not the configurations serves the webhooks, but
    // does not become ready.
    let rule = json!([{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["*"] }]);
    let half = place.user(rule, json!([])).await;
    let replica = Replica::start(&place, half, certificate(&place), 0).await;
    eventually(SOON, || async {
        let said = replica.readyz().await;
        if said.starts_with("HTTP/1.1 500") && said.contains("[-]webhook failed") {
            Ok(())
        } else {
            Err(said)
        }
    })
    .await;
    let said = replica.ended(SOON).await.unwrap_err().to_string();
    let expected = "failed to start the webhook server: CA bundle not injected within 10 s: failed to list \
                    MutatingWebhookConfigurations: ";
    assert!(said.starts_with(expected), "{said}");
}
