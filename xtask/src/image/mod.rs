//! `cargo xtask image`: builds the image of a scaffold, and checks that its manager can reconcile
//! objects.
//!
//! The scaffold's Dockerfile is built with Buildah, since that works without a daemon. We don't
//! need the network either, because all dependencies are vendored, and the base images just contain
//! the compiler and the libraries of this machine. The manager is then started with the file system
//! of the image, which is read-only, and with the user of the image. It connects to a real
//! kube-apiserver.

mod buildah;
mod manager;
mod project;

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, ensure};

use self::buildah::{Base, Build, Buildah};
use self::manager::{ImageRoot, Manager};
use self::project::{Library, Project};
use crate::control_plane::ControlPlane;
use crate::kubectl::Kubectl;
use crate::project::edit;
use crate::{assets, repo, tools};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Compile as an image is shipped, to measure it; the checks are the same
    #[arg(long)]
    optimized: bool,
}

/// Start of the instruction which compiles the dependencies.
const DEPENDENCIES: &str = "RUN if [ \"$TARGETARCH\" != \"$BUILDARCH\" ]; then rustup";

/// Builds the image in every way that we support, and runs it.
pub(crate) fn check_image(args: &Args) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("rbuilder-image-").tempdir()?;
    let project = Project::scaffold(folder.path(), &repo::build_rbuilder()?)?;
    check_chef_version(&project)?;
    let buildah = Buildah::open(folder.path())?;
    let base = Base::of_this_machine(project.settings(), args.optimized)?;
    base.import(&buildah)?;
    check_cross_build(&buildah, &base, &project)?;
    for library in [Library::Git, Library::Version] {
        check_build_alone(&buildah, &base, &project, library)?;
    }

    project.use_library(Library::Path)?;
    check_missing_checkout(&buildah, &base, &project)?;
    let build = Build::new(&base, &project, Library::Path).with_checkout();
    let started = Instant::now();
    buildah.build(&build, "localhost/operator:first")?;
    let cold = started.elapsed();
    let changed = check_source_change(&buildah, &build, &project)?;
    let image = ImageRoot::mount(&buildah, "localhost/operator:second")?;
    println!(
        "image: {:.1} MB beside its base; cold build: {} s; after a change in src/: {} s",
        image.manager_size()? as f64 / 1e6,
        cold.as_secs(),
        changed.as_secs()
    );
    check_manager(&image, &project)
}

/// Checks that the version of cargo-chef in the Dockerfile is the same as in the base images.
fn check_chef_version(project: &Project) -> Result<()> {
    let dockerfile = fs_err::read_to_string(project.folder.join("Dockerfile"))?;
    let install = format!(
        "cargo install cargo-chef --locked --version {}\n",
        tools::version_of("cargo-chef")?
    );
    ensure!(dockerfile.contains(&install), "the Dockerfile has no `{install}`");
    Ok(())
}

/// Checks that a cross compiler is installed and used if the image is for a different architecture.
/// We don't really compile anything, because the libraries for that architecture might not be
/// installed. Cargo is replaced with a stand-in, which just records its calls.
fn check_cross_build(buildah: &Buildah, base: &Base, project: &Project) -> Result<()> {
    project.use_library(Library::Path)?;
    let (other, triple, package) = match assets::architecture() {
        "amd64" => ("arm64", "aarch64-unknown-linux-gnu", "gcc-aarch64-linux-gnu"),
        _ => ("amd64", "x86_64-unknown-linux-gnu", "gcc-x86-64-linux-gnu"),
    };
    let build = Build::new(base, project, Library::Path)
        .with_checkout()
        .with_stand_ins(other);
    buildah.build(&build, "localhost/operator:cross")?;
    let image = ImageRoot::mount(buildah, "localhost/operator:cross")?;
    ensure!(
        image.architecture == other,
        "the image is for {}, not for {other}",
        image.architecture
    );
    let calls = image.read_manager()?;
    for expected in [
        format!("apt-get install --yes --no-install-recommends {package}"),
        format!("rustup target add {triple}"),
        format!("cargo chef cook --release --locked --bin manager --target {triple}"),
        format!("cargo build --release --locked --bin manager --target {triple}"),
    ] {
        ensure!(
            calls.contains(&expected),
            "the build for {other} never called `{expected}`:\n{calls}"
        );
    }
    Ok(())
}

/// Checks that a library from git or from a registry doesn't require a checkout.
fn check_build_alone(buildah: &Buildah, base: &Base, project: &Project, library: Library) -> Result<()> {
    project.use_library(library)?;
    let name = "localhost/operator:alone";
    buildah.build(&Build::new(base, project, library), name)?;
    let image = ImageRoot::mount(buildah, name)?;
    ensure!(image.user == "65532:65532", "the image runs as {}", image.user);
    let help = image.run_for_output("--help")?;
    ensure!(help.contains("Runs the"), "the manager's help is {help}");
    check_manager(&image, project)
}

/// Checks that there's a useful error if Cargo.toml refers to a checkout, but it is missing.
fn check_missing_checkout(buildah: &Buildah, base: &Base, project: &Project) -> Result<()> {
    let printed = buildah.fail_to_build(&Build::new(base, project, Library::Path))?;
    ensure!(
        printed.contains("add --build-context rbuilder=<checkout>"),
        "a build without the checkout fails, and does not say why:\n{printed}"
    );
    Ok(())
}

/// Checks that the dependencies are not compiled again if only a file in src/ has changed. The
/// change must still be part of the new manager, even if the file is older than the first build.
fn check_source_change(buildah: &Buildah, build: &Build<'_>, project: &Project) -> Result<Duration> {
    let path = project.folder.join("src/main.rs");
    edit(&path, "/// Runs the ", "/// Runs the changed ")?;
    fs_err::write(project.folder.join("src/controller/added.rs"), "// Added.\n")?;
    let file = fs_err::File::options().write(true).open(&path)?;
    file.file()
        .set_modified(SystemTime::now() - Duration::from_secs(86_400))?;
    let started = Instant::now();
    let printed = buildah.build(build, "localhost/operator:second")?;
    let took = started.elapsed();
    ensure!(
        buildah::is_cached(&printed, DEPENDENCIES),
        "a change in src/ compiles the dependencies again:\n{printed}"
    );
    let image = ImageRoot::mount(buildah, "localhost/operator:second")?;
    let help = image.run_for_output("--help")?;
    ensure!(
        help.contains("Runs the changed "),
        "the image has the manager of before the change:\n{help}"
    );
    Ok(took)
}

/// Checks that the manager serves its probes, that it reconciles the sample, and that we can stop
/// it.
fn check_manager(image: &ImageRoot<'_>, project: &Project) -> Result<()> {
    let plane = ControlPlane::start(&assets::ensure_assets()?)?;
    let kubeconfig = Path::new(plane.kubeconfig());
    let kubectl = Kubectl::find(kubeconfig)?;
    let run = |line: &str| kubectl.command(line)?.dir(&project.folder).echo().run();
    run("apply --server-side -f config/crd/bases")?;
    run("wait --for=condition=Established crd --all")?;
    let mut manager = Manager::start(image, kubeconfig)?;
    manager.wait_until_ready()?;
    run("apply -f config/samples/cache_v1alpha1_memcached.yaml")?;
    manager.wait_until("the sample has no status", || {
        let status = kubectl.command("get memcacheds memcached-sample -o jsonpath={.status}")?;
        Ok(status.read()?.contains("observedGeneration"))
    })?;
    manager.stop()?;
    println!("the manager of the image served its probes, reconciled the sample and stopped on SIGTERM");
    Ok(())
}
