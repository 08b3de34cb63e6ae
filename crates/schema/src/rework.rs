//! Rewrites entire schemas, to shorten their descriptions or to complete the metadata of embedded
//! objects.

use std::sync::Arc;

use crate::{DropsObjectMeta, Schema, SchemaType, any_object, array_of, map_of, of_type};

/// Visits a schema and its nested schemas. Schemas that `wanted` rejects are skipped, which avoids
/// copying them (schemas are shared).
fn visit(schema: &mut Schema, wanted: &dyn Fn(&Schema) -> bool, change: &dyn Fn(&mut Schema)) {
    change(schema);
    let children = schema
        .properties
        .values_mut()
        .chain(&mut schema.items)
        .chain(&mut schema.additional_properties);
    for child in children {
        if wanted(child) {
            visit(Arc::make_mut(child), wanted, change);
        }
    }
}

fn any_of(schema: &Schema, test: &dyn Fn(&Schema) -> bool) -> bool {
    let mut children = schema
        .properties
        .values()
        .chain(&schema.items)
        .chain(&schema.additional_properties);
    test(schema) || children.any(|child| any_of(child, test))
}

/// Truncates every description to at most `most` bytes, or removes it if that's 0.
///
/// Like controller-gen, truncates after the last complete sentence or, without one, after the last
/// word, appending an ellipsis. Unlike controller-gen, never splits a character.
pub fn shorten_descriptions(schema: &mut Schema, most: usize) {
    let is_long = |schema: &Schema| {
        any_of(schema, &|schema| {
            schema
                .description
                .as_ref()
                .is_some_and(|text| most == 0 || text.len() > most)
        })
    };
    visit(schema, &is_long, &|schema| {
        let text = schema.description.take();
        schema.description = text.and_then(|text| match most {
            0 => None,
            most if text.len() <= most => Some(text),
            most => Some(shortened(&text, most).into()),
        });
    });
}

fn shortened(text: &str, most: usize) -> String {
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    // The more common characters with the Unicode property Sentence_Terminal.
    let is_end = |letter: char| {
        matches!(
            letter,
            '.' | '!' | '?' | '。' | '！' | '？' | '؟' | '।' | '‼' | '⁇' | '⁈' | '⁉'
        )
    };
    if let Some((start, letter)) = text
        .char_indices()
        .rfind(|(start, letter)| *start > 0 && is_end(*letter))
    {
        return text[..start + letter.len_utf8()].to_owned();
    }
    match text.rfind(char::is_whitespace).filter(|start| *start > 0) {
        Some(start) => format!("{}...", &text[..start]),
        None => format!("{text}..."),
    }
}

/// The schema for the `metadata` of an embedded object. Must be explicit, or the API server would
/// drop labels, annotations and all other fields.
pub fn embedded_object_meta() -> Schema {
    let text = || of_type(SchemaType::String);
    let fields = [
        ("annotations", map_of(&text(), text())),
        ("finalizers", array_of(text())),
        ("labels", map_of(&text(), text())),
        ("name", text()),
        ("namespace", text()),
    ];
    Schema {
        properties: fields.map(|(name, schema)| (name.into(), schema.into())).into(),
        ..of_type(SchemaType::Object)
    }
}

/// The schema for the `metadata` of an embedded object with all fields of `ObjectMeta`, as in
/// kube's derive.
pub fn whole_object_meta() -> Schema {
    let text = || of_type(SchemaType::String);
    let time = || Schema {
        format: Some("date-time".into()),
        ..text()
    };
    let long = || Schema {
        format: Some("int64".into()),
        ..of_type(SchemaType::Integer)
    };
    let flag = || of_type(SchemaType::Boolean);
    let object = |fields: Vec<(&str, Schema)>, required: &[&str]| Schema {
        properties: fields
            .into_iter()
            .map(|(name, schema)| (name.into(), schema.into()))
            .collect(),
        required: required.iter().map(|name| (*name).into()).collect(),
        ..of_type(SchemaType::Object)
    };
    let manager = object(
        vec![
            ("apiVersion", text()),
            ("fieldsType", text()),
            ("fieldsV1", any_object()),
            ("manager", text()),
            ("operation", text()),
            ("subresource", text()),
            ("time", time()),
        ],
        &[],
    );
    let owner = object(
        vec![
            ("apiVersion", text()),
            ("blockOwnerDeletion", flag()),
            ("controller", flag()),
            ("kind", text()),
            ("name", text()),
            ("uid", text()),
        ],
        &["apiVersion", "kind", "name", "uid"],
    );
    let mut schema = embedded_object_meta();
    let further = [
        ("creationTimestamp", time()),
        ("deletionGracePeriodSeconds", long()),
        ("deletionTimestamp", time()),
        ("generateName", text()),
        ("generation", long()),
        ("managedFields", array_of(manager)),
        ("ownerReferences", array_of(owner)),
        ("resourceVersion", text()),
        ("selfLink", text()),
        ("uid", text()),
    ];
    let further = further.map(|(name, schema)| (name.into(), schema.into()));
    schema.properties.extend(further);
    schema
}

