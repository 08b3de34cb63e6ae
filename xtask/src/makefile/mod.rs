//! `cargo xtask makefile`: checks that the targets in the Makefile of a scaffold do what is
//! described in their help.
//!
//! Everything that needs a cluster, a registry or a compiler is replaced with a stand-in, which
//! just records its calls. There is one exception, since kubectl still renders. Apart from that,
//! `PATH` only contains POSIX programs. In particular, there's no bash.

mod workshop;

use anyhow::{Result, ensure};

use self::workshop::{Outcome, Workshop};
use crate::repo;

/// A run of make, and what we expect from it.
struct Case {
    /// Describes what we know after the case has passed.
    claim: &'static str,
    /// Called before the run to change the scaffold.
    before: fn(&Workshop) -> Result<()>,
    arguments: &'static str,
    expected: Expected,
}

enum Expected {
    /// make must succeed. All of these must be in the calls or in the output.
    Succeeds(&'static [&'static str]),
    /// make must fail with this output, without calling any stand-in for a cluster or registry.
    Fails(&'static str),
}

use Expected::{Fails, Succeeds};

const fn case(
    claim: &'static str,
    before: fn(&Workshop) -> Result<()>,
    arguments: &'static str,
    expected: Expected,
) -> Case {
    Case {
        claim,
        before,
        arguments,
        expected,
    }
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    case("help lists the targets", as_scaffolded, "help", Succeeds(&["lint-fix", "build-installer", "rbuilder"])),
    case("lint checks format and lints", as_scaffolded, "lint", Succeeds(&["cargo fmt --check", "cargo clippy --all-targets --all-features -- --deny warnings"])),
    case("lint-fix changes the code", as_scaffolded, "lint-fix", Succeeds(&["cargo clippy --all-targets --all-features --fix --allow-dirty --allow-staged", "cargo fmt"])),
    case("vet checks all targets", as_scaffolded, "vet", Succeeds(&["cargo check --all-targets"])),
    case("generate generates manifests", as_scaffolded, "generate", Succeeds(&["rbuilder manifests"])),
    case("test finds what setup-envtest installed", as_scaffolded, "test", Succeeds(&["cargo clippy --all-targets --all-features", "rbuilder envtest path", "cargo test\n"])),
    case("setup-envtest installs", as_scaffolded, "setup-envtest ENVTEST_K8S_VERSION=latest", Succeeds(&["rbuilder envtest install latest\n"])),
    case("another rbuilder on the path is named", another_version, "manifests", Succeeds(&["is rbuilder 0.0.1, but PROJECT specifies ", "run make rbuilder"])),
    case("bin/rbuilder comes before the path", own_rbuilder, "manifests", Succeeds(&["bin/rbuilder manifests"])),
    case("rbuilder is installed where it is missing", no_rbuilder, "manifests", Succeeds(&["cargo install --locked --no-track --root . --path ", "bin/rbuilder manifests"])),
    case("rbuilder is installed from the checkout", as_scaffolded, "rbuilder", Succeeds(&["cargo install --locked --no-track --force --root . --path ", "/cli\n"])),
    case("rbuilder is installed from git", library_from_git, "rbuilder", Succeeds(&["--root . --git https://example.com/rbuilder.git --rev 0123abc rbuilder-cli\n"])),
    case("rbuilder is installed from the registry", library_from_registry, "rbuilder", Succeeds(&["--root . rbuilder-cli@4.5.6\n"])),
    case("the image build gets the checkout", as_scaffolded, "docker-build", Succeeds(&["docker build --build-context rbuilder=/", " --tag controller:latest .\n"])),
    case("the image build needs no checkout", library_from_git, "docker-build IMG=a/b:1", Succeeds(&["docker build --tag a/b:1 .\n"])),
    case("podman builds too", library_from_git, "docker-build CONTAINER_TOOL=podman", Succeeds(&["podman build --tag controller:latest .\n"])),
    case("the end-to-end test builds and loads an image", no_cluster, "test-e2e", Succeeds(&[
        "kind create cluster --name made-operator-test-e2e --kubeconfig /",
        " --tag example.com/made-operator:e2e .\n",
        "docker save --output dist/made-operator-test-e2e.tar example.com/made-operator:e2e\nkind load image-archive dist/made-operator-test-e2e.tar --name made-operator-test-e2e\n",
        "cargo test --features e2e --test e2e -- --nocapture\nIMG=example.com/made-operator:e2e KUBECONFIG=/",
        "/project/dist/made-operator-test-e2e.kubeconfig\nkind delete cluster --name made-operator-test-e2e",
    ])),
    case("the end-to-end test takes an image and a cluster", with_cluster, "test-e2e KIND_CLUSTER=mine IMG=a/b:1 CONTAINER_TOOL=podman", Succeeds(&[
        "kind get clusters\nkind get kubeconfig --name mine\npodman save --output dist/mine.tar a/b:1\n",
        "\nIMG=a/b:1 KUBECONFIG=/",
    ])),
    case("a failed end-to-end test leaves its cluster", failing_test, "test-e2e", Fails("Error ")),
    case("kind is named where it is missing", no_kind, "test-e2e", Fails("kind was not found: install kind")),
    case("the cluster of the end-to-end test is deleted", with_cluster, "cleanup-test-e2e", Succeeds(&["kind delete cluster --name made-operator-test-e2e --kubeconfig /"])),
    case("all platforms are built", library_from_git, "docker-buildx IMG=a/b:1", Succeeds(&["buildx build --builder made-operator-builder --platform linux/amd64,linux/arm64,linux/s390x,linux/ppc64le --tag a/b:1 --push .\n"])),
    case("no push without IMG", as_scaffolded, "docker-push", Fails("make docker-push IMG=<registry>/made-operator:<tag>")),
    case("no deployment without IMG", as_scaffolded, "deploy", Fails("make deploy IMG=<registry>/made-operator:<tag>")),
    case("no installer without IMG", as_scaffolded, "build-installer", Fails("make build-installer IMG=")),
    case("IMG can be the default, if it is said", as_scaffolded, "deploy IMG=controller:latest", Succeeds(&["rbuilder deploy --manifests=false --image controller:latest\n"])),
    case("deploy passes the image on", as_scaffolded, "deploy IMG=r.example.com:5000/a/b:1", Succeeds(&["rbuilder manifests\n", "rbuilder deploy --manifests=false --image r.example.com:5000/a/b:1\n"])),
    case("the installer is written", as_scaffolded, "build-installer IMG=a/b:1", Succeeds(&["kubectl kustomize dist/image"])),
    case("the installer has the image where manager.yaml was edited", edited_image, "build-installer IMG=a/b:1", Succeeds(&["kubectl kustomize dist/image"])),
    case("build-installer says that it found no manager", no_label, "build-installer IMG=a/b:1", Fails("config/default has no Deployment with the label")),
    case("build-installer stops when nothing can be rendered", broken_config, "build-installer IMG=a/b:1", Fails("../missing")),
    case("install generates and applies the CRDs", as_scaffolded, "install", Succeeds(&["rbuilder manifests\n", "rbuilder install --manifests=false\n"])),
    case("uninstall deletes the CRDs", as_scaffolded, "uninstall ignore-not-found=true", Succeeds(&["rbuilder uninstall --ignore-not-found=true\n"])),
    case("a chart is deployed with the image", with_chart, "helm-deploy IMG=r.example.com:5000/a/b:1@sha256:ff", Succeeds(&[
        "helm upgrade --install made-operator charts/made-operator --namespace made-operator-system --create-namespace ",
        " image.repository=r.example.com:5000/a/b --set-string image.tag=1 --set-string image.digest=sha256:ff ",
    ])),
    case("an image without a tag is the latest one", with_chart, "helm-deploy IMG=r.example.com:5000/b", Succeeds(&[
        " image.repository=r.example.com:5000/b --set-string image.tag=latest --set-string image.digest= ",
    ])),
    case("a chart is asked for where there is none", as_scaffolded, "helm-deploy IMG=a/b:1", Fails("charts/made-operator does not exist: run rbuilder helm")),
    case("a release can be named", with_chart, "helm-rollback HELM_RELEASE=shop HELM_NAMESPACE=team", Succeeds(&["helm rollback shop --namespace team --wait\n"])),
    case("undeploy deletes all", as_scaffolded, "undeploy", Succeeds(&["rbuilder undeploy --ignore-not-found=false\n"])),
];

