//! `rbuilder install`: applies the project's CRDs, like `make install`, but without make and a
//! shell.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use super::conversions::keep_conversions;
use super::local::refuse_redirected;
use super::{find_kubectl, manifests};
use crate::cluster::{Kubectl, apply, parse_documents};
use crate::flags::InstallCrdsFlags;
use crate::shell::Shell;

pub(super) const ALL: &str = "config/default";
const CRDS: &str = "config/crd";

pub(super) fn install(dir: &Path, flags: &InstallCrdsFlags, shell: &mut Shell) -> Result<u8> {
    let kubectl = find_kubectl(dir, &flags.cluster.choice())?;
    manifests::generate_if_asked(dir, &flags.generation, shell)?;
    let mut crds = render_crds(&kubectl)?;
    if crds.is_empty() {
        shell.note("no CRDs to install\n");
        return Ok(0);
    }
    let names = crds.iter().filter_map(|crd| crd["metadata"]["name"].as_str());
    let names = names.collect::<Vec<_>>().join(", ");
    shell.note(&format!("applying the CRDs of {ALL}: {names}\n"));
    refuse_redirected(&kubectl, &crds)?;
    keep_conversions(&kubectl, &mut crds, shell)?;
    apply(&kubectl, &crds, &[], shell)?;
    Ok(0)
}

pub(super) fn render_crds(kubectl: &Kubectl) -> Result<Vec<Value>> {
    let crds = parse_documents(&kubectl.render(CRDS)?)?;
    let mut deployed = parse_documents(&kubectl.render(ALL)?)?;
    deployed.retain(|object| object["kind"] == "CustomResourceDefinition");
    // In config/crd, the Service of a conversion webhook has neither the namespace nor the prefix
    // of the deployment. Applying such a CRD over a deployed manager's would break the conversion,
    // so only take CRDs from config/crd that config/default doesn't contain.
    let is_deployed = |crd: &Value| {
        let name = &crd["metadata"]["name"];
        deployed
            .iter()
            .any(|deployed| deployed["metadata"]["name"] == *name)
    };
    let others: Vec<Value> = crds.into_iter().filter(|crd| !is_deployed(crd)).collect();
    Ok([deployed, others].concat())
}