/// Adds the fields of [`embedded_object_meta`] to every bare `metadata` of an embedded object.
/// Returns whether there was any.
pub fn keep_object_meta(schema: &mut Schema) -> bool {
    fill_object_meta(schema, &embedded_object_meta)
}

/// Like [`keep_object_meta`], but skips metadata that a marker allows to be dropped.
pub fn keep_unmarked_object_meta(schema: &mut Schema) {
    change_object_meta(schema, &is_dropped_meta, &|metadata| {
        fill(metadata, &embedded_object_meta);
    });
}

/// Adds fields to every bare `metadata` of an embedded object. Returns whether there was any.
pub fn fill_object_meta(schema: &mut Schema, fields: &dyn Fn() -> Schema) -> bool {
    change_object_meta(schema, &is_bare, &|metadata| fill(metadata, fields))
}

fn fill(metadata: &mut Schema, fields: &dyn Fn() -> Schema) {
    *metadata = Schema {
        description: metadata.description.take(),
        ..fields()
    };
}

/// Marks every bare `metadata` (or the schema itself, if it's bare) as dropped on purpose. Returns
/// whether there was any.
pub(crate) fn drop_object_meta(schema: &mut Schema) -> bool {
    let note = |metadata: &mut Schema| metadata.drops_object_meta = DropsObjectMeta(true);
    if is_bare(schema) {
        note(schema);
        return true;
    }
    change_object_meta(schema, &is_bare, &note)
}

fn change_object_meta(
    schema: &mut Schema,
    selects: &dyn Fn(&Schema) -> bool,
    change: &dyn Fn(&mut Schema),
) -> bool {
    let is_parent = |schema: &Schema| {
        schema
            .properties
            .get("metadata")
            .is_some_and(|child| selects(child))
    };
    let has_some = |schema: &Schema| any_of(schema, &is_parent);
    let found = has_some(schema);
    visit(schema, &has_some, &|schema| {
        if let Some(metadata) = schema
            .properties
            .get_mut("metadata")
            .filter(|child| selects(child))
        {
            change(Arc::make_mut(metadata));
        }
    });
    found
}

/// Returns the path of the first `metadata` in a schema whose content the API server would drop.
pub fn dropped_object_meta(schema: &Schema) -> Option<String> {
    for (name, child) in &schema.properties {
        if &**name == "metadata" && is_dropped_meta(child) && !schema.embedded_resource {
            return Some(".metadata".to_owned());
        }
        if let Some(below) = dropped_object_meta(child) {
            return Some(format!(".{name}{below}"));
        }
    }
    let inner = |child: &Option<Arc<Schema>>, step: &str| {
        let below = dropped_object_meta(child.as_deref()?)?;
        Some(format!("{step}{below}"))
    };
    inner(&schema.items, "[]").or_else(|| inner(&schema.additional_properties, ".*"))
}

/// Returns whether the API server drops the content of a `metadata` without a marker allowing it.
pub fn is_dropped_meta(schema: &Schema) -> bool {
    is_bare(schema) && !schema.drops_object_meta.0
}

/// Returns whether a schema is a plain object without constraints, like `ObjectMeta` without its
/// fields.
pub fn is_bare(schema: &Schema) -> bool {
    let bare = Schema {
        description: schema.description.clone(),
        default: schema.default.clone(),
        nullable: schema.nullable,
        ..of_type(SchemaType::Object)
    };
    *schema == bare
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_cut_after_sentence_or_word() {
        for (text, most, expected) in [
            ("Short.", 50, Some("Short.")),
            ("One. Two. Three", 10, Some("One. Two.")),
            ("One two three", 9, Some("One two...")),
            ("Onetwothree", 5, Some("Onetw...")),
            ("Größe zwei", 3, Some("Gr...")),
            ("é", 1, Some("...")),
            ("anything", 0, None),
        ] {
            let mut schema = Schema {
                description: Some(text.into()),
                ..Schema::default()
            };
            shorten_descriptions(&mut schema, most);
            assert_eq!(schema.description.as_deref(), expected, "{text} at {most}");
        }
    }

    #[test]
    fn finds_and_keeps_embedded_metadata() {
        let object = |fields: Vec<(&str, Schema)>| Schema {
            properties: fields
                .into_iter()
                .map(|(name, schema)| (name.into(), schema.into()))
                .collect(),
            ..of_type(SchemaType::Object)
        };
        let bare = || of_type(SchemaType::Object);
        let mut root = object(vec![(
            "spec",
            object(vec![("template", array_of(object(vec![("metadata", bare())])))]),
        )]);
        assert_eq!(
            dropped_object_meta(&root).as_deref(),
            Some(".spec.template[].metadata")
        );
        let mut dropped = root.clone();
        assert!(drop_object_meta(&mut dropped));
        assert_eq!(dropped_object_meta(&dropped), None);
        keep_unmarked_object_meta(&mut dropped);
        assert_eq!(dropped, root);
        assert!(keep_object_meta(&mut dropped));
        keep_unmarked_object_meta(&mut root);
        assert_eq!(dropped, root);
        assert_eq!(dropped_object_meta(&root), None);
        assert!(!keep_object_meta(&mut root));
    }
}
