//! The tasks of this repository, for both developers and CI. Run them with `cargo xtask <task>`.
//!
//! There is a file with a function for each task, and a variant of [`Task`]. Tasks run the
//! `rbuilder` command as a process (like users do). This tests what we really ship, and also means
//! that this crate can be compiled quickly. If the results of a task are committed, it has a flag
//! `--check`, with which it doesn't change any file but fails if the committed results are
//! outdated.
//!
//! Before you write a new task, look at the helpers. `project` scaffolds and edits projects, `run`
//! captures output and waits, `committed` compares with the repository and lists files, `value`
//! reads JSON and YAML, `tools` and `assets` install programs. Tables, templates and journeys are
//! files beside the code: journeys are scripts that can use the functions of journey.sh.

mod advice;
mod assets;
mod bench;
mod bench_operator;
mod book;
mod builtin;
mod bundle;
mod catalog_verdicts;
mod catalogue;
mod cel;
mod ci;
mod committed;
mod control_plane;
mod dev_loop;
mod docs;
mod e2e;
mod examples;
mod former;
mod grafana;
mod helm;
mod image;
mod imported;
mod kubectl;
mod kubernetes;
mod library;
mod makefile;
mod oracle;
mod packages;
mod pages;
mod patterns;
mod peers;
mod pictures;
mod project;
mod protobuf;
#[allow(dead_code)] // shared with other tests
#[path = "../../crates/generator/tests/fuzz/random.rs"]
mod random;
mod records;
mod release;
mod run;
mod scaffold;
mod sequences;
mod shared_cluster;
mod simulate_scale;
mod tables;
mod templates;
mod tidy;
mod tools;
mod tutorials;
mod value;
mod versions;
mod workflows;

use std::process::ExitCode;

use clap::Parser;
use committed::Check;
use xtask_base::{page, repo, sh};

/// Automation of the rbuilder repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(clap::Subcommand)]
enum Task {
    /// Find or build kube-apiserver and etcd and print their folder, for KUBEBUILDER_ASSETS
    Assets,
    /// Compile code that follows the generator's advice with older releases of kube
    Advice(advice::Args),
    /// Measure `rbuilder manifests`, alone or compared with controller-gen
    Bench(bench::Args),
    /// Measure an operator on a real API server, compared with the same operator in Go
    BenchOperator(bench_operator::Args),
    /// Build the guide as a book with mdBook
    Book,
    /// Validate the bundles of scaffolds for the Operator Lifecycle Manager (needs Go)
    Bundle(bundle::Args),
    /// Generate the catalogue of Kubernetes' types from its OpenAPI documents (needs Go)
    Catalogue(Check),
    /// Record what the API server says about objects of built-in kinds (needs Go, curl)
    Builtin(Check),
    /// Record kube-apiserver's verdicts on CEL rules and its cost estimates (needs Go)
    Cel(Check),
    /// Run all checks that must pass before a change is merged, or some of them
    Ci(ci::Args),
    /// Run `rbuilder dev` in a scaffold, edit the source, and check that nothing is left behind
    DevLoop,
    /// Generate the reference pages of the guide from the parsers' tables
    Docs(Check),
    /// Run `make test-e2e` in a scaffold with and without its manager
    E2e,
    /// Regenerate the projects in examples/ with the commands that a user types
    Examples(Check),
    /// Record which strings the API server accepts for each format (needs Go)
    Formats(Check),
    /// Check the rules and dashboards of a scaffold with promtool and Grafana's types (needs Go and
    /// Node.js)
    Grafana(grafana::Args),
    /// Record how GitOps tools judge the health of objects (needs Go)
    Health(Check),
    /// Compare the charts of scaffolds with the output of kustomize, and install, upgrade and
    /// uninstall one with Helm (needs Go)
    Helm(helm::Args),
    /// Build the image of a scaffold with Buildah, and run its manager (needs Linux and root)
    Image(image::Args),
    /// Run the targets of a scaffold's Makefile with stand-ins for the programs that they call
    Makefile,
    /// Build scaffolds with the library from a git repository and from a path, without this checkout
    Library,
    /// Record how kube-apiserver applies the rules that `rbuilder-kubernetes` repeats (needs Go, curl)
    Kubernetes(Check),
    /// Record kube-apiserver's responses to the mutation corpus
    Mutations(Check),
    /// Record kube-apiserver's responses to writes of custom resources
    Objects(Check),
    /// Record the manifests that controller-gen generates from the Go half of the oracle
    Oracle(Check),
    /// Look at the generated HTML pages in a headless browser
    Pages,
    /// Record which patterns Go's regexp compiles, and what they match (needs Go)
    Patterns(patterns::Args),
    /// Generate the pictures of the guide from diagrams and from the figures in its tables
    Pictures(Check),
    /// Generate the table of messages in protobuf, and record objects that Go has encoded (needs Go)
    Protobuf(Check),
    /// Check that the version can be published: names, changelog, packages, and a scaffold that
    /// uses the packages
    Release(release::Args),
    /// Scaffold projects outside the tree, and build, lint and test them like their users
    Scaffold(scaffold::Args),
    /// Deploy a scaffold twice into a cluster that others use, and read in the audit log whose objects it wrote (needs Go)
    SharedCluster,
    /// Simulate fleets of replicas that are too large for one machine, and print the tables of docs/scaling.md
    SimulateScale,
    /// Generate the columns of `kubectl get` from kube-apiserver's printers, and record what they print (needs Go)
    Tables(Check),
    /// Record the templates of a released version in the archive that `rbuilder update` uses
    Templates(templates::Args),
    /// Check conventions that no compiler checks
    Tidy,
    /// Follow the tutorials from top to bottom and compare the output that they show
    Tutorials(tutorials::Args),
    /// Update the versions of Kubernetes, kube and Rust in the files that repeat them
    Versions(versions::Args),
    /// Run the steps of a scaffold's workflows in a clean clone
    Workflows,
    /// Record what kubectl's YAML reader makes of scalars (needs Go)
    Yaml(Check),
}

