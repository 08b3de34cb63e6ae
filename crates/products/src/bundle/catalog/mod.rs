//! A file-based catalog of this release and earlier ones.

mod channel;
mod check;
mod release;
mod shape;

use anyhow::Result;
use semver::Version;
use serde_json::Value;

use self::channel::Channel;
pub(super) use self::check::check_csv_types;
pub use self::check::{CheckedRelease, check_csv};
pub use self::release::add_release;
use super::BundleOptions;
use rbuilder_yaml::{Document, read_documents};

const PACKAGE: &str = "olm.package";
const CHANNEL: &str = "olm.channel";
const BUNDLE: &str = "olm.bundle";
const DEPRECATIONS: &str = "olm.deprecations";

/// The catalog of a package; empty before the first release. Documents of other packages in the
/// same file are kept.
#[derive(Debug)]
pub struct Catalog {
    package: String,
    documents: Vec<Document>,
}

struct Edge<'a> {
    channel: &'a str,
    replaced: Option<String>,
}

impl Catalog {
    /// Path of a package's catalog.
    pub fn path(package: &str) -> String {
        format!("catalog/{package}/catalog.yaml")
    }

    /// Parses the catalog of a package.
    ///
    /// # Errors
    /// Fails if `text` isn't valid YAML, or if a value doesn't have the type that the lifecycle
    /// manager expects. Also fails on two documents of the same name, because merging would lose
    /// releases.
    pub fn parse(package: &str, text: &str) -> Result<Catalog> {
        let path = Catalog::path(package);
        let documents = read_documents(&path, text)?;
        documents
            .iter()
            .try_for_each(|document| check::check_document(document, &path))?;
        let catalog = Catalog {
            package: package.to_owned(),
            documents,
        };
        catalog.check_names(&path)?;
        Ok(catalog)
    }

    /// Default channel of the package.
    pub fn default_channel(&self) -> Option<&str> {
        self.of_schema(PACKAGE).next()?["defaultChannel"].as_str()
    }

    /// Version that a release replaces in its first channel.
    pub fn find_replaced(&self, options: &BundleOptions) -> Option<String> {
        let requested = options.replaces.as_ref().map(|version| options.csv_name(version));
        let found = || {
            let channel = Channel::read(self.named(CHANNEL, options.channels.first()?)?);
            channel.find_replaced(&options.csv_name(&options.version), &options.skipped_names())
        };
        requested.or_else(|| found().map(str::to_owned))
    }

    /// Highest version of the package in any channel, optionally limited to those lower than
    /// `below`.
    pub fn highest_version(&self, below: Option<&Version>) -> Option<Version> {
        let channels: Vec<Channel> = self.of_schema(CHANNEL).map(Channel::read).collect();
        let prefix = format!("{}.v", self.package);
        let names = channels.iter().flat_map(Channel::names);
        let versions = names.filter_map(|name| Version::parse(name.strip_prefix(&prefix)?).ok());
        versions
            .filter(|version| below.is_none_or(|below| version < below))
            .max()
    }

    /// Channels of a release in which no earlier version upgrades to it.
    pub fn unreached_channels(&self, options: &BundleOptions) -> Vec<String> {
        let has_range = options.skip_range.is_some() || !options.skips.is_empty();
        let edges = self.find_edges(options.replaced.as_deref(), options);
        edges
            .into_iter()
            .filter(|edge| edge.replaced.is_none() && !has_range)
            .map(|edge| edge.channel.to_owned())
            .collect()
    }

    /// The edges of a release in each of its channels. `first` is the version that the
    /// ClusterServiceVersion replaces, and applies to the first channel.
    fn find_edges<'a>(&self, first: Option<&str>, options: &'a BundleOptions) -> Vec<Edge<'a>> {
        let edge = |channel| Edge {
            channel,
            replaced: self.find_replaced_in(channel, first, options),
        };
        options.channels.iter().map(|channel| edge(channel)).collect()
    }

    fn find_replaced_in(
        &self,
        channel: &str,
        first: Option<&str>,
        options: &BundleOptions,
    ) -> Option<String> {
        let own = options.csv_name(&options.version);
        let entries = self
            .named(CHANNEL, channel)
            .map(Channel::read)
            .unwrap_or_default();
        let has = |name: &str| entries.names().any(|other| other == name);
        // Without other entries, clusters can only reach this channel from the first one, so it
        // gets the same edge.
        if channel == options.channels[0] || entries.names().all(|name| name == own) {
            return first.map(str::to_owned);
        }
        let requested = options.replaces.as_ref().map(|version| options.csv_name(version));
        let found = || entries.find_replaced(&own, &options.skipped_names());
        requested
            .filter(|name| has(name))
            .or_else(|| found().map(str::to_owned))
    }

    fn takes_release(&self, options: &BundleOptions) -> bool {
        let own = options.csv_name(&options.version);
        let skips = options.skipped_names();
        let first = self.find_replaced(options);
        let edges = self.find_edges(first.as_deref(), options);
        edges.iter().all(|edge| {
            let channel = self
                .named(CHANNEL, edge.channel)
                .map(Channel::read)
                .unwrap_or_default();
            let released = channel.with_release(&own, edge.replaced.as_deref(), &skips);
            released.check().is_ok()
        })
    }

    fn named(&self, schema: &str, name: &str) -> Option<&Value> {
        let mut documents = self.of_schema(schema);
        documents.find(|document| document["name"] == name)
    }

    fn of_schema(&self, schema: &str) -> impl Iterator<Item = &Value> {
        self.in_package(schema, &self.package)
    }

    fn in_package(&self, schema: &str, package: &str) -> impl Iterator<Item = &Value> {
        let values = self.documents.iter().map(|document| &document.value);
        values.filter(move |value| value["schema"] == schema && package_of(value) == Some(package))
    }
}

fn package_of(document: &Value) -> Option<&str> {
    match document["schema"].as_str()? {
        PACKAGE => document["name"].as_str(),
        CHANNEL | BUNDLE | DEPRECATIONS => document["package"].as_str(),
        _ => None,
    }
}
