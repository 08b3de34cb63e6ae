//! Webhooks of a simulated operator.

use rbuilder::simulation::Oracle;
use rbuilder::webhook::AdmissionRequest;
use rbuilder::{Denied, Manager, Webhook};

use crate::{Widget, register_correct, simulate};

const CONFIGURATION: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: validating-webhook-configuration
webhooks:
- name: vwidget-v1.kb.io
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig:
    service: {name: webhook-service, namespace: system, path: /validate-example-com-v1-widget}
  rules:
  - apiGroups: [example.com]
    apiVersions: [v1]
    operations: [CREATE, UPDATE]
    resources: [widgets]
";

fn validate<const MOST: i32>(new: &Widget, _: Option<&Widget>, _: &AdmissionRequest) -> Result<(), Denied> {
    match new.spec.size <= MOST {
        true => Ok(()),
        false => Err(Denied::invalid("spec.size", "is too large")),
    }
}

fn register<const MOST: i32>(manager: Manager) -> Manager {
    register_correct(manager).webhook(Webhook::<Widget>::new().validator(validate::<MOST>))
}

#[test]
fn webhooks_of_the_operator_decide_what_can_be_declared() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("manifests.yaml");
    std::fs::write(&file, CONFIGURATION).unwrap();
    // The size in the sample is 1. Some histories change it to 2.
    simulate(register::<1>).webhooks(&file).histories(60).check();
    let report = simulate(register::<0>).webhooks(&file).histories(60).run();
    assert_eq!(report.failures[0].oracle, Oracle::End);
    let text = report.to_string();
    assert!(
        text.contains("denied the request") && text.contains("is too large"),
        "{text}"
    );
}
