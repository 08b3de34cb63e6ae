//! The search for a state in which a rule doesn't follow.

use serde_json::Value;

use super::{Formula, List, Model, Term};

/// Limit for the number of partial states that are looked at for a rule.
const MOST_STATES: usize = 10_000;

/// The result of an expression.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Truth {
    Yes,
    No,
    Error,
}

impl Truth {
    fn of(value: bool) -> Self {
        if value { Truth::Yes } else { Truth::No }
    }

    fn negated(self) -> Self {
        match self {
            Truth::Yes => Truth::No,
            Truth::No => Truth::Yes,
            Truth::Error => Truth::Error,
        }
    }
}

/// The search for a state that satisfies the former rules and violates the rule in question. Terms get
/// a state when a formula depends on it.
pub(super) struct Search<'a> {
    terms: &'a [Term],
    possible: Vec<Vec<usize>>,
    state: Vec<Option<usize>>,
    left: usize,
}

/// The result of a formula, or the term on whose state it depends.
type Found<T = Truth> = Result<T, usize>;

impl<'a> Search<'a> {
    pub(super) fn new(model: &'a Model<'_>) -> Self {
        let possible: Vec<Vec<usize>> = model.terms.iter().map(|term| model.states_of(term)).collect();
        let only = |states: &Vec<usize>| states.first().copied().filter(|_| states.len() == 1);
        Self {
            terms: &model.terms,
            state: possible.iter().map(only).collect(),
            possible,
            left: MOST_STATES,
        }
    }

    /// Returns true if the goal holds in each state in which all premises do.
    pub(super) fn holds(&mut self, goal: &Formula, premises: &[Formula]) -> bool {
        let Some(left) = self.left.checked_sub(1) else {
            return false;
        };
        self.left = left;
        let mut open = None;
        match self.of(goal) {
            Ok(Truth::Yes) => return true,
            Ok(_) => {}
            Err(term) => open = Some(term),
        }
        for premise in premises {
            match self.of(premise) {
                Ok(Truth::Yes) => {}
                Ok(_) => return true,
                Err(term) => open = open.or(Some(term)),
            }
        }
        let Some(term) = open else { return false };
        let holds = self.possible[term].clone().into_iter().all(|state| {
            self.state[term] = Some(state);
            self.holds(goal, premises)
        });
        self.state[term] = None;
        holds
    }

    fn of(&self, formula: &Formula) -> Found {
        Ok(match formula {
            Formula::Known(value) => Truth::of(*value),
            Formula::Not(part) => self.of(part)?.negated(),
            Formula::Logic(decisive, parts) => return self.of_logic(*decisive, parts),
            Formula::If(parts) => match self.of(&parts[0])? {
                Truth::Yes => self.of(&parts[1])?,
                Truth::No => self.of(&parts[2])?,
                Truth::Error => Truth::Error,
            },
            Formula::Has(term) => match self.terms[*term].parent {
                Some(parent) if !self.is_there(parent)? => Truth::Error,
                _ => Truth::of(self.is_there(*term)?),
            },
            Formula::HasValue { field, object } => match self.is_there(*object)? {
                true => Truth::of(self.is_there(*field)?),
                false => Truth::Error,
            },
            Formula::Holds(term) => match self.value(*term)? {
                Some(Some(Value::Bool(value))) => Truth::of(*value),
                _ => Truth::Error,
            },
            Formula::Is(term, values) => match self.value(*term)? {
                None => Truth::Error,
                Some(None) => Truth::No,
                Some(Some(value)) => Truth::of(values.contains(value)),
            },
            Formula::Items {
                list,
                is_exists,
                body,
            } => match self.of_list(*list, *is_exists)? {
                Some(result) => result,
                None => self.of(body)?,
            },
            Formula::FormerItems {
                list,
                value,
                is_exists,
                bodies,
            } => match self.of_list(*list, *is_exists)? {
                Some(result) => result,
                None => self.of_former_items(*value, *is_exists, bodies)?,
            },
        })
    }

    fn of_logic(&self, decisive: bool, parts: &[Formula]) -> Found {
        let (mut result, mut open) = (Truth::of(!decisive), None);
        for part in parts {
            match self.of(part) {
                Ok(found) if found == Truth::of(decisive) => return Ok(found),
                Ok(Truth::Error) => result = Truth::Error,
                Ok(_) => {}
                Err(term) => open = open.or(Some(term)),
            }
        }
        open.map_or(Ok(result), Err)
    }

    fn of_former_items(&self, value: usize, is_exists: bool, bodies: &[Formula]) -> Found {
        let result = self.of(&Formula::Holds(value))?;
        // A true `all` and a false `exists` say the same of each item.
        if result == Truth::of(!is_exists) {
            for body in bodies {
                if self.of(body)? != result {
                    // No value is in this state. The error excludes it, unless the rest of the rule
                    // holds whatever this is.
                    return Ok(Truth::Error);
                }
            }
        }
        Ok(result)
    }

    /// The result of a quantifier that doesn't depend on items.
    fn of_list(&self, list: List, is_exists: bool) -> Found<Option<Truth>> {
        if !self.is_there(list.term)? {
            return Ok(Some(Truth::Error));
        }
        let is_empty = self.of(&Formula::Holds(list.is_empty))? == Truth::Yes;
        Ok(is_empty.then_some(Truth::of(!is_exists)))
    }

    fn is_there(&self, term: usize) -> Found<bool> {
        if let Some(parent) = self.terms[term].parent
            && !self.is_there(parent)?
        {
            return Ok(false);
        }
        match self.state[term] {
            Some(state) => Ok(state != 0),
            None if !self.possible[term].contains(&0) => Ok(true),
            None => Err(term),
        }
    }

    /// The constant that a term equals, if any. The outer `None` means an error.
    fn value(&self, term: usize) -> Found<Option<Option<&Value>>> {
        if !self.is_there(term)? {
            return Ok(None);
        }
        let state = self.state[term].ok_or(term)?;
        let constant = state.checked_sub(2);
        Ok(Some(constant.and_then(|at| self.terms[term].constants.get(at))))
    }
}
