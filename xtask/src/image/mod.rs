//! `cargo xtask image`: builds a scaffold's image and checks that its manager reconciles.
//!
//! The task builds the scaffold's Dockerfile with Buildah, which needs no daemon. The base images
//! contain this machine's compiler and libraries and all dependencies are vendored, so the build
//! needs no network. The manager then runs in the image's file system, read-only and as the image's
//! user, against kube-apiserver.

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
use crate::{assets, repo, tools};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Compile as an image is shipped, to measure it; the checks are the same
    #[arg(long)]
    optimized: bool,
}

/// The start of the instruction that compiles the dependencies.
const DEPENDENCIES: &str = "RUN if [ \"$TARGETARCH\" != \"$BUILDARCH\" ]; then rustup";

/// Builds the image in all supported ways and runs it.
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

/// Checks that the Dockerfile installs the same version of cargo-chef as the base images.
fn check_chef_version(project: &Project) -> Result<()> {
    let dockerfile = fs_err::read_to_string(project.folder.join("Dockerfile"))?;
    let install = format!(
        "cargo install cargo-chef --locked --version {}\n",
        tools::CARGO_CHEF.version
    );
    ensure!(dockerfile.contains(&install), "the Dockerfile has no `{install}`");
    Ok(())
}

/// Checks that a build for another architecture installs and uses a cross compiler. Cargo is a
/// stand-in that only records its calls, because libraries for the other architecture may not be
/// installed.
fn check_cross_build(buildah: &Buildah, base: &Base, project: &Project) -> Result<()> {
    project.use_library(Library::Path)?;
    let (other, triple, package) = match buildah::machine_arch() {
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

/// Checks that no checkout is needed if the library comes from git or a registry.
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

/// Checks that the error names the missing checkout if Cargo.toml refers to it.
fn check_missing_checkout(buildah: &Buildah, base: &Base, project: &Project) -> Result<()> {
    let printed = buildah.fail_to_build(&Build::new(base, project, Library::Path))?;
    ensure!(
        printed.contains("add --build-context rbuilder=<checkout>"),
        "a build without the checkout fails, and does not say why:\n{printed}"
    );
    Ok(())
}

/// Checks that a rebuild after a change in src/ reuses the dependencies layer, and that the new
/// manager contains the change, even if the changed file is older than the first build.
fn check_source_change(buildah: &Buildah, build: &Build<'_>, project: &Project) -> Result<Duration> {
    let path = project.folder.join("src/main.rs");
    let old = fs_err::read_to_string(&path)?;
    fs_err::write(&path, old.replacen("/// Runs the ", "/// Runs the changed ", 1))?;
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

/// Checks that the manager serves its probes, reconciles the sample and stops on request.
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
