//! The size limits of Go's `regexp`.
//!
//! Go computes them on the tree of an expression before it is simplified: its depth, the number of
//! instructions, and how often nested repetitions repeat the innermost part in total.

/// Maximum depth of the tree.
const MAX_HEIGHT: u32 = 1000;
/// Maximum number of instructions: 128 MiB at 40 bytes each.
const MAX_SIZE: u64 = (128 << 20) / 40;
/// Maximum number of class bounds: 128 MiB at 4 bytes each.
const MAX_RUNES: u64 = (128 << 20) / 4;
/// Maximum number of copies that nested repetitions create in total.
const MAX_COPIES: u32 = 1000;

/// The shape of a part, which determines how it is merged with adjacent parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Literal characters, which all ignore case or all respect it.
    Literal { fold: bool },
    /// One character out of several.
    Class,
    /// A sequence, which is merged into a surrounding sequence.
    Concat,
    /// Alternatives, which are merged into surrounding alternatives.
    Alternate,
    /// Anything else.
    Other,
}

/// The sizes of a part of an expression.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    pub(crate) shape: Shape,
    height: u32,
    size: u64,
    copies: u32,
    /// The maximum of a counted repetition. `None` for other parts.
    times: Option<u32>,
}

impl Measure {
    /// A part without inner parts.
    pub(crate) fn leaf(shape: Shape) -> Self {
        Measure {
            shape,
            height: 1,
            size: 1,
            copies: 1,
            times: None,
        }
    }

    /// Merges another literal into this one. Returns false if they cannot be merged.
    pub(crate) fn absorb(&mut self, other: &Measure) -> bool {
        let is_one = matches!(self.shape, Shape::Literal { .. }) && self.shape == other.shape;
        if is_one {
            self.size += other.size;
        }
        is_one
    }

    /// A capturing group.
    pub(crate) fn captured(self) -> Self {
        Measure {
            shape: Shape::Other,
            height: self.height + 1,
            size: self.size + 2,
            copies: self.copies,
            times: None,
        }
    }

    /// A repetition. `most` is `None` if it is unbounded.
    pub(crate) fn repeated(self, least: u32, most: Option<u32>, is_counted: bool) -> Self {
        let size = match (least, most) {
            (0, None) => self.size + 2,
            (least, None) => 1 + u64::from(least) * self.size,
            (0, Some(1)) if !is_counted => self.size + 1,
            (least, Some(most)) => u64::from(most) * self.size + u64::from(most - least),
        };
        let copies = match (is_counted, most.unwrap_or(least)) {
            (true, 0) if most.is_some() => 0,
            (true, times @ 1..) => self.copies.saturating_mul(times),
            _ => self.copies,
        };
        Measure {
            shape: Shape::Other,
            height: self.height + 1,
            size: size.max(1),
            copies,
            times: is_counted.then(|| most.unwrap_or(least)),
        }
    }

    /// A sequence of parts.
    pub(crate) fn concat(parts: &[Measure]) -> Self {
        Measure::joined(parts, Shape::Concat)
    }

    /// Alternatives. Single characters become a class.
    pub(crate) fn alternate(parts: &[Measure]) -> Self {
        if parts.len() > 1 && parts.iter().all(Measure::is_character) {
            return Measure::leaf(Shape::Class);
        }
        let mut joined = Measure::joined(parts, Shape::Alternate);
        if parts.len() > 1 {
            joined.size += parts.len() as u64 - 1;
        }
        joined
    }

    fn is_character(&self) -> bool {
        match self.shape {
            Shape::Literal { .. } => self.size == 1,
            Shape::Class => true,
            _ => false,
        }
    }

    fn joined(parts: &[Measure], shape: Shape) -> Self {
        match parts {
            [] => Measure::leaf(Shape::Other),
            [only] => *only,
            parts => Measure {
                shape,
                // Merging a sequence into a sequence adds no level.
                height: 1 + parts
                    .iter()
                    .map(|part| part.height - u32::from(part.shape == shape))
                    .max()
                    .unwrap_or(0),
                size: parts
                    .iter()
                    .map(|part| part.size)
                    .fold(0, u64::saturating_add)
                    .max(1),
                copies: parts.iter().map(|part| part.copies).max().unwrap_or(1),
                times: None,
            },
        }
    }
}

/// The total size of the parts, compared with the limits.
#[derive(Debug)]
pub(crate) struct Budget {
    /// The number of parts.
    parts: u64,
    /// The product of all repetitions, whether nested or not.
    repeats: u64,
    /// True once the sizes are checked. This starts when the number of parts, multiplied by the
    /// repetitions, could exceed the limit.
    is_tracked: bool,
    runes: u64,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Budget {
            parts: 0,
            repeats: 1,
            is_tracked: false,
            runes: 0,
        }
    }

    /// Counts a new part.
    pub(crate) fn add_part(&mut self) {
        self.parts += 1;
    }

    /// Uncounts a part that was merged into another.
    pub(crate) fn remove_part(&mut self) {
        self.parts -= 1;
    }

    /// Counts the bounds of a class.
    pub(crate) fn add_runes(&mut self, runes: u64) {
        self.runes += runes;
    }

    /// Checks a new part. `others` are the parts that have not been joined yet.
    pub(crate) fn check<'a>(
        &mut self,
        part: &Measure,
        others: impl Iterator<Item = &'a Measure>,
    ) -> Result<(), String> {
        if self.runes > MAX_RUNES {
            return Err("it is too large: its classes have too many ranges".to_owned());
        }
        if part.height > MAX_HEIGHT {
            return Err(format!("it is nested more than {MAX_HEIGHT} levels deep"));
        }
        if let Some(times) = part.times {
            self.add_repeat(times);
        }
        let mut size = part.size;
        if !self.is_tracked && self.parts >= MAX_SIZE / self.repeats {
            self.is_tracked = true;
            size = others.map(|other| other.size).fold(size, u64::max);
        }
        if self.is_tracked && size > MAX_SIZE {
            return Err("it is too large when its repetitions are expanded".to_owned());
        }
        if part.copies > MAX_COPIES {
            return Err(format!(
                "nested repetitions repeat a part more than {MAX_COPIES} times in total"
            ));
        }
        Ok(())
    }

    /// Counts a counted repetition. As in Go, a repetition that is the only part of its group
    /// counts again when the group ends.
    fn add_repeat(&mut self, times: u32) {
        let times = u64::from(times.max(1));
        self.repeats = if times > MAX_SIZE / self.repeats {
            MAX_SIZE
        } else {
            self.repeats * times
        };
    }
}
