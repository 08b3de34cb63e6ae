//! Codes of errors, warnings and notes. They are stable, even if a message is reworded.
//!
//! A [`Code`] is assigned to all mistakes that can be fixed in the same way. It contains patterns
//! for the messages that it covers, with `{}` as a placeholder. Other crates just report a message,
//! which already says everything about the mistake, and do not have to know about codes. In
//! particular, this table isn't part of the derive macro, which is compiled with every operator. If
//! a message matches more than one code, the pattern with the most letters wins.
//!
//! The table is used by `rbuilder explain` and for `docs/codes.md`. There are tests that generate
//! manifests from the examples, and look up the messages of all other tests, so you cannot add a
//! message without a code. Examples of diagnostics that are only reported by the command
//! (`manifests`, `validate` and `doctor`) are tested there.
//!
//! # Adding a code
//!
//! Add it to the table of its subject, using the next number. In order to support `allow(…)`, also
//! add the number to `crates/syntax/src/allow.rs`. Never use a number for anything else.

mod allows;
mod changes;
mod kinds;
mod levels;
mod markers;
mod objects;
mod project;
mod roles;
mod rules;
mod schemas;
mod source;
mod webhooks;

pub use allows::Allows;
pub use levels::Levels;

use rbuilder_catalogue::versions;

use crate::{Diagnostic, Options, Severity, SourceSet, find_replacement, generate};

/// A class of mistakes.
#[derive(Clone, Copy, Debug)]
pub struct Code {
    /// ID, e.g. `RB0201`.
    pub id: &'static str,
    /// Short description, used as a heading.
    pub title: &'static str,
    /// Severity of most of the messages.
    pub level: Severity,
    /// Where the examples are inserted.
    pub place: ExamplePlace,
    /// An example with the mistake.
    pub wrong: &'static str,
    /// The same example without the mistake.
    pub right: &'static str,
    /// Why this is a mistake, and what to do about it.
    pub reason: &'static str,
    /// Error message of the API server for a manifest with this mistake. Empty if the manifest is
    /// accepted, or does not get that far.
    pub server: &'static str,
    /// Patterns for messages. `{}` matches any text.
    pub messages: &'static [&'static str],
}

/// Which part of a package is shown by an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExamplePlace {
    /// Fields in the spec of a kind.
    Field,
    /// Arguments of a kind's `#[kube(…)]`.
    Keys,
    /// The spec of a kind, including the types that are used in it.
    Types,
    /// Items that are not part of a kind.
    Items,
    /// The package's `Cargo.toml`.
    Manifest,
    /// Fields in the spec of a kind, before and after changing a CRD that is tracked by git.
    Change,
    /// `#[kube(…)]` of a kind, before and after changing a CRD that's tracked by git.
    KindChange,
    /// A YAML object without its name. It may also lack `apiVersion` and `kind`.
    Object,
    /// A file in a scaffolded project which has the kind `Widget` in `shop.example.com/v1`. Its
    /// path is a comment in the first line.
    Project,
    /// Settings for `[package.metadata.rbuilder]` in `Cargo.toml`.
    Selection,
}

/// Separates the two versions of a change.
pub const BECOMES: &str = "\n// becomes\n";

/// All codes about the same subject.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Heading.
    pub title: &'static str,
    /// Codes sorted by number.
    pub codes: &'static [Code],
}

/// All codes by subject.
pub const SUBJECTS: &[Subject] = &[
    Subject {
        title: "Source",
        codes: source::CODES,
    },
    Subject {
        title: "Markers",
        codes: markers::CODES,
    },
    Subject {
        title: "Schemas",
        codes: schemas::CODES,
    },
    Subject {
        title: "CEL rules",
        codes: rules::CODES,
    },
    Subject {
        title: "Kinds",
        codes: kinds::CODES,
    },
    Subject {
        title: "Roles",
        codes: roles::CODES,
    },
    Subject {
        title: "Webhooks",
        codes: webhooks::CODES,
    },
    Subject {
        title: "Changes of released CRDs",
        codes: changes::CODES,
    },
    Subject {
        title: "Objects",
        codes: objects::CODES,
    },
    Subject {
        title: "Files of a project",
        codes: project::CODES,
    },
];

