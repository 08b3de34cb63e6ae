//! Events recorded by webhooks.

use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use rbuilder::envtest::{Environment, eventually};
use rbuilder::fake::ApiServer;
use rbuilder::webhook::{AdmissionRequest, Warnings};
use rbuilder::{Denied, EventRecorder, Manager, Webhook};
use serde_json::json;

use crate::{Letter, SOON, default, letter, serve, status_of, validate};

/// A validator that records an event for the stored letter when it denies a change.
fn recording(
    events: EventRecorder,
) -> impl Fn(&Letter, Option<&Letter>, &AdmissionRequest) -> Result<Warnings, Denied> + Send + Sync + 'static
{
    move |new, old, request| {
        let answer = validate(new, old, request);
        if let (Err(_), Some(old)) = (&answer, old) {
            let note = format!(
                "{} wants another recipient",
                request.user_info.username.clone().unwrap_or_default()
            );
            events.warning(old, "ChangeDenied", "Validate", note);
        }
        answer
    }
}

async fn until_recorded(client: Client, namespace: &str, stored: &Letter) {
    let events: Api<Event> = Api::namespaced(client, namespace);
    eventually(SOON, || async {
        let events = events.list(&ListParams::default()).await.unwrap();
        events.iter().any(|event| {
            let regarding = event.regarding.clone().unwrap_or_default();
            event.reason.as_deref() == Some("ChangeDenied")
                && event.type_.as_deref() == Some("Warning")
                && event.reporting_controller.as_deref() == Some("letters")
                && event
                    .note
                    .as_deref()
                    .is_some_and(|note| note.ends_with(" wants another recipient"))
                && (regarding.kind.as_deref(), regarding.uid) == (Some("Letter"), stored.metadata.uid.clone())
        })
    })
    .await;
}

#[rbuilder::envtest::test]
async fn webhook_records_events_about_denied_changes(env: Environment) {
    let served = serve(env, |mut manager: Manager| {
        let events = manager.events("letters");
        manager.webhook(
            Webhook::<Letter>::new()
                .defaulter(default)
                .validator(recording(events)),
        )
    })
    .await;
    served.until_asked().await;
    let letters = served.letters();
    let stored = letter("first", "Ada, Main Street");
    let stored = letters.create(&PostParams::default(), &stored).await.unwrap();
    let patch = Patch::Merge(json!({ "spec": { "to": "Bob, Main Street" } }));
    let denied = letters.patch("first", &PatchParams::default(), &patch).await;
    assert_eq!(status_of(denied.unwrap_err()).code, 422);
    until_recorded(served.env.client(), &served.namespace, &stored).await;
    served.stop().await;
}

/// The test calls the webhook function directly, with a recorder that doesn't belong to a manager.
#[tokio::test]
async fn webhook_records_events_without_a_manager() {
    let server = ApiServer::new().kind::<Letter>();
    let namespace = server.namespace("letters");
    let letters: Api<Letter> = Api::namespaced(server.client(), &namespace);
    let stored = letter("first", "Ada, Main Street");
    let stored = letters.create(&PostParams::default(), &stored).await.unwrap();
    let changed = letter("first", "Bob, Main Street");
    let kind = json!({ "group": "webhooks.example.com", "version": "v1", "kind": "Letter" });
    let resource = json!({ "group": "webhooks.example.com", "version": "v1", "resource": "letters" });
    let request: AdmissionRequest = serde_json::from_value(json!({
        "uid": "1", "kind": kind, "resource": resource, "name": "first", "namespace": namespace,
        "operation": "UPDATE", "userInfo": { "username": "carol" }, "dryRun": false,
    }))
    .unwrap();
    let validate = recording(EventRecorder::new(server.client(), "letters"));
    validate(&changed, Some(&stored), &request).unwrap_err();
    until_recorded(server.client(), &namespace, &stored).await;
}