fn main() -> ExitCode {
    match run(&Cli::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &Task) -> anyhow::Result<()> {
    match task {
        Task::Advice(args) => advice::compile_advice(args),
        Task::Assets => assets::print_folder(),
        Task::Bench(args) => bench::measure_manifests(args),
        Task::BenchOperator(args) => bench_operator::measure_operators(args),
        Task::Book => book::build_book(),
        Task::Bundle(args) => bundle::check_bundles(args),
        Task::Catalogue(args) => catalogue::make_catalogue(args),
        Task::Builtin(args) => builtin::record(args),
        Task::Cel(args) => cel::record_verdicts(args),
        Task::Ci(args) => ci::run_steps(args),
        Task::DevLoop => dev_loop::follow_loop(),
        Task::Docs(args) => docs::update_pages(args),
        Task::E2e => e2e::check_end_to_end(),
        Task::Examples(args) => examples::update_projects(args),
        Task::Formats(args) => records::record_formats(args),
        Task::Yaml(args) => records::record_scalars(args),
        Task::Grafana(args) => grafana::check_dashboards(args),
        Task::Health(args) => records::record_health(args),
        Task::Helm(args) => helm::check_charts(args),
        Task::Image(args) => image::check_image(args),
        Task::Makefile => makefile::check_makefile(),
        Task::Library => library::check_sources(),
        Task::Kubernetes(args) => kubernetes::record(args),
        Task::Mutations(args) => records::record_mutations(args),
        Task::Objects(args) => records::record_objects(args),
        Task::Oracle(args) => oracle::record_manifests(args),
        Task::Pages => pages::check_pages(),
        Task::Patterns(args) => patterns::record_verdicts(args),
        Task::Pictures(args) => pictures::update_pictures(args),
        Task::Protobuf(args) => protobuf::update_table(args),
        Task::Release(args) => release::check_release(args),
        Task::Scaffold(args) => scaffold::walk_journeys(args),
        Task::SharedCluster => shared_cluster::check_shared_cluster(),
        Task::SimulateScale => simulate_scale::print_tables(),
        Task::Tables(args) => tables::record(args),
        Task::Templates(args) => templates::record_templates(args),
        Task::Tidy => tidy::check_conventions(),
        Task::Tutorials(args) => tutorials::follow_pages(args),
        Task::Versions(args) if args.peers => peers::check_peers(),
        Task::Versions(args) => versions::write_versions(args),
        Task::Workflows => workflows::run_steps(),
    }
}
