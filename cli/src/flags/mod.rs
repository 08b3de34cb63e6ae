//! The command line: parses commands and flags. The commands turn the flags into requests.
//!
//! # Adding a subcommand
//!
//! 1. Add a variant of [`Command`] with its flags, in a file of their own if there are several, its
//!    examples to `examples.rs`, and its name to a group in `groups.rs`.
//! 2. Add a file to `cli/src/commands/`, its `mod` to `mod.rs` and a row to `table.rs` there. If
//!    the command needs the feature `control-plane`, both directories have a
//!    `without_control_plane.rs` for builds without it.
//! 3. Add a row to `cli/src/peers/table.rs` (a test requires the command in
//!    docs/from-kubebuilder.md, which has these rows) and run `SNAPSHOTS=overwrite cargo test -p
//!    rbuilder-cli --test suite from_kubebuilder::`.
//! 4. Test it: a case in `cli/tests/commands.rs`, or a file with its `mod` in `cli/tests/suite.rs`.
//!    No test reports that the command is missing from these lists: `CHANGING` in
//!    `cli/tests/update.rs` (commands that change files), `COMMANDS` in `cli/tests/fuzz_trees.rs`,
//!    the commands in `cli/tests/line_ends.rs`, and `PRINTS` in `cli/tests/hostile/output.rs`.
//! 5. Run `cargo xtask docs`.

mod adopt;
mod bundle;
mod cluster;
mod delete;
mod diff;
mod docs;
mod doctor;
mod edit;
#[cfg(feature = "control-plane")]
mod envtest;
mod examples;
mod explain;
mod groups;
mod import;
mod library;
mod manifests;
mod migrate_storage;
mod product;
mod requests;
mod simulate;
mod types;
mod update;
mod validate;
#[cfg(not(feature = "control-plane"))]
mod without_control_plane;

use std::ffi::OsString;
use std::num::{NonZeroU16, NonZeroU32};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::engine::Mode;
pub use crate::engine::Output;
pub use crate::shell::Color;
pub use adopt::AdoptFlags;
pub use bundle::BundleFlags;
pub use cluster::{
    ClusterFlags, DeployFlags, DevFlags, GenerationFlags, InstallCrdsFlags, RemovalFlags, RunFlags,
    UndeployFlags,
};
pub use delete::{Delete, DeleteApiFlags, DeleteControllerFlags, DeleteKindFlags, DeleteWebhookFlags};
pub use diff::{DiffFlags, DiffFormat, FailLevel};
pub use docs::{DocsFlags, PageFormat};
pub use doctor::DoctorFlags;
pub use edit::{EditFlags, Feature, SettingFlags};
#[cfg(feature = "control-plane")]
pub use envtest::{
    Envtest, IndexFlags, InstallFlags, ListFlags, PathFlags, RemoveFlags, Selector, StoreFlags,
};
pub(crate) use examples::find_examples;
pub use examples::{EXAMPLES, command};
pub use explain::{ExplainFlags, ReferencePage};
pub use groups::GROUPS;
pub use import::ImportFlags;
pub use library::{InitLibraryFlags, LibraryFlags, LibraryForm};
pub use manifests::{ManifestsFlags, MessageFormat, Only, SourceFlags, TargetFlags};
pub use migrate_storage::{MigrateStorageFlags, Migrator};
pub use product::{ProductFlags, ProductMergeFlags};
pub use simulate::SimulateFlags;
pub use types::TypesFlags;
pub use update::{MergeFlags, UpdateFlags};
pub use validate::{FieldLevel, ValidateFlags, ValidateFormat};
#[cfg(not(feature = "control-plane"))]
pub use without_control_plane::Envtest;

