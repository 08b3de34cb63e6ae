//! Size limits for CRDs.

use std::sync::Arc;

use rbuilder_schema::Schema;

use super::Version;
use crate::OutputFile;
use crate::schemas::{MAX_BYTES, Schemas, is_too_large};

/// The limit on annotations: `kubectl apply` stores the entire object in one.
const CLIENT_SIDE: usize = 256 * 1024;
/// etcd's default request limit, minus a reserve for fields that the API server adds.
const STORED: usize = 1024 * 1024;

/// Reports a CRD that exceeds the API server's own limit. Checked before printing, because
/// descriptions shared by many fields can make a CRD huge.
pub(super) fn check_weight(versions: &[Version<'_>], schemas: &mut Schemas<'_>) {
    if !is_too_large(versions.iter().map(|version| version.schema.weight())) {
        return;
    }
    let version = &versions[0];
    let message = format!(
        "the definition of `{}` is more than {} KiB, and the API server accepts no request of that size",
        version.resource.kind,
        MAX_BYTES / 1024
    );
    let fields = versions.iter().flat_map(weigh_fields).collect();
    let cure = cure(Size::Refused, version.is_ours);
    let help = format!("{cure}; most of it is {}", heaviest(fields).join(", "));
    schemas.report().error(version.place, message, &help);
}

fn weigh_fields(version: &Version<'_>) -> Vec<(usize, String)> {
    let parts = version.schema.properties.iter();
    let fields = parts.flat_map(|(outer, part)| part.properties.iter().map(move |field| (outer, field)));
    let weighed = fields.map(|(outer, (inner, field))| {
        let path = name_field(outer, inner, version);
        (field.weight().total(), path)
    });
    weighed.collect()
}

/// Which limit a CRD exceeds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    Applied,
    Stored,
    /// The API server's own limit, which isn't configurable.
    Refused,
}

fn cure(size: Size, is_ours: bool) -> &'static str {
    match (size, is_ours) {
        (Size::Applied, true) => {
            "apply it with `kubectl apply --server-side`, or add `#[crd(max_description_length = 0)]`"
        }
        (Size::Applied, false) => {
            "apply it with `kubectl apply --server-side`, or pass `--max-description-length 0`"
        }
        (_, true) => "add `#[crd(max_description_length = 0)]`, or make large fields `schemaless`",
        (Size::Stored, false) => "pass `--max-description-length 0`",
        (Size::Refused, false) => "pass `--max-description-length 0`, or use large types in fewer fields",
    }
}

pub(super) fn check_size(versions: &[Version<'_>], file: &OutputFile, schemas: &mut Schemas<'_>) {
    // Cheap test that most CRDs pass. Every line has at least two bytes, so the length computed
    // below is at most twice the length of the text.
    if 2 * file.text.len() <= CLIENT_SIDE {
        return;
    }
    // Without its indentation, YAML is about as long as the JSON that clients send. Quotes and
    // commas add about 3 bytes a line.
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
    let (limit, message) = match size > STORED {
        true => (
            Size::Stored,
            format!("the definition of `{kind}` is {kilobytes} KiB; etcd may reject more than 1024 KiB"),
        ),
        false => (
            Size::Applied,
            format!(
                "the definition of `{kind}` is {kilobytes} KiB; `kubectl apply` rejects more than 256 KiB"
            ),
        ),
    };
    let cure = cure(limit, version.is_ours);
    let help = format!("{cure}; most of it is {}", heaviest(fields).join(", "));
    schemas.report().warning(version.place, message, &help);
}

fn measure(versions: &[Version<'_>]) -> (usize, Vec<(usize, String)>) {
    let mut total = 0;
    let mut fields = Vec::new();
    for version in versions {
        let mut rest = version.schema.clone();
        for (outer, schema) in &mut rest.properties {
            for (inner, field) in std::mem::take(&mut Arc::make_mut(schema).properties) {
                let size = json_size(&field);
                // The quotes of the name, a colon and a comma.
                total += size + inner.len() + 4;
                fields.push((size, name_field(outer, &inner, version)));
            }
        }
        total += json_size(&rest);
    }
    (total, fields)
}

fn name_field(outer: &str, inner: &str, version: &Version<'_>) -> String {
    format!("`.{outer}.{inner}` of `{}`", version.resource.version)
}

fn json_size(schema: &Schema) -> usize {
    let mut count = Count(0);
    // Serializing a schema to a counter cannot fail.
    let _ = serde_json::to_writer(&mut count, schema);
    count.0
}

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

fn heaviest(mut fields: Vec<(usize, String)>) -> Vec<String> {
    fields.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    let shown = |(size, path): (usize, String)| format!("{path} ({} KiB)", size.div_ceil(1024));
    fields.into_iter().take(3).map(shown).collect()
}
