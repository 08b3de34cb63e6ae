//! Flags of `migrate-storage`.

use clap::{Args, ValueEnum};

use super::{ClusterFlags, Output, SourceFlags};

/// Flags of `migrate-storage`.
#[derive(Clone, Debug, Args)]
pub struct MigrateStorageFlags {
    /// CustomResourceDefinitions, such as `cups.example.com` [default: those of the project]
    #[arg(value_name = "CRD")]
    pub names: Vec<String>,
    /// Send each write as a dry run: report the objects that the API server refuses, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Who writes the objects
    #[arg(long, value_enum, default_value = "auto", value_name = "WHO")]
    pub migrator: Migrator,
    /// Largest number of writes per second, 0 for no limit; implies `--migrator rbuilder` [default: 100]
    #[arg(long, value_name = "NUMBER")]
    pub qps: Option<u32>,
    /// Output format
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub output: Output,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub cluster: ClusterFlags,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub source: SourceFlags,
}

/// Who writes the objects of a storage migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Migrator {
    /// The cluster if it can, otherwise rbuilder
    Auto,
    /// The cluster, with the API `storagemigration.k8s.io`
    Cluster,
    /// rbuilder, with requests to the API server
    Rbuilder,
}