/// Scaffold Kubernetes operators in Rust and generate their manifests
#[derive(Debug, Parser)]
#[command(
    name = "rbuilder",
    version,
    propagate_version = false,
    arg_required_else_help = true
)]
pub struct Cli {
    /// Project directory or a directory below it; paths in messages are relative to it, paths in JSON and diffs to the project
    #[arg(
        short = 'C',
        long = "project-dir",
        global = true,
        value_name = "DIR",
        default_value = "."
    )]
    pub dir: PathBuf,
    /// When to use color
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: Color,
    /// Print only errors, warnings and results
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Also print calls of kubectl, and files that stay as they are
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// A command with its flags.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Initialize a new project
    Init(InitFlags),
    /// Scaffold a Kubernetes API or webhook
    #[command(subcommand)]
    Create(Create),
    /// Create a Rust project from a kubebuilder project in Go: types, controllers, webhooks, samples and manifests, with a list
    /// of what to port by hand
    Import(Box<ImportFlags>),
    /// Generate Rust types from CRDs, from which `manifests` generates the same CRDs
    Types(TypesFlags),
    /// Delete a scaffolded API, controller or webhook
    #[command(subcommand)]
    Delete(Delete),
    /// Change settings of the project and update its scaffold
    Edit(EditFlags),
    /// Show or change the source of the rbuilder library: a version, a git repository or a path
    Library(LibraryFlags),
    /// Update the scaffold of the project to this version of rbuilder, keeping your changes
    Update(UpdateFlags),
    /// Check the tools on this machine and the state of the project
    Doctor(DoctorFlags),
    /// Explain a code of a message, or list all codes
    Explain(ExplainFlags),
    /// Judge objects as the API server would: the project's samples, or any files
    Validate(Box<ValidateFlags>),
    /// Compare CRDs, roles and webhook configurations with an older state, and report what breaks, with objects that show it
    Diff(Box<DiffFlags>),
    /// Generate CRDs, RBAC roles and webhook configurations from the markers in the source
    Manifests(Box<ManifestsFlags>),
    /// Generate a Helm chart from the manifests in config/, keeping your changes
    Helm(ProductFlags),
    /// Generate an API reference of the project's kinds, or of any CRDs, as an HTML page or Markdown
    Docs(Box<DocsFlags>),
    /// Compare the kinds of a kube-rs package or workspace with the committed CRDs, and make `manifests` write the CRDs where
    /// these are
    Adopt(AdoptFlags),
    /// Generate a bundle and a catalog for the Operator Lifecycle Manager, keeping your changes
    Bundle(BundleFlags),
    /// Generate Grafana dashboards and Prometheus rules for the operator's metrics, keeping your changes
    Grafana(ProductMergeFlags),
    /// Install the CRDs into a cluster
    Install(InstallCrdsFlags),
    /// Delete the CRDs and all custom resources from a cluster
    Uninstall(RemovalFlags),
    /// Deploy the manager to a cluster, with the CRDs and permissions
    Deploy(DeployFlags),
    /// Delete the manager, the CRDs and all custom resources from a cluster
    Undeploy(UndeployFlags),
    /// Write the objects of CRDs again, so that all are stored in the storage version, and trim `status.storedVersions`
    MigrateStorage(Box<MigrateStorageFlags>),
    /// Run the manager on this machine, against a cluster
    Run(RunFlags),
    /// Run the manager against a local control plane, and restart it when the source changes
    Dev(DevFlags),
    /// Run the simulations in the project's tests with a larger budget, keep the histories that fail, and write an HTML page
    Simulate(SimulateFlags),
    /// Manage the binaries of test environments: etcd, kube-apiserver and kubectl
    #[cfg_attr(feature = "control-plane", command(subcommand))]
    Envtest(Envtest),
    /// Generate a completion script for the specified shell
    Completion {
        /// Shell to generate the script for
        shell: clap_complete::Shell,
    },
    /// Print the version information
    Version,
    /// Print the manual page of a command
    Man {
        /// Command, as typed: `create api`
        command: Vec<String>,
    },
    /// Print a page of the guide that is generated from the tables of the command
    #[command(hide = true)]
    Reference {
        /// Page
        #[arg(value_enum, default_value = "commands")]
        page: ReferencePage,
    },
}

/// Parses a command line, including the program's name.
///
/// # Errors
/// Fails if the command line is invalid, or if it asks for help or the version.
pub fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = groups::group_commands(Cli::command());
    let matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Finds `--color` in an unparsed command line, because parse errors are colored, too.
pub(crate) fn color_in(arguments: &[OsString]) -> Color {
    let words = arguments.iter().skip(1).take_while(|word| *word != "--");
    let words: Vec<&str> = words.filter_map(|word| word.to_str()).collect();
    let value = words
        .iter()
        .enumerate()
        .find_map(|(place, word)| match word.strip_prefix("--color")? {
            "" => words.get(place + 1).copied(),
            value => value.strip_prefix('='),
        });
    let parsed = value.and_then(|value| Color::from_str(value, false).ok());
    parsed.unwrap_or(Color::Auto)
}

/// A subcommand of `create`.
#[derive(Debug, Subcommand)]
pub enum Create {
    /// Scaffold a Kubernetes API: types, controller and manifests
    Api(ApiFlags),
    /// Scaffold webhooks for an API resource
    Webhook(WebhookFlags),
}

/// Flags of every command that changes files.
#[derive(Clone, Copy, Debug, Args)]
pub struct PlanFlags {
    /// Print the changes as a unified diff without writing any file
    #[arg(long)]
    pub dry_run: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub output: Output,
}

