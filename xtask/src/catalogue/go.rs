//! Finds the doc comments and markers of the Kubernetes API types in their Go source.
//!
//! This is a simple line-based parser. It is good enough because gofmt puts each field on its own
//! line.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::committed::list_files;

/// The Go modules in `k8s.io` with types that are also in k8s-openapi.
pub(crate) const MODULES: &[&str] = &[
    "api",
    "apiextensions-apiserver",
    "apimachinery",
    "kube-aggregator",
];

/// Comments of all types in a number of modules.
#[derive(Default)]
pub(crate) struct Comments {
    /// The key consists of the package (e.g. `k8s.io/api/core/v1`) and the name of the type.
    types: BTreeMap<(String, String), GoType>,
}

struct GoType {
    comment: Comment,
    fields: Vec<Field>,
    /// Types whose fields also belong to this type, either because they are embedded or because
    /// this is an alias.
    embedded: Vec<(String, String)>,
}

struct Field {
    name: String,
    comment: Comment,
    /// Type of the items of a list, or of the values of a map.
    items: Option<(String, String)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Comment {
    /// The text, which is processed in the same way as controller-gen does it.
    pub(crate) text: String,
    /// All lines that start with `+`, but without the `+`.
    pub(crate) markers: Vec<String>,
}

impl Comments {
    pub(crate) fn read(&mut self, module: &str, folder: &Path) -> Result<()> {
        for path in list_files(folder, "go")? {
            let relative = path.strip_prefix(folder)?.to_string_lossy().replace('\\', "/");
            let (parent, name) = relative.rsplit_once('/').unwrap_or(("", &relative));
            if !name.ends_with("_test.go") && !name.contains("generated") {
                let package = format!("k8s.io/{module}/{parent}");
                self.file(&package, &fs_err::read_to_string(&path)?);
            }
        }
        Ok(())
    }

    fn file(&mut self, package: &str, text: &str) {
        let mut imports: BTreeMap<&str, &str> = BTreeMap::new();
        let mut comment: Vec<&str> = Vec::new();
        let mut open: Option<String> = None;
        for line in text.lines() {
            let code = line.trim();
            if let Some(words) = code.strip_prefix("//") {
                comment.push(words);
                continue;
            }
            let above = std::mem::take(&mut comment);
            let full = |go_type: &str| match go_type.split_once('.') {
                Some((alias, name)) => (
                    imports.get(alias).copied().unwrap_or(alias).to_owned(),
                    name.to_owned(),
                ),
                None => (package.to_owned(), go_type.to_owned()),
            };
            if line == "}" {
                open = None;
            } else if let Some(name) = &open {
                let (Some((name_on_wire, go_type)), Some(ty)) = (
                    field(code),
                    self.types.get_mut(&(package.to_owned(), name.clone())),
                ) else {
                    continue;
                };
                match name_on_wire {
                    "" => ty.embedded.push(full(go_type)),
                    name => ty.fields.push(Field {
                        name: name.to_owned(),
                        comment: Comment::read(&above),
                        items: member(go_type).map(full),
                    }),
                }
            } else if let Some((name, rest)) =
                line.strip_prefix("type ").and_then(|rest| rest.split_once(' '))
            {
                let ty = GoType {
                    comment: Comment::read(&above),
                    fields: Vec::new(),
                    embedded: other_name(rest).map(full).into_iter().collect(),
                };
                self.types.insert((package.to_owned(), name.to_owned()), ty);
                open = (rest == "struct {").then(|| name.to_owned());
            } else if let Some((alias, path)) = import(code) {
                imports.insert(alias, path);
            }
        }
    }

    pub(crate) fn of_type(&self, package: &str, name: &str) -> Option<&Comment> {
        self.get(package, name).map(|ty| &ty.comment)
    }

    /// Returns the comment of a field by its JSON name. The field may also belong to an embedded
    /// struct.
    pub(crate) fn of_field(&self, package: &str, name: &str, field: &str) -> Option<&Comment> {
        self.field(package, name, field).map(|field| &field.comment)
    }

    /// Returns the comment of the type used for the items of a list or the values of a map.
    pub(crate) fn of_items(&self, package: &str, name: &str, field: &str) -> Option<&Comment> {
        let (package, name) = self.field(package, name, field)?.items.as_ref()?;
        self.of_type(package, name)
    }

    fn field(&self, package: &str, name: &str, field: &str) -> Option<&Field> {
        let ty = self.get(package, name)?;
        let own = ty.fields.iter().find(|own| own.name == field);
        own.or_else(|| {
            let embedded = ty.embedded.iter();
            embedded
                .filter_map(|(package, name)| self.field(package, name, field))
                .next()
        })
    }

