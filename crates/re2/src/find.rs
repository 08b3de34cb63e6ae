//! Finds the first match, by following all paths in parallel in the expression's order of
//! preference.

use std::ops::Range;

use super::matcher::Spot;
use super::program::Inst;

#[derive(Clone, Copy)]
struct Path {
    at: usize,
    start: usize,
}

struct Search<'a> {
    program: &'a [Inst<'a>],
    /// Last position at which each instruction was reached, plus one. 0 means never.
    reached: Vec<usize>,
    stack: Vec<usize>,
    /// Paths that wait for a character or have reached the end, preferred ones first.
    paths: Vec<Path>,
}

/// The outer `None` means that the result depends on the Unicode tables.
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
        // Once there's a match, a later start can't be the leftmost match.
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
                // Drop all remaining paths, which are less preferred.
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
        // Preferred paths may still match more, so continue until none are left.
        if search.paths.is_empty() && found.is_some() {
            return Some(found);
        }
        before = Some(character);
        offset = next;
    }
}

impl Search<'_> {
    /// Adds all reachable instructions that wait for a character, and the end.
    fn follow(&mut self, at: usize, start: usize, spot: Spot) {
        self.stack.push(at);
        while let Some(at) = self.stack.pop() {
            // Already reached at this position through a preferred path.
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
                    // The stack is LIFO, so push the preferred branch last.
                    self.stack.push(at.wrapping_add_signed(*other));
                    self.stack.push(at.wrapping_add_signed(*one));
                }
            }
        }
    }
}
