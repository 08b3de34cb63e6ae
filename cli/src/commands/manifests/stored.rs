//! Warns about schema changes after which existing objects may lose values, or no longer decode to
//! the Rust type.
//!
//! The API server only validates objects on write. If a field becomes required, it still returns
//! existing objects without that field, and the operator fails to decode them. Adding a default to
//! the schema helps, because defaults are also applied on read. Unknown fields, on the other hand,
//! are dropped.

use rbuilder_compatibility::{Narrowing, find_narrowings};
use rbuilder_generator::{Diagnostic, FieldPath, FieldPlace, FileRange, Options, Sources, find_fields};

use super::definition::ChangedFile;

/// Warns about each field that becomes an enum, changes its type, or is required without a default,
/// and about removed fields and enum variants. Only versions that existed before are considered.
/// Warnings point to the field in the source.
///
/// `is_released` tells whether the CRD in a file may exist in a cluster, and `is_new` whether git
/// shows that no release has had it.
pub(super) fn find_unreadable(
    changed: &[ChangedFile],
    sources: &dyn Sources,
    options: &Options,
    is_released: &dyn Fn(&str) -> bool,
    is_new: &dyn Fn(&str) -> bool,
) -> Vec<Diagnostic> {
    let mut narrowed: Vec<(&str, Narrowed)> = changed
        .iter()
        .flat_map(|file| {
            let found = compare_crds(file).into_iter();
            found.map(|narrowed| (file.path.as_str(), narrowed))
        })
        .collect();
    // Fields are removed all the time while a kind is being developed, so only warn about these in
    // a released CRD.
    narrowed.retain(|(path, narrowed)| match narrowed.what {
        Narrowing::Fields(_) => is_released(path),
        _ => !is_new(path),
    });
    if narrowed.is_empty() {
        return Vec::new();
    }
    let fields: Vec<FieldPath> = narrowed
        .iter()
        .map(|(_, narrowed)| narrowed.field.clone())
        .collect();
    let places = find_fields(sources, options, &fields);
    let found = narrowed.iter().zip(places);
    found
        .map(|((path, narrowed), place)| {
            let in_manifest = || FieldPlace {
                range: FileRange::new(*path, 0..0),
                is_ours: false,
            };
            warning(place.unwrap_or_else(in_manifest), narrowed)
        })
        .collect()
}

#[derive(Debug, PartialEq)]
struct Narrowed {
    crd: String,
    field: FieldPath,
    what: Narrowing,
}

fn warning(place: FieldPlace, narrowed: &Narrowed) -> Diagnostic {
    let Narrowed { crd, field, what } = narrowed;
    let FieldPath { path, version, .. } = field;
    let (message, help) = match what {
        Narrowing::Required => (
            format!(
                "`{path}` becomes required in version `{version}` of `{crd}` and has no default: objects stored without \
                 it cannot be decoded"
            ),
            match path.as_str() {
                ".spec" => {
                    "give each stored object a `spec` before you apply the CRD: kube's type of the object always has one"
                }
                _ if place.is_ours => {
                    "make it an `Option`, or give it a default, with `#[kube(default = …)]` or `#[serde(default)]`"
                }
                _ => "make it an `Option`, or give it a default, with `#[serde(default)]`",
            },
        ),
        Narrowing::EnumValue(value) => (
            format!(
                "`{path}` loses the value `{value}` in version `{version}` of `{crd}`: objects stored with it cannot be \
                 decoded"
            ),
            "keep the variant until no stored object has it, or remove it in a new version with a conversion",
        ),
        Narrowing::Enum(values) => (
            format!(
                "`{path}` accepts only `{}` in version `{version}` of `{crd}`: objects stored with another value cannot be \
                 decoded",
                values.join("`, `")
            ),
            "make sure that no stored object has another value before you release the operator, or change the field in a new version \
             with a conversion",
        ),
        Narrowing::Type(old, new) => (
            format!(
                "`{path}` changes from {old} to {new} in version `{version}` of `{crd}`: objects stored with it cannot be \
                 decoded"
            ),
            "give the field another name, or change it in a new version with a conversion",
        ),
        Narrowing::Fields(names) => {
            let (fields, values) = match names.len() {
                1 => ("field", "its value"),
                _ => ("fields", "their values"),
            };
            let names = names.join("`, `");
            (
                format!(
                    "`{path}` loses the {fields} `{names}` in version `{version}` of `{crd}`: the API server drops {values} from \
                     stored objects"
                ),
                "keep a field until no stored object has it, or remove it in a new version with a conversion; to rename a \
                 field in Rust only, add `#[serde(rename = …)]` with its name in the CRD",
            )
        }
    };
    Diagnostic::warning(place.range, message).help(help)
}

fn compare_crds(file: &ChangedFile) -> Vec<Narrowed> {
    let mut found = Vec::new();
    for (before, after) in file.kept() {
        for version in after.versions() {
            let Some(before) = before.version(version.name) else {
                continue;
            };
            let narrowings = find_narrowings(before.schema(), version.schema());
            found.extend(narrowings.into_iter().map(|(path, what)| Narrowed {
                crd: after.expected_name(),
                field: FieldPath {
                    group: after.group().to_owned(),
                    kind: after.kind().to_owned(),
                    version: version.name.to_owned(),
                    path,
                },
                what,
            }));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare_crds(before: &str, after: &str) -> Vec<Narrowed> {
        super::compare_crds(&ChangedFile::read("crd.yaml", before, Some(after)))
    }

    fn crd(schema: &str) -> String {
        format!(
            "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec:\n  versions:\n  - name: v1\n    \
             schema:\n      openAPIV3Schema: {schema}\n"
        )
    }

    #[test]
    fn compares_same_versions() {
        let (before, after) = (crd("{}"), crd("{required: [a]}"));
        let found = compare_crds(&before, &after);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].field.version.as_str(), found[0].field.path.as_str()),
            ("v1", ".a")
        );
        assert_eq!(compare_crds(&before.replace("v1\n", "v1alpha1\n"), &after), []);
        assert_eq!(compare_crds("kind: Role\n", &after), []);
        assert_eq!(compare_crds("a: [", &after), []);
    }
}
