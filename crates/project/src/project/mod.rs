//! The PROJECT file, which contains a project's settings and resources.
//!
//! The format is kubebuilder's version 3 with additional keys, so that tools for kubebuilder's
//! format keep working. Unknown keys are preserved.

mod base;
mod image;
mod keys;
pub mod names;
mod object_names;
mod package;
mod plural;
mod resource;
mod scaffolded;

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use rbuilder_generator::{is_kubernetes_group, summarize_package};
use rbuilder_templates::Release;
use rbuilder_yaml::describe_failure;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::conflict::find_conflict;
use crate::library::Library;
use crate::tree::Tree;

pub use crate::tree::FILE;
pub use base::{BASE, ScaffoldBase};
pub use image::Image;
pub use keys::MisspelledKey;
pub use object_names::{MANAGER_FILE, NamedObjects, ObjectNames, find_container};
pub use package::AdoptedPackage;
pub use resource::{Api, NamedController, Resource, Webhooks};
pub use resource::{describe_scope, naming_flags, strip_domain};
pub use scaffolded::{ATTRIBUTES, ATTRIBUTES_TEXT, RECORD, ScaffoldedFiles};

const LAYOUT: &str = "rust.rbuilder.dev/v1";

/// Name of a scaffolded package's binary.
pub const BINARY: &str = "manager";

const CLI_VERSION: &str = "cliVersion";

/// A project.
#[derive(Clone, Debug)]
pub struct Project {
    /// The keys that rbuilder reads.
    pub known: Known,
    /// Stored in [`RECORD`].
    scaffolded: ScaffoldedFiles,
    /// All keys of the file, including unknown ones.
    all: Map<String, Value>,
    /// Release whose templates the project uses, or `None` for those of this version.
    release: Option<&'static Release>,
    /// Root file of the manager's binary, if the user has moved it.
    moved_main: Option<String>,
}

/// Root file of a scaffolded package's binary.
pub(crate) const MAIN: &str = "src/main.rs";

/// The keys that rbuilder reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Known {
    /// Version of the format, i.e. `3`.
    pub version: String,
    /// Domain suffix of the API groups.
    #[serde(default)]
    pub domain: String,
    /// Name of the project.
    pub project_name: String,
    /// Whether API directories are grouped by API group.
    #[serde(default)]
    pub multigroup: bool,
    /// Whether the manager only watches its own namespace.
    #[serde(default)]
    pub namespaced: bool,
    /// Resources, one entry per kind and version.
    #[serde(default)]
    pub resources: Vec<Resource>,
    /// Keys specific to rbuilder.
    #[serde(default)]
    pub rbuilder: Own,
}

/// The keys under `rbuilder`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Own {
    /// Copyright holder.
    #[serde(default)]
    pub owner: String,
    /// `apache2`, `mit` or `none`.
    #[serde(default)]
    pub license: String,
    /// Targeted Kubernetes minor version. Defaults to the command's own.
    #[serde(default)]
    pub kubernetes: Option<String>,
    /// Source of the library. Not recorded by older commands.
    #[serde(default)]
    pub library: Option<Library>,
    /// Whether `init` made the project its own workspace, because the workspace above does not list
    /// it.
    #[serde(default)]
    pub workspace: bool,
    /// Path of the project in its workspace, e.g. `crates/shop`. Empty if it isn't a workspace
    /// member.
    #[serde(default)]
    pub member: String,
    /// Path of the project in its repository. Empty at the root.
    #[serde(default)]
    pub directory: String,
    /// Package adopted by `init --in-package`, or `None` for a scaffolded package.
    #[serde(default)]
    pub package: Option<AdoptedPackage>,
    /// Names of the manager's objects that differ from scaffolded ones.
    #[serde(default)]
    pub names: ObjectNames,
    /// Hashes of scaffolded files by path, as stored by early versions. Moved to [`RECORD`].
    #[serde(default)]
    files: BTreeMap<String, String>,
}

impl Project {
    /// Creates a project without resources.
    pub fn new(name: &str, domain: &str) -> Project {
        let known = Known {
            version: "3".into(),
            domain: domain.into(),
            project_name: name.into(),
            ..Known::default()
        };
        let mut all = Map::new();
        all.insert(CLI_VERSION.into(), json!(env!("CARGO_PKG_VERSION")));
        all.insert("layout".into(), json!([LAYOUT]));
        Project {
            known,
            scaffolded: ScaffoldedFiles::default(),
            all,
            release: None,
            moved_main: None,
        }
    }

