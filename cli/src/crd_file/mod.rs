//! Files with CRDs: one or several, mixed with other objects, or inside Helm templates.
//!
//! A generated CRD replaces the CRD of the same name; everything else is kept byte for byte. In a
//! document with template expressions, only the `spec` is replaced, because the rest isn't ours to
//! print.

mod template;

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::Result;
use rbuilder_kubernetes::crd::Crd;
use serde_json::{Map, Value};

use crate::line_ends::unify;
use crate::tree::Tree;
use rbuilder_yaml::{is_blank, is_marker, split_texts};
pub(crate) use template::FILLED_IN;
use template::{escape, find_spec, has_expressions, is_template, strip_template};

const API_VERSION: &str = "apiextensions.k8s.io/v1";

/// Annotation with the version of rbuilder. May be missing from files maintained by users.
const VERSION: &str = "rbuilder.dev/version";

#[derive(Debug)]
pub(crate) struct CrdFile {
    documents: Vec<Document>,
    /// Whether Helm renders the file, in which case `{{` starts an expression.
    is_rendered: bool,
    is_template: bool,
}

#[derive(Debug)]
struct Document {
    /// Text from the document's `---` up to the next one.
    text: String,
    is_template: bool,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Only comments or template control lines.
    Nothing,
    Object(Value),
    List(Vec<Value>),
    /// Not YAML, with the name of the CRD if it looks like one.
    Broken(Option<String>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CrdEntry {
    pub(crate) name: String,
    /// Group and kind, unless the text could not be parsed.
    pub(crate) kind: Option<(String, String)>,
    /// Why a generated CRD can't replace this one, if so.
    pub(crate) obstacle: Option<String>,
}

/// Whether Helm renders the file, i.e. whether it is in the `templates` of a chart.
pub(crate) fn is_rendered(tree: &Tree, path: &str) -> Result<bool> {
    if path.ends_with(".tpl") {
        return Ok(true);
    }
    for (at, _) in path.match_indices("templates/") {
        let chart = &path[..at];
        if (chart.is_empty() || chart.ends_with('/')) && tree.read(&format!("{chart}Chart.yaml"))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Converts a template to YAML by stripping its expressions. Other text is unchanged.
pub(crate) fn without_template(text: &str) -> Cow<'_, str> {
    match is_template(text) {
        true => strip_template(text).into(),
        false => text.into(),
    }
}

impl CrdFile {
    pub(crate) fn parse(text: &str, is_rendered: bool) -> CrdFile {
        let text = unify(text.strip_prefix('\u{feff}').unwrap_or(text));
        let is_template = match is_rendered {
            true => has_expressions(&text),
            false => is_template(&text),
        };
        CrdFile {
            documents: split_texts(&text)
                .into_iter()
                .map(|text| Document::parse(text, is_template, is_rendered))
                .collect(),
            is_rendered,
            is_template,
        }
    }

    /// Returns the file with `\n` as line ending.
    pub(crate) fn text(&self) -> String {
        self.documents
            .iter()
            .map(|document| document.text.as_str())
            .collect()
    }

    /// Whether Helm or another program fills in parts of the file.
    pub(crate) fn is_template(&self) -> bool {
        self.is_template
    }

    /// Whether the file contains just one CRD, so that a generated one can replace all of it.
    pub(crate) fn is_single(&self) -> bool {
        let mut objects = self.documents.iter().filter(|document| document.has_content());
        let is_object = |document: &Document| matches!(document.content, Content::Object(_));
        !self.is_template && objects.next().is_some_and(is_object) && objects.next().is_none()
    }

    pub(crate) fn has_other_content(&self) -> bool {
        let is_crd = |document: &Document| matches!(&document.content, Content::Object(object) if crd_name(object).is_some());
        let mut with_content = self.documents.iter().filter(|document| document.has_content());
        self.is_template || !with_content.all(is_crd)
    }

    /// Lists the CRDs. Unparsable ones come last.
    pub(crate) fn list_crds(&self) -> Vec<CrdEntry> {
        let (mut found, mut broken) = (Vec::new(), Vec::new());
        for document in &self.documents {
            if let Content::Broken(Some(name)) = &document.content {
                broken.push(CrdEntry {
                    name: name.clone(),
                    kind: None,
                    obstacle: document.obstacle(),
                });
            }
            for object in document.objects() {
                let Some(name) = crd_name(object) else { continue };
                let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let spec = &object["spec"];
                let is_repeated = self.count(&name) > 1;
                found.push(CrdEntry {
                    obstacle: match is_repeated {
                        true => Some("it is in the file more than once".to_owned()),
                        false => document.obstacle(),
                    },
                    name,
                    kind: Some((word(&spec["group"]), word(&spec["names"]["kind"]))),
                });
            }
        }
        found.extend(broken);
        found
    }

    pub(crate) fn read_crd(&self, name: &str) -> Option<&Value> {
        let mut objects = self.documents.iter().flat_map(Document::objects);
        objects.find(|object| crd_name(object).as_deref() == Some(name))
    }

    fn count(&self, name: &str) -> usize {
        let objects = self.documents.iter().flat_map(Document::objects);
        objects
            .filter(|object| crd_name(object).as_deref() == Some(name))
            .count()
    }

    /// Replaces the CRDs in `crds` (by name), appends those that the file lacks, and removes
    /// generated ones accepted by `is_stale`.
    ///
    /// The error is a phrase that explains why a CRD can't be written and what to do.
    pub(crate) fn write(
        &self,
        crds: &BTreeMap<String, String>,
        is_stale: &dyn Fn(&str) -> bool,
    ) -> Result<String, String> {
        let is_whole = match crds.first_key_value() {
            Some((name, _)) if crds.len() == 1 => self.is_single() && self.count(name) == 1,
            _ => false,
        };
        // There is nothing else in the file to keep.
        if self.documents.is_empty() || is_whole {
            let texts = crds.values().map(|text| self.print(text));
            return Ok(texts.collect());
        }
        let entries = self.list_crds();
        for entry in entries.iter().filter(|entry| crds.contains_key(&entry.name)) {
            if let Some(obstacle) = &entry.obstacle {
                return Err(format!("cannot write `{}` there, because {obstacle}", entry.name));
            }
        }
        let mut text = String::new();
        for document in &self.documents {
            let name = document.objects().find_map(crd_name);
            match name.as_ref().and_then(|name| crds.get(name)) {
                Some(crd) => text.push_str(&document.with(&self.print(crd))?),
                None if document.is_generated() && name.as_deref().is_some_and(is_stale) => {}
                None => text.push_str(&document.text),
            }
        }
        for (name, crd) in crds {
            if entries.iter().any(|entry| entry.name == *name) {
                continue;
            }
            if self.is_template {
                return Err(format!(
                    "the template has no CRD `{name}`: add a document with its `apiVersion`, `kind` and `metadata`, and `spec: {{}}`"
                ));
            }
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&self.print(crd));
        }
        Ok(text)
    }

    fn print<'t>(&self, crd: &'t str) -> Cow<'t, str> {
        match self.is_rendered || self.is_template {
            true => escape(crd).into(),
            false => crd.into(),
        }
    }
}

