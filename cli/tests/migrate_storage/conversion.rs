//! Kinds with a conversion webhook.

use std::collections::BTreeSet;

use serde_json::json;

use crate::converter::{Converter, Faults, REASON};
use crate::{Scene, run, wait_until};

/// Waits until the API server calls the webhook and gets this result.
fn wait_for_conversion(scene: &Scene, name: &str, succeeds: bool) {
    wait_until("the API server calls the webhook", || {
        let words = ["get", &scene.resource(), name];
        run("kubectl", &words, "").status.success() == succeeds
    });
}

#[test]
#[ignore = "needs a control plane: set KUBEBUILDER_ASSETS"]
fn failing_conversion_keeps_the_versions_until_it_works() {
    let scene = Scene::new("kegs", 4);
    let converter = Converter::start();
    converter.fail(Faults::All);
    let mut crd = scene.crd("v2");
    crd["spec"]["conversion"] = converter.conversion.clone();
    scene.apply(&crd);
    wait_for_conversion(&scene, "a1", false);

    // At first, nothing can be read.
    let (code, said) = scene.migrate("--qps 0 --migrator=rbuilder");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(REASON), "{said}");
    assert_eq!(scene.stored_versions(), ["v1", "v2"], "{said}");

    // Then only one object can't be read.
    converter.fail(Faults::Single(BTreeSet::from(["a1".to_owned()])));
    wait_for_conversion(&scene, "a2", true);
    let (code, said) = scene.migrate("--qps 0 --migrator=rbuilder");
    assert_eq!(code, Some(1), "{said}");
    for expected in [
        "kegs.g.example.com: not migrated: 1 object could not be written\n  default/a1: ",
        REASON,
        "\n  3 written of 4 objects; storedVersions: still v1, v2\n",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    assert_eq!(scene.stored_versions(), ["v1", "v2"]);

    // The next run goes on where this one has stopped.
    converter.fail(Faults::None);
    wait_for_conversion(&scene, "a1", true);
    let report = scene.migrate_to_json("--qps 0 --migrator=rbuilder");
    assert_eq!(report["objects"]["writtenEarlier"], 3, "{report}");
    assert_eq!(report["objects"]["written"], 1, "{report}");
    assert_eq!(scene.stored_versions(), ["v2"]);
    assert!(!scene.has_record());
}

/// This must also work without `--migrator`, because the cluster may try first.
#[test]
#[ignore = "needs a control plane: set KUBEBUILDER_ASSETS"]
fn failing_conversion_is_reported_whoever_migrates() {
    let scene = Scene::new("pans", 2);
    let converter = Converter::start();
    converter.fail(Faults::All);
    let conversion = json!({ "spec": { "conversion": converter.conversion } }).to_string();
    let name = format!("crd/{}", scene.name());
    let words = ["patch", &name, "--type=merge", "--patch", &conversion];
    assert!(run("kubectl", &words, "").status.success());
    wait_for_conversion(&scene, "a1", false);
    let (code, said) = scene.migrate("--qps 0");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(REASON), "{said}");
    assert_eq!(scene.stored_versions(), ["v1", "v2"], "{said}");
    converter.fail(Faults::None);
    wait_for_conversion(&scene, "a1", true);
    let (code, said) = scene.migrate("--qps 0");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(scene.stored_versions(), ["v2"], "{said}");
}
