//! Parses RE2 syntax into postfix order.
//!
//! Open groups are kept on an explicit stack, as deeply nested expressions could otherwise overflow
//! the call stack.

use super::class::{Class, Item};
use super::escape::{self, Input, shorten_text};
use super::flags::Flags;
use super::measure::{Budget, Measure, Shape};
use super::program::{Look, Op};

/// Limit for a single counted repetition, e.g. `{1000}`.
const MAX_REPEAT: u32 = 1000;

/// Parses an expression.
///
/// # Errors
///
/// Returns the reason why Go's `regexp` rejects it.
pub(crate) fn parse(text: &str) -> Result<Vec<Op>, String> {
    let mut parser = Parser {
        input: Input { rest: text },
        flags: Flags::default(),
        ops: vec![Op::Begin],
        frames: vec![Frame::default()],
        last_repeat: None,
        budget: Budget::new(),
    };
    parser.read_all()?;
    if parser.frames.len() > 1 {
        return Err("`(` has no closing `)`; write `\\(` for the character itself".to_owned());
    }
    parser.close_frame()?;
    Ok(parser.ops)
}

/// An open group. The first frame is the whole expression.
#[derive(Default)]
struct Frame {
    /// Flags to restore after the group.
    flags: Flags,
    captures: bool,
    branches: Vec<Measure>,
    /// Parts of the current alternative.
    parts: Vec<Measure>,
}

struct Parser<'a> {
    input: Input<'a>,
    flags: Flags,
    ops: Vec<Op>,
    frames: Vec<Frame>,
    /// Set if the preceding operator was a repetition.
    last_repeat: Option<&'a str>,
    budget: Budget,
}

impl<'a> Parser<'a> {
    fn read_all(&mut self) -> Result<(), String> {
        loop {
            let start = self.input.rest;
            let Some(next) = self.input.next() else {
                return Ok(());
            };
            let repeat = self.read_one(next, start)?;
            self.last_repeat = repeat.then(|| self.input.since(start));
        }
    }

    /// Returns whether it was a repetition operator.
    fn read_one(&mut self, next: char, start: &'a str) -> Result<bool, String> {
        match next {
            '(' => self.open_group()?,
            ')' => self.close_group()?,
            '|' => {
                self.end_branch()?;
                self.budget.add_part();
                self.ops.push(Op::Begin);
            }
            '^' if self.flags.lines => self.push_look(Look::LineStart)?,
            '^' => self.push_look(Look::TextStart)?,
            '$' if self.flags.lines => self.push_look(Look::LineEnd)?,
            '$' => self.push_look(Look::TextEnd)?,
            '.' => self.push_class(Class::dot(self.flags.dot_all))?,
            '[' => {
                let class = escape::read_class(&mut self.input, self.flags)?;
                self.push_class(class)?;
            }
            '\\' => self.read_escape()?,
            '*' => return self.repeat(0, None, false, start),
            '+' => return self.repeat(1, None, false, start),
            '?' => return self.repeat(0, Some(1), false, start),
            '{' => match read_counts(self.input.rest) {
                Some((counts, rest)) => {
                    self.input.rest = rest;
                    return self.repeat_counted(counts, start);
                }
                // As in RE2, any other brace is a literal character.
                None => self.push_literal('{')?,
            },
            character => self.push_literal(character)?,
        }
        Ok(false)
    }

    fn read_escape(&mut self) -> Result<(), String> {
        let start = self.input.rest;
        match self.input.next() {
            Some('A') => return self.push_look(Look::TextStart),
            Some('z') => return self.push_look(Look::TextEnd),
            Some('b') => return self.push_look(Look::WordBoundary),
            Some('B') => return self.push_look(Look::NoWordBoundary),
            Some('Q') => {
                let quoted = self
                    .input
                    // Without `\E`, the rest of the expression is quoted.
                    .take_until("\\E")
                    .unwrap_or_else(|| std::mem::take(&mut self.input.rest));
                return quoted
                    .chars()
                    .try_for_each(|character| self.push_literal(character));
            }
            _ => self.input.rest = start,
        }
        if let Some(item) = escape::read_class_escape(&mut self.input)? {
            return self.push_class(Class {
                negated: false,
                fold: self.flags.fold,
                items: vec![item],
            });
        }
        let rune = escape::read_escape(&mut self.input)?;
        self.push_rune(rune)
    }

    fn push_literal(&mut self, character: char) -> Result<(), String> {
        self.push_rune(u32::from(character))
    }

