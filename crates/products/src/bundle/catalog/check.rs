//! The lifecycle manager's rules for a catalog, as in `opm validate`.
//!
//! A single invalid value makes it reject the entire catalog, so that no subscribed cluster sees
//! any release. See `ConvertToModel` and `Model.Validate` in operator-registry 1.61.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use semver::Version;
use serde_json::Value;

use super::channel::{Channel, ChannelFault, compare};
use super::release::replaced_by;
use super::shape::{self, Fields, check_fields};
use super::{BUNDLE, CHANNEL, Catalog, DEPRECATIONS, PACKAGE, package_of};
use crate::bundle::version::is_version_range;
use crate::bundle::{BundleOptions, SKIP_RANGE};
use rbuilder_yaml::Document;

/// The schemas that the lifecycle manager reads, with their names in messages and their fields.
const SCHEMAS: &[(&str, &str, Fields)] = &[
    (PACKAGE, "package", shape::PACKAGE),
    (CHANNEL, "channel", shape::CHANNEL),
    (BUNDLE, "bundle", shape::BUNDLE),
    (DEPRECATIONS, "deprecations", shape::DEPRECATIONS),
];

/// Checks a single document. The error is about the first value that is missing or has the wrong
/// type.
pub(super) fn check_document(document: &Document, path: &str) -> Result<()> {
    let value = &document.value;
    let place = format!("{path}:{}", document.line);
    if value.is_null() {
        bail!(
            "{place}: expected a document with a `schema`, found an empty one\n  = help: remove its `---`, and move comments below the next one"
        );
    }
    let envelope: Fields = &[
        ("schema", shape::Shape::Text),
        ("package", shape::Shape::Text),
        ("name", shape::Shape::Text),
    ];
    if let Err(fault) = check_fields(value, envelope) {
        bail!("{place}: {}", fault.message("a document of a catalog"));
    }
    let Some(schema) = text_of(&value["schema"]) else {
        bail!("{place}: expected a document with a `schema`, such as `{CHANNEL}`");
    };
    // The lifecycle manager ignores documents of other schemas.
    let Some((_, noun, fields)) = SCHEMAS.iter().find(|(known, ..)| *known == schema) else {
        return Ok(());
    };
    let of = match text_of(&value["name"]) {
        Some(name) => format!("{noun} `{name}`"),
        None => format!("the {noun}"),
    };
    if let Err(fault) = check_fields(value, fields) {
        bail!("{place}: {}", fault.message(&of));
    }
    let required: &[&str] = match schema {
        PACKAGE => &["name"],
        DEPRECATIONS => &["package"],
        _ => &["name", "package"],
    };
    if let Some(key) = required.iter().find(|key| text_of(&value[**key]).is_none()) {
        bail!("{place}: expected a `{key}` in {of}");
    }
    match schema {
        CHANNEL => check_entries(value, &of, &place),
        BUNDLE => check_bundle(value, &of, &place),
        _ => Ok(()),
    }
}

