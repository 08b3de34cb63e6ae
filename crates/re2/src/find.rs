//! Finds the first match: follows all paths at once, in the order in which the expression prefers
//! them.

use std::ops::Range;

use super::matcher::Spot;
use super::program::Inst;

/// A path through the program, and where its match begins.
#[derive(Clone, Copy)]
struct Path {
    at: usize,
    start: usize,
}

struct Search<'a> {
    program: &'a [Inst<'a>],
    /// For each instruction, the last position at which it was reached, plus one.
    reached: Vec<usize>,
    stack: Vec<usize>,
    /// The paths that wait for a character or have reached the end, the preferred ones first.
    paths: Vec<Path>,
}

/// Returns the first match at or after the byte `start`. The outer `None` means that the result
/// depends on characters that are unknown without the Unicode tables.
pub(crate) fn find(program: &[Inst<'_>], text: &str, start: usize) -> Option<Option<Range<usize>>> {
    let mut search = Search {
        program,
        reached: vec![0; program.len() + 1],
        stack: Vec::new(),
        paths: Vec::new(),
    };
    let mut found: Option<Range<usize>> = None;
    let mut offset = start;
    let mut before = text.get(..start)?.chars().next_back();
    loop {
        let after = text[offset..].chars().next();
        let spot = Spot {
            position: offset,
            before,
            after,
        };
        if found.is_none() {
            search.follow(0, offset, spot);
        }
        let paths = std::mem::take(&mut search.paths);
        let next = offset + after.map_or(1, char::len_utf8);
        let following = after.map(|character| Spot {
            position: next,
            before: Some(character),
            after: text[next..].chars().next(),
        });
        for path in paths {
            let Some(inst) = program.get(path.at) else {
                // The paths after this one are less preferred.
                found = Some(path.start..offset);
                break;
            };
            if let (Inst::Take(class), Some(character), Some(spot)) = (inst, after, following)
                && class.contains(character)?
            {
                search.follow(path.at + 1, path.start, spot);
            }
        }
        let Some(character) = after else {
            return Some(found);
        };
        if search.paths.is_empty() && found.is_some() {
            return Some(found);
        }
        before = Some(character);
        offset = next;
    }
}

impl Search<'_> {
    /// Follows an instruction to all instructions that wait for a character, and to the end.
    fn follow(&mut self, at: usize, start: usize, spot: Spot) {
        self.stack.push(at);
        while let Some(at) = self.stack.pop() {
            if self.reached[at] == spot.position + 1 {
                continue;
            }
            self.reached[at] = spot.position + 1;
            match self.program.get(at) {
                None | Some(Inst::Take(_)) => self.paths.push(Path { at, start }),
                Some(Inst::Look(look)) if spot.holds(*look) => self.stack.push(at + 1),
                Some(Inst::Look(_)) => {}
                Some(Inst::Jump(offset)) => self.stack.push(at.wrapping_add_signed(*offset)),
                Some(Inst::Split(one, other)) => {
                    self.stack.push(at.wrapping_add_signed(*other));
                    self.stack.push(at.wrapping_add_signed(*one));
                }
            }
        }
    }
}
