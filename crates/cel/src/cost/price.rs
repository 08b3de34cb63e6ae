//! Costs of function calls, and sizes of their results.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Estimate, Estimator, NEW_LIST, Path, UNKNOWN};
use crate::ast::{ACCUMULATOR, Expr, Kind, Literal};
use crate::types::Type;

const PER_CHARACTER: f64 = 0.1;
/// Per pattern character, in addition to traversing the string.
const PER_PATTERN_CHARACTER: f64 = 0.25;

pub(super) struct Call<'c> {
    pub(super) expr: &'c Expr,
    pub(super) function: &'c str,
    /// Parameter types of this overload.
    pub(super) parameters: &'c [Type],
    pub(super) target: Option<&'c Expr>,
    pub(super) args: &'c [Expr],
    pub(super) costs: &'c [Estimate],
}

pub(super) enum Price {
    Whole(Estimate, Option<Estimate>),
    Own(Estimate, Option<Estimate>),
}

impl Estimator<'_> {
    /// Returns the price of a call, or `None` for the many functions with a flat cost of 1.
    pub(super) fn price_call(&mut self, call: &Call<'_>) -> Option<Price> {
        let target = call.target.map(|target| self.size(target));
        let first = call.args.first().map(|arg| self.size(arg));
        let second = call.args.get(1).map(|arg| self.size(arg));
        let own = |cost: Estimate| Some(Price::Own(cost, None));
        let sized = |cost: Estimate, size: Estimate| Some(Price::Own(cost, Some(size)));
        match (call.function, target, first, second) {
            ("_&&_" | "_||_", None, ..) => match call.costs {
                [left, right] => Some(Price::Whole(
                    // Short-circuiting may skip the right operand, so only the left one counts
                    // toward the minimum.
                    Estimate {
                        min: left.min,
                        max: left.plus(*right).max,
                    },
                    None,
                )),
                _ => None,
            },
            ("_?_:_", None, ..) => self.conditional(call),
            ("_==_" | "_!=_", None, Some(left), Some(right)) => self.equality(call, left, right),
            ("_<_" | "_<=_" | "_>_" | "_>=_", None, Some(left), Some(right)) => match call.parameters.first()
            {
                Some(Type::String | Type::Bytes) => own(comparison(left, right)),
                _ => None,
            },
            ("_+_", None, Some(left), Some(right)) => self.sum(call, left, right),
            ("@in", None, _, Some(list)) => match call.parameters.get(1) {
                Some(Type::List(_)) => own(list),
                _ => None,
            },
            ("bytes", None, Some(string), _) if call.parameters.first() == Some(&Type::String) => sized(
                string.scaled(PER_CHARACTER),
                string.times(Estimate::between(1, 4)),
            ),
            ("string", None, Some(bytes), _) if call.parameters.first() == Some(&Type::Bytes) => sized(
                bytes.scaled(PER_CHARACTER),
                Estimate {
                    min: bytes.min / 4,
                    max: bytes.max,
                },
            ),
            ("strings.quote", None, Some(string), _) => sized(
                string.scaled(PER_CHARACTER),
                string.times(Estimate::between(1, 2)).plus(Estimate::exactly(2)),
            ),
            ("startsWith" | "endsWith", Some(_), Some(other), _) => own(other.scaled(PER_CHARACTER)),
            ("contains", Some(string), Some(part), _) => {
                own(string.scaled(PER_CHARACTER).times(part.scaled(PER_CHARACTER)))
            }
            ("format", Some(string), ..) => own(string.scaled(PER_CHARACTER)),
            ("matches", Some(string), Some(pattern), _) => own(search(string, pattern)),
            ("find" | "findAll", Some(string), Some(pattern), _) => {
                sized(search(string, pattern), Estimate::up_to(string.max))
            }
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(list), ..) => {
                own(self.traversal(call, list))
            }
            ("url" | "jsonpatch.escapeKey", None, Some(string), _) => {
                sized(string.scaled(PER_CHARACTER), string)
            }
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(string), ..) => {
                sized(string.scaled(PER_CHARACTER), string)
            }
            ("replace", Some(string), Some(old), Some(new)) => {
                sized(string.scaled(2.0 * PER_CHARACTER), replaced(string, old, new))
            }
            ("split", Some(string), ..) => {
                let max = match call.args.get(1).map(|limit| &limit.kind) {
                    Some(Kind::Literal(Literal::Int(limit))) => u64::try_from(*limit).unwrap_or(u64::MAX),
                    _ => string.max,
                };
                sized(string.scaled(2.0 * PER_CHARACTER), Estimate::up_to(max))
            }
            ("join", Some(list), separator, _) => {
                let size = self.joined(call, list, separator);
                sized(size.scaled(PER_CHARACTER), size)
            }
            ("ip", Some(_), ..) => None,
            (
                "cidr" | "ip" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver",
                None,
                Some(string),
                _,
            ) => own(string.scaled(PER_CHARACTER)),
            ("ip.isCanonical", None, Some(string), _) => own(string.scaled(2.0 * PER_CHARACTER)),
            ("validate", Some(_), Some(string), _) => {
                own(string.scaled(PER_CHARACTER).scaled(128.0 * PER_PATTERN_CHARACTER))
            }
            ("containsIP" | "containsCIDR", Some(_), Some(other), _) => own(self.contained(call, other)),
            ("check", Some(_), ..) => own(Estimate::exactly(350_000)),
            ("fieldSelector" | "labelSelector", Some(_), Some(string), _) => own(selector(string)),
            ("sets.contains" | "sets.intersects", None, Some(a), Some(b)) => {
                own(a.times(b).plus(Estimate::exactly(1)))
            }
            ("sets.equivalent", None, Some(a), Some(b)) => {
                own(a.times(b).scaled(2.0).plus(Estimate::exactly(1)))
            }
            _ => self.price_list_call(call, target, first),
        }
    }

    fn price_list_call(
        &mut self,
        call: &Call<'_>,
        target: Option<Estimate>,
        first: Option<Estimate>,
    ) -> Option<Price> {
        let made = |factor: f64, size: Estimate| {
            let cost = size.scaled(factor).plus(Estimate::exactly(1 + NEW_LIST));
            Some(Price::Own(cost, Some(size)))
        };
        let number = |position: usize| match call.args.get(position).map(|arg| &arg.kind) {
            Some(Kind::Literal(Literal::Int(number))) => u64::try_from(*number).ok(),
            _ => None,
        };
        match (call.function, target) {
            ("slice", Some(list)) => {
                let (start, end) = (number(0).unwrap_or(0), number(1).unwrap_or(list.max));
                made(1.0, Estimate::exactly(end.saturating_sub(start)))
            }
            ("lists.range", None) => made(1.0, Estimate::exactly(number(0).unwrap_or(u64::MAX))),
            ("reverse", Some(list)) => made(1.0, list),
            ("flatten", Some(list)) => {
                let depth = if call.args.is_empty() {
                    1
                } else {
                    number(0).unwrap_or(1)
                };
                made(depth as f64, list)
            }
            ("distinct", Some(list)) => made(2.0, list.times(list)),
            ("sort", Some(list)) => {
                let of_strings = call
                    .target
                    .is_some_and(|target| is_list_of_strings(self.ty(target)));
                made(
                    if of_strings { 2.0 + PER_CHARACTER } else { 2.0 },
                    list.times(list),
                )
            }
            ("@sortByAssociatedKeys", Some(_)) => {
                let keys = first.unwrap_or(UNKNOWN);
                let of_strings = call
                    .args
                    .first()
                    .is_some_and(|keys| is_list_of_strings(self.ty(keys)));
                made(
                    if of_strings { 2.0 + PER_CHARACTER } else { 2.0 },
                    keys.times(keys),
                )
            }
            _ => None,
        }
    }

    fn conditional(&mut self, call: &Call<'_>) -> Option<Price> {
        let ([_, yes, no], [of_test, of_yes, of_no]) = (call.args, call.costs) else {
            return None;
        };
        let size = self.size(yes).or(self.size(no));
        if let (Some(a), Some(b)) = (self.entries_of(yes), self.entries_of(no)) {
            self.entries[call.expr.id] = Some(a.or(b));
        }
        Some(Price::Whole(of_test.plus(of_yes.or(*of_no)), Some(size)))
    }

    fn equality(&mut self, call: &Call<'_>, left: Estimate, right: Estimate) -> Option<Price> {
        let types = call.args.iter().map(|arg| self.ty(arg)).collect::<Vec<_>>();
        let cost = match types[..] {
            [Type::Opaque(a), Type::Opaque(b)] if a == b => match *a {
                "url" => comparison(left, right),
                "format" => Estimate::between(1, 7),
                _ => Estimate::exactly(1),
            },
            _ => comparison(left, right),
        };
        Some(Price::Own(cost, None))
    }

    fn sum(&mut self, call: &Call<'_>, left: Estimate, right: Estimate) -> Option<Price> {
        let size = left.plus(right);
        if let [a, b] = call.args
            && let (Some(a), Some(b)) = (self.entries_of(a), self.entries_of(b))
        {
            self.entries[call.expr.id] = Some(a.or(b));
        }
        match call.parameters.first() {
            Some(Type::List(_)) => Some(Price::Own(Estimate::exactly(1), Some(size))),
            Some(Type::String | Type::Bytes) => Some(Price::Own(size.scaled(PER_CHARACTER), Some(size))),
            _ => None,
        }
    }

    fn item_size(&self, list: &Expr) -> Estimate {
        let path = self.path(list);
        // cel-go copies the path here, so appending doesn't overwrite anything (see `Path`).
        let steps = path.steps();
        if path.is_empty() || steps[0] == ACCUMULATOR {
            return UNKNOWN;
        }
        let path = Path {
            steps: Rc::new(RefCell::new(steps)),
            capacity: path.length,
            ..path
        };
        self.declared_size(&path.push("@items")).unwrap_or(UNKNOWN)
    }

    fn traversal(&mut self, call: &Call<'_>, list: Estimate) -> Estimate {
        let Some(target) = call.target else { return list };
        match self.ty(target) {
            Type::List(item) if matches!(**item, Type::String | Type::Bytes) => list.times(
                self.item_size(target)
                    .scaled(PER_CHARACTER)
                    .plus(Estimate::exactly(1)),
            ),
            Type::List(_) => list,
            _ => list.scaled(PER_CHARACTER),
        }
    }

    fn joined(&mut self, call: &Call<'_>, list: Estimate, separator: Option<Estimate>) -> Estimate {
        let items = call.target.map_or(UNKNOWN, |target| self.item_size(target));
        let gaps = Estimate {
            min: list.min.saturating_sub(1),
            max: list.max.saturating_sub(1),
        };
        list.times(items)
            .plus(separator.unwrap_or(Estimate::exactly(0)).times(gaps))
    }

    fn contained(&self, call: &Call<'_>, other: Estimate) -> Estimate {
        let address = Estimate::between(4, 16);
        let mut cost = address.plus(address).scaled(PER_CHARACTER);
        if call.function == "containsCIDR" {
            cost = cost
                .plus(address.scaled(PER_CHARACTER))
                .plus(Estimate::exactly(1));
        }
        match call.parameters.get(1) {
            Some(Type::String) => cost.plus(other.scaled(PER_CHARACTER)),
            _ => cost,
        }
    }
}