fn text_of(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn check_entries(channel: &Value, of: &str, place: &str) -> Result<()> {
    for (index, entry) in items(&channel["entries"]).enumerate() {
        let Some(name) = text_of(&entry["name"]) else {
            bail!(
                "{place}: expected a `name` in `entries[{index}]` of {of}\n  = help: name a bundle, or remove the entry"
            );
        };
        if items(&entry["skips"]).any(|name| text_of(name).is_none()) {
            bail!(
                "{place}: expected names of bundles in the `skips` of `{name}` in {of}, found an empty one"
            );
        }
        match text_of(&entry["skipRange"]) {
            Some(range) if !is_version_range(range) => bail!(
                "{place}: expected a range such as `>=0.1.0 <0.3.0` as the `skipRange` of `{name}` in {of}, found `{range}`\n  = help: compare with whole versions, and separate alternatives by `||`"
            ),
            _ => {}
        }
    }
    Ok(())
}

fn check_bundle(bundle: &Value, of: &str, place: &str) -> Result<()> {
    for (index, property) in items(&bundle["properties"]).enumerate() {
        let kind = text_of(&property["type"]).unwrap_or_default();
        let known = shape::PROPERTY_VALUES.iter().find(|(known, _)| *known == kind);
        if let Some(Err(fault)) = known.map(|(_, fields)| check_fields(&property["value"], fields)) {
            let of = format!("the property `{kind}` (`properties[{index}].value`) of {of}");
            bail!("{place}: {}", fault.message(&of));
        }
    }
    // A bundle needs no image if the catalog contains its objects.
    let has_objects = items(&bundle["properties"]).any(|property| property["type"] == "olm.bundle.object");
    if text_of(&bundle["image"]).is_none() && !has_objects {
        bail!("{place}: expected an `image` in {of}");
    }
    let values: Vec<&Value> = items(&bundle["properties"])
        .filter(|property| property["type"] == PACKAGE)
        .map(|property| &property["value"])
        .collect();
    let [value] = *values else {
        bail!(
            "{place}: expected one property `{PACKAGE}` in {of}, found {}\n  = help: it has the values `packageName` and `version`",
            values.len()
        );
    };
    if value["packageName"] != bundle["package"] {
        bail!(
            "{place}: expected the `package` of {of} as `packageName` of its property `{PACKAGE}`, found `{}`",
            value["packageName"].as_str().unwrap_or_default()
        );
    }
    match read_version(bundle) {
        Some(_) => Ok(()),
        None => bail!(
            "{place}: expected a version such as `1.2.3` in the property `{PACKAGE}` of {of}, found `{}`",
            value["version"].as_str().unwrap_or_default()
        ),
    }
}

fn read_version(bundle: &Value) -> Option<Version> {
    let property = items(&bundle["properties"]).find(|property| property["type"] == PACKAGE)?;
    Version::parse(property["value"]["version"].as_str()?).ok()
}

/// Checks the types and versions in a ClusterServiceVersion, and that each CRD entry names its
/// kind. `path` is the path for messages.
pub(crate) fn check_csv_types(csv: &Value, path: &str) -> Result<()> {
    if let Err(fault) = check_fields(csv, shape::CSV) {
        bail!("{}", fault.message(path));
    }
    for list in ["owned", "required"] {
        let entries = csv["spec"]["customresourcedefinitions"][list].as_array();
        for (at, entry) in entries.into_iter().flatten().enumerate() {
            if let Some(key) = ["name", "version", "kind"]
                .iter()
                .find(|key| text_of(&entry[**key]).is_none())
            {
                bail!(
                    "expected `{key}` in `spec.customresourcedefinitions.{list}[{at}]` of {path}, found nothing"
                );
            }
        }
    }
    let oldest = text_of(&csv["spec"]["minKubeVersion"]);
    if let Some(oldest) = oldest.filter(|oldest| Version::parse(oldest).is_err()) {
        bail!("expected a version such as `1.29.0` for `spec.minKubeVersion` of {path}, found `{oldest}`");
    }
    let range = text_of(&csv["metadata"]["annotations"][SKIP_RANGE]);
    if let Some(range) = range.filter(|range| !is_version_range(range)) {
        bail!(
            "expected a range such as `>=0.1.0 <0.3.0` as the annotation `{SKIP_RANGE}` in {path}, found `{range}`"
        );
    }
    Ok(())
}

/// Checks the merged ClusterServiceVersion, from which the catalog entry is generated.
///
/// # Errors
/// Fails if a value that goes into the catalog has the wrong type, or if it has the name or version
/// of another release.
pub fn check_csv(csv: &Value, options: &BundleOptions) -> Result<()> {
    let path = options.csv_path();
    check_csv_types(csv, &path)?;
    let name = options.csv_name(&options.version);
    for (key, expected, found) in [
        ("metadata.name", name.as_str(), &csv["metadata"]["name"]),
        ("spec.version", options.version.as_str(), &csv["spec"]["version"]),
    ] {
        if found != expected {
            bail!(
                "expected `{expected}` as `{key}` in {path}, found `{}`\n  = help: the catalog lists the release by its name: restore it, or pass the version as `--version`",
                found.as_str().unwrap_or_default()
            );
        }
    }
    Ok(())
}

/// A release to check as part of a catalog.
pub struct CheckedRelease<'a> {
    /// Options of its bundle.
    pub options: &'a BundleOptions,
    /// Its ClusterServiceVersion.
    pub csv: &'a Value,
    /// The catalog before the release was added.
    pub present: &'a Catalog,
}

