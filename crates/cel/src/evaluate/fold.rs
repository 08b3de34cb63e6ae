//! Loop evaluation.

use super::text;
use super::value::Value;
use super::{Evaluator, Outcome, Slot, Stop};
use crate::ast::{ACCUMULATOR, Fold};

impl<'v, 'p> Evaluator<'v, 'p> {
    pub(super) fn fold(&mut self, fold: &'p Fold) -> Outcome<'v> {
        let range = self.evaluate(&fold.range)?;
        let depth = self.scopes.len();
        let start = self.evaluate(&fold.init);
        self.scopes.push((ACCUMULATOR, Slot::Ready(start)));
        let result = self.rounds(fold, &range, depth);
        let result = result.and_then(|()| self.evaluate(&fold.result));
        self.scopes.truncate(depth);
        result
    }

    fn rounds(&mut self, fold: &'p Fold, range: &Value<'v>, depth: usize) -> Result<(), Stop> {
        match (range, fold.second.is_some()) {
            (Value::List(list), with_index) => {
                for index in 0..list.len() {
                    let Some(item) = list.get(index) else { break };
                    let (first, second) = match with_index {
                        true => (
                            Ok(Value::Int(i64::try_from(index).unwrap_or(i64::MAX))),
                            Some(item),
                        ),
                        false => (item, None),
                    };
                    if !self.round(fold, first, second, depth)? {
                        break;
                    }
                }
                Ok(())
            }
            (Value::Map(map), with_value) => {
                for key in map.keys() {
                    let value = match with_value {
                        true => Some(map.find(&key).and_then(|value| {
                            let shown = text::show(&key);
                            value.ok_or_else(|| Stop::error(format!("no such key: {shown}")))
                        })),
                        false => None,
                    };
                    if !self.round(fold, Ok(key), value, depth)? {
                        break;
                    }
                }
                Ok(())
            }
            (range, true) => {
                let name = text::go_type(range);
                Err(Stop::error(format!(
                    "unsupported comprehension range type: {name}"
                )))
            }
            (range, false) => {
                let name = text::go_type(range);
                Err(Stop::error(format!("got '{name}', expected iterable type")))
            }
        }
    }

    fn round(
        &mut self,
        fold: &'p Fold,
        first: Outcome<'v>,
        second: Option<Outcome<'v>>,
        depth: usize,
    ) -> Result<bool, Stop> {
        self.scopes.push((&fold.variable, Slot::Ready(first)));
        if let (Some(name), Some(second)) = (&fold.second, second) {
            self.scopes.push((name, Slot::Ready(second)));
        }
        match self.evaluate(&fold.condition) {
            Ok(Value::Bool(false)) => {
                self.scopes.truncate(depth + 1);
                return Ok(false);
            }
            // Like in cel-go, errors in the condition don't end the loop. These two aren't errors,
            // though.
            Err(stop @ (Stop::OverLimit | Stop::Unsupported(_))) => return Err(stop),
            _ => {}
        }
        let step = self.evaluate(&fold.step);
        self.scopes.truncate(depth + 1);
        if matches!(step, Err(Stop::OverLimit)) {
            return Err(Stop::OverLimit);
        }
        self.scopes[depth].1 = Slot::Ready(step);
        Ok(true)
    }
}
