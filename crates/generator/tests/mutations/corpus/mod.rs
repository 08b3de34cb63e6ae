//! The mutation corpus has projects that are correct except for one place, and the objects that
//! each of them would send to the API server.
//!
//! A [`Case`] is a small package with a single mistake, or with something that only looks like one.
//! The cases come from the tables in the modules below. `cargo xtask mutations` sends the objects
//! of each case to kube-apiserver, and records the responses next to this directory. These objects
//! never depend on whether rbuilder reports the mistake. Where it might, the table contains what
//! would be in the manifest.

// Two programs use the corpus, and neither of them uses all of it.
#![allow(dead_code)]

mod fields;
mod keys;
mod packages;
mod products;
mod rbac;
mod serde;
mod versions;
mod webhooks;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rbuilder_generator::{Diagnostic, Options, SourceSet, generate};
use serde_json::Value;

/// The recorder replaces this group with a unique one for each case.
pub(crate) const GROUP: &str = "mutations.example.com";

/// JSON pointer to the schema of the field with the mistake.
const FIELD: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/field";

/// JSON pointer to the schema of the whole object.
const ROOT: &str = "/spec/versions/0/schema/openAPIV3Schema";

const CARGO_TOML: &str = r#"[package]
name = "mutations"
version = "0.1.0"
edition = "2024"

[features]
default = ["on"]
on = []
off = []

[dependencies]
k8s-openapi = { version = "0.29", features = ["v1_37"] }
kube = "5"
rbuilder = "0.1"
serde = "1"
serde_json = "1"
"#;

const IMPORTS: &str = "\
use std::collections::*;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use rbuilder::{CrdSchema, rbac, webhook};
use serde::{Deserialize, Serialize};
";

/// The attributes are on separate lines, so that one can be replaced.
const KEYS: &str = "\
group = \"mutations.example.com\",
version = \"v1\",
kind = \"Sample\",
plural = \"samples\",
namespaced,
status = \"SampleStatus\",
";