impl Catalog {
    /// Checks a catalog against the lifecycle manager's rules.
    ///
    /// # Errors
    /// Returns the first fault, with help on how to avoid it.
    pub fn check(&self, release: &CheckedRelease<'_>) -> Result<()> {
        let path = Catalog::path(&self.package);
        self.check_owners(&path)?;
        for package in self
            .documents
            .iter()
            .filter(|document| document.value["schema"] == PACKAGE)
        {
            let name = package.value["name"].as_str().unwrap_or_default();
            self.check_package(name, release, &path)?;
        }
        Ok(())
    }

    pub(super) fn check_names(&self, path: &str) -> Result<()> {
        let mut seen = BTreeMap::new();
        for (line, schema, package, name) in self.identities() {
            if let Some(first) = seen.insert((schema, package, name), line) {
                bail!(
                    "{path}:{line}: the `{schema}` {} is also defined in line {first}\n  = help: remove one of the two documents",
                    quote_name(name)
                );
            }
        }
        Ok(())
    }

    /// Checks that every document belongs to a package in the file.
    fn check_owners(&self, path: &str) -> Result<()> {
        for (line, schema, package, name) in self.identities() {
            if self.in_package(PACKAGE, package).next().is_none() {
                bail!(
                    "{path}:{line}: the `{schema}` {} belongs to the package `{package}`, which the file does not have\n  = help: add its document with the schema `{PACKAGE}`, or move this one to its catalog",
                    quote_name(name)
                );
            }
        }
        Ok(())
    }

    fn identities(&self) -> impl Iterator<Item = (usize, &str, &str, &str)> {
        self.documents.iter().filter_map(|document| {
            let value = &document.value;
            let name = value["name"].as_str().unwrap_or_default();
            Some((document.line, value["schema"].as_str()?, package_of(value)?, name))
        })
    }

    fn check_package(&self, package: &str, release: &CheckedRelease<'_>, path: &str) -> Result<()> {
        let mut listed = BTreeSet::new();
        for document in self.in_package(CHANNEL, package) {
            let name = document["name"].as_str().unwrap_or_default();
            let channel = Channel::read(document);
            if let Err(fault) = channel.check() {
                let is_own = package == self.package;
                let help = is_own.then(|| advise_on_release(&fault, name, release)).flatten();
                let help = help.unwrap_or_else(|| advise_on_edit(&fault, path));
                bail!(
                    "channel `{name}` of {path} {}\n  = help: {help}",
                    describe_fault(&fault)
                );
            }
            listed.extend(channel.names().map(|entry| (entry, name)));
        }
        self.check_bundles(package, &listed, path)?;
        let package_document = self.in_package(PACKAGE, package).next();
        let default = package_document.and_then(|document| text_of(&document["defaultChannel"]));
        let default = default.unwrap_or_default();
        let channels = || self.in_package(CHANNEL, package);
        if channels().all(|channel| channel["name"] != default) {
            bail!(
                "{path} has no channel `{default}`, which is the default of `{package}`\n  = help: {}",
                match package == self.package {
                    true => "add it to `--channels`, or pass another `--default-channel`",
                    false => "name one of its channels as `defaultChannel`",
                }
            );
        }
        self.check_deprecations(package, path)
    }