    /// Reads the project in a directory. Returns `None` if there is no PROJECT file. The names of the
    /// manager's objects are those in `config/`, and the root file of its binary is the one that
    /// Cargo builds.
    ///
    /// # Errors
    /// Fails for the same reasons as [`Project::parse`] and [`Tree::read`].
    pub fn read(tree: &Tree) -> Result<Option<Project>> {
        Project::read_with(tree, &|path| tree.read(path))
    }

    /// Like [`Project::read`], but `read` returns the files as they will be.
    pub(crate) fn read_with(
        tree: &Tree,
        read: &dyn Fn(&str) -> Result<Option<String>>,
    ) -> Result<Option<Project>> {
        let mut project = Project::read_from(read)?;
        if let Some(project) = &mut project
            && project.foreign_layout().is_none()
        {
            project.find_moved_main(tree)?;
        }
        Ok(project)
    }

    /// Finds the root file of the manager's binary if the user has moved it, e.g. to
    /// `src/bin/manager.rs`. A `Cargo.toml` that can't be read is reported by the generator.
    fn find_moved_main(&mut self, tree: &Tree) -> Result<()> {
        if tree.read(self.main_file())?.is_some() {
            return Ok(());
        }
        let package = summarize_package(&tree.sources([])).ok().flatten();
        let binaries = package.map(|package| package.binaries).unwrap_or_default();
        let moved = binaries.into_iter().find(|(name, _)| name == self.binary());
        self.moved_main = moved.map(|(_, path)| path);
        Ok(())
    }

    /// Reads the project whose files are returned by `read`. Returns `None` as well if another tool
    /// made the file, in a format that only that tool reads.
    ///
    /// # Errors
    /// Fails for the same reasons as [`Project::parse`] and `read`.
    pub fn read_from(read: &dyn Fn(&str) -> Result<Option<String>>) -> Result<Option<Project>> {
        let Some(text) = read(FILE)? else {
            return Ok(None);
        };
        let project = match Project::parse(&text) {
            Err(_) if is_of_other_tool(&text) => None,
            parsed => Some(parsed?),
        };
        let Some(mut project) = project else {
            return Ok(None);
        };
        project.scaffolded = ScaffoldedFiles::parse(&read(RECORD)?.unwrap_or_default());
        if project.foreign_layout().is_none() {
            // A manifest that can't be read is reported when it is built.
            project.read_names(&|path| read(path).ok().flatten());
        }
        for (path, hash) in std::mem::take(&mut project.known.rbuilder.files) {
            project.scaffolded.add_hash(&path, &hash);
        }
        Ok(Some(project))
    }

    /// Takes the names of the manager's objects from the manifests in `config/`.
    pub fn read_names(&mut self, read: &dyn Fn(&str) -> Option<String>) {
        self.known.rbuilder.names = ObjectNames::find(&self.known, read);
    }

    pub(crate) fn print_record(&self) -> String {
        self.scaffolded.print()
    }

    /// Parses PROJECT, or returns `None` if another tool made the file.
    ///
    /// # Errors
    /// Fails as [`Project::parse`] does.
    pub fn parse_own(text: &str) -> Result<Option<Project>> {
        match Project::parse(text) {
            Err(_) if is_of_other_tool(text) => Ok(None),
            parsed => Ok(Some(parsed?).filter(|project| project.foreign_layout().is_none())),
        }
    }

    /// Parses PROJECT.
    ///
    /// # Errors
    /// Fails with line and column if the file is invalid.
    pub fn parse(text: &str) -> Result<Project> {
        check_conflict(text)?;
        let problem = |error: serde_saphyr::Error| describe_failure(FILE, text, &error);
        let known: Known = rbuilder_yaml::parse(text).map_err(problem)?;
        // Keep unknown keys as well, so that printing preserves them.
        let all: Map<String, Value> = match rbuilder_yaml::parse_printed(text) {
            Some(Value::Object(all)) => all,
            _ => rbuilder_yaml::parse(text).map_err(problem)?,
        };
        if known.version != "3" {
            bail!("unsupported version `{}` of {FILE}: expected `3`", known.version);
        }
        let project = Project {
            known,
            scaffolded: ScaffoldedFiles::default(),
            all,
            release: None,
            moved_main: None,
        };
        // Other tools have their own naming rules.
        if project.foreign_layout().is_none() {
            project.check_names()?;
        }
        Ok(project)
    }

