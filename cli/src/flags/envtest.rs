//! Flags of `rbuilder envtest`. Flags and variables with the names of `setup-envtest`'s have the
//! same meaning.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{Args, Subcommand};

use super::{Output, parse_seconds};
pub use rbuilder_control_plane::downloads::selector::Selector;

/// A subcommand of `envtest`.
#[derive(Debug, Subcommand)]
pub enum Envtest {
    /// Download the binaries unless they are installed, and print their directory
    Install(Box<InstallFlags>),
    /// List installed and available versions
    List(ListFlags),
    /// Print the directory of an installed version
    Path(PathFlags),
    /// Remove installed versions
    Remove(RemoveFlags),
}

impl Envtest {
    /// Returns the command as typed, for the JSON output.
    pub fn name(&self) -> &'static str {
        match self {
            Envtest::Install(_) => "envtest install",
            Envtest::List(_) => "envtest list",
            Envtest::Path(_) => "envtest path",
            Envtest::Remove(_) => "envtest remove",
        }
    }

    /// Returns the output format.
    pub fn output(&self) -> Output {
        self.store().output
    }

    /// Returns the flags that all subcommands share.
    pub fn store(&self) -> &StoreFlags {
        match self {
            Envtest::Install(flags) => &flags.store,
            Envtest::List(flags) => &flags.store,
            Envtest::Path(flags) => &flags.store,
            Envtest::Remove(flags) => &flags.store,
        }
    }
}

/// Flags that choose the store and what to look for in it.
#[derive(Clone, Debug, Args)]
pub struct StoreFlags {
    /// Store the versions in DIR/k8s [default: the directory of setup-envtest for this user]
    #[arg(long, value_name = "DIR")]
    pub bin_dir: Option<PathBuf>,
    /// Operating system, as Go names it; `*` for all, when listing or removing [default: this one]
    #[arg(long)]
    pub os: Option<String>,
    /// Processor architecture, as Go names it; `*` for all, when listing or removing [default: this one]
    #[arg(long)]
    pub arch: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub output: Output,
}

/// Flags about the index of available versions.
#[derive(Clone, Debug, Args)]
pub struct IndexFlags {
    /// URL of the index [default: that of the Kubernetes project]
    #[arg(long, value_name = "URL")]
    pub index: Option<String>,
    /// Download from this server instead: replaces scheme and host of the index, unless `--index` is given, and of all
    /// archives in it
    #[arg(long, value_name = "URL", env = "RBUILDER_ENVTEST_MIRROR")]
    pub mirror: Option<String>,
    /// Seconds to wait for a connection or for data
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = parse_seconds)]
    pub timeout: Duration,
    /// Use installed versions only, without any network access
    #[arg(short, long, env = "ENVTEST_INSTALLED_ONLY", value_parser = FalseyValueParser::new())]
    pub installed_only: bool,
}

/// Flags of `envtest install`.
#[derive(Clone, Debug, Args)]
pub struct InstallFlags {
    /// `1.35.2`, `1.35`, `~1.35.1`, `latest`, …; `!` at the end looks for a newer patch than the installed one
    /// [default: the Kubernetes version of the project]
    #[arg(value_name = "VERSION")]
    pub selector: Option<Selector>,
    /// Install the version again
    #[arg(long)]
    pub force: bool,
    /// Install VERSION from this archive (`-`: from standard input) instead of downloading one
    #[arg(long, value_name = "FILE", requires = "selector")]
    pub from: Option<PathBuf>,
    /// Expected sha512 checksum of the archive
    #[arg(long, value_name = "HEX", requires = "from")]
    pub sha512: Option<String>,
    /// Print what would be downloaded, without downloading it
    #[arg(long, conflicts_with = "from")]
    pub dry_run: bool,
    /// Print a shell command that sets KUBEBUILDER_ASSETS
    #[arg(long)]
    pub env: bool,
    /// Use the directory in KUBEBUILDER_ASSETS if it has all binaries
    #[arg(long, env = "ENVTEST_USE_ENV", value_parser = FalseyValueParser::new())]
    pub use_env: bool,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub index: IndexFlags,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub store: StoreFlags,
}

/// Flags of `envtest list`.
#[derive(Clone, Debug, Args)]
pub struct ListFlags {
    /// `1.35`, `<1.35`, … [default: all versions]
    #[arg(value_name = "VERSION")]
    pub selector: Option<Selector>,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub index: IndexFlags,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub store: StoreFlags,
}

/// Flags of `envtest path`.
#[derive(Clone, Debug, Args)]
pub struct PathFlags {
    /// `1.35.2`, `1.35`, `latest`, … [default: the Kubernetes version of the project]
    #[arg(value_name = "VERSION")]
    pub selector: Option<Selector>,
    /// Print a shell command that sets KUBEBUILDER_ASSETS
    #[arg(long)]
    pub env: bool,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub store: StoreFlags,
}

/// Flags of `envtest remove`.
#[derive(Clone, Debug, Args)]
pub struct RemoveFlags {
    /// `1.35.2`, `1.35`, `<1.35`, …
    #[arg(value_name = "VERSION", required_unless_present = "all")]
    pub selector: Option<Selector>,
    /// Remove all versions
    #[arg(long, conflicts_with = "selector")]
    pub all: bool,
    /// Print what would be removed, without removing it
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub store: StoreFlags,
}
