//! Deployments whose update strategy changes to `Recreate`.

use anyhow::Result;
use serde_json::Value;

use super::{Kubectl, describe, to_list};
use crate::shell::Shell;

const RECREATE: &str = r#"{"spec":{"strategy":{"rollingUpdate":null,"type":"Recreate"}}}"#;

pub(crate) fn allow_recreate(kubectl: &Kubectl, objects: &[Value], shell: &mut Shell) -> Result<()> {
    let is_recreated =
        |object: &&Value| object["kind"] == "Deployment" && object["spec"]["strategy"]["type"] == "Recreate";
    let recreated: Vec<Value> = objects.iter().filter(is_recreated).cloned().collect();
    if recreated.is_empty() {
        return Ok(());
    }
    let present = kubectl.read_objects(&to_list(&recreated))?;
    for deployment in present
        .iter()
        .filter(|present| present["spec"]["strategy"]["rollingUpdate"].is_object())
    {
        let text = |key: &str| deployment["metadata"][key].as_str().unwrap_or_default();
        shell.note(&format!(
            "{} gets the strategy `Recreate`\n",
            describe(deployment)
        ));
        let named = [
            "patch",
            "deployment",
            text("name"),
            "--namespace",
            text("namespace"),
        ];
        // The API server defaulted `rollingUpdate`, and no field manager owns it. So server-side
        // apply would keep the field, and the API server would reject it in combination with
        // `Recreate`.
        let patch = ["--type=merge", "--patch", RECREATE];
        kubectl.run(&[&named[..], &patch].concat(), "", shell)?;
    }
    Ok(())
}