    fn check_names(&self) -> Result<()> {
        let Known {
            project_name,
            resources,
            ..
        } = &self.known;
        let of_resources = resources.iter().flat_map(|resource| {
            let names = [
                ("group", resource.group.as_str()),
                ("domain", &resource.domain),
                ("version", &resource.version),
                ("kind", &resource.kind),
                ("plural", &resource.plural),
                ("path", &resource.path),
            ];
            let controllers = resource.controllers.iter();
            let spokes = resource.webhooks.iter().flat_map(|webhooks| &webhooks.spoke);
            names
                .into_iter()
                .chain(controllers.map(|controller| ("controllers", controller.name.as_str())))
                .chain(spokes.map(|version| ("version", version.as_str())))
        });
        for (key, name) in of_resources.chain([("projectName", project_name.as_str())]) {
            if !name.is_empty() && !names::is_recorded_name(key, name) {
                bail!("invalid {key} `{name}` in {FILE}");
            }
        }
        let own = &self.known.rbuilder;
        for (key, path) in [("member", &own.member), ("directory", &own.directory)] {
            if !path.is_empty() && !names::is_plain_path(path) {
                bail!("invalid {key} `{}` in {FILE}", path.escape_debug());
            }
        }
        if let Some(package) = &own.package {
            package.check()?;
        }
        own.names.check()?;
        resources.iter().try_for_each(Resource::check_source)
    }

    /// Finds the keys in PROJECT that are misspelled.
    pub fn misspelled_keys(&self) -> Vec<MisspelledKey> {
        keys::find_misspelled_keys(&self.all)
    }

    /// Root file of the manager's binary.
    pub fn main_file(&self) -> &str {
        let package = self.known.rbuilder.package.as_ref();
        let usual = package.map_or(MAIN, |package| package.main.as_str());
        self.moved_main.as_deref().unwrap_or(usual)
    }

    /// Whether the manager's binary isn't built from the scaffolded root file.
    pub fn has_own_main(&self) -> bool {
        self.known.rbuilder.package.is_some() || self.moved_main.is_some()
    }

    /// Name of the manager's binary.
    pub fn binary(&self) -> &str {
        let package = self.known.rbuilder.package.as_ref();
        package.map_or(BINARY, |package| package.binary.as_str())
    }