/// For the fields of the base project.
const TYPES: &str = "
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct SampleStatus {
    pub replicas: i32,
    pub selector: Option<String>,
    pub phase: Option<String>,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Inner {
    pub name: String,
    pub count: Option<i32>,
    pub tags: Option<Vec<String>>,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum Mode {
    Fast,
    Slow,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Keyed {
    pub name: String,
    pub port: Option<i32>,
    #[kube(default = \"tcp\")]
    pub protocol: String,
    #[kube(nullable, required)]
    pub alias: Option<String>,
    pub inner: Inner,
    pub hosts: Vec<String>,
    pub labels: BTreeMap<String, String>,
    pub size: Quantity,
    pub on: bool,
    pub free: serde_json::Value,
    pub mode: Mode,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = \"camelCase\")]
pub struct Renamed {
    pub wire_name: String,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Easy {
    #[kube(default = 1)]
    pub count: i32,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Stamp {
    pub at: Time,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Empty {}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(exactly_one_of(left, right))]
pub struct Choice {
    pub left: Option<String>,
    pub right: Option<String>,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum Shape {
    Circle { radius: i32 },
    Square { side: i32 },
}
";

#[derive(Clone, Debug)]
pub(crate) enum Sent {
    /// What the generator makes of the package, which must not have errors.
    Made,
    /// What the generator makes of the base project, with these edits.
    Edited(Vec<Edit>),
    /// The mistake can't reach a manifest, so there's nothing to send.
    Nothing,
}

/// A place as a JSON pointer, and its new value. `None` removes the place.
pub(crate) type Edit = (String, Option<Value>);

#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Has the form `<group>/<name>`. Don't change it, because it's the key in the record.
    pub(crate) slug: String,
    pub(crate) files: Files,
    /// Same as `files`, but without the mistake.
    pub(crate) base: Files,
    pub(crate) sent: Sent,
    /// For cases that the server accepts and serves although they are mistakes.
    pub(crate) harm: Option<&'static str>,
}

/// The files by their paths.
pub(crate) type Files = Vec<(&'static str, String)>;

impl Case {
    /// The library of the base project is changed.
    fn new(slug: &str, base: &str, changed: String, sent: Sent) -> Case {
        Case {
            slug: slug.to_owned(),
            files: package(changed),
            base: package(base.to_owned()),
            sent,
            harm: None,
        }
    }

    /// The server doesn't report the mistake.
    fn with_harm(self, harm: &'static str) -> Case {
        Case {
            harm: Some(harm),
            ..self
        }
    }

    /// Same as [`Case::with_harm`], if there is a mistake.
    fn with_harm_if(self, harm: Option<&'static str>) -> Case {
        Case { harm, ..self }
    }

    pub(crate) fn group(&self) -> &str {
        self.slug.split('/').next().unwrap_or_default()
    }

    /// Tells us if the case has changed since it was recorded.
    pub(crate) fn fingerprint(&self) -> String {
        let sent = match &self.sent {
            Sent::Edited(edits) => format!("{edits:?}"),
            Sent::Made | Sent::Nothing => String::new(),
        };
        let files = self.files.iter().flat_map(|(path, text)| [*path, text.as_str()]);
        // FNV-1a is good enough to detect changes, and the same on every platform.
        let hash = files
            .chain([sent.as_str()])
            .flat_map(str::bytes)
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        format!("{:08x}", hash >> 32)
    }

    /// If the table lacks something, the error says what.
    pub(crate) fn objects(&self) -> Result<Vec<Value>, String> {
        match &self.sent {
            Sent::Nothing => Ok(Vec::new()),
            Sent::Made => match made(&self.files) {
                (Some(objects), _) => Ok(objects),
                (None, _) => Err("rbuilder makes no manifest of it: say what it would hold".into()),
            },
            Sent::Edited(edits) => {
                let mut objects = made_once(&self.base)?;
                edits.iter().try_for_each(|edit| apply(&mut objects, edit))?;
                Ok(objects)
            }
        }
    }
}

/// The cases are sorted by slug.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        fields::cases(),
        keys::cases(),
        packages::cases(),
        products::cases(),
        rbac::cases(),
        serde::cases(),
        versions::cases(),
        webhooks::cases(),
    ]
    .concat();
    cases.sort_by(|a, b| a.slug.cmp(&b.slug));
    cases
}

pub(crate) fn base_definition() -> Value {
    let objects = made_once(&package(fields("    pub field: String,\n")));
    objects.expect("the base project").remove(0)
}

/// Returns the objects and the diagnostics. The objects are `None` after an error.
pub(crate) fn made(files: &Files) -> (Option<Vec<Value>>, Vec<Diagnostic>) {
    let mut sources = SourceSet::default();
    for (path, text) in files {
        sources.insert(*path, text.as_str());
    }
    let generated = generate(&sources, &Options::default());
    let refused = generated
        .diagnostics
        .iter()
        .any(|said| said.severity == rbuilder_generator::Severity::Error);
    let objects = generated.files.iter().flat_map(|file| documents(&file.text));
    ((!refused).then(|| objects.collect()), generated.diagnostics)
}

/// The objects are cached, because many cases share a base.
fn made_once(files: &Files) -> Result<Vec<Value>, String> {
    static KNOWN: Mutex<BTreeMap<Files, Vec<Value>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(objects) = known.get(files) {
        return Ok(objects.clone());
    }
    let (objects, said) = made(files);
    let objects = objects.ok_or_else(|| format!("the base is refused: {said:?}"))?;
    known.insert(files.clone(), objects.clone());
    Ok(objects)
}

fn documents(text: &str) -> Vec<Value> {
    let documents = text.strip_prefix("---\n").unwrap_or(text).split("\n---\n");
    documents
        .map(|document| serde_saphyr::from_str(document).expect("YAML"))
        .collect()
}

/// `1:/spec` is a place in the second object. `+` moves the second version of the first object to a
/// separate object, and then applies the edits in its value.
fn apply(objects: &mut Vec<Value>, (place, value): &Edit) -> Result<(), String> {
    if let ("+", Some(places)) = (place.as_str(), value) {
        let second = second_version(&mut objects[0])?;
        objects.push(second);
        let last = objects.len() - 1;
        let places = edits(places).into_iter();
        return places
            .map(|(place, value)| (format!("{last}:{place}"), value))
            .try_for_each(|edit| apply(objects, &edit));
    }
    let (index, pointer) = place.split_once(':').unwrap_or(("0", place));
    let index: usize = index.parse().map_err(|_| format!("{place} is not a place"))?;
    let object = objects
        .get_mut(index)
        .ok_or_else(|| format!("there is no object {index}"))?;
    let (parent, last) = pointer
        .rsplit_once('/')
        .ok_or_else(|| format!("{pointer} is not a JSON pointer"))?;
    let last = last.replace("~1", "/").replace("~0", "~");
    let parent = object
        .pointer_mut(parent)
        .ok_or_else(|| format!("there is no {parent}"))?;
    match (parent, value) {
        (Value::Object(fields), Some(value)) => drop(fields.insert(last, value.clone())),
        (Value::Object(fields), None) => drop(fields.remove(&last)),
        (Value::Array(items), Some(value)) if last == "-" => items.push(value.clone()),
        (Value::Array(items), Some(value)) => {
            let at: usize = last.parse().map_err(|_| format!("{last} is not an index"))?;
            *items.get_mut(at).ok_or("the list is shorter")? = value.clone();
        }
        _ => return Err(format!("{pointer} is in no object")),
    }
    Ok(())
}

fn second_version(definition: &mut Value) -> Result<Value, String> {
    let versions = definition["spec"]["versions"].as_array_mut();
    let second = versions
        .filter(|versions| versions.len() == 2)
        .and_then(Vec::pop)
        .ok_or("there is no second version")?;
    let mut other = definition.clone();
    other["spec"]["versions"] = vec![second].into();
    other["spec"]["versions"][0]["storage"] = true.into();
    Ok(other)
}

fn package(library: String) -> Files {
    vec![("Cargo.toml", CARGO_TOML.to_owned()), ("src/lib.rs", library)]
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// `attributes` are before the struct, and `items` after it.
fn library(keys: &str, attributes: &str, fields: &str, items: &str) -> String {
    format!(
        "{IMPORTS}\n/// SampleSpec defines the desired state of Sample.\n\
         #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n#[kube(\n{keys})]\n{attributes}\
         pub struct SampleSpec {{\n{fields}}}\n{TYPES}{items}"
    )
}

/// Same as the base project, but with other fields.
fn fields(fields: &str) -> String {
    library(KEYS, "", fields, "")
}

/// Sets keys in the schema of the field. `null` removes a key.
fn field_edits(keys: &Value) -> Vec<Edit> {
    let keys = keys.as_object().expect("the keys of a schema");
    let mut edits = Vec::new();
    for (key, value) in keys {
        let value = (!value.is_null()).then(|| value.clone());
        let key = key.replace('~', "~0").replace('/', "~1");
        edits.push((format!("{FIELD}/{key}"), value));
    }
    edits
}

/// The result can be part of a slug.
fn word(text: &str) -> String {
    let kept = text.chars().map(|letter| match letter {
        letter if letter.is_ascii_alphanumeric() => letter.to_ascii_lowercase(),
        _ => '-',
    });
    kept.collect::<String>()
        .split('-')
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("-")
}

/// Columns are separated by tabs, and a line that starts with `# ` is a comment.
fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
        .map(|line| line.split('\t').collect())
}

/// E.g. `{63}` becomes 63 letters, and `{ä63}` becomes 63 umlauts.
fn expanded(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let inner = after.split('}').next().unwrap_or_default();
        let (letter, digits) = match inner.strip_prefix('ä') {
            Some(digits) => ("ä", digits),
            None => ("a", inner),
        };
        match digits.parse::<usize>() {
            Ok(count) => {
                out.push_str(&letter.repeat(count));
                rest = &after[inner.len() + 1..];
            }
            Err(_) => {
                out.push('{');
                rest = after;
            }
        }
    }
    out + rest
}

/// `-` means that the output is sent, and `never` that nothing is. Otherwise `read` makes edits
/// from the column.
fn sent(column: &str, read: impl Fn(&Value) -> Vec<Edit>) -> Sent {
    match column {
        "-" => Sent::Made,
        "never" => Sent::Nothing,
        edits => Sent::Edited(read(&json(edits))),
    }
}

/// The keys are places. `null` removes the place.
fn edits(places: &Value) -> Vec<Edit> {
    let places = places.as_object().expect("places and values");
    places
        .iter()
        .map(|(place, value)| (place.clone(), (!value.is_null()).then(|| value.clone())))
        .collect()
}

/// Returns `None` if the column states no mistake.
fn harm(row: &[&'static str], column: usize) -> Option<&'static str> {
    row.get(column).copied().filter(|harm| *harm != "-")
}
