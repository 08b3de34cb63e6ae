//! The prices of functions.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Estimator, NEW_LIST, Path, Span, UNKNOWN};
use crate::ast::{ACCUMULATOR, Expr, Kind, Literal};
use crate::types::Type;

/// For each character of a text that is gone through.
const PER_CHARACTER: f64 = 0.1;
/// For each character of a pattern, times the cost of the text.
const PER_PATTERN_CHARACTER: f64 = 0.25;

/// One way to read a call.
pub(super) struct Call<'c> {
    pub(super) expr: &'c Expr,
    pub(super) function: &'c str,
    /// The types of target and arguments in this form of the function.
    pub(super) wanted: &'c [Type],
    pub(super) target: Option<&'c Expr>,
    pub(super) args: &'c [Expr],
    pub(super) costs: &'c [Span],
}

/// The cost of a call and the size of its result.
pub(super) enum Price {
    /// With the arguments.
    Whole(Span, Option<Span>),
    /// Without them.
    Own(Span, Option<Span>),
}

impl Estimator<'_> {
    /// The price of a call that is not the common one; the common one is 1.
    pub(super) fn priced(&mut self, call: &Call<'_>) -> Option<Price> {
        let target = call.target.map(|target| self.size(target));
        let first = call.args.first().map(|arg| self.size(arg));
        let second = call.args.get(1).map(|arg| self.size(arg));
        let own = |cost: Span| Some(Price::Own(cost, None));
        let sized = |cost: Span, size: Span| Some(Price::Own(cost, Some(size)));
        match (call.function, target, first, second) {
            ("_&&_" | "_||_", None, ..) => match call.costs {
                [left, right] => Some(Price::Whole(
                    Span {
                        least: left.least,
                        most: left.plus(*right).most,
                    },
                    None,
                )),
                _ => None,
            },
            ("_?_:_", None, ..) => self.conditional(call),
            ("_==_" | "_!=_", None, Some(left), Some(right)) => self.equality(call, left, right),
            ("_<_" | "_<=_" | "_>_" | "_>=_", None, Some(left), Some(right)) => match call.wanted.first() {
                Some(Type::String | Type::Bytes) => own(smaller(left, right)),
                _ => None,
            },
            ("_+_", None, Some(left), Some(right)) => self.sum(call, left, right),
            ("@in", None, _, Some(list)) => match call.wanted.get(1) {
                Some(Type::List(_)) => own(list),
                _ => None,
            },
            ("bytes", None, Some(text), _) if call.wanted.first() == Some(&Type::String) => {
                sized(text.by(PER_CHARACTER), text.times(Span { least: 1, most: 4 }))
            }
            ("string", None, Some(bytes), _) if call.wanted.first() == Some(&Type::Bytes) => sized(
                bytes.by(PER_CHARACTER),
                Span {
                    least: bytes.least / 4,
                    most: bytes.most,
                },
            ),
            ("strings.quote", None, Some(text), _) => sized(
                text.by(PER_CHARACTER),
                text.times(Span { least: 1, most: 2 }).plus(Span::exactly(2)),
            ),
            ("startsWith" | "endsWith", Some(_), Some(other), _) => own(other.by(PER_CHARACTER)),
            ("contains", Some(text), Some(part), _) => {
                own(text.by(PER_CHARACTER).times(part.by(PER_CHARACTER)))
            }
            ("format", Some(text), ..) => own(text.by(PER_CHARACTER)),
            ("matches", Some(text), Some(pattern), _) => own(search(text, pattern)),
            ("find" | "findAll", Some(text), Some(pattern), _) => {
                sized(search(text, pattern), Span::up_to(text.most))
            }
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(list), ..) => {
                own(self.traversal(call, list))
            }
            ("url" | "jsonpatch.escapeKey", None, Some(text), _) => sized(text.by(PER_CHARACTER), text),
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(text), ..) => {
                sized(text.by(PER_CHARACTER), text)
            }
            ("replace", Some(text), Some(old), Some(new)) => {
                sized(text.by(2.0 * PER_CHARACTER), replaced(text, old, new))
            }
            ("split", Some(text), ..) => {
                let most = match call.args.get(1).map(|limit| &limit.kind) {
                    Some(Kind::Literal(Literal::Int(limit))) => u64::try_from(*limit).unwrap_or(u64::MAX),
                    _ => text.most,
                };
                sized(text.by(2.0 * PER_CHARACTER), Span::up_to(most))
            }
            ("join", Some(list), separator, _) => {
                let size = self.joined(call, list, separator);
                sized(size.by(PER_CHARACTER), size)
            }
            ("ip", Some(_), ..) => None,
            (
                "cidr" | "ip" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver",
                None,
                Some(text),
                _,
            ) => own(text.by(PER_CHARACTER)),
            ("ip.isCanonical", None, Some(text), _) => own(text.by(2.0 * PER_CHARACTER)),
            ("validate", Some(_), Some(text), _) => {
                own(text.by(PER_CHARACTER).by(128.0 * PER_PATTERN_CHARACTER))
            }
            ("containsIP" | "containsCIDR", Some(_), Some(other), _) => own(self.contained(call, other)),
            ("check", Some(_), ..) => own(Span::exactly(350_000)),
            ("fieldSelector" | "labelSelector", Some(_), Some(text), _) => own(selector(text)),
            ("sets.contains" | "sets.intersects", None, Some(a), Some(b)) => {
                own(a.times(b).plus(Span::exactly(1)))
            }
            ("sets.equivalent", None, Some(a), Some(b)) => own(a.times(b).by(2.0).plus(Span::exactly(1))),
            _ => self.priced_list(call, target, first),
        }
    }

    /// The functions that make lists of lists.
    fn priced_list(&mut self, call: &Call<'_>, target: Option<Span>, first: Option<Span>) -> Option<Price> {
        let made = |factor: f64, size: Span| {
            let cost = size.by(factor).plus(Span::exactly(1 + NEW_LIST));
            Some(Price::Own(cost, Some(size)))
        };
        let number = |position: usize| match call.args.get(position).map(|arg| &arg.kind) {
            Some(Kind::Literal(Literal::Int(number))) => u64::try_from(*number).ok(),
            _ => None,
        };
        match (call.function, target) {
            ("slice", Some(list)) => {
                let (start, end) = (number(0).unwrap_or(0), number(1).unwrap_or(list.most));
                made(1.0, Span::exactly(end.saturating_sub(start)))
            }
            ("lists.range", None) => made(1.0, Span::exactly(number(0).unwrap_or(u64::MAX))),
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
                let of_texts = call
                    .target
                    .is_some_and(|target| is_list_of_texts(self.ty(target)));
                made(if of_texts { 2.0 + PER_CHARACTER } else { 2.0 }, list.times(list))
            }
            ("@sortByAssociatedKeys", Some(_)) => {
                let keys = first.unwrap_or(UNKNOWN);
                let of_texts = call
                    .args
                    .first()
                    .is_some_and(|keys| is_list_of_texts(self.ty(keys)));
                made(if of_texts { 2.0 + PER_CHARACTER } else { 2.0 }, keys.times(keys))
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

    fn equality(&mut self, call: &Call<'_>, left: Span, right: Span) -> Option<Price> {
        let types = call.args.iter().map(|arg| self.ty(arg)).collect::<Vec<_>>();
        let cost = match types[..] {
            [Type::Opaque(a), Type::Opaque(b)] if a == b => match *a {
                "url" => smaller(left, right),
                "format" => Span { least: 1, most: 7 },
                _ => Span::exactly(1),
            },
            _ => smaller(left, right),
        };
        Some(Price::Own(cost, None))
    }

    fn sum(&mut self, call: &Call<'_>, left: Span, right: Span) -> Option<Price> {
        let size = left.plus(right);
        if let [a, b] = call.args
            && let (Some(a), Some(b)) = (self.entries_of(a), self.entries_of(b))
        {
            self.entries[call.expr.id] = Some(a.or(b));
        }
        match call.wanted.first() {
            Some(Type::List(_)) => Some(Price::Own(Span::exactly(1), Some(size))),
            Some(Type::String | Type::Bytes) => Some(Price::Own(size.by(PER_CHARACTER), Some(size))),
            _ => None,
        }
    }

    /// The size of the items of a list.
    fn item_size(&self, list: &Expr) -> Span {
        let path = self.path(list);
        // The path is copied here, so nothing is overwritten.
        let steps = path.steps();
        if path.is_empty() || steps[0] == ACCUMULATOR {
            return UNKNOWN;
        }
        let path = Path {
            steps: Rc::new(RefCell::new(steps)),
            capacity: path.length,
            ..path
        };
        self.declared(&path.push("@items")).unwrap_or(UNKNOWN)
    }

    fn traversal(&mut self, call: &Call<'_>, list: Span) -> Span {
        let Some(target) = call.target else { return list };
        match self.ty(target) {
            Type::List(item) if matches!(**item, Type::String | Type::Bytes) => {
                list.times(self.item_size(target).by(PER_CHARACTER).plus(Span::exactly(1)))
            }
            Type::List(_) => list,
            _ => list.by(PER_CHARACTER),
        }
    }

    fn joined(&mut self, call: &Call<'_>, list: Span, separator: Option<Span>) -> Span {
        let items = call.target.map_or(UNKNOWN, |target| self.item_size(target));
        let gaps = Span {
            least: list.least.saturating_sub(1),
            most: list.most.saturating_sub(1),
        };
        list.times(items)
            .plus(separator.unwrap_or(Span::exactly(0)).times(gaps))
    }

    fn contained(&self, call: &Call<'_>, other: Span) -> Span {
        let address = Span { least: 4, most: 16 };
        let mut cost = address.plus(address).by(PER_CHARACTER);
        if call.function == "containsCIDR" {
            cost = cost.plus(address.by(PER_CHARACTER)).plus(Span::exactly(1));
        }
        match call.wanted.get(1) {
            Some(Type::String) => cost.plus(other.by(PER_CHARACTER)),
            _ => cost,
        }
    }
}

/// Comparing goes through the shorter one.
fn smaller(left: Span, right: Span) -> Span {
    let most = left.most.min(right.most);
    Span {
        least: most.min(1),
        most,
    }
    .by(PER_CHARACTER)
}

fn search(text: Span, pattern: Span) -> Span {
    let text = text.plus(Span::exactly(1)).by(PER_CHARACTER);
    text.times(pattern.by(PER_PATTERN_CHARACTER))
}

fn selector(text: Span) -> Span {
    let requirements = text.by(0.5).by((NEW_LIST + 40) as f64);
    Span::exactly(NEW_LIST)
        .plus(text.by(PER_CHARACTER))
        .plus(requirements)
}

/// The size of a text in which one part has been replaced by another, wherever it was.
fn replaced(text: Span, old: Span, new: Span) -> Span {
    let count = |text: u64, old: u64| (text as f64 / old as f64).ceil() as u64;
    let (most, kept) = match old.least {
        0 => (text.most.saturating_add(1), text.most),
        _ if new.most <= old.least => (0, text.most),
        least => (count(text.most, least), 0),
    };
    Span {
        least: 0,
        most: most.saturating_mul(new.most).saturating_add(kept),
    }
}

fn is_list_of_texts(ty: &Type) -> bool {
    matches!(ty, Type::List(item) if matches!(**item, Type::String | Type::Bytes))
}
