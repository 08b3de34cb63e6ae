//! Writes archives.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_schema::Schema;

use crate::Minor;
use crate::format::{
    BLOCK, DEFAULT, DESCRIPTION, FORMAT, ITEMS, LIST_MAP_KEYS, LIST_TYPE_SHIFT, LIST_TYPES, MAGIC,
    MAP_TYPE_SHIFT, MAP_TYPES, NONE, PROPERTIES, REFERENCE, REQUIRED, REST, TYPES, VALUES,
};

/// A node of a type's schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Keywords of the node itself, excluding `items`, `additionalProperties`, `properties` and
    /// `required`.
    pub own: Schema,
    /// The referenced type, by its path in the crate.
    pub reference: Option<String>,
    /// Schema of the items of a list.
    pub items: Option<Box<Node>>,
    /// Schema of the values of a map.
    pub values: Option<Box<Node>>,
    /// The fields by JSON name.
    pub properties: BTreeMap<String, Node>,
    /// The names of required fields.
    pub required: BTreeSet<String>,
}

/// The types of a minor, by their paths in the crate (e.g. `api::core::v1::Pod`).
pub type Types = BTreeMap<String, Node>;

/// Writes an archive.
///
/// # Errors
///
/// Returns an error if a type uses something that the format can't represent.
pub fn write_archive(minors: &BTreeMap<Minor, Types>) -> Result<Vec<u8>, String> {
    // The index also contains names that are referenced but not defined by any minor.
    let mut paths: BTreeSet<(&str, &str)> = BTreeSet::new();
    for types in minors.values() {
        for (path, node) in types {
            paths.insert(split(path)?);
            node.references(&mut |path| {
                paths.insert(split(path)?);
                Ok(())
            })?;
        }
    }
    let paths: Vec<(&str, &str)> = paths.into_iter().collect();
    let mut nodes = Nodes {
        types: paths
            .iter()
            .enumerate()
            .map(|(position, path)| (*path, position))
            .collect(),
        texts: Items::default(),
    };

    let mut records = Items::default();
    let mut table = Vec::new();
    for (module, name) in &paths {
        let path = format!("{module}::{name}");
        let mut row = vec![NONE; minors.len()];
        // Newest minor first, which makes its records adjacent.
        for (column, types) in minors.values().enumerate().rev() {
            if let Some(node) = types.get(&path) {
                let mut record = Vec::new();
                nodes
                    .write(node, false, &mut record)
                    .map_err(|problem| format!("{path}: {problem}"))?;
                row[column] = u16::try_from(records.number(record)).map_err(|error| error.to_string())?;
            }
        }
        table.extend(row);
    }

    let mut out = MAGIC.to_vec();
    out.push(u8::try_from(minors.len()).map_err(|error| error.to_string())?);
    out.extend(minors.keys().map(|minor| minor.number()));
    let mut modules: Vec<&str> = paths.iter().map(|(module, _)| *module).collect();
    modules.dedup();
    names(&mut out, &modules)?;
    names(&mut out, &paths.iter().map(|(_, name)| *name).collect::<Vec<_>>())?;
    for module in &modules {
        number(&mut out, paths.partition_point(|(other, _)| other < module))?;
    }
    number(&mut out, paths.len())?;
    table.iter().for_each(|record| out.extend(record.to_le_bytes()));
    records.write(&mut out)?;
    nodes.texts.write(&mut out)?;
    Ok(out)
}

fn split(path: &str) -> Result<(&str, &str), String> {
    path.rsplit_once("::")
        .ok_or_else(|| format!("`{path}` is in no module"))
}

impl Node {
    fn references<'a>(&'a self, seen: &mut dyn FnMut(&'a str) -> Result<(), String>) -> Result<(), String> {
        self.reference.as_deref().map_or(Ok(()), &mut *seen)?;
        let inner = self.items.as_deref().into_iter().chain(self.values.as_deref());
        inner
            .chain(self.properties.values())
            .try_for_each(|node| node.references(seen))
    }
}

/// Deduplicates items: equal ones share a number and are stored only once.
#[derive(Default)]
struct Items {
    numbers: BTreeMap<Vec<u8>, usize>,
    inorder: Vec<Vec<u8>>,
}

impl Items {
    fn number(&mut self, item: Vec<u8>) -> usize {
        *self.numbers.entry(item).or_insert_with_key(|item| {
            self.inorder.push(item.clone());
            self.inorder.len() - 1
        })
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), String> {
        let mut entries: Vec<u8> = Vec::new();
        let mut data = Vec::new();
        let mut count = 0;
        let mut block = Vec::new();
        let mut first = 0;
        for (position, item) in self.inorder.iter().enumerate() {
            varint(&mut block, item.len())?;
            block.extend(item);
            let is_last = position + 1 == self.inorder.len();
            if block.len() >= BLOCK || is_last {
                for value in [first, data.len(), block.len()] {
                    entries.extend(
                        u32::try_from(value)
                            .map_err(|error| error.to_string())?
                            .to_le_bytes(),
                    );
                }
                data.extend(miniz_oxide::deflate::compress_to_vec(&block, 10));
                count += 1;
                first = position + 1;
                block.clear();
            }
        }
        number(out, count)?;
        out.extend(entries);
        out.extend(
            u32::try_from(data.len())
                .map_err(|error| error.to_string())?
                .to_le_bytes(),
        );
        out.extend(data);
        Ok(())
    }
}

