//! Size limits of Go's `regexp`.
//!
//! Go computes these on the unsimplified tree of an expression: its depth, the number of
//! instructions, and how many times nested repetitions repeat the innermost part.

const MAX_HEIGHT: u32 = 1000;
/// 128 MiB at 40 bytes per instruction.
const MAX_SIZE: u64 = (128 << 20) / 40;
/// 128 MiB at 4 bytes per class bound.
const MAX_RUNES: u64 = (128 << 20) / 4;
/// Limit for the total number of copies created by nested repetitions.
const MAX_COPIES: u32 = 1000;

/// How a part can be merged with adjacent parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Literal characters that either all ignore case or all respect it.
    Literal { fold: bool },
    /// One of several characters.
    Class,
    /// A sequence; merged into a surrounding sequence.
    Concat,
    /// Alternatives; merged into surrounding alternatives.
    Alternate,
    /// Anything else.
    Other,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    pub(crate) shape: Shape,
    height: u32,
    size: u64,
    copies: u32,
    /// Maximum of a counted repetition, otherwise `None`.
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

    /// Merges two literals. Returns false if that's impossible.
    pub(crate) fn absorb(&mut self, other: &Measure) -> bool {
        let is_one = matches!(self.shape, Shape::Literal { .. }) && self.shape == other.shape;
        if is_one {
            self.size += other.size;
        }
        is_one
    }

    pub(crate) fn captured(self) -> Self {
        Measure {
            shape: Shape::Other,
            height: self.height + 1,
            size: self.size + 2,
            copies: self.copies,
            times: None,
        }
    }

    /// `most` is `None` for unbounded repetitions.
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

    pub(crate) fn concat(parts: &[Measure]) -> Self {
        Measure::joined(parts, Shape::Concat)
    }

    pub(crate) fn alternate(parts: &[Measure]) -> Self {
        // Go merges single characters into a class.
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
                // Nested sequences are merged, which adds no level.
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

#[derive(Debug)]
pub(crate) struct Budget {
    parts: u64,
    /// Product of all repetitions, nested or not.
    repeats: u64,
    /// Size checks start only when the number of parts times the repetitions could exceed the
    /// limit.
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

    pub(crate) fn add_part(&mut self) {
        self.parts += 1;
    }

    /// Called when a part was merged into another one.
    pub(crate) fn remove_part(&mut self) {
        self.parts -= 1;
    }

    /// Adds the bounds of a class.
    pub(crate) fn add_runes(&mut self, runes: u64) {
        self.runes += runes;
    }

    /// `others` are the parts not joined yet.
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
            // Nothing was checked so far, so check the other parts as well.
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

    /// Like in Go, a repetition that is the only part of its group counts again at the end of the
    /// group.
    fn add_repeat(&mut self, times: u32) {
        // Saturate at the limit to avoid overflow.
        let times = u64::from(times.max(1));
        self.repeats = if times > MAX_SIZE / self.repeats {
            MAX_SIZE
        } else {
            self.repeats * times
        };
    }
}