impl Code {
    /// Returns all codes.
    pub fn all() -> impl Iterator<Item = &'static Code> {
        SUBJECTS.iter().flat_map(|subject| subject.codes)
    }

    /// Looks up a code by its ID, ignoring case.
    pub fn of_id(id: &str) -> Option<&'static Code> {
        Code::all().find(|code| code.id.eq_ignore_ascii_case(id))
    }

    /// Looks up the code of a message. Returns `None` if there is not any.
    pub fn of_message(message: &str) -> Option<&'static Code> {
        let message = without_rule(message);
        let fitting = Code::all().filter_map(|code| {
            let fitting = code.messages.iter().filter(|pattern| fits(pattern, message));
            let letters = fitting.map(|pattern| pattern.replace("{}", "").len()).max()?;
            Some((letters, code))
        });
        fitting.max_by_key(|(letters, _)| *letters).map(|(_, code)| code)
    }

    /// Returns the explanation as Markdown. It contains the reason, the examples, and the error
    /// message of the server.
    pub fn explanation(&self) -> String {
        let language = match self.place {
            ExamplePlace::Manifest | ExamplePlace::Selection => "toml",
            ExamplePlace::Object | ExamplePlace::Project => "yaml",
            _ => "rust",
        };
        let block =
            |title: &str, text: &str| format!("\n{title}\n\n```{language}\n{}\n```\n", self.shown(text));
        let mut text = format!("{}\n", self.reason);
        text.push_str(&block("Wrong:", self.wrong));
        text.push_str(&block("Right:", self.right));
        if !self.server.is_empty() {
            text.push_str(&format!("\nThe API server:\n\n```text\n{}\n```\n", self.server));
        }
        text
    }

    /// Returns whether the example can be fixed with `rbuilder manifests --fix`.
    pub fn is_corrected(&self) -> bool {
        let mut sources = SourceSet::default();
        let [(manifest, text), (library, source)] = self.package(self.wrong);
        sources.insert(manifest, text.as_str());
        sources.insert(library, source.as_str());
        let found = generate(&sources, &Options::default()).diagnostics;
        let is_about_source = |said: &Diagnostic| said.place.path == library;
        let mut own = found.iter().filter(|said| is_about_source(said));
        self.is_about_source() && own.any(|said| find_replacement(said, &source).is_some())
    }

    /// Returns an example with the context that is needed to understand it.
    fn shown(&self, example: &str) -> String {
        match self.place {
            ExamplePlace::Keys => format!("#[kube({example})]"),
            ExamplePlace::Selection => format!("{SELECTION}{example}"),
            _ => example.to_owned(),
        }
    }

    /// Returns whether the mistake is reported by the generator. If it isn't, it is reported by the
    /// command.
    pub fn is_about_source(&self) -> bool {
        !matches!(
            self.place,
            ExamplePlace::Change
                | ExamplePlace::KindChange
                | ExamplePlace::Object
                | ExamplePlace::Project
                | ExamplePlace::Selection
        )
    }

    /// Returns the complete YAML object of an example.
    pub fn object(&self, example: &str) -> String {
        let version = match example.contains("apiVersion:") {
            true => "",
            false => "apiVersion: example.com/v1\n",
        };
        format!("{version}kind: Widget\nmetadata:\n  name: example\n  namespace: default\n{example}\n")
    }

    /// Returns the files of a package that contains an example. If it is about a change, this is
    /// the package after it. The result consists of the path and the contents of `Cargo.toml` and
    /// of the library.
    pub fn package(&self, example: &str) -> [(&'static str, String); 2] {
        let example = example.rsplit(BECOMES).next().unwrap_or_default();
        let manifest = match self.place {
            ExamplePlace::Manifest => example.to_owned(),
            ExamplePlace::Selection => format!("{}\n{SELECTION}{example}\n", example_manifest()),
            _ => example_manifest(),
        };
        let keys = match self.place {
            ExamplePlace::Keys => format!(",\n    {example}"),
            _ => String::new(),
        };
        let spec = match self.place {
            ExamplePlace::Types => example.to_owned(),
            ExamplePlace::Object => OBJECT_SPEC.to_owned(),
            ExamplePlace::Field | ExamplePlace::Change => format!(
                "pub struct WidgetSpec {{\n    {}\n}}\n",
                example.replace('\n', "\n    ")
            ),
            _ => "pub struct WidgetSpec {\n    pub size: i32,\n}\n".to_owned(),
        };
        let items = match self.place {
            ExamplePlace::Items => example,
            _ => "",
        };
        let kind = match self.place {
            ExamplePlace::KindChange => format!("{DERIVES}{example}\n"),
            _ => format!("{KIND_START}{keys}{KIND_END}"),
        };
        let library = format!("{IMPORTS}{kind}{spec}{STATUS}{items}");
        [("Cargo.toml", manifest), ("src/lib.rs", library)]
    }
}

