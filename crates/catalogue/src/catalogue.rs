//! Lookup of types.

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

/// The types of one Kubernetes minor.
///
/// Creating a catalogue is cheap. Lookups cache the blocks that they inflate and the schemas that
/// they decode.
pub struct Catalogue<'a> {
    archive: Option<Archive<'a>>,
    minor: Minor,
    /// The column of the minor in the archive.
    column: usize,
    has_descriptions: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    nodes: Vec<Option<Arc<Block>>>,
    texts: Vec<Option<Arc<Block>>>,
    made: BTreeMap<usize, Arc<Schema>>,
    /// Shared, because few names occur many times.
    formats: BTreeMap<String, Arc<str>>,
}

struct Block {
    bytes: Vec<u8>,
    /// The byte ranges of the items.
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

    /// Caches the block that contains the item.
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

/// The types of Kubernetes stay below this depth of references.
const MAX_DEPTH: usize = 64;

impl Catalogue<'static> {
    /// Creates a catalogue of the types that kube-apiserver of this minor serves and k8s-openapi
    /// defines.
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

    /// Leaves out the descriptions of all types and fields, which are most of the archive.
    #[must_use]
    pub fn without_descriptions(self) -> Self {
        Self {
            has_descriptions: false,
            state: Mutex::default(),
            ..self
        }
    }

    /// Returns the minor.
    pub fn minor(&self) -> Minor {
        self.minor
    }

    /// Returns whether the catalogue has a type, by its full path. Does not inflate any block.
    pub fn contains(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    /// Returns whether this is a module of k8s-openapi that contains types, directly or in a
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

    /// Returns the schema of a type by its full path (`k8s_openapi::api::core::v1::PodSpec`), or
    /// `None` if the minor has no such type. Schemas of referenced types are inlined.
    pub fn schema(&self, path: &str) -> Option<Arc<Schema>> {
        let ty = self.find(path)?;
        Decoder {
            archive: self.archive?,
            column: self.column,
            has_descriptions: self.has_descriptions,
            // The caches stay valid even if a lookup panics.
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
            // Types such as `Quantity` are not in the archive.
            return known(&format!("k8s_openapi::{}", self.archive.path(ty)?));
        };
        if self.depth >= MAX_DEPTH {
            return None;
        }
        let (block, range) = Block::with(self.archive.nodes, &mut self.state.nodes, record)?;
        // Keep the block alive, because decoding may load other blocks or use this one again.
        let block = block.clone();
        self.depth += 1;
        let made = self.node(&mut Reader(block.bytes.get(range)?));
        self.depth -= 1;
        let (made, _) = made?;
        self.state.made.insert(ty, made.clone());
        Some(made)
    }

    /// Also returns whether the parent object requires the node.
    fn node(&mut self, from: &mut Reader<'_>) -> Option<(Arc<Schema>, bool)> {
        let flags = from.varint()?;
        let is_required = flags & REQUIRED != 0;
        let flags = flags & !REQUIRED;
        let referred = match flags & REFERENCE {
            0 => None,
            _ => Some(from.varint()? as usize),
        };
        let mut schema = match referred {
            // A reference without keywords of its own can share the schema of the type.
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