    /// Checks that channel entries and bundles match, and that every bundle has a version of its
    /// own. `listed` contains the entries as pairs of name and channel.
    fn check_bundles(&self, package: &str, listed: &BTreeSet<(&str, &str)>, path: &str) -> Result<()> {
        let bundles = || self.in_package(BUNDLE, package);
        let has = |entry: &str| bundles().any(|bundle| bundle["name"] == entry);
        if let Some((entry, channel)) = listed.iter().find(|(entry, _)| !has(entry)) {
            bail!(
                "the entry `{entry}` of channel `{channel}` has no bundle in {path}\n  = help: restore the document with the schema `{BUNDLE}` and this name, or remove the entry"
            );
        }
        let mut versions = BTreeMap::new();
        for bundle in bundles() {
            let name = bundle["name"].as_str().unwrap_or_default();
            if listed.iter().all(|(entry, _)| *entry != name) {
                bail!(
                    "the bundle `{name}` of {path} is in no channel\n  = help: list it in the `entries` of a channel, or remove it"
                );
            }
            let Some(version) = read_version(bundle) else {
                continue;
            };
            if let Some(other) = versions.insert(version.to_string(), name) {
                bail!(
                    "the bundles `{other}` and `{name}` of {path} both have version {version}\n  = help: remove one of them"
                );
            }
        }
        Ok(())
    }

    /// Checks that deprecations refer to an existing package, channel or bundle.
    fn check_deprecations(&self, package: &str, path: &str) -> Result<()> {
        let mut seen = BTreeSet::new();
        for entry in self
            .in_package(DEPRECATIONS, package)
            .flat_map(|document| items(&document["entries"]))
        {
            let schema = entry["reference"]["schema"].as_str().unwrap_or_default();
            let name = entry["reference"]["name"].as_str().unwrap_or_default();
            let is_there = match schema {
                PACKAGE => name.is_empty(),
                CHANNEL | BUNDLE => self
                    .in_package(schema, package)
                    .any(|document| document["name"] == name),
                _ => bail!(
                    "expected `{PACKAGE}`, `{CHANNEL}` or `{BUNDLE}` as the schema that {path} deprecates, found `{schema}`"
                ),
            };
            if !is_there {
                bail!(
                    "{path} deprecates the `{schema}` {}, which package `{package}` does not have\n  = help: {}",
                    quote_name(name),
                    match schema {
                        PACKAGE => "leave out the `name`: the package is this one",
                        _ => "remove the entry from the `olm.deprecations`",
                    }
                );
            }
            if !seen.insert((schema, name)) {
                bail!(
                    "{path} deprecates the `{schema}` {} twice\n  = help: remove one of the entries",
                    quote_name(name)
                );
            }
        }
        Ok(())
    }
}

fn quote_name(name: &str) -> String {
    match name {
        "" => "document".to_owned(),
        name => format!("`{name}`"),
    }
}

fn describe_fault(fault: &ChannelFault<'_>) -> String {
    match fault {
        ChannelFault::Empty => "has no entry".into(),
        ChannelFault::Twice(name) => format!("has two entries `{name}`"),
        ChannelFault::Headless => "has no head: each version is replaced or skipped by another".into(),
        ChannelFault::Cycle(names) => format!("has a cycle: {} -> {}", names.join(" -> "), names[0]),
        ChannelFault::Heads(heads) => format!(
            "has {} heads: nothing replaces or skips {}",
            heads.len(),
            heads.join(" and ")
        ),
        ChannelFault::Stranded(names) => format!(
            "has stranded versions, from which no upgrade leads to the head: {}",
            names.join(", ")
        ),
    }
}

