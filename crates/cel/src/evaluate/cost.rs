//! Run-time costs of calls, in the API server's units, following `interpreter/runtimecost.go` in
//! cel-go and `apiserver/pkg/cel/library/cost.go`.

use super::value::{List, Map, Value};
use crate::functions::Overload;
use crate::types::Type;

const NEW_LIST: u64 = 10;

pub(super) struct Priced<'c, 'v> {
    pub(super) function: &'c str,
    /// `None` if the overload isn't known at compile time because an argument is `dyn`.
    pub(super) overload: Option<&'static Overload>,
    /// Failed arguments are `None`.
    pub(super) args: &'c [Option<Value<'v>>],
    /// `None` if the call failed.
    pub(super) result: Option<&'c Value<'v>>,
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)]
fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

fn scan(size: u64) -> u64 {
    scaled(size, 0.1)
}

impl Priced<'_, '_> {
    fn size(&self, index: usize) -> u64 {
        self.args
            .get(index)
            .map_or(1, |arg| arg.as_ref().map_or(1, Value::size))
    }

    fn takes(&self, index: usize, test: fn(&Type) -> bool) -> bool {
        self.overload
            .and_then(|overload| overload.args.get(index))
            .is_some_and(test)
    }

    pub(super) fn cost(&self) -> u64 {
        match self.function {
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => self
                .args
                .first()
                .map_or(0, |arg| arg.as_ref().map_or(1, traversal)),
            "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP" | "isCIDR"
            | "quantity" | "isQuantity" | "semver" | "isSemver" => scan(self.size(0)),
            "ip" if self.takes(0, |ty| matches!(ty, Type::Opaque("cidr"))) => 1,
            "ip" => scan(self.size(0)),
            "replace" | "split" | "ip.isCanonical" => scaled(self.size(0), 0.2),
            "join" => scaled(self.result.map_or(1, Value::size), 0.2),
            "find" | "findAll" => self.regex(self.size(1)),
            "validate" => match self.args.first() {
                Some(Some(Value::Format(format))) => scan(self.size(1) + 1) * scaled(format.regex_size, 0.25),
                _ => 1,
            },
            "containsIP" => scaled(self.size(0) * 2, 0.1) + self.parsed(),
            "containsCIDR" => scaled(self.size(0) * 2, 0.1) + scan(self.size(0)) + 1 + self.parsed(),
            "_==_" if matches!(self.args.first(), Some(Some(value)) if is_opaque(value)) => 1,
            _ => self.overload_cost(),
        }
    }

    fn parsed(&self) -> u64 {
        match self.takes(1, |ty| *ty == Type::String) {
            true => scan(self.size(1)),
            false => 0,
        }
    }

    fn regex(&self, pattern: u64) -> u64 {
        scan(self.size(0) + 1) * scaled(pattern, 0.25)
    }

    fn overload_cost(&self) -> u64 {
        let smaller = self.size(0).min(self.size(1));
        let is_text = |ty: &Type| matches!(ty, Type::String | Type::Bytes);
        match self.function {
            // Equality has a single overload, so types don't matter.
            "_==_" | "_!=_" => scan(smaller),
            _ if self.overload.is_none() => 1,
            "startsWith" | "endsWith" => scan(self.size(1)),
            "bytes" if self.takes(0, |ty| *ty == Type::String) => scan(self.size(0)),
            "string" if self.takes(0, |ty| *ty == Type::Bytes) => scan(self.size(0)),
            "strings.quote" | "format" => scan(self.size(0)),
            "@in" if self.takes(1, |ty| matches!(ty, Type::List(_))) => self.size(1),
            "_<_" | "_<=_" | "_>_" | "_>=_" if self.takes(0, is_text) => scan(smaller),
            "_+_" if self.takes(0, is_text) => scan(self.size(0) + self.size(1)),
            "matches" => self.regex(self.size(1)),
            "contains" => scan(self.size(0)) * scan(self.size(1)),
            "slice" | "lists.range" | "reverse" => self.list(1.0, self.result.map_or(1, Value::size)),
            "flatten" => self.list(self.depth(), self.size(0)),
            "distinct" | "sort" => self.compared(0),
            "@sortByAssociatedKeys" => self.compared(1),
            "sets.contains" | "sets.intersects" => 1 + self.size(0).saturating_mul(self.size(1)),
            "sets.equivalent" => 1 + self.size(0).saturating_mul(self.size(1)).saturating_mul(2),
            _ => 1,
        }
    }

    #[allow(clippy::cast_precision_loss)]
    fn depth(&self) -> f64 {
        match self.args.get(1) {
            Some(Some(Value::Int(depth))) => *depth as f64,
            _ => 1.0,
        }
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss
    )]
    fn list(&self, factor: f64, size: u64) -> u64 {
        let factor = if factor < 0.0 { 1.0 } else { factor };
        ((size as f64 * factor) as u64).saturating_add(1 + NEW_LIST)
    }

    fn compared(&self, index: usize) -> u64 {
        let size = self.size(index);
        let first = match self.args.get(index) {
            Some(Some(Value::List(list))) => list.get(0),
            _ => None,
        };
        let factor = match first {
            Some(Ok(Value::String(_) | Value::Bytes(_))) => 2.1,
            _ => 2.0,
        };
        self.list(factor, size.saturating_mul(size))
    }
}

fn is_opaque(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Quantity(_)
            | Value::Ip(_)
            | Value::Cidr(_)
            | Value::Format(_)
            | Value::Url(_)
            | Value::Semver(_)
    )
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)]
fn traversal(value: &Value<'_>) -> u64 {
    let text = |length: usize| (length as f64 * 0.1) as u64;
    match value {
        Value::String(value) => text(value.len()),
        Value::Bytes(bytes) => text(bytes.len()),
        Value::List(list @ (List::Json(_) | List::Made(_) | List::Merged(..))) => {
            list.iter().map(|item| item.as_ref().map_or(1, traversal)).sum()
        }
        Value::Map(map @ (Map::Json(_) | Map::Made(_))) => map
            .keys()
            .iter()
            .map(|key| {
                let value = map.find(key).ok().flatten();
                traversal(key) + value.as_ref().map_or(1, traversal)
            })
            .sum(),
        _ => 1,
    }
}
