//! The archive of released templates. `rbuilder update` uses it to render the scaffold from which a
//! project was created.
//!
//! The archive is a compressed JSON document, which `cargo xtask templates` writes. It contains the
//! table of each release, and each distinct text once, so that texts that did not change between
//! releases take no extra space.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::table::{Command, OnExists, When};
use crate::{Template, TemplateSet};

static DATA: &[u8] = include_bytes!("../data/releases.bin");

/// Empty if the data is corrupt. The tests of this crate fail then.
static EMBEDDED: LazyLock<Archive> = LazyLock::new(|| Archive::decode(DATA).unwrap_or_default());

/// From before projects recorded their scaffolds.
static FORMER_DATA: &[u8] = include_bytes!("../data/former.bin");

/// We skip templates that no longer render with the current contexts.
static FORMER: LazyLock<Archive> = LazyLock::new(|| {
    let mut archive = Archive::decode(FORMER_DATA).unwrap_or_default();
    for release in &mut archive.releases {
        release.templates = release.templates.clone().skipping_failures();
    }
    archive
});

const LARGEST: usize = 64 << 20;

const LEVEL: u8 = 10;

/// The released versions of the templates, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archive {
    releases: Vec<Release>,
}

/// The templates of a released version, and the versions of other projects that its scaffolds refer
/// to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The versions used in its scaffolds.
    pub versions: Versions,
    /// The templates.
    pub templates: TemplateSet,
}

/// The versions used in a scaffold, as in [`ProjectContext`](crate::ProjectContext).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// Version of the rbuilder command: `0.1.0`.
    pub rbuilder: String,
    /// Minimum Rust version.
    pub rust: String,
    /// Version requirement on kube.
    pub kube: String,
    /// Version requirement on k8s-openapi.
    pub k8s_openapi: String,
    /// Kubernetes minor version: `1.35`.
    pub kubernetes: String,
    /// Feature of k8s-openapi for that Kubernetes version: `v1_35`.
    pub k8s_openapi_feature: String,
}

/// An error from decoding an archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The bytes are not valid compressed data, or decompress to more than the limit.
    #[error("the archive of templates is not compressed data")]
    NotCompressed,
    /// The JSON document has an unknown structure.
    #[error("the archive of templates has an unknown structure")]
    UnknownStructure(#[from] serde_json::Error),
    /// A template refers to a text that the archive does not contain.
    #[error("template `{0}` of the archive has no text")]
    NoText(String),
}

impl Archive {
    /// Creates an archive of releases, which must be ordered from oldest to newest.
    pub fn new(releases: Vec<Release>) -> Archive {
        Archive { releases }
    }

    /// Returns the archive in this package.
    pub fn embedded() -> &'static Archive {
        &EMBEDDED
    }

    /// Returns the templates of projects that did not record their scaffold, one set for each
    /// commit that changed the templates, oldest first. All have the same version, and no more are
    /// added.
    pub fn former() -> &'static Archive {
        &FORMER
    }

    /// Returns the releases, oldest first.
    pub fn releases(&self) -> &[Release] {
        &self.releases
    }

    /// Returns the release with a version such as `0.1.0`.
    pub fn find(&self, version: &str) -> Option<&Release> {
        self.releases
            .iter()
            .find(|release| release.versions.rbuilder == version)
    }

    /// Adds a release as the newest, replacing an earlier one with the same version.
    pub fn record(&mut self, release: Release) {
        self.remove(&release.versions.rbuilder);
        self.releases.push(release);
    }

    /// Removes the release with a version, if it exists.
    pub fn remove(&mut self, version: &str) {
        self.releases
            .retain(|release| release.versions.rbuilder != version);
    }

    /// Decodes an archive.
    ///
    /// # Errors
    /// Returns an error if [`encode`](Archive::encode) could not have returned the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Archive, ArchiveError> {
        let text = miniz_oxide::inflate::decompress_to_vec_with_limit(bytes, LARGEST)
            .map_err(|_| ArchiveError::NotCompressed)?;
        let document: Document = serde_json::from_slice(&text)?;
        let texts = &document.texts;
        let releases = document.releases.into_iter().map(|entry| {
            let rows: Result<Vec<Template>, ArchiveError> = entry
                .templates
                .into_iter()
                .map(|row| row.resolve(texts))
                .collect();
            Ok(Release {
                versions: entry.versions,
                templates: TemplateSet::new(rows?),
            })
        });
        Ok(Archive {
            releases: releases.collect::<Result<_, ArchiveError>>()?,
        })
    }

    /// Encodes the archive. The output is deterministic.
    pub fn encode(&self) -> Vec<u8> {
        let mut document = Document {
            texts: self.list_texts(),
            ..Document::default()
        };
        for release in &self.releases {
            let rows = release.templates.rows().iter();
            let templates = rows.map(|row| Row::new(row, &document.texts)).collect();
            document.releases.push(Entry {
                versions: release.versions.clone(),
                templates,
            });
        }
        let text = serde_json::to_vec(&document).unwrap_or_default();
        miniz_oxide::deflate::compress_to_vec(&text, LEVEL)
    }
}