/// Runs each case in a separate copy of the scaffold.
pub(crate) fn check_makefile() -> Result<()> {
    let bin = repo::build_rbuilder()?;
    let original = Workshop::scaffold(&bin)?;
    for case in CASES {
        let workshop = original.copy()?;
        (case.before)(&workshop)?;
        let config = workshop.read_config()?;
        let outcome = workshop.make(case.arguments)?;
        check_outcome(case, &outcome)?;
        ensure!(
            workshop.read_config()? == config,
            "{}: config/ was changed",
            case.claim
        );
        let installer = workshop.has("dist/install.yaml");
        let is_wanted = outcome.is_success && case.arguments.starts_with("build-installer");
        ensure!(
            installer == is_wanted,
            "{}: dist/install.yaml is there: {installer}",
            case.claim
        );
        println!("{}: make {}", case.claim, case.arguments);
    }
    Ok(())
}

fn check_outcome(case: &Case, outcome: &Outcome) -> Result<()> {
    let Case { claim, arguments, .. } = case;
    let seen = format!("{}--- called\n{}", outcome.printed, outcome.calls);
    match case.expected {
        Succeeds(parts) => {
            ensure!(outcome.is_success, "{claim}: make {arguments} failed:\n{seen}");
            for part in parts {
                ensure!(
                    seen.contains(part),
                    "{claim}: make {arguments} gives no `{part}`:\n{seen}"
                );
            }
        }
        Fails(part) => {
            ensure!(
                !outcome.is_success,
                "{claim}: make {arguments} did not fail:\n{seen}"
            );
            ensure!(
                outcome.printed.contains(part),
                "{claim}: make {arguments} does not print `{part}`:\n{seen}"
            );
            let reached = [
                "rbuilder deploy",
                "rbuilder undeploy",
                "kubectl apply",
                "docker push",
                "kind delete",
            ];
            let reached = reached.iter().find(|call| outcome.calls.contains(**call));
            ensure!(reached.is_none(), "{claim}: make {arguments} went on:\n{seen}");
        }
    }
    Ok(())
}

