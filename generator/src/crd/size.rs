//! Whether a CRD is small enough to be applied, and what in it is large.

use rbuilder_schema::Schema;

use super::Version;
use crate::OutputFile;
use crate::schemas::Schemas;

/// `kubectl apply` keeps the whole object in an annotation, and the annotations of an object have this many bytes.
const CLIENT_SIDE: usize = 256 * 1024;
/// What etcd takes as it comes, in bytes, with room for what the API server adds.
const STORED: usize = 1024 * 1024;

pub(super) fn check(versions: &[Version<'_>], file: &OutputFile, schemas: &mut Schemas<'_>) {
    // Without its margins the text is no longer than the JSON that is sent, give or take the quotes.
    let length: usize = file.text.lines().map(|line| line.trim_start().len() + 3).sum();
    if length <= CLIENT_SIDE {
        return;
    }
    let size: usize = versions.iter().map(|version| json_size(&version.schema)).sum();
    if size <= CLIENT_SIDE {
        return;
    }
    let version = &versions[0];
    let kind = &version.resource.kind;
    let kilobytes = size / 1024;
    let message = match size > STORED {
        true => format!("the definition of `{kind}` has {kilobytes} KiB: etcd may refuse more than 1024"),
        false => {
            format!("the definition of `{kind}` has {kilobytes} KiB: `kubectl apply` refuses more than 256")
        }
    };
    let cure = match size > STORED {
        true => "write `#[crd(max_description_length = 0)]`, or replace fields by `schemaless` ones",
        false => "apply it with `kubectl apply --server-side`, or write `#[crd(max_description_length = 0)]`",
    };
    let help = format!("{cure}; most of it is {}", heaviest(versions).join(", "));
    let package = schemas.package();
    schemas.report().warning(package, version.place, message, &help);
}

fn json_size(schema: &Schema) -> usize {
    serde_json::to_string(schema).map_or(0, |text| text.len())
}

/// The three largest fields of spec and status, or of what stands in their place.
fn heaviest(versions: &[Version<'_>]) -> Vec<String> {
    let mut fields = Vec::new();
    for version in versions {
        for (outer, schema) in &version.schema.properties {
            for (inner, field) in &schema.properties {
                let path = format!("`.{outer}.{inner}` of `{}`", version.resource.version);
                fields.push((json_size(field), path));
            }
        }
    }
    fields.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    let shown = |(size, path): (usize, String)| format!("{path} ({} KiB)", size.div_ceil(1024));
    fields.into_iter().take(3).map(shown).collect()
}
