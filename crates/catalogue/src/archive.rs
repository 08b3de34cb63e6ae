//! An in-memory archive, consisting of a type index and blocks that are inflated on demand.

use crate::Minor;
use crate::format::{MAGIC, NONE};

/// Methods return `None` at the end, so that damaged archives make lookups fail instead of
/// panicking.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn u8(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    fn u16(&mut self) -> Option<u16> {
        self.bytes(2)?.try_into().ok().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    pub(crate) fn varint(&mut self) -> Option<u32> {
        let mut value = 0;
        for shift in (0..32).step_by(7) {
            let byte = self.u8()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let length = self.varint()? as usize;
        std::str::from_utf8(self.bytes(length)?).ok()
    }
}

/// Fixed-width numbers, decoded on access.
#[derive(Clone, Copy)]
struct Numbers<'a, const WIDTH: usize>(&'a [u8]);

impl<'a, const WIDTH: usize> Numbers<'a, WIDTH> {
    fn read(from: &mut Reader<'a>, count: usize) -> Option<Self> {
        from.bytes(count * WIDTH).map(Self)
    }

    fn get(self, position: usize) -> Option<usize> {
        let bytes = self.0.get(position * WIDTH..(position + 1) * WIDTH)?;
        let number = bytes.iter().rev();
        Some(number.fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }
}

#[derive(Clone, Copy)]
struct Names<'a> {
    count: usize,
    offsets: Numbers<'a, 2>,
    names: &'a [u8],
}

impl<'a> Names<'a> {
    fn read(from: &mut Reader<'a>) -> Option<Self> {
        let count = usize::from(from.u16()?);
        let offsets = Numbers::<2>::read(from, count + 1)?;
        let names = from.bytes(offsets.get(count)?)?;
        Some(Names {
            count,
            offsets,
            names,
        })
    }

    fn get(self, position: usize) -> Option<&'a str> {
        let range = self.offsets.get(position)?..self.offsets.get(position + 1)?;
        std::str::from_utf8(self.names.get(range)?).ok()
    }

    /// Binary search. The names in `part` must be sorted.
    fn find(self, part: std::ops::Range<usize>, name: &str) -> Option<usize> {
        let (mut low, mut high) = (part.start, part.end);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle)?.cmp(name) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Blocks<'a> {
    count: usize,
    /// Three numbers per block: first item, offset, inflated length.
    entries: Numbers<'a, 4>,
    data: &'a [u8],
}

impl<'a> Blocks<'a> {
    fn read(from: &mut Reader<'a>) -> Option<Self> {
        let count = usize::from(from.u16()?);
        let entries = Numbers::<4>::read(from, count * 3)?;
        let length = from.u32()? as usize;
        Some(Blocks {
            count,
            entries,
            data: from.bytes(length)?,
        })
    }

    pub(crate) fn count(self) -> usize {
        self.count
    }

    /// Returns the block of an item, and the item's index in it.
    pub(crate) fn locate(self, item: usize) -> Option<(usize, usize)> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entries.get(middle * 3)? <= item {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let block = low.checked_sub(1)?;
        Some((block, item - self.entries.get(block * 3)?))
    }

    pub(crate) fn inflate(self, block: usize) -> Option<Vec<u8>> {
        let start = self.entries.get(block * 3 + 1)?;
        let end = if block + 1 == self.count {
            self.data.len()
        } else {
            self.entries.get((block + 1) * 3 + 1)?
        };
        let length = self.entries.get(block * 3 + 2)?;
        miniz_oxide::inflate::decompress_to_vec_with_limit(self.data.get(start..end)?, length).ok()
    }
}

/// Opening an archive doesn't inflate anything.
#[derive(Clone, Copy)]
pub(crate) struct Archive<'a> {
    minors: &'a [u8],
    modules: Names<'a>,
    types: Names<'a>,
    firsts: Numbers<'a, 2>,
    records: Numbers<'a, 2>,
    pub(crate) nodes: Blocks<'a>,
    pub(crate) texts: Blocks<'a>,
}

impl<'a> Archive<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        if from.bytes(MAGIC.len())? != MAGIC {
            return None;
        }
        let minors = usize::from(from.u8()?);
        let minors = from.bytes(minors)?;
        let modules = Names::read(&mut from)?;
        let types = Names::read(&mut from)?;
        Some(Archive {
            minors,
            modules,
            types,
            firsts: Numbers::read(&mut from, modules.count + 1)?,
            records: Numbers::read(&mut from, types.count * minors.len())?,
            nodes: Blocks::read(&mut from)?,
            texts: Blocks::read(&mut from)?,
        })
    }

    pub(crate) fn minor(&self, minor: Minor) -> Option<usize> {
        self.minors.iter().position(|number| *number == minor.number())
    }

    /// Finds a type. `path` is relative to the crate, e.g. `api::core::v1::Pod`.
    pub(crate) fn find(&self, path: &str) -> Option<usize> {
        let (module, name) = path.rsplit_once("::")?;
        let module = self.modules.find(0..self.modules.count, module)?;
        let part = self.firsts.get(module)?..self.firsts.get(module + 1)?;
        self.types.find(part, name)
    }

    /// Also true if only submodules have types.
    pub(crate) fn is_module(&self, path: &str) -> bool {
        (0..self.modules.count)
            .filter_map(|position| self.modules.get(position))
            .any(|module| {
                module
                    .strip_prefix(path)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
            })
    }

    pub(crate) fn record(&self, ty: usize, minor: usize) -> Option<usize> {
        let record = self.records.get(ty * self.minors.len() + minor)?;
        (record != usize::from(NONE)).then_some(record)
    }

    pub(crate) fn paths(&self, minor: usize) -> impl Iterator<Item = (usize, String)> {
        let module = move |module: usize| {
            let part = self.firsts.get(module).unwrap_or(0)..self.firsts.get(module + 1).unwrap_or(0);
            let name = self.modules.get(module).unwrap_or_default();
            part.map(move |ty| (ty, format!("{name}::{}", self.types.get(ty).unwrap_or_default())))
        };
        (0..self.modules.count)
            .flat_map(module)
            .filter(move |(ty, _)| self.record(*ty, minor).is_some())
    }

    pub(crate) fn path(&self, ty: usize) -> Option<String> {
        let module = (0..self.modules.count).find(|module| self.firsts.get(module + 1) > Some(ty))?;
        Some(format!("{}::{}", self.modules.get(module)?, self.types.get(ty)?))
    }
}