/// Returns the `Cargo.toml` for all examples.
fn example_manifest() -> String {
    let kubernetes = format!(
        "k8s-openapi = {{ version = \"{}\", features = [\"{}\"] }}\nkube = \"{}\"\n",
        versions::K8S_OPENAPI,
        versions::k8s_openapi_feature(versions::KUBERNETES),
        versions::KUBE,
    );
    format!("{MANIFEST_START}{kubernetes}{MANIFEST_END}")
}

/// Table in `Cargo.toml` with the settings.
const SELECTION: &str = "[package.metadata.rbuilder]\n";

const MANIFEST_START: &str = r#"[package]
name = "widgets"
version = "0.1.0"
edition = "2024"

[dependencies]
"#;

const MANIFEST_END: &str = r#"rbuilder = "0.1"
serde = "1"
serde_json = "1"
"#;

const IMPORTS: &str = "\
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::CustomResource;
use rbuilder::{CrdSchema, rbac, webhook};
use serde::{Deserialize, Serialize};

";

const KIND_START: &str = r#"#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus""#;

const DERIVES: &str = "#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n";

/// Kind of the examples that are YAML objects.
const OBJECT_SPEC: &str = "\
pub struct WidgetSpec {
    #[kube(validation(maximum = 9))]
    pub size: i32,
    #[kube(validation(enum = [\"white\", \"blue\"]))]
    pub colour: Option<String>,
    #[kube(list_type = \"set\")]
    pub tags: Option<Vec<String>>,
}
";

const KIND_END: &str = "\n)]\n#[serde(rename_all = \"camelCase\")]\n";

const STATUS: &str = "
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct WidgetStatus {
    pub ready: bool,
    pub replicas: i32,
}

";

/// Removes the part of a message that says which rule it is about.
fn without_rule(message: &str) -> &str {
    match message.rsplit_once(" (in a rule on ") {
        Some((message, rest)) if rest.ends_with(')') => message,
        _ => message,
    }
}

/// Returns whether a message matches a pattern.
fn fits(pattern: &str, message: &str) -> bool {
    let mut parts = pattern.split("{}");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = message.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_whole_messages() {
        for (pattern, message, expected) in [
            ("unknown marker `{}`", "unknown marker `minimun`", true),
            ("unknown marker `{}`", "unknown marker", false),
            ("`{}` is greater than `{}`", "`a` is greater than `b`", true),
            ("`{}` is greater than `{}`", "`a` is greater than b", false),
            ("`{}` is greater than `{}`", "so `a` is greater than `b`", false),
            ("a rule", "a rule", true),
            ("a rule", "a rule of two", false),
            ("syntax error{}", "syntax error", true),
        ] {
            assert_eq!(fits(pattern, message), expected, "{pattern}: {message}");
        }
    }

    #[test]
    fn ids_are_unique_and_in_order() {
        let ids: Vec<&str> = Code::all().map(|code| code.id).collect();
        assert!(ids.is_sorted_by(|one, two| one < two), "{ids:?}");
        assert_eq!(Code::of_id("rb0201").map(|code| code.id), Some("RB0201"));
        assert!(Code::of_id("RB9999").is_none());
    }

    #[test]
    fn the_most_specific_pattern_counts() {
        let id = |message: &str| Code::of_message(message).map(|code| code.id);
        assert_eq!(id("syntax error: unclosed delimiter `{`"), Some("RB0101"));
        assert_eq!(
            id("syntax error at `)`: expected an expression (in a rule on `.spec.size`)"),
            Some("RB0401")
        );
        assert_eq!(id("no such message"), None);
    }
}