struct Nodes<'a> {
    types: BTreeMap<(&'a str, &'a str), usize>,
    texts: Items,
}

impl Nodes<'_> {
    fn write(&mut self, node: &Node, is_required: bool, out: &mut Vec<u8>) -> Result<(), String> {
        let own = &node.own;
        let flag = |is: bool, flag: u32| if is { flag } else { 0 };
        let rest = rest(own)?;
        let flags = place(&TYPES, own.schema_type.as_ref())
            | flag(is_required, REQUIRED)
            | flag(node.reference.is_some(), REFERENCE)
            | flag(own.description.is_some(), DESCRIPTION)
            | flag(own.format.is_some(), FORMAT)
            | flag(own.default.is_some(), DEFAULT)
            | place(&LIST_TYPES, own.list_type.as_ref()) << LIST_TYPE_SHIFT
            | place(&MAP_TYPES, own.map_type.as_ref()) << MAP_TYPE_SHIFT
            | flag(!own.list_map_keys.is_empty(), LIST_MAP_KEYS)
            | flag(rest.is_some(), REST)
            | flag(node.items.is_some(), ITEMS)
            | flag(node.values.is_some(), VALUES)
            | flag(!node.properties.is_empty(), PROPERTIES);
        varint(out, flags as usize)?;
        if let Some(path) = &node.reference {
            varint(out, self.types[&split(path)?])?;
        }
        if let Some(description) = &own.description {
            varint(out, self.texts.number(description.as_bytes().to_vec()))?;
        }
        if let Some(format) = &own.format {
            text(out, format)?;
        }
        if let Some(default) = &own.default {
            text(out, &default.to_string())?;
        }
        if !own.list_map_keys.is_empty() {
            varint(out, own.list_map_keys.len())?;
            own.list_map_keys.iter().try_for_each(|key| text(out, key))?;
        }
        if let Some(rest) = rest {
            text(out, &rest)?;
        }
        for inner in node.items.iter().chain(&node.values) {
            self.write(inner, false, out)?;
        }
        if !node.properties.is_empty() {
            varint(out, node.properties.len())?;
            for (name, property) in &node.properties {
                text(out, name)?;
                self.write(property, node.required.contains(name), out)?;
            }
        }
        match node
            .required
            .iter()
            .find(|name| !node.properties.contains_key(*name))
        {
            Some(name) => Err(format!("the required `{name}` is not a property")),
            None => Ok(()),
        }
    }
}

/// The remaining keywords are constraints from Go markers. They have no flags, so they're stored as
/// JSON.
fn rest(own: &Schema) -> Result<Option<String>, String> {
    let rest = Schema {
        schema_type: None,
        description: None,
        format: None,
        default: None,
        list_type: None,
        map_type: None,
        list_map_keys: Vec::new(),
        ..own.clone()
    };
    if rest == Schema::default() {
        return Ok(None);
    }
    serde_json::to_string(&rest)
        .map(Some)
        .map_err(|error| error.to_string())
}

/// Index in the table plus one. Zero means no value.
fn place<T: PartialEq>(table: &[T], value: Option<&T>) -> u32 {
    let position = value.and_then(|value| table.iter().position(|other| other == value));
    position.map_or(0, |position| u32::try_from(position).unwrap_or_default() + 1)
}

fn names(out: &mut Vec<u8>, names: &[&str]) -> Result<(), String> {
    number(out, names.len())?;
    let mut offset = 0;
    number(out, offset)?;
    for name in names {
        offset += name.len();
        number(out, offset)?;
    }
    names.iter().for_each(|name| out.extend(name.as_bytes()));
    Ok(())
}

fn number(out: &mut Vec<u8>, value: usize) -> Result<(), String> {
    out.extend(
        u16::try_from(value)
            .map_err(|error| error.to_string())?
            .to_le_bytes(),
    );
    Ok(())
}

fn varint(out: &mut Vec<u8>, value: usize) -> Result<(), String> {
    let mut value = u32::try_from(value).map_err(|error| error.to_string())?;
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
    Ok(())
}

fn text(out: &mut Vec<u8>, text: &str) -> Result<(), String> {
    varint(out, text.len())?;
    out.extend(text.as_bytes());
    Ok(())
}
