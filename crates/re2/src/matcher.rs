//! Runs a program, following all paths in parallel, one character at a time.

use super::program::{Inst, Look};

/// Returns `None` if the result depends on the Unicode tables.
pub(crate) fn is_match(program: &[Inst<'_>], text: &str) -> Option<bool> {
    let mut run = Run::new(program, false);
    if run.is_match(text) {
        return Some(true);
    }
    if !run.met_unknown {
        return Some(false);
    }
    // Retry with every unknown character counted as matching. If there's no match even then, there
    // is none, because larger classes never match less.
    let may_match = Run::new(program, true).is_match(text);
    (!may_match).then_some(false)
}

struct Run<'a> {
    program: &'a [Inst<'a>],
    /// Assumption for unknown characters.
    unknown: bool,
    met_unknown: bool,
    waiting: Vec<usize>,
    /// Last position at which each instruction was reached, plus one.
    reached: Vec<usize>,
    stack: Vec<usize>,
}

#[derive(Clone, Copy)]
pub(crate) struct Spot {
    /// In characters or bytes, as it's only compared for equality.
    pub(crate) position: usize,
    pub(crate) before: Option<char>,
    pub(crate) after: Option<char>,
}

impl<'a> Run<'a> {
    fn new(program: &'a [Inst<'a>], unknown: bool) -> Self {
        Run {
            program,
            unknown,
            met_unknown: false,
            waiting: Vec::new(),
            reached: vec![0; program.len()],
            stack: Vec::new(),
        }
    }

    fn is_match(&mut self, text: &str) -> bool {
        let mut characters = text.chars();
        let mut spot = Spot {
            position: 0,
            before: None,
            after: characters.next(),
        };
        loop {
            // Matches may start anywhere.
            if self.follow(0, spot) {
                return true;
            }
            let Some(character) = spot.after else {
                return false;
            };
            spot = Spot {
                position: spot.position + 1,
                before: Some(character),
                after: characters.next(),
            };
            if self.step(character, spot) {
                return true;
            }
        }
    }

    /// Returns whether the character completes a match.
    fn step(&mut self, character: char, spot: Spot) -> bool {
        for at in std::mem::take(&mut self.waiting) {
            let Some(Inst::Take(class)) = self.program.get(at) else {
                continue;
            };
            let is_in = class.contains(character);
            self.met_unknown |= is_in.is_none();
            if is_in.unwrap_or(self.unknown) && self.follow(at + 1, spot) {
                return true;
            }
        }
        false
    }

    /// Adds all reachable instructions that wait for a character. Returns whether the end of the
    /// program was reached.
    fn follow(&mut self, start: usize, spot: Spot) -> bool {
        self.stack.push(start);
        while let Some(at) = self.stack.pop() {
            let Some(inst) = self.program.get(at) else {
                // Any match is enough, so drop the rest of the stack.
                self.stack.clear();
                return true;
            };
            if self.reached[at] == spot.position + 1 {
                continue;
            }
            self.reached[at] = spot.position + 1;
            match inst {
                Inst::Take(_) => self.waiting.push(at),
                Inst::Look(look) if spot.holds(*look) => self.stack.push(at + 1),
                Inst::Look(_) => {}
                Inst::Jump(offset) => self.stack.push(at.wrapping_add_signed(*offset)),
                Inst::Split(one, other) => {
                    self.stack.push(at.wrapping_add_signed(*one));
                    self.stack.push(at.wrapping_add_signed(*other));
                }
            }
        }
        false
    }
}

impl Spot {
    pub(crate) fn holds(self, look: Look) -> bool {
        let is_boundary = is_word(self.before) != is_word(self.after);
        match look {
            Look::TextStart => self.before.is_none(),
            Look::TextEnd => self.after.is_none(),
            Look::LineStart => matches!(self.before, None | Some('\n')),
            Look::LineEnd => matches!(self.after, None | Some('\n')),
            Look::WordBoundary => is_boundary,
            Look::NoWordBoundary => !is_boundary,
        }
    }
}

fn is_word(character: Option<char>) -> bool {
    character.is_some_and(|character| character.is_ascii_alphanumeric() || character == '_')
}
