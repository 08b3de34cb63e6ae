//! A file-based catalog with the bundle, and with those of earlier releases.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail};
use rbuilder_generator::yaml;
use serde_json::{Value, json};

use super::channel::{Channel, ChannelFault};
use super::{BundleOptions, SKIP_RANGE};
use crate::flags::is_version_range;
use crate::yaml_stream::parse_documents;

const PACKAGE: &str = "olm.package";
const CHANNEL: &str = "olm.channel";
const BUNDLE: &str = "olm.bundle";

/// The catalog of a package; empty before the first release. Its file may have documents of other packages, which stay as they are.
#[derive(Debug)]
pub(crate) struct Catalog {
    package: String,
    documents: Vec<Value>,
}

impl Catalog {
    /// Path of the catalog of a package.
    pub(crate) fn path(package: &str) -> String {
        format!("catalog/{package}/catalog.yaml")
    }

    /// Reads the text of the catalog of a package.
    ///
    /// # Errors
    /// Fails if it is not YAML, since its releases would be lost.
    pub(crate) fn parse(package: &str, text: &str) -> Result<Catalog> {
        let documents = parse_documents(text).with_context(|| {
            format!(
                "expected YAML in {}, which lists earlier releases",
                Catalog::path(package)
            )
        })?;
        Ok(Catalog {
            package: package.to_owned(),
            documents,
        })
    }

    /// Returns the default channel of the package.
    pub(crate) fn default_channel(&self) -> Option<&str> {
        self.of_schema(PACKAGE).next()?["defaultChannel"].as_str()
    }

    /// Returns the name of the version that a release replaces in its first channel.
    pub(crate) fn find_replaced(&self, options: &BundleOptions) -> Option<&str> {
        let channel = Channel::read(self.named(CHANNEL, options.channels.first()?)?);
        channel.find_replaced(&options.csv_name(&options.version), &options.skipped_names())
    }

    /// Returns the name of the version that a release replaces in a channel, where its ClusterServiceVersion, which is that of
    /// the first channel, replaces `first`. A channel without other versions has the same edge: clusters come to it from another.
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

    /// Checks the rules by which the lifecycle manager reads a catalog, as `opm validate` does.
    ///
    /// # Errors
    /// Fails with the first fault, and says how the release can be made without it.
    pub(crate) fn check(&self, options: &BundleOptions) -> Result<()> {
        let path = Catalog::path(&options.name);
        let mut listed = BTreeSet::new();
        for document in self.of_schema(CHANNEL) {
            let name = document["name"].as_str().unwrap_or_default();
            let channel = Channel::read(document);
            if let Err(fault) = channel.check() {
                let (found, help) = describe_fault(&fault, name, options);
                bail!("channel `{name}` of {path} {found}\n  = help: {help}");
            }
            check_skip_ranges(document, &path)?;
            listed.extend(channel.names().map(|entry| (entry, name)));
        }
        self.check_bundles(&listed, &path)?;
        let default = self.default_channel().unwrap_or_default();
        if self.named(CHANNEL, default).is_none() {
            bail!(
                "{path} has no channel `{default}`, which is the default\n  = help: add it to `--channels`, or pass another `--default-channel`"
            );
        }
        Ok(())
    }

    /// Checks that the entries of channels, by name and channel, have bundles, and bundles entries.
    fn check_bundles(&self, listed: &BTreeSet<(&str, &str)>, path: &str) -> Result<()> {
        if let Some((entry, channel)) = listed
            .iter()
            .find(|(entry, _)| self.named(BUNDLE, entry).is_none())
        {
            bail!(
                "the entry `{entry}` of channel `{channel}` has no bundle in {path}\n  = help: restore the document with the schema `{BUNDLE}` and this name, or remove the entry"
            );
        }
        let mut names = self
            .of_schema(BUNDLE)
            .filter_map(|bundle| bundle["name"].as_str());
        match names.find(|name| listed.iter().all(|(entry, _)| entry != name)) {
            Some(name) => bail!(
                "the bundle `{name}` of {path} is in no channel\n  = help: list it in the `entries` of a channel, or remove it"
            ),
            None => Ok(()),
        }
    }

