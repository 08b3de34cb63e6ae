//! Generates matching texts.

use super::class::{Class, Item};
use super::program::{Inst, Op, compile_program};

/// Guards against choices that never terminate.
const MAX_STEPS: usize = 10_000;

/// Follows a single path through the program. Assertions are ignored, but anchors at either end of
/// the text hold anyway.
pub(crate) fn sample(ops: &[Op], choose: &mut dyn FnMut(Choice<'_>) -> usize) -> Option<String> {
    let program = compile_program(ops)?;
    let mut text = String::new();
    let mut at = 0;
    for _ in 0..MAX_STEPS {
        match program.get(at) {
            None => return Some(text),
            Some(Inst::Take(class)) => {
                let letters = letters(class)?;
                text.push(*letters.get(choose(Choice::Letter(&letters)))?);
                at += 1;
            }
            Some(Inst::Look(_)) => at += 1,
            Some(Inst::Jump(offset)) => at = at.wrapping_add_signed(*offset),
            // The first target continues here; the second one skips this part or moves on to the
            // next alternative.
            Some(Inst::Split(one, other)) => {
                // It's the other way around for lazy repetitions.
                let (enter, skip) = if *one == 1 { (one, other) } else { (other, one) };
                let offset = if choose(Choice::Way) == 0 { skip } else { enter };
                at = at.wrapping_add_signed(*offset);
            }
        }
    }
    None
}

/// A choice to make while generating a text.
pub enum Choice<'a> {
    /// 0 skips a part or moves on to the next alternative, 1 enters it.
    Way,
    /// An index into these characters.
    Letter(&'a [char]),
}

/// Prefers printable ASCII, starting with letters.
fn letters(class: &Class) -> Option<Vec<char>> {
    const TYPED: [std::ops::RangeInclusive<char>; 4] = ['a'..='z', '0'..='9', 'A'..='Z', ' '..='~'];
    let is_in = |letter: &char| class.contains(*letter) == Some(true);
    let typed: Vec<char> = TYPED.into_iter().flatten().filter(is_in).collect();
    if !typed.is_empty() {
        return Some(typed);
    }
    // Beyond ASCII, try the bounds of the ranges. Neighbors of the bounds are for negated classes.
    let bounds = class.items.iter().flat_map(|item| match item {
        Item::Range(low, high) => vec![*low, *high, low.wrapping_sub(1), high.wrapping_add(1)],
        Item::Group { .. } | Item::Table { .. } => vec![],
    });
    let others: Vec<char> = bounds
        .chain(0..0x80)
        .chain([0xE9])
        .filter_map(char::from_u32)
        .filter(is_in)
        .collect();
    (!others.is_empty()).then_some(others)
}
