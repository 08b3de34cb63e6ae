//! Type lookup.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use rbuilder_schema::{Schema, known};

use crate::archive::{Archive, Blocks, Reader};
use crate::format::{
    DEFAULT, DESCRIPTION, FORMAT, ITEMS, LIST_MAP_KEYS, LIST_TYPE_SHIFT, LIST_TYPES, MAP_TYPE_SHIFT,
    MAP_TYPES, PROPERTIES, REFERENCE, REQUIRED, REST, TYPE_MASK, TYPES, VALUES,
};
use crate::{DATA, Minor};

/// The types of a Kubernetes minor.
///
/// Cheap to create. Lookups cache the blocks that they inflate and the schemas that they decode.
pub struct Catalogue<'a> {
    archive: Option<Archive<'a>>,
    minor: Minor,
    /// Column of the minor in the archive.
    column: usize,
    has_descriptions: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    nodes: Vec<Option<Arc<Block>>>,
    texts: Vec<Option<Arc<Block>>>,
    made: BTreeMap<usize, Arc<Schema>>,
    /// Interned, because there are few distinct formats.
    formats: BTreeMap<String, Arc<str>>,
}

struct Block {
    bytes: Vec<u8>,
    /// Byte ranges of the items.
    items: Vec<Range<usize>>,
}

impl Block {
    fn new(bytes: Vec<u8>) -> Self {
        let mut items = Vec::new();
        let mut rest = Reader(&bytes);
        while let Some(length) = rest.varint() {
            let start = bytes.len() - rest.0.len();
            if rest.bytes(length as usize).is_none() {
                break;
            }
            items.push(start..start + length as usize);
        }
        Block { bytes, items }
    }

    /// Accesses an item, caching its block.
    fn with<'a>(
        blocks: Blocks<'_>,
        kept: &'a mut Vec<Option<Arc<Block>>>,
        item: usize,
    ) -> Option<(&'a Arc<Block>, Range<usize>)> {
        let (block, position) = blocks.locate(item)?;
        kept.resize(blocks.count(), None);
        let slot = kept.get_mut(block)?;
        if slot.is_none() {
            *slot = Some(Arc::new(Block::new(blocks.inflate(block)?)));
        }
        let block = slot.as_ref()?;
        let range = block.items.get(position)?.clone();
        Some((block, range))
    }
}

/// Limit for nested references, which Kubernetes types never reach.
const MAX_DEPTH: usize = 64;

impl Catalogue<'static> {
    /// Creates a catalogue of the types that are both served by this minor's kube-apiserver and
    /// defined in k8s-openapi.
    pub fn new(minor: Minor) -> Self {
        Self::of(DATA, minor)
    }
}

/// The catalogue of the newest minor.
impl Default for Catalogue<'static> {
    fn default() -> Self {
        Self::new(Minor::LATEST)
    }
}

impl<'a> Catalogue<'a> {
    /// Creates a catalogue from an archive other than the embedded one.
    pub fn of(archive: &'a [u8], minor: Minor) -> Self {
        let archive = Archive::open(archive);
        let column = archive.and_then(|archive| archive.minor(minor));
        Catalogue {
            archive: archive.filter(|_| column.is_some()),
            minor,
            column: column.unwrap_or_default(),
            has_descriptions: true,
            state: Mutex::default(),
        }
    }

    /// Omits the descriptions of all types and fields, which account for most of the archive.
    #[must_use]
    pub fn without_descriptions(self) -> Self {
        Self {
            has_descriptions: false,
            state: Mutex::default(),
            ..self
        }
    }

    /// The Kubernetes minor.
    pub fn minor(&self) -> Minor {
        self.minor
    }

