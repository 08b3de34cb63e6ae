//! An expression in postfix order, and the instructions it compiles to.

use super::class::Class;

/// The most instructions that are run; longer programs are not decided.
const MAX_PROGRAM: usize = 100_000;

/// An element of an expression in postfix order.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// A sequence begins.
    Begin,
    /// The sequence ends: all since its beginning is one operand.
    End,
    /// One character.
    Class(Class),
    /// A place between characters.
    Look(Look),
    /// The last operand, repeated; without an upper bound if that is `None`.
    Repeat { least: u32, most: Option<u32> },
    /// The last operands, one of which matches.
    Alternate(usize),
}

/// A place between two characters.
#[derive(Clone, Copy, Debug)]
pub(super) enum Look {
    TextStart,
    TextEnd,
    LineStart,
    LineEnd,
    WordBoundary,
    NoWordBoundary,
}

/// An instruction; jumps are relative to it, so that a part of a program can be copied.
#[derive(Clone, Copy, Debug)]
pub(super) enum Inst<'a> {
    /// Takes a character of the class.
    Take(&'a Class),
    /// Goes on if the place is of this sort.
    Look(Look),
    /// Goes on at both.
    Split(isize, isize),
    Jump(isize),
}

/// Compiles an expression; `None` if the program would be too long to run.
pub(super) fn compile_program(ops: &[Op]) -> Option<Vec<Inst<'_>>> {
    let mut code: Vec<Inst<'_>> = Vec::new();
    // Where operands begin; each ends where the next begins.
    let mut operands: Vec<usize> = Vec::new();
    let mut begun: Vec<usize> = Vec::new();
    for op in ops {
        match op {
            Op::Begin => begun.push(operands.len()),
            Op::End => {
                let first = begun.pop()?;
                let start = operands.get(first).copied().unwrap_or(code.len());
                operands.truncate(first);
                operands.push(start);
            }
            Op::Class(class) => {
                operands.push(code.len());
                code.push(Inst::Take(class));
            }
            Op::Look(look) => {
                operands.push(code.len());
                code.push(Inst::Look(*look));
            }
            Op::Repeat { least, most } => repeat(&mut code, *operands.last()?, *least as usize, *most)?,
            Op::Alternate(count) => {
                let first = operands.len().checked_sub(*count)?;
                alternate(&mut code, &operands[first..]);
                operands.truncate(first + 1);
            }
        }
        if code.len() > MAX_PROGRAM {
            return None;
        }
    }
    Some(code)
}

/// Repeats what begins at `start`: `x{2,4}` is `xx(x(x)?)?`, and `x{2,}` is `xxx*`.
fn repeat<'a>(code: &mut Vec<Inst<'a>>, start: usize, least: usize, most: Option<u32>) -> Option<()> {
    let body = code.split_off(start);
    let size = body.len() as isize;
    let copies = most.map_or(least + 1, |most| most as usize);
    if copies.checked_mul(body.len() + 2)? > MAX_PROGRAM {
        return None;
    }
    for _ in 0..least {
        code.extend_from_slice(&body);
    }
    match most {
        None => {
            code.push(Inst::Split(1, size + 2));
            code.extend_from_slice(&body);
            code.push(Inst::Jump(-(size + 1)));
        }
        Some(most) => {
            let optional = (most as usize).saturating_sub(least);
            for left in (1..=optional as isize).rev() {
                code.push(Inst::Split(1, left * (size + 1)));
                code.extend_from_slice(&body);
            }
        }
    }
    Some(())
}

/// Makes alternatives of what begins at `starts`.
fn alternate(code: &mut Vec<Inst<'_>>, starts: &[usize]) {
    let Some((&first, others)) = starts.split_first() else {
        return;
    };
    let tail = code.split_off(first);
    // Every alternative but the last is preceded by a split and followed by a jump.
    let mut left = (tail.len() + 2 * others.len()) as isize;
    let ends = others.iter().copied().chain([first + tail.len()]);
    for (position, (&start, end)) in starts.iter().zip(ends).enumerate() {
        let branch = &tail[start - first..end - first];
        let size = branch.len() as isize;
        if position == others.len() {
            code.extend_from_slice(branch);
        } else {
            code.push(Inst::Split(1, size + 2));
            code.extend_from_slice(branch);
            left -= size + 2;
            code.push(Inst::Jump(left + 1));
        }
    }
}
