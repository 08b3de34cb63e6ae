//! The postfix form of an expression, and its compilation into instructions.

use super::class::Class;

/// Longer programs aren't run.
const MAX_PROGRAM: usize = 100_000;

#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Starts a sequence.
    Begin,
    /// Ends a sequence. Everything since its start becomes a single operand.
    End,
    Class(Class),
    Look(Look),
    /// Repeats the last operand. `most` is `None` if unbounded; `lazy` prefers fewer repetitions.
    Repeat {
        least: u32,
        most: Option<u32>,
        lazy: bool,
    },
    /// Combines this many operands into alternatives.
    Alternate(usize),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Look {
    TextStart,
    TextEnd,
    LineStart,
    LineEnd,
    WordBoundary,
    NoWordBoundary,
}

/// Jumps are relative, so that parts of a program can be copied.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Inst<'a> {
    Take(&'a Class),
    Look(Look),
    /// Continues at both targets, preferring the first one.
    Split(isize, isize),
    Jump(isize),
}

/// Returns `None` if the program would be too long.
pub(crate) fn compile_program(ops: &[Op]) -> Option<Vec<Inst<'_>>> {
    let mut code: Vec<Inst<'_>> = Vec::new();
    // Start of each operand, which is also the end of the previous one.
    let mut operands: Vec<usize> = Vec::new();
    let mut begun: Vec<usize> = Vec::new();
    for op in ops {
        match op {
            Op::Begin => begun.push(operands.len()),
            Op::End => {
                // An empty sequence has no operand yet and ends where it starts.
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
            Op::Repeat { least, most, lazy } => {
                let start = *operands.last()?;
                repeat(&mut code, start, *least as usize, *most, *lazy)?;
            }
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

/// A number of characters that each matching text has at least. Assertions are ignored.
pub(crate) fn least_length(ops: &[Op]) -> u64 {
    let mut operands: Vec<u64> = Vec::new();
    let mut begun: Vec<usize> = Vec::new();
    for op in ops {
        match op {
            Op::Begin => begun.push(operands.len()),
            Op::End => {
                let first = begun.pop().unwrap_or_default();
                let sum = operands.drain(first..).fold(0, u64::saturating_add);
                operands.push(sum);
            }
            Op::Class(_) => operands.push(1),
            Op::Look(_) => operands.push(0),
            Op::Repeat { least, .. } => {
                if let Some(last) = operands.last_mut() {
                    *last = last.saturating_mul(u64::from(*least));
                }
            }
            Op::Alternate(count) => {
                let first = operands.len().saturating_sub(*count);
                let least = operands.drain(first..).min().unwrap_or_default();
                operands.push(least);
            }
        }
    }
    operands.into_iter().fold(0, u64::saturating_add)
}

/// Expands `x{2,4}` to `xx(x(x)?)?`, and `x{2,}` to `xxx*`.
fn repeat<'a>(
    code: &mut Vec<Inst<'a>>,
    start: usize,
    least: usize,
    most: Option<u32>,
    lazy: bool,
) -> Option<()> {
    let split = |again: isize, after: isize| match lazy {
        true => Inst::Split(after, again),
        false => Inst::Split(again, after),
    };
    let body = code.split_off(start);
    let size = body.len() as isize;
    let copies = most.map_or(least + 1, |most| most as usize);
    // Check before copying, because nested repetitions multiply.
    if copies.checked_mul(body.len() + 2)? > MAX_PROGRAM {
        return None;
    }
    for _ in 0..least {
        code.extend_from_slice(&body);
    }
    match most {
        None => {
            code.push(split(1, size + 2));
            code.extend_from_slice(&body);
            code.push(Inst::Jump(-(size + 1)));
        }
        Some(most) => {
            let optional = (most as usize).saturating_sub(least);
            for left in (1..=optional as isize).rev() {
                // Each split skips all remaining copies.
                code.push(split(1, left * (size + 1)));
                code.extend_from_slice(&body);
            }
        }
    }
    Some(())
}

fn alternate(code: &mut Vec<Inst<'_>>, starts: &[usize]) {
    let Some((&first, others)) = starts.split_first() else {
        return;
    };
    let tail = code.split_off(first);
    // All alternatives but the last have a split before them and a jump after them.
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
