//! `cargo xtask bundle`: validates the bundles and catalogs of scaffolds.
//!
//! We run the same validators for bundles as `operator-sdk bundle validate`, and `opm validate` for
//! catalogs. In addition, each object must be accepted by kube-apiserver without any warning.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rbuilder_catalogue::Minor;

use crate::catalog_verdicts::{CatalogJudge, check_sequences, record_verdicts};
use crate::committed::{list_files, write_file};
use crate::control_plane::{ControlPlane, run_without_warning};
use crate::helm::cases;
use crate::kubectl::Kubectl;
use crate::project::{edit, make_project, run_again};
use crate::run::wait_until;
use crate::sh::Cmd;
use crate::{assets, repo};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only find or build the validators
    #[arg(long)]
    build: bool,
    /// Record the verdicts of `opm validate` on the channels in the tests of the command
    #[arg(long)]
    record: bool,
}

/// Commands that create the bundles of a few consecutive releases.
const RELEASES: &[&str] = &[
    "bundle --version 0.1.0 --image example.com/shop:v0.1.0",
    "bundle --version 0.3.0 --replaces 0.1.0 --skips 0.2.0 --channels stable,candidate --image example.com/shop:v0.3.0",
    "bundle --version 0.4.0-rc.1 --channels candidate --skip-range <0.4.0 --image example.com/shop:v0.4.0-rc.1",
];

pub(crate) fn check_bundles(args: &Args) -> Result<()> {
    let validators = assets::ensure_bundle_validators()?;
    let judge = CatalogJudge::new()?;
    if args.build {
        return Ok(());
    }
    record_verdicts(&judge, args.record)?;
    if args.record {
        return Ok(());
    }
    let bin = repo::build_rbuilder()?;
    let folder = tempfile::Builder::new().prefix("rbuilder-bundle-").tempdir()?;
    let cluster = Cluster::start()?;
    let cases = cases()?.into_iter();
    for (number, case) in cases.filter(|case| case.commands.len() > 1).enumerate() {
        let project = folder.path().join(format!("project-{number}"));
        make_project(&bin, &project, &case.commands)?;
        mark_kinds(&project.join("src/api"))?;
        if number % 2 == 1 {
            write_file(&project.join(BASE.0), BASE.1.as_bytes())?;
        } else {
            add_bindings(&project)?;
        }
        for line in RELEASES {
            check_release(&validators, &bin, &project, line)
                .with_context(|| format!("`rbuilder {line}` after {:?}", case.commands))?;
            judge.accept(&project.join("catalog"))?;
            cluster.accept(&project.join("bundle/manifests"))?;
        }
    }
    check_sequences(&judge, &bin, folder.path())?;
    println!("the bundles and catalogs are valid");
    Ok(())
}

/// An API server in which the CRD for ClusterServiceVersions is installed.
struct Cluster {
    kubectl: Kubectl,
    _control_plane: ControlPlane,
}

impl Cluster {
    fn start() -> Result<Self> {
        let control_plane = ControlPlane::start_servers(&assets::ensure_assets()?)?;
        let kubectl = Kubectl::find(Path::new(control_plane.kubeconfig()))?;
        let crd = kubectl.command("create -f")?.arg(assets::ensure_csv_crd()?);
        run_without_warning(crd)?;
        // This is the namespace of the ClusterServiceVersion in the bundle. It would be replaced by
        // the lifecycle manager.
        run_without_warning(kubectl.command("create namespace placeholder")?)?;
        // `kubectl wait` fails immediately for CRDs which are so new that they have no conditions.
        wait_until(Duration::from_secs(30), "the CRD is not established", || {
            Ok(kubectl
                .command("wait --for=condition=established crd --all")?
                .succeeds())
        })?;
        Ok(Cluster {
            kubectl,
            _control_plane: control_plane,
        })
    }

    /// Checks that the API server would create all objects in a folder without a warning, and that
    /// it knows all of their fields.
    fn accept(&self, manifests: &Path) -> Result<()> {
        let create = self
            .kubectl
            .command("create --dry-run=server --validate=strict -f")?;
        run_without_warning(create.arg(manifests))
    }
}

/// Markers that end up in the ClusterServiceVersion.
const MARKERS: &str = r#"#[csv(display_name = "Thing of the shop", order = 1)]
#[csv(resource(kind = "Deployment", version = "v1"), resource(kind = "Service", version = "v1"))]
#[csv(required(name = "certificates.cert-manager.io", version = "v1", kind = "Certificate", description = "Certificates of the servers."))]
"#;

const FIELD: &str = "    #[csv(display_name = \"Label\", order = 1)]\n    pub label: Option<String>,\n";

/// Path and content of a base for the ClusterServiceVersion, the same as in a project scaffolded by
/// operator-sdk. We add it to every other project.
const BASE: (&str, &str) = (
    "config/manifests/bases/shop.clusterserviceversion.yaml",
    include_str!("bundle_base.yaml"),
);

/// Bindings to roles which are not in config/, and a second service account. This file is also used
/// by the command's tests.
const BINDINGS: &str = include_str!("../../cli/tests/bundle/bindings.yaml");

fn add_bindings(project: &Path) -> Result<()> {
    let folder = project.join("config/rbac");
    edit(
        &folder.join("kustomization.yaml"),
        "resources:\n",
        "resources:\n- extra.yaml\n",
    )?;
    Ok(fs_err::write(folder.join("extra.yaml"), BINDINGS)?)
}

fn mark_kinds(folder: &Path) -> Result<()> {
    let is_kind = |line: &str| line.starts_with("pub struct ") && line.ends_with("Spec {");
    let mark = |line: &str| match is_kind(line) {
        true => format!("{MARKERS}{line}\n{FIELD}"),
        false => format!("{line}\n"),
    };
    for path in list_files(folder, "rs")? {
        let text = fs_err::read_to_string(&path)?;
        fs_err::write(&path, text.lines().map(mark).collect::<String>())?;
    }
    Ok(())
}

fn check_release(validators: &Path, bin: &Path, project: &Path, line: &str) -> Result<()> {
    repo::rbuilder_command(bin, project, line)?.read()?;
    run_again(bin, project, line)?;
    // The validators print what they find to stdout.
    let validate = || {
        Cmd::program(validators)
            .shown_as("validators")
            .arg(project.join("bundle"))
    };
    validate().run()?;
    let csv = project.join("bundle/manifests/shop.clusterserviceversion.yaml");
    let text = fs_err::read_to_string(&csv)?;
    ensure!(
        text.contains("displayName: Thing of the shop")
            && text.contains("name: certificates.cert-manager.io"),
        "the bundle lacks what the markers say:\n{text}"
    );
    let is_described = !project.join(BASE.0).exists() || text.contains("capabilities: Seamless Upgrades");
    ensure!(is_described, "the bundle lacks what the base says:\n{text}");
    let (right, wrong) = (
        format!("{}.0", Minor::EARLIEST),
        format!("\"{}\"", Minor::EARLIEST),
    );
    edit(
        &csv,
        &format!("minKubeVersion: {right}"),
        &format!("minKubeVersion: {wrong}"),
    )?;
    let broken = validate().succeeds();
    fs_err::write(&csv, text)?;
    ensure!(!broken, "the validators pass a bundle that is wrong");
    Ok(())
}