    /// Returns the document of a schema and a name.
    fn named(&self, schema: &str, name: &str) -> Option<&Value> {
        let mut documents = self.of_schema(schema);
        documents.find(|document| document["name"] == name)
    }

    /// Returns the documents of a schema that belong to the package.
    fn of_schema(&self, schema: &str) -> impl Iterator<Item = &Value> {
        let documents = self.documents.iter();
        documents.filter(move |document| document["schema"] == schema && self.has(document))
    }

    /// Returns whether a document is one of those that are made for the package.
    fn has(&self, document: &Value) -> bool {
        let package = match document["schema"].as_str() {
            Some(PACKAGE) => &document["name"],
            Some(CHANNEL | BUNDLE) => &document["package"],
            _ => return false,
        };
        *package == *self.package
    }
}

/// Checks the `skipRange` of the entries of a channel.
fn check_skip_ranges(channel: &Value, path: &str) -> Result<()> {
    for entry in channel["entries"].as_array().into_iter().flatten() {
        match entry["skipRange"].as_str() {
            Some(range) if !is_version_range(range) => bail!(
                "expected a range such as `>=0.1.0 <0.3.0` in {path}, found `{range}` as the `skipRange` of {}\n  = help: compare with whole versions, and separate alternatives by `||`",
                entry["name"].as_str().unwrap_or_default()
            ),
            _ => {}
        }
    }
    Ok(())
}

/// Returns what a fault of a channel is and what to do about it.
fn describe_fault(fault: &ChannelFault<'_>, channel: &str, options: &BundleOptions) -> (String, String) {
    let path = Catalog::path(&options.name);
    let edit = |change: &str| format!("{change} in {path}");
    match fault {
        ChannelFault::Empty => ("has no entry".into(), edit("add an entry, or remove the channel")),
        ChannelFault::Twice(name) => (format!("has two entries `{name}`"), edit("remove one of them")),
        ChannelFault::Headless => (
            "has no head: each version is replaced or skipped by another".into(),
            edit("remove `replaces` and `skips` that lead to the newest version"),
        ),
        ChannelFault::Cycle(names) => (
            format!("has a cycle: {} -> {}", names.join(" -> "), names[0]),
            edit("let no version replace a newer one"),
        ),
        ChannelFault::Heads(heads) => (
            format!(
                "has {} heads: nothing replaces or skips {}",
                heads.len(),
                heads.join(" and ")
            ),
            advise_on_heads(heads, channel, options),
        ),
        ChannelFault::Stranded(names) => (
            format!(
                "has stranded versions, from which no upgrade leads to the head: {}",
                names.join(", ")
            ),
            edit("add them to `--skips`, or let a newer version replace or skip them"),
        ),
    }
}

/// Returns how a release is made so that a channel has one head; the highest of its heads is the first.
fn advise_on_heads(heads: &[&str], channel: &str, options: &BundleOptions) -> String {
    let path = Catalog::path(&options.name);
    let own = options.csv_name(&options.version);
    let (head, rest) = (heads[0], heads[1..].join(" and "));
    if heads[1..].contains(&own.as_str()) {
        let series: Vec<&str> = options.version.split('.').take(2).collect();
        let series = series.join(".");
        return format!(
            "release it in a channel of its own, such as `--channels {channel}-{series}`, or add `{own}` to the `skips` of {head} in {path} first"
        );
    }
    let prefix = options.csv_name("");
    let versions: Option<Vec<&str>> = heads[1..].iter().map(|name| name.strip_prefix(&prefix)).collect();
    let Some(versions) = versions.filter(|_| head == own) else {
        return format!("let {head} replace or skip {rest} in {path}");
    };
    let skips = format!("pass `--skips {}` to upgrade over it", versions.join(","));
    match &options.replaces {
        Some(_) => format!("leave out `--replaces`, or {skips}"),
        None => skips,
    }
}