fn advise_on_edit(fault: &ChannelFault<'_>, path: &str) -> String {
    let change = match fault {
        ChannelFault::Empty => "add an entry, or remove the channel",
        ChannelFault::Twice(_) => "remove one of them",
        ChannelFault::Headless => "remove `replaces` and `skips` that lead to the newest version",
        ChannelFault::Cycle(_) => "let no version replace a newer one",
        ChannelFault::Heads(heads) => {
            return format!(
                "make {} replace or skip {} in {path}",
                heads[0],
                heads[1..].join(" and ")
            );
        }
        ChannelFault::Stranded(_) => {
            "make a newer version replace or skip them, and let no version replace a skipped one"
        }
    };
    format!("{change} in {path}")
}

/// Help on how to avoid the fault with other flags. Empty unless some flags make every channel of
/// the release valid.
fn advise_on_release(
    fault: &ChannelFault<'_>,
    channel: &str,
    release: &CheckedRelease<'_>,
) -> Option<String> {
    let options = release.options;
    let own = options.csv_name(&options.version);
    let replaced = replaced_by(release.csv);
    // The user edited `replaces` in the ClusterServiceVersion, which the catalog follows.
    if options.channels[0] == channel && replaced != options.replaced.as_deref() {
        let path = options.csv_path();
        return Some(match &options.replaced {
            Some(name) => format!("restore `replaces: {name}` in {path}, from which the catalog takes it"),
            None => format!("remove `replaces` from {path}, from which the catalog takes it"),
        });
    }
    let left_out: Vec<&str> = match fault {
        ChannelFault::Heads(heads) => heads.iter().copied().filter(|head| *head != own).collect(),
        ChannelFault::Stranded(names) => names.clone(),
        _ => return None,
    };
    match fault {
        ChannelFault::Heads(heads) if heads[1..].contains(&own.as_str()) => Some(format!(
            "release it in a channel of its own, such as `--channels {}`, or add `{own}` to the `skips` of {} in {} first",
            series_channel(channel, &options.version),
            heads[0],
            Catalog::path(&options.name),
        )),
        _ => suggest_flags(&left_out, release),
    }
}

/// Finds flags that make every channel of the release valid and also cover the versions in
/// `left_out`.
fn suggest_flags(left_out: &[&str], release: &CheckedRelease<'_>) -> Option<String> {
    let CheckedRelease { options, present, .. } = release;
    let prefix = options.csv_name("");
    let mut left_out = left_out.to_vec();
    left_out.sort_by(|a, b| compare(a, b));
    let versions = left_out.iter().filter_map(|name| name.strip_prefix(&prefix));
    let mut skips = options.skips.clone();
    skips.extend(versions.map(str::to_owned));
    let skip = format!("`--skips {}`", skips.join(","));
    let with = |replaces: &Option<String>, skips: &[String]| BundleOptions {
        replaces: replaces.clone(),
        skips: skips.to_vec(),
        ..(*options).clone()
    };
    let mut ways = Vec::new();
    if options.replaces.is_some() && present.takes_release(&with(&None, &options.skips)) {
        ways.push("leave out `--replaces`".to_owned());
    }
    if skips.len() > options.skips.len() {
        if present.takes_release(&with(&options.replaces, &skips)) {
            ways.push(format!("pass {skip} to upgrade from the stranded versions"));
        } else if ways.is_empty() && options.replaces.is_some() && present.takes_release(&with(&None, &skips))
        {
            ways.push(format!("leave out `--replaces` and pass {skip}"));
        }
    }
    (!ways.is_empty()).then(|| ways.join(", or "))
}

/// Channel of a minor version, e.g. `stable-0.1`.
fn series_channel(channel: &str, version: &str) -> String {
    let is_series = |text: &str| {
        let is_number = |part: &str| part.parse::<u64>().is_ok();
        text.split_once('.')
            .is_some_and(|(major, minor)| is_number(major) && is_number(minor))
    };
    let name = channel
        .rsplit_once('-')
        .filter(|(_, series)| is_series(series))
        .map_or(channel, |(name, _)| name);
    let series: Vec<&str> = version.split('.').take(2).collect();
    format!("{name}-{}", series.join("."))
}