    fn push_rune(&mut self, rune: u32) -> Result<(), String> {
        let fold = self.flags.fold;
        self.ops.push(Op::Class(Class::literal(rune, fold)));
        self.push(Measure::leaf(Shape::Literal { fold }))
    }

    fn push_class(&mut self, class: Class) -> Result<(), String> {
        for item in &class.items {
            self.budget.add_runes(match item {
                Item::Range(..) => 2,
                Item::Group { ranges, .. } => 2 * ranges.len() as u64,
                Item::Table { table, .. } => u64::from(table.bounds),
            });
        }
        // `[a]` counts as the literal `a`.
        let is_literal =
            !class.negated && matches!(class.items.as_slice(), [Item::Range(low, high)] if low == high);
        let shape = if is_literal {
            Shape::Literal { fold: class.fold }
        } else {
            Shape::Class
        };
        self.ops.push(Op::Class(class));
        self.push(Measure::leaf(shape))
    }

    fn push_look(&mut self, look: Look) -> Result<(), String> {
        self.ops.push(Op::Look(look));
        self.push(Measure::leaf(Shape::Other))
    }

    fn push(&mut self, part: Measure) -> Result<(), String> {
        // A subsequent repetition would apply to `part`, so the two literals before it can be
        // merged.
        self.join_literals();
        self.budget.add_part();
        if let Some(frame) = self.frames.last_mut() {
            frame.parts.push(part);
        }
        self.check(&part)
    }

    /// Merges the last two literals. Call this once neither can be repeated on its own any longer.
    fn join_literals(&mut self) {
        if let Some(frame) = self.frames.last_mut()
            && let [.., before, last] = frame.parts.as_mut_slice()
            && before.absorb(last)
        {
            frame.parts.pop();
            self.budget.remove_part();
        }
    }

    fn check(&mut self, part: &Measure) -> Result<(), String> {
        let waiting = self
            .frames
            .iter()
            .flat_map(|frame| frame.branches.iter().chain(&frame.parts));
        self.budget.check(part, waiting)
    }

    fn open_frame(&mut self, captures: bool) {
        self.budget.add_part();
        self.ops.push(Op::Begin);
        self.frames.push(Frame {
            flags: self.flags,
            captures,
            ..Frame::default()
        });
    }

    /// Opens a group, starting after the `(`.
    fn open_group(&mut self) -> Result<(), String> {
        let start = self.input.rest;
        if !self.input.take("?") {
            self.open_frame(true);
            return Ok(());
        }
        for look_around in ["=", "!", "<=", "<!"] {
            if self.input.rest.starts_with(look_around) {
                return Err("look-around is not supported".to_owned());
            }
        }
        if self.input.take("P<") || self.input.take("<") {
            let Some(name) = self.input.take_until(">") else {
                return Err(format!(
                    "the name of the group `({}` has no closing `>`",
                    shorten_text(start)
                ));
            };
            if name.is_empty()
                || !name
                    .chars()
                    .all(|letter| letter == '_' || letter.is_ascii_alphanumeric())
            {
                return Err(format!(
                    "invalid group name `{name}`; use ASCII letters, digits and `_`"
                ));
            }
            self.open_frame(true);
            return Ok(());
        }
        self.read_flags()
    }

    /// Reads flags, starting after `(?`. `i)` sets flags for the rest of the surrounding group,
    /// while `i:` opens a group.
    fn read_flags(&mut self) -> Result<(), String> {
        let start = self.input.rest;
        let mut flags = self.flags;
        let mut is_on = true;
        let mut saw_flag = false;
        loop {
            match self.input.next() {
                Some('-') if is_on => {
                    is_on = false;
                    saw_flag = false;
                }
                // A `-` must be followed by flags.
                Some(end @ (':' | ')')) if is_on || saw_flag => {
                    if end == ':' {
                        // Frames save the flags from before the group, so open the frame first.
                        self.open_frame(false);
                    }
                    self.flags = flags;
                    return Ok(());
                }
                Some(letter) if flags.set(letter, is_on) => saw_flag = true,
                Some(letter) => return Err(explain_flags(letter, start)),
                None => return Err("`(?` is incomplete".to_owned()),
            }
        }
    }

    fn close_group(&mut self) -> Result<(), String> {
        if self.frames.len() < 2 {
            return Err("`)` has no opening `(`; write `\\)` for the character itself".to_owned());
        }
        let Some((flags, part)) = self.close_frame()? else {
            return Ok(());
        };
        self.flags = flags;
        self.push(part)
    }