/// Prints the catalog: the package, its channels, the bundles, and what else people have added. `csv` is the
/// ClusterServiceVersion with the changes of people, `written` the catalog that the release is added to, and `present` the one
/// by which its edges are found.
pub(crate) fn print_catalog(
    csv: &Value,
    options: &BundleOptions,
    written: &Catalog,
    present: &Catalog,
) -> String {
    let spec = &csv["spec"];
    let name = &csv["metadata"]["name"];
    let mut documents = vec![json!({
        "schema": PACKAGE,
        "name": options.name,
        "defaultChannel": options.default_channel,
        "description": spec["description"],
        "icon": spec["icon"][0],
    })];
    let mut channels: Vec<Value> = written.of_schema(CHANNEL).cloned().collect();
    for channel in &options.channels {
        let new = json!({ "schema": CHANNEL, "package": options.name, "name": channel });
        let mut document = written.named(CHANNEL, channel).cloned().unwrap_or(new);
        let entries = document["entries"].as_array().cloned().unwrap_or_default();
        let replaced = present.find_replaced_in(channel, spec["replaces"].as_str(), options);
        document["entries"] = put(entries, channel_entry(csv, replaced)).into();
        channels = put(channels, document);
    }
    documents.extend(channels);
    let bundle = json!({
        "schema": BUNDLE,
        "package": options.name,
        "name": name,
        "image": options.bundle_image,
        "properties": properties(csv, options),
        "relatedImages": related_images(spec, options),
    });
    documents.extend(put(written.of_schema(BUNDLE).cloned().collect(), bundle));
    let others = written.documents.iter().filter(|document| !written.has(document));
    documents.extend(others.cloned());
    documents
        .iter()
        .map(|document| format!("---\n{}", yaml::to_string(document)))
        .collect()
}

/// Returns the entry of the release in a channel.
fn channel_entry(csv: &Value, replaced: Option<String>) -> Value {
    let mut entry = json!({ "name": csv["metadata"]["name"] });
    if let Some(replaced) = replaced {
        entry["replaces"] = json!(replaced);
    }
    let annotations = &csv["metadata"]["annotations"];
    for (key, value) in [
        ("skips", &csv["spec"]["skips"]),
        ("skipRange", &annotations[SKIP_RANGE]),
    ] {
        if !value.is_null() {
            entry[key] = value.clone();
        }
    }
    entry
}

/// Puts a value in the place of the one with its name, or first: a merge takes lines that follow the changes of people for
/// a conflict with these, and people add to an entry at its end.
fn put(mut values: Vec<Value>, new: Value) -> Vec<Value> {
    match values.iter_mut().find(|value| value["name"] == new["name"]) {
        Some(value) => *value = new,
        None => values.insert(0, new),
    }
    values
}

fn properties(csv: &Value, options: &BundleOptions) -> Vec<Value> {
    let spec = &csv["spec"];
    let mut properties = vec![json!({
        "type": "olm.package",
        "value": { "packageName": options.name, "version": options.version },
    })];
    for (key, property) in [("owned", "olm.gvk"), ("required", "olm.gvk.required")] {
        let crds = spec["customresourcedefinitions"][key].as_array();
        for crd in crds.into_iter().flatten() {
            let name = crd["name"].as_str().unwrap_or_default();
            let (_, group) = name.split_once('.').unwrap_or_default();
            let value = json!({ "group": group, "version": crd["version"], "kind": crd["kind"] });
            properties.push(json!({ "type": property, "value": value }));
        }
    }
    let mut metadata = json!({ "annotations": csv["metadata"]["annotations"] });
    metadata["crdDescriptions"] = spec["customresourcedefinitions"].clone();
    for key in [
        "displayName",
        "description",
        "installModes",
        "keywords",
        "maintainers",
        "maturity",
        "minKubeVersion",
        "provider",
    ] {
        if let Some(value) = spec.get(key) {
            metadata[key] = value.clone();
        }
    }
    properties.push(json!({ "type": "olm.csv.metadata", "value": metadata }));
    properties
}

fn related_images(spec: &Value, options: &BundleOptions) -> Vec<Value> {
    let mut images = spec["relatedImages"].as_array().cloned().unwrap_or_default();
    images.insert(0, json!({ "name": "", "image": options.bundle_image }));
    images
}