impl Document {
    fn parse(text: String, in_template: bool, is_rendered: bool) -> Document {
        let is_template = in_template && has_expressions(&text);
        let yaml = match in_template || is_rendered {
            true => Cow::Owned(strip_template(&text)),
            false => Cow::Borrowed(text.as_str()),
        };
        let content = match rbuilder_yaml::parse_value(&yaml) {
            _ if is_blank(&yaml) => Content::Nothing,
            Ok(Value::Null) => Content::Nothing,
            Ok(Value::Object(mut keys)) if is_list(&keys) => match keys.remove("items") {
                Some(Value::Array(items)) => Content::List(items),
                _ => Content::List(Vec::new()),
            },
            Ok(value) => Content::Object(value),
            Err(_) => Content::Broken(find_name(&yaml)),
        };
        Document {
            text,
            is_template,
            content,
        }
    }

    fn has_content(&self) -> bool {
        self.is_template || !matches!(self.content, Content::Nothing)
    }

    fn objects(&self) -> impl Iterator<Item = &Value> {
        let objects = match &self.content {
            Content::Object(object) => std::slice::from_ref(object),
            Content::List(items) => items.as_slice(),
            Content::Nothing | Content::Broken(_) => &[],
        };
        objects.iter()
    }

    fn is_generated(&self) -> bool {
        let is_own = |object: &Value| object["metadata"]["annotations"][VERSION].is_string();
        !self.is_template && matches!(&self.content, Content::Object(object) if is_own(object))
    }