impl Archive {
    /// Returns each distinct text once. The texts of a template are adjacent, because that improves
    /// the compression.
    fn list_texts(&self) -> Vec<String> {
        let rows = || self.releases.iter().flat_map(|release| release.templates.rows());
        let mut by_name: BTreeMap<&str, Vec<&Template>> = BTreeMap::new();
        for row in rows() {
            by_name.entry(row.name.as_ref()).or_default().push(row);
        }
        let mut texts = Vec::new();
        let mut known = BTreeSet::new();
        for row in by_name.into_values().flatten() {
            if known.insert(row.text.as_ref()) {
                texts.push(row.text.to_string());
            }
        }
        texts
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Document {
    releases: Vec<Entry>,
    texts: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    versions: Versions,
    templates: Vec<Row>,
}

/// `text` is an index into [`Document::texts`].
#[derive(Serialize, Deserialize)]
struct Row {
    name: String,
    destination: String,
    command: Command,
    when: When,
    on_exists: OnExists,
    text: usize,
}

impl Row {
    /// The text of the template has to be in `texts`.
    fn new(template: &Template, texts: &[String]) -> Row {
        let text = texts.iter().position(|text| *text == template.text);
        Row {
            name: template.name.to_string(),
            destination: template.destination.to_string(),
            command: template.command,
            when: template.when,
            on_exists: template.on_exists,
            text: text.unwrap_or(texts.len()),
        }
    }

    fn resolve(self, texts: &[String]) -> Result<Template, ArchiveError> {
        let Some(text) = texts.get(self.text) else {
            return Err(ArchiveError::NoText(self.name));
        };
        Ok(Template {
            name: Cow::Owned(self.name),
            destination: Cow::Owned(self.destination),
            command: self.command,
            when: self.when,
            on_exists: self.on_exists,
            text: Cow::Owned(text.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(version: &str, templates: TemplateSet) -> Release {
        Release {
            versions: Versions {
                rbuilder: version.into(),
                rust: "1.89".into(),
                kube: "5.0".into(),
                k8s_openapi: "0.29".into(),
                kubernetes: "1.37".into(),
                k8s_openapi_feature: "v1_37".into(),
            },
            templates,
        }
    }

    #[test]
    fn embedded_archive_decodes() {
        let archive = Archive::decode(DATA).expect("it is what `cargo xtask templates` wrote");
        assert_eq!(archive.encode(), DATA);
    }

    #[test]
    fn former_templates_decode_and_are_small() {
        let archive =
            Archive::decode(FORMER_DATA).expect("it is what `cargo xtask templates --former` wrote");
        assert_eq!(archive.encode(), FORMER_DATA);
        assert!(archive.releases().len() >= 40, "{}", archive.releases().len());
        assert!(FORMER_DATA.len() < 80 << 10, "{} bytes", FORMER_DATA.len());
    }

    #[test]
    fn archive_round_trips_and_stores_each_text_once() {
        let current = TemplateSet::current();
        let mut archive = Archive::new(vec![release("0.1.0", current.clone())]);
        let one = archive.encode();
        let mut rows = current.rows().to_vec();
        rows[0].text = "another\n".into();
        archive.record(release("0.2.0", TemplateSet::new(rows)));
        let two = archive.encode();
        assert_eq!(Archive::decode(&two).expect("its own bytes"), archive);
        assert!(
            two.len() - one.len() < one.len() / 4,
            "{} after {}",
            two.len(),
            one.len()
        );
        assert_eq!(
            archive.find("0.1.0").map(|release| &release.templates),
            Some(current)
        );
        archive.remove("0.2.0");
        assert_eq!(archive.encode(), one);
    }

    #[test]
    fn rejects_corrupt_archives() {
        let pack = |text: &str| miniz_oxide::deflate::compress_to_vec(text.as_bytes(), LEVEL);
        let row =
            r#"{"name":"a","destination":"a","command":"Init","when":"Always","on_exists":"Owned","text":7}"#;
        let versions = serde_json::to_string(&release("0.1.0", TemplateSet::new(vec![])).versions);
        let entry = format!(
            r#"{{"versions":{},"templates":[{row}]}}"#,
            versions.expect("plain strings")
        );
        for (bytes, expected) in [
            (b"no archive".to_vec(), "not compressed"),
            (pack("{}"), "unknown structure"),
            (pack(&format!(r#"{{"releases":[{entry}],"texts":[]}}"#)), "`a` of"),
        ] {
            let error = Archive::decode(&bytes).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
