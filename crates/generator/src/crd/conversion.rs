//! Warns about served versions that differ without a conversion. The API server then only changes
//! `apiVersion`, so fields that the other version lacks are dropped or misread.

use rbuilder_schema::Schema;

use super::Version;
use crate::schemas::Schemas;

const HELP: &str = "add `#[crd(conversion)]` and a conversion webhook (`rbuilder create webhook --conversion`), give both versions \
                    the same fields, or write `served = false` on one of them";

enum Difference {
    /// Two types for the same field, with a noun for each.
    Type(String, [&'static str; 2]),
    /// A field that only one version has: 0 for the first version, 1 for the second.
    Field(String, usize),
}

/// Reports the first difference between two served versions, if nothing converts the kind.
///
/// A changed type is an error under `derive(CrdSchema)`. Otherwise it's a warning, because existing
/// kube projects have been published like this.
pub(super) fn check_conversion(versions: &[Version<'_>], schemas: &mut Schemas<'_>) {
    if versions
        .iter()
        .any(|version| version.resource.conversion.is_some())
    {
        return;
    }
    let mut served = versions.iter().filter(|version| version.resource.served);
    let Some(first) = served.next() else { return };
    for other in served.filter(|other| other.resource.version != first.resource.version) {
        let mut found = Vec::new();
        compare(&first.schema, &other.schema, "", &mut found);
        let is_type = |difference: &&Difference| matches!(difference, Difference::Type(..));
        let Some(difference) = found.iter().find(is_type).or(found.first()) else {
            continue;
        };
        let names = [&first.resource.version, &other.resource.version];
        let kind = &first.resource.kind;
        match difference {
            Difference::Type(path, nouns) => {
                let message = format!(
                    "`{path}` of `{kind}` is {} in version `{}` and {} in version `{}`, and nothing converts it",
                    nouns[0], names[0], nouns[1], names[1]
                );
                if other.is_ours {
                    schemas.report().error(other.place, message, HELP);
                } else {
                    schemas.report().warning(other.place, message, HELP);
                }
            }
            Difference::Field(path, holder) => {
                let message = format!(
                    "only version `{}` of `{kind}` has `{path}`: who writes an object as `{}` removes the field, because nothing \
                     converts it",
                    names[*holder],
                    names[1 - holder]
                );
                schemas.report().warning(other.place, message, HELP);
            }
        }
        return;
    }
}

fn compare(left: &Schema, right: &Schema, path: &str, found: &mut Vec<Difference>) {
    // Without a type, there's no telling what the values look like.
    let is_open = |schema: &Schema| schema.schema_type.is_none() && !schema.int_or_string;
    if is_open(left) || is_open(right) {
        return;
    }
    if (left.schema_type, left.int_or_string) != (right.schema_type, right.int_or_string) {
        let noun = |schema: &Schema| {
            schema
                .schema_type
                .map_or("an integer or a string", |found| found.noun())
        };
        return found.push(Difference::Type(path.to_owned(), [noun(left), noun(right)]));
    }
    for (holder, (one, other)) in [(left, right), (right, left)].into_iter().enumerate() {
        let keeps_all = other.preserve_unknown_fields || other.additional_properties.is_some();
        // A map or an open object keeps the field, even without a property for it.
        let is_missing = |name: &&std::sync::Arc<str>| !keeps_all && !other.properties.contains_key(*name);
        let missing = one.properties.keys().filter(is_missing);
        found.extend(missing.map(|name| Difference::Field(format!("{path}.{name}"), holder)));
    }
    for (name, property) in &left.properties {
        if let Some(other) = right.properties.get(name) {
            compare(property, other, &format!("{path}.{name}"), found);
        }
    }
    for (step, one, other) in [
        ("[]", &left.items, &right.items),
        (".*", &left.additional_properties, &right.additional_properties),
    ] {
        if let (Some(one), Some(other)) = (one, other) {
            compare(one, other, &format!("{path}{step}"), found);
        }
    }
}
