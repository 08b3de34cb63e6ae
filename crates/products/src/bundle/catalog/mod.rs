//! A file-based catalog with this and earlier releases.

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

/// A package's catalog. Empty before the first release. The file may contain documents of other
/// packages, which are preserved.
#[derive(Debug)]
pub struct Catalog {
    package: String,
    documents: Vec<Document>,
}

/// The version that a release replaces in a channel.
struct Edge<'a> {
    channel: &'a str,
    replaced: Option<String>,
}

impl Catalog {
    /// Returns the path of a package's catalog.
    pub fn path(package: &str) -> String {
        format!("catalog/{package}/catalog.yaml")
    }

    /// Parses a package's catalog.
    ///
    /// # Errors
    /// Returns an error if the text is not YAML, if a value has a different type than the lifecycle
    /// manager expects, or if two documents have the same name, because merging would lose
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

    /// Returns the package's default channel.
    pub fn default_channel(&self) -> Option<&str> {
        self.of_schema(PACKAGE).next()?["defaultChannel"].as_str()
    }

    /// Returns the name of the version that a release replaces in its first channel.
    pub fn find_replaced(&self, options: &BundleOptions) -> Option<String> {
        let requested = options.replaces.as_ref().map(|version| options.csv_name(version));
        let found = || {
            let channel = Channel::read(self.named(CHANNEL, options.channels.first()?)?);
            channel.find_replaced(&options.csv_name(&options.version), &options.skipped_names())
        };
        requested.or_else(|| found().map(str::to_owned))
    }

    /// Returns the highest version of the package in any channel. If `below` is set, considers only
    /// lower versions.
    pub fn highest_version(&self, below: Option<&Version>) -> Option<Version> {
        let channels: Vec<Channel> = self.of_schema(CHANNEL).map(Channel::read).collect();
        let prefix = format!("{}.v", self.package);
        let names = channels.iter().flat_map(Channel::names);
        let versions = names.filter_map(|name| Version::parse(name.strip_prefix(&prefix)?).ok());
        versions
            .filter(|version| below.is_none_or(|below| version < below))
            .max()
    }

    /// Returns the channels of a release in which no earlier version upgrades to it.
    pub fn unreached_channels(&self, options: &BundleOptions) -> Vec<String> {
        let has_range = options.skip_range.is_some() || !options.skips.is_empty();
        let edges = self.find_edges(options.replaced.as_deref(), options);
        edges
            .into_iter()
            .filter(|edge| edge.replaced.is_none() && !has_range)
            .map(|edge| edge.channel.to_owned())
            .collect()
    }

    /// Returns the edges of a release in its channels. `first` is the version that its
    /// ClusterServiceVersion replaces, which applies to the first channel.
    fn find_edges<'a>(&self, first: Option<&str>, options: &'a BundleOptions) -> Vec<Edge<'a>> {
        let edge = |channel| Edge {
            channel,
            replaced: self.find_replaced_in(channel, first, options),
        };
        options.channels.iter().map(|channel| edge(channel)).collect()
    }

    /// Returns the name of the version that a release replaces in a channel. An otherwise empty
    /// channel gets the edge of the first channel, because clusters switch to it from there.
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
        if channel == options.channels[0] || entries.names().all(|name| name == own) {
            return first.map(str::to_owned);
        }
        let requested = options.replaces.as_ref().map(|version| options.csv_name(version));
        let found = || entries.find_replaced(&own, &options.skipped_names());
        requested
            .filter(|name| has(name))
            .or_else(|| found().map(str::to_owned))
    }

    /// Returns whether every channel remains valid with a release.
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

    /// Returns the document with the given schema and name.
    fn named(&self, schema: &str, name: &str) -> Option<&Value> {
        let mut documents = self.of_schema(schema);
        documents.find(|document| document["name"] == name)
    }

    /// Returns the package's documents with the given schema.
    fn of_schema(&self, schema: &str) -> impl Iterator<Item = &Value> {
        self.in_package(schema, &self.package)
    }

    /// Returns the documents with the given schema that belong to `package`.
    fn in_package(&self, schema: &str, package: &str) -> impl Iterator<Item = &Value> {
        let values = self.documents.iter().map(|document| &document.value);
        values.filter(move |value| value["schema"] == schema && package_of(value) == Some(package))
    }
}

/// Returns the name of the package that a catalog document belongs to.
fn package_of(document: &Value) -> Option<&str> {
    match document["schema"].as_str()? {
        PACKAGE => document["name"].as_str(),
        CHANNEL | BUNDLE | DEPRECATIONS => document["package"].as_str(),
        _ => None,
    }
}