    fn get(&self, package: &str, name: &str) -> Option<&GoType> {
        self.types.get(&(package.to_owned(), name.to_owned()))
    }
}

/// Returns the JSON name and the Go type of a field. Embedded structs don't have a name, so this
/// returns an empty one.
fn field(code: &str) -> Option<(&str, &str)> {
    let (declared, tag) = code.split_once('`')?;
    let (_, json) = tag.split_once("json:\"")?;
    let (json, _) = json.split_once('"')?;
    let go_type = declared.split_whitespace().last()?;
    Some((
        json.split(',').next().unwrap_or_default(),
        go_type.trim_start_matches('*'),
    ))
}

/// Returns the type of list items or map values.
fn member(go_type: &str) -> Option<&str> {
    let (_, member) = go_type
        .strip_prefix("map")
        .unwrap_or(go_type)
        .strip_prefix('[')?
        .split_once(']')?;
    Some(member.trim_start_matches('*'))
}

/// Returns the aliased type, for both `type A = B` and `type A B`.
fn other_name(declared: &str) -> Option<&str> {
    let name = declared.strip_prefix("= ").unwrap_or(declared);
    let is_name = name
        .chars()
        .all(|letter| letter.is_alphanumeric() || letter == '.');
    is_name.then_some(name)
}

/// Returns the name of an imported package and its path.
fn import(code: &str) -> Option<(&str, &str)> {
    let (alias, path) = code.strip_suffix('"')?.split_once('"')?;
    let alias = match alias.trim() {
        "" => path.rsplit('/').next().unwrap_or(path),
        alias => alias.trim_start_matches("import "),
    };
    Some((alias, path))
}

impl Comment {
    fn read(lines: &[&str]) -> Self {
        let mut comment = Comment::default();
        let mut kept: Vec<&str> = Vec::new();
        let mut is_fenced = false;
        let mut is_over = false;
        for line in lines {
            // These are directives for tools. They don't have a space after `//`.
            if line.starts_with("nolint:") || line.starts_with("go:") {
                continue;
            }
            let line = line.strip_prefix(' ').unwrap_or(line).trim_end();
            let words = line.trim();
            if let Some(marker) = words.strip_prefix('+') {
                comment.markers.push(marker.to_owned());
                continue;
            }
            if words.starts_with("```") || words.starts_with("~~~") {
                is_fenced = !is_fenced;
            }
            if !is_fenced {
                is_over |= line.starts_with("---");
                if words.starts_with("TODO") {
                    continue;
                }
            }
            // Skip blank lines if there's more than one in a row.
            let is_doubly_blank = line.is_empty() && kept.last().is_none_or(|last| last.is_empty());
            if !is_over && !is_doubly_blank {
                kept.push(line);
            }
        }
        comment.text = kept.join("\n").trim_end().to_owned();
        comment
    }

    pub(crate) fn marker(&self, name: &str) -> Option<&str> {
        let values = self.markers.iter();
        values
            .filter_map(|marker| marker.strip_prefix(name)?.strip_prefix('='))
            .next_back()
    }

    /// Returns the names and values of all markers that start with `prefix`.
    pub(crate) fn below(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        let named = self
            .markers
            .iter()
            .filter_map(move |marker| marker.strip_prefix(prefix));
        named.map(|marker| marker.split_once('=').unwrap_or((marker, "")))
    }
}

/// Returns the Go package and the name of a type. The argument is a name in OpenAPI, e.g.
/// `io.k8s.api.core.v1.Pod`.
pub(crate) fn package_of(openapi: &str) -> Result<(String, &str)> {
    let (module, name) = openapi.rsplit_once('.').context("a name has a module")?;
    let module = module
        .strip_prefix("io.k8s.")
        .context("the name is not Kubernetes'")?;
    let package = format!("k8s.io/{}", module.replace('.', "/"));
    ensure!(!name.is_empty(), "the name is empty");
    Ok((package, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
import (
	other \"k8s.io/q\"
	\"k8s.io/r\"
)

// Thing is a thing.
// ---
// Not for readers.
// +structType=atomic
type Thing struct {
	Base `json:\",inline\"`
	*r.Base `json:\"\"`
	// Name of it,
	// in words.
	//\x20TODO: another name
	//
	//
	// More.
	// +default=\"a\"
	// +kubebuilder:default=\"b\"
	Name *string `json:\"name,omitempty\" protobuf:\"x\"`
	NoComment Kind `json:\"kind\"`
	List []*Base `json:\"list\"`
}

// Base is below.
type Base struct {
	// A in base.
	A int `json:\"a\"`
}

// Same is elsewhere.
type Same = other.Thing
";

    #[test]
    fn parses_comments_of_types_and_fields() {
        let mut comments = Comments::default();
        comments.file("k8s.io/p", SOURCE);
        comments.file("k8s.io/q", SOURCE);
        comments.file(
            "k8s.io/r",
            "type Base struct {\n\t// B in r.\n\tB int `json:\"b\"`\n}\n",
        );
        let text = |comment: Option<&Comment>| comment.map(|comment| comment.text.clone());
        assert_eq!(
            text(comments.of_type("k8s.io/p", "Thing")).as_deref(),
            Some("Thing is a thing.")
        );
        let name = comments.of_field("k8s.io/p", "Thing", "name").expect("a field");
        assert_eq!(name.text, "Name of it,\nin words.\n\nMore.");
        assert_eq!(name.marker("default"), Some("\"a\""));
        assert_eq!(
            name.below("kubebuilder:").collect::<Vec<_>>(),
            [("default", "\"b\"")]
        );
        assert_eq!(
            text(comments.of_field("k8s.io/p", "Thing", "a")).as_deref(),
            Some("A in base.")
        );
        assert_eq!(
            text(comments.of_field("k8s.io/p", "Thing", "kind")).as_deref(),
            Some("")
        );
        assert_eq!(
            text(comments.of_field("k8s.io/p", "Same", "b")).as_deref(),
            Some("B in r.")
        );
        assert_eq!(comments.of_field("k8s.io/p", "Thing", "c"), None);
        assert_eq!(
            text(comments.of_items("k8s.io/p", "Thing", "list")).as_deref(),
            Some("Base is below.")
        );
    }
}