    /// Command that generates the manifests and runs the tests. Uses the scaffolded Makefile, if
    /// any.
    pub fn test_command(&self) -> &'static str {
        match self.has_makefile() {
            true => "make manifests test",
            false => "rbuilder manifests && cargo test",
        }
    }

    /// Command that deploys an image of the manager. Uses the scaffolded Makefile, if any.
    pub fn deploy_command(&self) -> &'static str {
        match self.has_makefile() {
            true => "make deploy IMG=<image>",
            false => "rbuilder deploy --image <image>",
        }
    }

    fn has_makefile(&self) -> bool {
        let package = self.known.rbuilder.package.as_ref();
        package.is_none_or(|package| !package.leaves_out("Makefile"))
    }

    /// Whether a file was scaffolded and refers to `group`, which is in the project's domain.
    pub fn has_scaffolded_for(&self, path: &str, group: &str) -> bool {
        let domain = &self.known.domain;
        // Groups of Kubernetes may end with the domain, e.g. with `io`.
        let is_own =
            !domain.is_empty() && strip_domain(group, domain).is_some() && !is_kubernetes_group(group);
        is_own && self.scaffolded_files().has(path)
    }

    /// Whether rbuilder created the project, going by `layout`.
    pub fn is_scaffolded(&self) -> bool {
        self.all.contains_key("layout") && self.foreign_layout().is_none()
    }

    /// The layout, if a different tool created the project.
    pub fn foreign_layout(&self) -> Option<String> {
        let layouts = match self.all.get("layout")? {
            Value::Array(layouts) => layouts.clone(),
            layout => vec![layout.clone()],
        };
        let names: Vec<&str> = layouts.iter().filter_map(Value::as_str).collect();
        (!names.contains(&LAYOUT)).then(|| names.join(", "))
    }

    /// Adds a resource, or merges it into its existing entry.
    pub fn add_resource(&mut self, resource: Resource) {
        match self
            .known
            .resources
            .iter_mut()
            .find(|known| known.same(&resource))
        {
            Some(known) => {
                match resource.controllers.is_empty() {
                    true => known.controller |= resource.controller,
                    false => {
                        known.controller = false;
                        known.controllers = resource.controllers;
                    }
                }
                if let Some(webhooks) = resource.webhooks {
                    known.webhooks = Some(known.webhooks.take().unwrap_or_default().with(webhooks));
                }
                known.api = resource.api.or(known.api.take());
                known.plural = resource.plural;
                known.image = resource.image.or(known.image.take());
            }
            None => self.known.resources.push(resource),
        }
    }

    /// Removes a resource.
    pub fn remove_resource(&mut self, resource: &Resource) {
        self.known.resources.retain(|known| !known.same(resource));
    }

    /// Replaces the entry of a resource.
    pub fn replace_resource(&mut self, resource: Resource) {
        let mut entries = self.known.resources.iter_mut();
        if let Some(known) = entries.find(|known| known.same(&resource)) {
            *known = resource;
        }
    }

    /// Whether this text was recorded for a file, i.e. written by a command.
    pub fn recorded(&self, path: &str, text: &str) -> bool {
        self.scaffolded.contains(path, text)
    }

    /// Whether a file has the text of a template. Older commands recorded two texts for a file that
    /// `import` had changed, and git records two for a merged one.
    pub fn is_as_scaffolded(&self, path: &str, text: &str) -> bool {
        self.recorded(path, text) && self.scaffolded.count(path) == 1
    }

    /// Domain of a kind: the requested one if any, else the recorded one, else the project's.
    pub fn domain_of(&self, group: &str, kind: &str, asked: Option<&str>) -> String {
        let own = self.known.resources.iter().filter(|own| own.api.is_some());
        let mut recorded = own
            .filter(|own| own.group == group && own.kind == kind)
            .map(|own| &own.domain);
        let domain = &self.known.domain;
        match asked {
            Some(asked) => asked.to_owned(),
            None if recorded.clone().any(|recorded| recorded == domain) => domain.clone(),
            None => recorded.next().unwrap_or(domain).clone(),
        }
    }

    /// The project without a record of scaffolded files, for rendering a release's templates.
    #[must_use]
    pub(crate) fn as_new(&self, release: Option<&'static Release>) -> Project {
        let mut project = self.clone();
        project.scaffolded = ScaffoldedFiles::default();
        project.release = release;
        let Known {
            domain, resources, ..
        } = &mut project.known;
        // kubebuilder may omit the domain and the plural, which templates need.
        for resource in resources.iter_mut().filter(|resource| resource.api.is_some()) {
            if resource.domain.is_empty() {
                resource.domain.clone_from(domain);
            }
        }
        let known = resources.clone();
        for resource in resources.iter_mut().filter(|resource| resource.plural.is_empty()) {
            let versions = known.iter().filter(|other| other.same_kind(resource));
            let mut plurals = versions.map(|other| &other.plural);
            let plural = plurals.find(|plural| !plural.is_empty()).cloned();
            resource.plural = plural.unwrap_or_else(|| names::plural_of(&resource.kind));
        }
        project
    }

    /// Namespace in which the manager is deployed.
    pub fn namespace(&self) -> String {
        self.known.rbuilder.names.namespace(&self.known.project_name)
    }

    /// Prefix that kustomize adds to the names of all objects.
    pub fn name_prefix(&self) -> String {
        self.known.rbuilder.names.name_prefix(&self.known.project_name)
    }

    /// Name of the manager's Deployment in a cluster.
    pub fn deployed_name(&self) -> String {
        format!("{}{}", self.name_prefix(), self.known.rbuilder.names.deployment())
    }

    /// The project with the scaffolded names of the manager's objects.
    #[must_use]
    pub fn with_default_names(&self) -> Project {
        let mut project = self.clone();
        project.known.rbuilder.names = ObjectNames::default();
        project
    }

    /// Version of the command that scaffolded the project or last updated the scaffold.
    pub fn cli_version(&self) -> Option<&str> {
        self.all.get(CLI_VERSION)?.as_str()
    }

    /// Sets the version returned by [`cli_version`](Project::cli_version).
    pub fn set_cli_version(&mut self, version: &str) {
        self.all.insert(CLI_VERSION.into(), json!(version));
    }

    pub(crate) fn release(&self) -> Option<&'static Release> {
        self.release
    }

    /// The record of scaffolded files.
    pub fn scaffolded_files(&self) -> &ScaffoldedFiles {
        &self.scaffolded
    }

    /// Copies a file's record from a rebuilt scaffold, to which no other command has added yet.
    pub fn record_as(&mut self, path: &str, scaffolded: &ScaffoldedFiles) {
        self.scaffolded.copy(path, scaffolded);
    }

    /// Sets the record of scaffolded files.
    pub fn set_scaffolded_files(&mut self, scaffolded: ScaffoldedFiles) {
        self.scaffolded = scaffolded;
    }

    /// Drops a file from the record of scaffolded files.
    pub fn forget(&mut self, path: &str) {
        self.scaffolded.forget(path);
    }

    /// Records a scaffolded file.
    pub fn record(&mut self, path: &str, text: &str) {
        self.scaffolded.record(path, text);
    }

    /// Whether a file was scaffolded, regardless of its current text.
    pub fn has_scaffolded(&self, path: &str) -> bool {
        self.scaffolded.has(path)
    }

    /// Prints PROJECT.
    pub fn print(&self) -> String {
        let known = &self.known;
        let mut all = self.all.clone();
        all.insert("version".into(), json!(known.version));
        set(&mut all, "domain", json!(known.domain));
        all.insert("projectName".into(), json!(known.project_name));
        set(&mut all, "multigroup", json!(known.multigroup));
        set(&mut all, "namespaced", json!(known.namespaced));
        let written = all
            .get("resources")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let resources: Vec<Value> = known
            .resources
            .iter()
            .map(|resource| resource.print(written.iter().find(|entry| resource.is_entry(entry))))
            .collect();
        set(&mut all, "resources", Value::Array(resources));
        let mut own = object_at(&all, "rbuilder");
        set(&mut own, "owner", json!(known.rbuilder.owner));
        set(&mut own, "license", json!(known.rbuilder.license));
        set(&mut own, "workspace", json!(known.rbuilder.workspace));
        set(&mut own, "member", json!(known.rbuilder.member));
        set(&mut own, "directory", json!(known.rbuilder.directory));
        set(&mut own, "names", known.rbuilder.names.print());
        let package = known.rbuilder.package.as_ref();
        set(
            &mut own,
            "package",
            package.map_or(Value::Null, AdoptedPackage::print),
        );
        set(
            &mut own,
            "kubernetes",
            json!(known.rbuilder.kubernetes.as_deref().unwrap_or_default()),
        );
        if let Some(library) = &known.rbuilder.library {
            let keys = library.keys().into_iter();
            let source: Map<String, Value> =
                keys.map(|(key, value)| (key.to_owned(), json!(value))).collect();
            own.insert("library".into(), Value::Object(source));
        }
        // Older commands recorded the files here; `read` moved them to the record.
        own.remove("files");
        set(&mut all, "rbuilder", Value::Object(own));
        let text = rbuilder_generator::yaml::to_string(&Value::Object(all));
        let body = text.strip_prefix("---\n").unwrap_or(&text);
        format!(
            "# Code generated by rbuilder. DO NOT EDIT. This file tracks the scaffolding of the project.\n{body}"
        )
    }
}