impl PlanFlags {
    /// Returns how the command shows its plan.
    pub fn mode(self) -> Mode {
        let PlanFlags { dry_run, output } = self;
        Mode { dry_run, output }
    }
}

impl ValueEnum for Color {
    fn value_variants<'a>() -> &'a [Self] {
        &[Color::Auto, Color::Always, Color::Never]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Color::Auto => PossibleValue::new("auto").help("On terminals, unless `NO_COLOR` is set"),
            Color::Always => PossibleValue::new("always").help("Always"),
            Color::Never => PossibleValue::new("never").help("Never"),
        })
    }
}

impl ValueEnum for Output {
    fn value_variants<'a>() -> &'a [Self] {
        &[Output::Text, Output::Json]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Output::Text => PossibleValue::new("text").help("Human-readable"),
            Output::Json => PossibleValue::new("json").help("A JSON document on standard output"),
        })
    }
}

/// Flags of `init`.
#[derive(Clone, Debug, Args)]
pub struct InitFlags {
    /// Directory of the new project; created if it does not exist [default: the project directory]
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Domain for API groups, such as `example.com` [default with `--in-package`: that of the kinds]
    #[arg(long)]
    pub domain: Option<String>,
    /// Name of the project, a DNS label of at most 28 characters [default: the name of the directory]
    #[arg(long, value_name = "NAME")]
    pub project_name: Option<String>,
    /// Owner to add to the copyright header of each source file
    #[arg(long)]
    pub owner: Option<String>,
    /// License of the project [default: detected from the file LICENSE, or apache2]
    #[arg(long, value_enum)]
    pub license: Option<License>,
    /// Restrict the manager to its own namespace: scaffold a Role, not a ClusterRole
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub namespaced: Option<bool>,
    /// Lay out APIs by group, to support multiple API groups
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub multigroup: Option<bool>,
    /// Overwrite files that already exist
    #[arg(long)]
    pub force: bool,
    /// Adopt the kube-rs package in the directory: add deployment manifests and an end-to-end test, and keep its code and files
    #[arg(long, conflicts_with_all = ["force", "library"])]
    pub in_package: bool,
    /// Binary of the package to run in the image, with `--in-package` [default: the same as `cargo run`, or the only one that runs controllers]
    #[arg(long, value_name = "NAME", requires = "in_package")]
    pub bin: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub library: InitLibraryFlags,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub plan: PlanFlags,
}

/// A license that `init` can scaffold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum License {
    /// Apache-2.0
    Apache2,
    /// MIT
    Mit,
    /// No license
    None,
}

impl License {
    /// Returns the name used in flags and in PROJECT.
    pub fn name(self) -> &'static str {
        match self {
            License::Apache2 => "apache2",
            License::Mit => "mit",
            License::None => "none",
        }
    }
}

/// Checks that an image reference is a single word.
pub(crate) fn parse_image(text: &str) -> Result<String, String> {
    match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(text.to_owned()),
        false => Err("expected an image such as `registry.example.com/shop:v1.2.3`".to_owned()),
    }
}

/// Parses a time limit in seconds.
fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds @ 1..=86_400) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!(
            "expected a number of seconds from 1 to 86400, found `{text}`"
        )),
    }
}

/// Flags of `create api` for a controller that runs an image.
#[derive(Clone, Debug, Default, Args)]
pub struct ImageFlags {
    /// Scaffold a controller that runs this image in a Deployment for each object
    #[arg(long = "image", value_name = "IMAGE", value_parser = parse_image)]
    pub name: Option<String>,
    /// Command and arguments of the container, separated by commas [default: those of the image]
    #[arg(
        long = "image-container-command",
        value_name = "WORDS",
        requires = "name",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub command: Vec<String>,
    /// Port that the container listens on
    #[arg(long = "image-container-port", value_name = "PORT", requires = "name")]
    pub port: Option<NonZeroU16>,
    /// User ID to run the container as, other than 0 [default: that of the image]
    #[arg(long, value_name = "UID", requires = "name")]
    pub run_as_user: Option<NonZeroU32>,
}