    fn obstacle(&self) -> Option<String> {
        match &self.content {
            Content::Broken(_) => Some("it is not valid YAML".to_owned()),
            Content::List(_) => Some("it is in a list".to_owned()),
            Content::Object(object) if self.is_template => self.template_obstacle(object),
            Content::Object(_) | Content::Nothing => None,
        }
    }

    fn template_obstacle(&self, object: &Value) -> Option<String> {
        if object["apiVersion"] != API_VERSION {
            return Some(format!("its `apiVersion` is not `{API_VERSION}`"));
        }
        match find_spec(&self.text) {
            None => Some("it has no `spec` in lines of its own".to_owned()),
            Some(place) if has_expressions(&self.text[place.clone()]) => {
                Some("its `spec` contains template expressions".to_owned())
            }
            Some(_) => None,
        }
    }

    fn with(&self, crd: &str) -> Result<String, String> {
        let body = crd.strip_prefix("---\n").unwrap_or(crd);
        if !self.is_template {
            let place = find_content(&self.text);
            return Ok(format!(
                "{}{body}{}",
                &self.text[..place.start],
                &self.text[place.end..]
            ));
        }
        let (Some(place), Some(spec)) = (find_spec(&self.text), find_spec(body)) else {
            return Err("the template has no `spec` in lines of its own".to_owned());
        };
        let head = &self.text[..place.start];
        if let Some((key, line)) = find_missing_metadata(head, body) {
            return Err(format!(
                "the template lacks a line in `metadata.{key}` of the CRD: add `{line}`"
            ));
        }
        Ok(format!("{head}{}{}", &body[spec], &self.text[place.end..]))
    }
}

/// A label or annotation of the generated CRD that the template lacks, as the field name and the
/// line to add.
fn find_missing_metadata(head: &str, crd: &str) -> Option<(&'static str, String)> {
    let crd = rbuilder_yaml::parse_value(crd).ok()?;
    ["labels", "annotations"].into_iter().find_map(|key| {
        let lines = crd["metadata"][key].as_object()?;
        let (name, value) = lines
            .iter()
            .find(|(name, _)| *name != VERSION && !head.contains(name.as_str()))?;
        Some((key, format!("{name}: {value}")))
    })
}

/// Range from the first to the last line with content, excluding the document marker and
/// surrounding comments.
fn find_content(text: &str) -> std::ops::Range<usize> {
    let mut place = text.len()..text.len();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let start = offset;
        offset += line.len();
        let after_marker = match is_marker(line) {
            true => line[3..].trim(),
            false => line.trim_end(),
        };
        if after_marker.is_empty() || after_marker.starts_with('#') {
            continue;
        }
        place.start = place.start.min(start);
        place.end = offset;
    }
    place
}

/// Whether an object is a list: a `List`, as kubectl prints it, or the list of a kind, as the API
/// server does.
fn is_list(object: &Map<String, Value>) -> bool {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    kind == "List" || kind.ends_with("List") && object.get("items").is_some_and(Value::is_array)
}

/// Name implied by the `spec`, or `metadata.name` without a `spec`.
fn crd_name(object: &Value) -> Option<String> {
    let crd = Crd::read(object)?;
    match crd.plural().is_empty() || crd.group().is_empty() {
        true => Some(crd.name().to_owned()).filter(|name| !name.is_empty()),
        false => Some(crd.expected_name()),
    }
}

/// Guesses the name of a CRD in text that isn't YAML from its first `plural:` and `group:`.
fn find_name(text: &str) -> Option<String> {
    if !text.contains("kind: CustomResourceDefinition") {
        return None;
    }
    let value_of = |key: &str| {
        let mut lines = text.lines().map(str::trim);
        let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        let value = value.trim().trim_matches(['"', '\'']);
        (!value.is_empty()).then_some(value)
    };
    Some(format!("{}.{}", value_of("plural")?, value_of("group")?))
}

#[cfg(test)]
mod tests;