    fn end_branch(&mut self) -> Result<(), String> {
        self.join_literals();
        let Some(frame) = self.frames.last_mut() else {
            return Ok(());
        };
        let parts = std::mem::take(&mut frame.parts);
        let branch = Measure::concat(&parts);
        frame.branches.push(branch);
        self.budget.add_part();
        self.ops.push(Op::End);
        self.check(&branch)
    }

    /// Returns the flags to restore, and the alternatives as a single part.
    fn close_frame(&mut self) -> Result<Option<(Flags, Measure)>, String> {
        self.end_branch()?;
        let Some(frame) = self.frames.pop() else {
            return Ok(None);
        };
        let mut part = Measure::alternate(&frame.branches);
        self.check(&part)?;
        if frame.branches.len() > 1 {
            self.ops.push(Op::Alternate(frame.branches.len()));
        }
        if frame.captures {
            part = part.captured();
        }
        Ok(Some((frame.flags, part)))
    }

    fn repeat_counted(&mut self, (least, most): Counts, start: &'a str) -> Result<bool, String> {
        let written = self.input.since(start);
        let (Some(least), most) = (least, most) else {
            return Err(too_often(written));
        };
        let most = match most {
            Most::None => None,
            Most::Times(times) => Some(times),
            Most::TooMany => return Err(too_often(written)),
        };
        if least > MAX_REPEAT || most.is_some_and(|most| most > MAX_REPEAT) {
            return Err(too_often(written));
        }
        if most.is_some_and(|most| most < least) {
            return Err(format!("the minimum of `{written}` is greater than its maximum"));
        }
        self.repeat(least, most, true, start)
    }

    fn repeat(
        &mut self,
        least: u32,
        most: Option<u32>,
        is_counted: bool,
        start: &'a str,
    ) -> Result<bool, String> {
        let operator = self.input.since(start);
        let lazy = self.input.take("?") != self.flags.lazy;
        // `a**` is an error, as in Perl.
        if let Some(last) = self.last_repeat {
            return Err(format!(
                "`{operator}` cannot repeat `{last}`; write `(?:…{last}){operator}`"
            ));
        }
        let Some(part) = self.frames.last_mut().and_then(|frame| frame.parts.last_mut()) else {
            return Err(format!(
                "nothing to repeat before `{operator}`; write `\\{operator}` for the character itself"
            ));
        };
        *part = part.repeated(least, most, is_counted);
        let part = *part;
        self.budget.add_part();
        self.ops.push(Op::Repeat { least, most, lazy });
        self.check(&part)?;
        Ok(true)
    }
}

fn too_often(written: &str) -> String {
    format!("`{written}` repeats more than {MAX_REPEAT} times")
}

fn explain_flags(letter: char, start: &str) -> String {
    match letter {
        '>' => "atomic groups are not supported".to_owned(),
        '#' => "comments are not supported".to_owned(),
        'P' if start.starts_with("P=") => "back-references are not supported".to_owned(),
        ':' | ')' | '-' => format!(
            "`(?{}`: `-` needs the flags to clear after it",
            shorten_text(start)
        ),
        letter => format!("unknown flag `{letter}`; expected `i`, `m`, `s` or `U`"),
    }
}

/// Minimum and maximum. The minimum is `None` on overflow.
type Counts = (Option<u32>, Most);

enum Most {
    None,
    Times(u32),
    TooMany,
}

/// Reads `2}`, `2,}` or `2,3}`. Returns `None` for anything else, which makes the brace a literal.
fn read_counts(text: &str) -> Option<(Counts, &str)> {
    let (least, rest) = read_number(text)?;
    let times = |number: Option<u32>| number.map_or(Most::TooMany, Most::Times);
    if let Some(rest) = rest.strip_prefix('}') {
        return Some(((least, times(least)), rest));
    }
    let rest = rest.strip_prefix(',')?;
    if let Some(rest) = rest.strip_prefix('}') {
        return Some(((least, Most::None), rest));
    }
    let (most, rest) = read_number(rest)?;
    Some(((least, times(most)), rest.strip_prefix('}')?))
}

/// Reads a number without leading zeros. The number is `None` on overflow.
fn read_number(text: &str) -> Option<(Option<u32>, &str)> {
    let rest = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let digits = &text[..text.len() - rest.len()];
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((digits.parse().ok(), rest))
}
