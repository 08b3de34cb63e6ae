//! What can be typed. Nothing here is checked beyond its form: commands turn flags into requests.

mod manifests;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use manifests::{ManifestsFlags, MessageFormat, Only, SourceFlags, TargetFlags};

/// Scaffolds Kubernetes operators in Rust and generates their manifests.
#[derive(Debug, Parser)]
#[command(
    name = "rbuilder",
    version,
    propagate_version = false,
    arg_required_else_help = true
)]
pub struct Cli {
    /// Folder of the project
    #[arg(
        short = 'C',
        long = "project-dir",
        global = true,
        value_name = "FOLDER",
        default_value = "."
    )]
    pub dir: PathBuf,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a project
    Init(InitFlags),
    /// Add to a project
    #[command(subcommand)]
    Create(Create),
    /// Generate CRDs, roles and webhook configurations from the source, without compiling it
    Manifests(Box<ManifestsFlags>),
    /// Print a completion script for a shell
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the version
    Version,
    /// Print the manual page of a command
    #[command(hide = true)]
    Man {
        /// The command, as typed: `create api`
        command: Vec<String>,
    },
}

impl Command {
    /// The command as typed, for answers.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Init(_) => "init",
            Command::Create(Create::Api(_)) => "create api",
            Command::Create(Create::Webhook(_)) => "create webhook",
            Command::Manifests(_) => "manifests",
            Command::Completion { .. } => "completion",
            Command::Version => "version",
            Command::Man { .. } => "man",
        }
    }

    /// How the command was asked to answer.
    pub fn output(&self) -> Output {
        match self {
            Command::Init(flags) => flags.plan.output,
            Command::Create(Create::Api(flags)) => flags.plan.output,
            Command::Create(Create::Webhook(flags)) => flags.plan.output,
            Command::Manifests(flags) => flags.plan.output,
            Command::Completion { .. } | Command::Version | Command::Man { .. } => Output::Text,
        }
    }
}

/// What `create` can add.
#[derive(Debug, Subcommand)]
pub enum Create {
    /// Add a kind: its types, its controller, its manifests
    Api(ApiFlags),
    /// Add webhooks to a kind: functions that the API server asks about its objects
    Webhook(WebhookFlags),
}

/// Flags of every command that changes files.
#[derive(Clone, Copy, Debug, Args)]
pub struct PlanFlags {
    /// Show what would change as a unified diff, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// How to answer
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub output: Output,
}

/// How a command answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people
    Text,
    /// For programs: one JSON document on standard output
    Json,
}

/// Flags of `init`.
#[derive(Clone, Debug, Args)]
pub struct InitFlags {
    /// Folder of the new project, created when it is not there [default: the project folder]
    pub folder: Option<PathBuf>,
    /// Domain that API groups end in, like `example.com`
    #[arg(long)]
    pub domain: Option<String>,
    /// Name of the project, a DNS label [default: the folder's name]
    #[arg(long, value_name = "NAME")]
    pub project_name: Option<String>,
    /// Copyright holder, for the head of each source file
    #[arg(long)]
    pub owner: Option<String>,
    /// Licence of the project [default: apache2]
    #[arg(long, value_enum)]
    pub license: Option<License>,
    /// Let the manager watch its own namespace only
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub namespaced: Option<bool>,
    /// Keep APIs in folders by group, so that there can be several
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub multigroup: Option<bool>,
    /// Replace files that are in the way
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub plan: PlanFlags,
}

/// Licences that `init` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum License {
    /// Apache-2.0
    Apache2,
    /// MIT
    Mit,
    /// No licence is named
    None,
}

impl License {
    /// As it is typed and recorded.
    pub fn name(self) -> &'static str {
        match self {
            License::Apache2 => "apache2",
            License::Mit => "mit",
            License::None => "none",
        }
    }
}

/// Flags of `create api`.
#[derive(Clone, Debug, Args)]
pub struct ApiFlags {
    /// First part of the API group, like `cache`
    #[arg(long)]
    pub group: String,
    /// Version of the API, like `v1alpha1`
    #[arg(long)]
    pub version: String,
    /// Kind in upper camel case, like `Memcached`
    #[arg(long)]
    pub kind: String,
    /// Plural of the kind in lower case [default: the English one]
    #[arg(long)]
    pub plural: Option<String>,
    /// Whether objects live in namespaces [default: true]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub namespaced: Option<bool>,
    /// Whether to write the API types [default: true]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub resource: Option<bool>,
    /// Whether to write a controller [default: true, unless the kind has one]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub controller: Option<bool>,
    /// Whether to generate manifests afterwards
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true", value_name = "BOOL", action = clap::ArgAction::Set)]
    pub manifests: bool,
    /// Replace files of this kind that are in the way
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub plan: PlanFlags,
}

/// Flags of `create webhook`.
#[derive(Clone, Debug, Args)]
pub struct WebhookFlags {
    /// First part of the API group, like `cache`
    #[arg(long)]
    pub group: String,
    /// Version of the API, like `v1alpha1`; with `--conversion`, the one that all others are converted through
    #[arg(long)]
    pub version: String,
    /// Kind in upper camel case, like `Memcached`
    #[arg(long)]
    pub kind: String,
    /// Fill in what objects leave out
    #[arg(long)]
    pub defaulting: bool,
    /// Say whether objects may be stored
    #[arg(long, alias = "programmatic-validation")]
    pub validation: bool,
    /// Convert objects between this version and those of `--spoke`
    #[arg(long, requires = "spoke")]
    pub conversion: bool,
    /// Versions to convert, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "VERSIONS", requires = "conversion")]
    pub spoke: Vec<String>,
    /// Whether to generate manifests afterwards
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true", value_name = "BOOL", action = clap::ArgAction::Set)]
    pub manifests: bool,
    /// Replace files of these webhooks that are in the way
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub plan: PlanFlags,
}