// Comparisons stop at the end of the shorter operand.
fn comparison(left: Estimate, right: Estimate) -> Estimate {
    let max = left.max.min(right.max);
    Estimate { min: max.min(1), max }.scaled(PER_CHARACTER)
}

fn search(string: Estimate, pattern: Estimate) -> Estimate {
    let string = string.plus(Estimate::exactly(1)).scaled(PER_CHARACTER);
    string.times(pattern.scaled(PER_PATTERN_CHARACTER))
}

fn selector(string: Estimate) -> Estimate {
    let requirements = string.scaled(0.5).scaled((NEW_LIST + 40) as f64);
    Estimate::exactly(NEW_LIST)
        .plus(string.scaled(PER_CHARACTER))
        .plus(requirements)
}

fn replaced(string: Estimate, old: Estimate, new: Estimate) -> Estimate {
    let count = |string: u64, old: u64| (string as f64 / old as f64).ceil() as u64;
    let (max, kept) = match old.min {
        0 => (string.max.saturating_add(1), string.max),
        _ if new.max <= old.min => (0, string.max),
        min => (count(string.max, min), 0),
    };
    Estimate {
        min: 0,
        max: max.saturating_mul(new.max).saturating_add(kept),
    }
}

fn is_list_of_strings(ty: &Type) -> bool {
    matches!(ty, Type::List(item) if matches!(**item, Type::String | Type::Bytes))
}