fn as_scaffolded(_: &Workshop) -> Result<()> {
    Ok(())
}

fn another_version(workshop: &Workshop) -> Result<()> {
    workshop.write_program("programs/rbuilder", "echo 'rbuilder 0.0.1'\n")
}

fn own_rbuilder(workshop: &Workshop) -> Result<()> {
    workshop.write_program("project/bin/rbuilder", "")
}

/// Sets up a `cargo install` that creates the program.
fn no_rbuilder(workshop: &Workshop) -> Result<()> {
    workshop.remove("programs/rbuilder")?;
    let install = "case \"$1\" in install) mkdir -p bin && cp \"$0\" bin/rbuilder ;; esac\n";
    workshop.write_program("programs/cargo", install)
}

/// There are clusters, but they have other names.
fn no_cluster(workshop: &Workshop) -> Result<()> {
    let kind = "case \"$2\" in clusters) echo made-operator-test-e2e-2 ;; esac\n";
    workshop.write_program("programs/kind", kind)?;
    note_test(workshop, "")
}

fn with_cluster(workshop: &Workshop) -> Result<()> {
    workshop.write_program(
        "programs/kind",
        "case \"$2\" in clusters) printf 'other\\nmine\\n' ;; esac\n",
    )?;
    note_test(workshop, "")
}

fn failing_test(workshop: &Workshop) -> Result<()> {
    workshop.write_program("programs/kind", "")?;
    note_test(workshop, "exit 1\n")
}

/// Makes cargo record the variables of the end-to-end test. It then runs `script` instead of the
/// test.
fn note_test(workshop: &Workshop, script: &str) -> Result<()> {
    let note = "echo \"IMG=$IMG KUBECONFIG=$KUBECONFIG\" >> \"$CALLS\"\n";
    workshop.write_program("programs/cargo", &format!("{note}{script}"))
}

fn no_kind(_: &Workshop) -> Result<()> {
    Ok(())
}

fn library_from_git(workshop: &Workshop) -> Result<()> {
    workshop.use_library("git = \"https://example.com/rbuilder.git\", rev = \"0123abc\"")
}

fn library_from_registry(workshop: &Workshop) -> Result<()> {
    workshop.use_library("version = \"4.5\"")?;
    workshop.edit_line("PROJECT", "cliVersion: ", "cliVersion: 4.5.6")
}

fn edited_image(workshop: &Workshop) -> Result<()> {
    let image = "        image: ghcr.io/example/operator:v9";
    workshop.edit_line("config/manager/manager.yaml", "        image: ", image)
}

/// Creates a minimal chart. This is sufficient, because the Makefile only checks whether it exists
/// and no program reads it.
fn with_chart(workshop: &Workshop) -> Result<()> {
    workshop.write_program("programs/helm", "")?;
    workshop.write("charts/made-operator/Chart.yaml", "name: made-operator\n")
}

fn no_label(workshop: &Workshop) -> Result<()> {
    let other = "    control-plane: another";
    workshop.edit_line("config/manager/manager.yaml", "    control-plane: ", other)
}

fn broken_config(workshop: &Workshop) -> Result<()> {
    workshop.edit_line(
        "config/default/kustomization.yaml",
        "- ../manager",
        "- ../missing",
    )
}