/// Whether another tool made a PROJECT file, going by `layout`. The file need not be readable
/// otherwise, e.g. if it is of an older kubebuilder.
fn is_of_other_tool(text: &str) -> bool {
    let Ok(file) = rbuilder_yaml::parse_value(text) else {
        return false;
    };
    let layouts = match &file["layout"] {
        Value::Array(layouts) => layouts.as_slice(),
        layout => std::slice::from_ref(layout),
    };
    layouts.iter().all(|layout| layout != LAYOUT)
}

/// Checks that PROJECT contains no git conflict.
///
/// # Errors
/// Fails with the line of the first marker.
pub fn check_conflict(text: &str) -> Result<()> {
    match find_conflict(text) {
        Some(line) => bail!(
            "{FILE}:{line} has a Git merge conflict: keep the entries of both sides, and remove the lines with markers"
        ),
        None => Ok(()),
    }
}

fn object_at(all: &Map<String, Value>, key: &str) -> Map<String, Value> {
    let object = all.get(key).and_then(Value::as_object);
    object.cloned().unwrap_or_default()
}

/// Sets a key. As in kubebuilder, empty and false values remove it.
fn set(map: &mut Map<String, Value>, key: &str, value: Value) {
    let empty = match &value {
        Value::Bool(set) => !set,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(items) => items.is_empty(),
        Value::Null => true,
        Value::Number(_) => false,
    };
    if empty {
        map.remove(key);
    } else {
        map.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEIRS: &str = "\
# Code generated by tool. DO NOT EDIT.
cliVersion: 4.15.0
domain: example.com
layout:
- go.kubebuilder.io/v4
plugins:
  helm.kubebuilder.io/v2-alpha:
    manifests: dist/install.yaml
projectName: shop
repo: example.com/shop
resources:
- api:
    crdVersion: v1
    namespaced: true
    ssa: true
  controllers:
  - name: cup
  domain: example.com
  group: crew
  kind: Cup
  path: example.com/shop/api/v1
  version: v1
version: \"3\"
";

    #[test]
    fn keeps_unknown_keys() {
        let mut project = Project::parse(THEIRS).expect("it is well formed");
        let body = |text: &str| text.split_once('\n').map(|(_, body)| body.to_owned());
        assert_eq!(body(&project.print()), body(THEIRS));

        project.add_resource(Resource {
            version: "v1".into(),
            kind: "Mug".into(),
            ..Resource::default()
        });
        let text = project.print();
        let again = Project::parse(&text).expect("it reads what it writes");
        assert_eq!(again.known, project.known);
        assert_eq!(again.print(), text);
        for kept in [
            "ssa: true",
            "- name: cup",
            "repo: example.com/shop",
            "manifests: dist/install.yaml",
        ] {
            assert!(text.contains(kept), "{kept} is lost in\n{text}");
        }
    }

    #[test]
    fn checks_values_written_into_source() {
        let entry = |keys: &str| {
            format!(
                "version: \"3\"\nlayout: [{LAYOUT}]\nprojectName: a\nresources:\n- kind: Cup\n  version: v1\n{keys}"
            )
        };
        for (keys, expected) in [
            ("  image:\n    name: 'a\";'\n", "invalid image `a\\\";`"),
            (
                "  image:\n    name: a\n    command: [\"b\\nc\"]\n",
                "invalid image `a`",
            ),
            (
                "  webhooks:\n    defaultingPath: '/a\")'\n",
                "invalid path `/a\\\")`",
            ),
            ("  webhooks:\n    spoke: [../v2]\n", "invalid version `../v2`"),
        ] {
            let error = Project::parse(&entry(keys)).expect_err(keys).to_string();
            assert!(error.contains(expected), "{keys}: {error}");
        }
        let valid = "  image:\n    name: a:1\n    command: [sh, -c]\n  webhooks:\n    defaultingPath: /a\n    spoke: [v2]\n";
        assert!(Project::parse(&entry(valid)).is_ok());
    }

    #[test]
    fn errors_have_a_position() {
        for (text, expected) in [
            ("version: \"3\"\nprojectName: [a]\n", "2"),
            ("version: \"3\"\n", "projectName"),
            ("version: \"2\"\nprojectName: a\n", "expected `3`"),
            (
                "version: \"3\"\nprojectName: a\nresources:\n- kind: A\n  version: v1\n  controller: often\n",
                "6",
            ),
            ("a: [", "cannot parse PROJECT"),
            ("version: \"3\"\nversion: \"3\"\nprojectName: a\n", "duplicate"),
            (
                "version: \"3\"\n<<<<<<< HEAD\nprojectName: a\n=======\nprojectName: b\n>>>>>>> other\n",
                "PROJECT:2 has a Git merge conflict",
            ),
        ] {
            let error = Project::parse(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
