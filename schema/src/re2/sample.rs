//! Texts that match an expression.

use super::class::{Class, Item};
use super::program::{Inst, Op, compile_program};

/// The most steps through a program; whoever chooses to repeat for ever is stopped.
const MAX_STEPS: usize = 10_000;

/// Makes a text by one way through the program.
///
/// Anchors hold where nothing is written before or after what they stand beside.
pub(super) fn sample(ops: &[Op], choose: &mut dyn FnMut(Choice<'_>) -> usize) -> Option<String> {
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
            // The first way goes on, the other leaves out or takes another alternative.
            Some(Inst::Split(one, other)) => {
                let offset = if choose(Choice::Way) == 0 { other } else { one };
                at = at.wrapping_add_signed(*offset);
            }
        }
    }
    None
}

/// A choice in the making of a sample.
pub enum Choice<'a> {
    /// 0 to go past something, or on to the next alternative; 1 to go into it.
    Way,
    /// The position of one of these characters.
    Letter(&'a [char]),
}

/// Characters of a class: of those that can be typed, if there are any, letters first.
fn letters(class: &Class) -> Option<Vec<char>> {
    const TYPED: [std::ops::RangeInclusive<char>; 4] = ['a'..='z', '0'..='9', 'A'..='Z', ' '..='~'];
    let is_in = |letter: &char| class.contains(*letter) == Some(true);
    let typed: Vec<char> = TYPED.into_iter().flatten().filter(is_in).collect();
    if !typed.is_empty() {
        return Some(typed);
    }
    // Beyond ASCII, the bounds of its ranges are in a class, and what is beside them where it is negated.
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