/// Flags of `create api`.
#[derive(Clone, Debug, Args)]
pub struct ApiFlags {
    /// API group without the domain, such as `cache`, or a built-in group, such as `apps` [default: the domain alone, or the
    /// core group]
    #[arg(long, default_value = "", hide_default_value = true)]
    pub group: String,
    /// Domain of the API group [default: the recorded one of the kind, or the domain of the project]
    #[arg(long = "domain", value_name = "DOMAIN")]
    pub api_domain: Option<String>,
    /// API version, such as `v1alpha1`
    #[arg(
        long,
        required_unless_present = "from_crd",
        default_value = "",
        hide_default_value = true
    )]
    pub version: String,
    /// Kind in upper camel case, such as `Memcached`
    #[arg(
        long,
        required_unless_present = "from_crd",
        default_value = "",
        hide_default_value = true
    )]
    pub kind: String,
    /// CRD file, or `-` for standard input: scaffold its kind in all versions, with types; select one of several CRDs with
    /// `--kind`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "path"])]
    pub from_crd: Option<PathBuf>,
    /// Resource name: the lowercase plural of the kind [default: the English plural]
    #[arg(long)]
    pub plural: Option<String>,
    /// Make the resource namespaced [default: true]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub namespaced: Option<bool>,
    /// Generate the API types [default: true, unless `--controller` is passed for a built-in kind; asked for on a
    /// terminal]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub resource: Option<bool>,
    /// Generate a controller [default: true, unless the kind already has one; asked for on a terminal]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub controller: Option<bool>,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub image: ImageFlags,
    /// Name of the controller, if the kind has several [default: the kind in lower case]
    #[arg(long, value_name = "NAME")]
    pub controller_name: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub external: ExternalFlags,
    /// Generate manifests after scaffolding
    #[arg(long, alias = "make", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true", value_name = "BOOL", action = clap::ArgAction::Set)]
    pub manifests: bool,
    /// Overwrite existing files of this resource
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub plan: PlanFlags,
}

/// Flags of a kind of another project, whose type another crate has.
#[derive(Clone, Debug, Default, Args)]
pub struct ExternalFlags {
    /// Rust path of the type, for a kind that another project defines, such as `crate::gateway_api::v1::gateway::Gateway`
    #[arg(long = "external-path", alias = "external-api-path", value_name = "TYPE")]
    pub path: Option<String>,
    /// Crate of the type with its version, `name@version`, to add to Cargo.toml
    #[arg(
        long = "external-crate",
        alias = "external-api-module",
        value_name = "CRATE",
        requires = "path"
    )]
    pub package: Option<String>,
    /// Domain of the API group of the kind, if `--group` does not include it
    #[arg(
        long = "external-domain",
        alias = "external-api-domain",
        value_name = "DOMAIN",
        requires = "path"
    )]
    pub domain: Option<String>,
}

/// Flags of `create webhook`.
#[derive(Clone, Debug, Args)]
pub struct WebhookFlags {
    /// API group without the domain, such as `cache`, or a built-in group, such as `apps` [default: the domain alone, or the
    /// core group]
    #[arg(long, default_value = "", hide_default_value = true)]
    pub group: String,
    /// Domain of the API group [default: the recorded one of the kind, or the domain of the project]
    #[arg(long = "domain", value_name = "DOMAIN")]
    pub api_domain: Option<String>,
    /// API version, such as `v1alpha1`; with `--conversion`, the hub version
    #[arg(long)]
    pub version: String,
    /// Kind in upper camel case, such as `Memcached`
    #[arg(long)]
    pub kind: String,
    /// Scaffold a defaulting (mutating) webhook
    #[arg(long)]
    pub defaulting: bool,
    /// Scaffold a validating webhook
    #[arg(long, alias = "programmatic-validation")]
    pub validation: bool,
    /// Scaffold a conversion webhook between this version and those in `--spoke`
    #[arg(long, requires = "spoke")]
    pub conversion: bool,
    /// Comma-separated list of spoke versions, which are converted to and from the hub version
    #[arg(long, value_delimiter = ',', value_name = "VERSIONS", requires = "conversion")]
    pub spoke: Vec<String>,
    /// URL path of the defaulting webhook, such as `/mutate-pods` [default: derived from the kind]
    #[arg(long, value_name = "PATH", requires = "defaulting")]
    pub defaulting_path: Option<String>,
    /// URL path of the validating webhook [default: derived from the kind]
    #[arg(long, value_name = "PATH", requires = "validation")]
    pub validation_path: Option<String>,
    /// Resource name, for a kind that another project defines: the lowercase plural of the kind [default: the English plural]
    #[arg(long, requires = "path")]
    pub plural: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub external: ExternalFlags,
    /// Generate manifests after scaffolding
    #[arg(long, alias = "make", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true", value_name = "BOOL", action = clap::ArgAction::Set)]
    pub manifests: bool,
    /// Overwrite existing files of these webhooks
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub plan: PlanFlags,
}
