//! The size limits of a CRD, and its largest parts.

use std::sync::Arc;

use rbuilder_schema::Schema;

use super::Version;
use crate::OutputFile;
use crate::schemas::Schemas;

/// `kubectl apply` keeps the whole object in an annotation, and the annotations of an object have this many bytes.
const CLIENT_SIDE: usize = 256 * 1024;
/// The largest request that etcd accepts by default, in bytes, less a reserve for what the API server adds.
const STORED: usize = 1024 * 1024;

pub(super) fn check_size(versions: &[Version<'_>], file: &OutputFile, schemas: &mut Schemas<'_>) {
    // A line has two bytes at least, so this is more than the length below: of most CRDs it is enough.
    if 2 * file.text.len() <= CLIENT_SIDE {
        return;
    }
    // Without its margins the text is no longer than the JSON that is sent, give or take the quotes.
    let length: usize = file.text.lines().map(|line| line.trim_start().len() + 3).sum();
    if length <= CLIENT_SIDE {
        return;
    }
    let (size, fields) = measure(versions);
    if size <= CLIENT_SIDE {
        return;
    }
    let version = &versions[0];
    let kind = &version.resource.kind;
    let kilobytes = size / 1024;
    let message = match size > STORED {
        true => format!("the definition of `{kind}` is {kilobytes} KiB; etcd may reject more than 1024 KiB"),
        false => {
            format!(
                "the definition of `{kind}` is {kilobytes} KiB; `kubectl apply` rejects more than 256 KiB"
            )
        }
    };
    let cure = match (size > STORED, version.is_ours) {
        (true, true) => "add `#[crd(max_description_length = 0)]`, or make large fields `schemaless`",
        (false, true) => {
            "apply it with `kubectl apply --server-side`, or add `#[crd(max_description_length = 0)]`"
        }
        (true, false) => "pass `--max-description-length 0`",
        (false, false) => "apply it with `kubectl apply --server-side`, or pass `--max-description-length 0`",
    };
    let help = format!("{cure}; most of it is {}", heaviest(fields).join(", "));
    schemas.report().warning(version.place, message, &help);
}

/// The size of all versions, and of each field of spec and status, or of what stands in their place.
fn measure(versions: &[Version<'_>]) -> (usize, Vec<(usize, String)>) {
    let mut total = 0;
    let mut fields = Vec::new();
    for version in versions {
        let mut rest = version.schema.clone();
        for (outer, schema) in &mut rest.properties {
            for (inner, field) in std::mem::take(&mut Arc::make_mut(schema).properties) {
                let size = json_size(&field);
                // With its name in quotes, a colon and a comma.
                total += size + inner.len() + 4;
                fields.push((
                    size,
                    format!("`.{outer}.{inner}` of `{}`", version.resource.version),
                ));
            }
        }
        total += json_size(&rest);
    }
    (total, fields)
}

fn json_size(schema: &Schema) -> usize {
    let mut count = Count(0);
    // Counting cannot fail, and a schema is JSON.
    let _ = serde_json::to_writer(&mut count, schema);
    count.0
}

/// Counts what is written.
struct Count(usize);

impl std::io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The three largest fields.
fn heaviest(mut fields: Vec<(usize, String)>) -> Vec<String> {
    fields.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    let shown = |(size, path): (usize, String)| format!("{path} ({} KiB)", size.div_ceil(1024));
    fields.into_iter().take(3).map(shown).collect()
}