    /// Returns true if the catalogue has a type, given its full path. Doesn't inflate any block.
    pub fn contains(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    /// Returns true if this is a k8s-openapi module that contains types, directly or in a
    /// submodule.
    pub fn is_module(&self, path: &str) -> bool {
        match (path.strip_prefix("k8s_openapi::"), &self.archive) {
            (Some(rest), Some(archive)) => archive.is_module(rest),
            _ => false,
        }
    }

    /// Returns the paths of all types, sorted by module.
    pub fn paths(&self) -> Vec<String> {
        let paths = self.archive.iter().flat_map(|archive| archive.paths(self.column));
        paths.map(|(_, path)| format!("k8s_openapi::{path}")).collect()
    }

    /// The schema of a type, given its full path (e.g. `k8s_openapi::api::core::v1::PodSpec`).
    /// `None` if the minor has no such type. Schemas of referenced types are inlined.
    pub fn schema(&self, path: &str) -> Option<Arc<Schema>> {
        let ty = self.find(path)?;
        Decoder {
            archive: self.archive?,
            column: self.column,
            has_descriptions: self.has_descriptions,
            // Ignore poisoning; the caches remain valid even if a lookup panics.
            state: &mut self.state.lock().unwrap_or_else(PoisonError::into_inner),
            depth: 0,
        }
        .made(ty)
    }

    fn find(&self, path: &str) -> Option<usize> {
        let archive = self.archive?;
        let ty = archive.find(path.strip_prefix("k8s_openapi::")?)?;
        archive.record(ty, self.column).map(|_| ty)
    }
}

struct Decoder<'s, 'a> {
    archive: Archive<'a>,
    column: usize,
    has_descriptions: bool,
    state: &'s mut State,
    depth: usize,
}

impl Decoder<'_, '_> {
    fn made(&mut self, ty: usize) -> Option<Arc<Schema>> {
        if let Some(made) = self.state.made.get(&ty) {
            return Some(made.clone());
        }
        let Some(record) = self.archive.record(ty, self.column) else {
            // Types such as `Quantity` aren't in the archive.
            return known(&format!("k8s_openapi::{}", self.archive.path(ty)?));
        };
        if self.depth >= MAX_DEPTH {
            return None;
        }
        let (block, range) = Block::with(self.archive.nodes, &mut self.state.nodes, record)?;
        // Keep the block alive, because decoding may load other blocks or reuse this one.
        let block = block.clone();
        self.depth += 1;
        let made = self.node(&mut Reader(block.bytes.get(range)?));
        self.depth -= 1;
        let (made, _) = made?;
        self.state.made.insert(ty, made.clone());
        Some(made)
    }

    /// Decodes a node. Also returns whether the parent object requires it.
    fn node(&mut self, from: &mut Reader<'_>) -> Option<(Arc<Schema>, bool)> {
        let flags = from.varint()?;
        let is_required = flags & REQUIRED != 0;
        let flags = flags & !REQUIRED;
        let referred = match flags & REFERENCE {
            0 => None,
            _ => Some(from.varint()? as usize),
        };
        let mut schema = match referred {
            // A reference without its own keywords can share the schema of the type.
            Some(ty) if flags == REFERENCE => return Some((self.made(ty)?, is_required)),
            Some(ty) => Schema::clone(&*self.made(ty)?),
            None => Schema::default(),
        };
        if let Some(position) = (flags & TYPE_MASK).checked_sub(1) {
            schema.schema_type = Some(*TYPES.get(position as usize)?);
        }
        if flags & DESCRIPTION != 0 {
            let number = from.varint()? as usize;
            if self.has_descriptions {
                schema.description = Some(self.description(number)?);
            }
        }
        if flags & FORMAT != 0 {
            schema.format = Some(self.format(from.text()?));
        }
        if flags & DEFAULT != 0 {
            schema.default = Some(serde_json::from_str(from.text()?).ok()?);
        }
        if let Some(position) = (flags >> LIST_TYPE_SHIFT & 0b11).checked_sub(1) {
            schema.list_type = Some(*LIST_TYPES.get(position as usize)?);
        }
        if let Some(position) = (flags >> MAP_TYPE_SHIFT & 0b11).checked_sub(1) {
            schema.map_type = Some(*MAP_TYPES.get(position as usize)?);
        }
        if flags & LIST_MAP_KEYS != 0 {
            for _ in 0..from.varint()? {
                schema.list_map_keys.push(from.text()?.to_owned());
            }
        }
        if flags & REST != 0 {
            schema.overlay(&serde_json::from_str(from.text()?).ok()?);
        }
        if flags & ITEMS != 0 {
            schema.items = Some(self.node(from)?.0);
        }
        if flags & VALUES != 0 {
            schema.additional_properties = Some(self.node(from)?.0);
        }
        if flags & PROPERTIES != 0 {
            for _ in 0..from.varint()? {
                let name: Arc<str> = from.text()?.into();
                let (property, is_required) = self.node(from)?;
                if is_required {
                    schema.required.insert(name.clone());
                }
                schema.properties.insert(name, property);
            }
        }
        Some((Arc::new(schema), is_required))
    }

    fn description(&mut self, number: usize) -> Option<Arc<str>> {
        let (block, range) = Block::with(self.archive.texts, &mut self.state.texts, number)?;
        std::str::from_utf8(block.bytes.get(range)?).ok().map(Arc::from)
    }

    fn format(&mut self, name: &str) -> Arc<str> {
        if let Some(format) = self.state.formats.get(name) {
            return format.clone();
        }
        let format: Arc<str> = name.into();
        self.state.formats.insert(name.to_owned(), format.clone());
        format
    }
}
