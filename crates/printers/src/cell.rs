//! Cells that are fields of an object, or little more.

use serde_json::Value;

use crate::selector::{or_none, print_labels, print_selector};
use crate::view::{View, items, scalar, text};

/// How to print a cell. Strings are JSON pointers, and second ones what is printed if there is no
/// value.
#[derive(Clone, Copy)]
pub(crate) enum Cell {
    Text(&'static str),
    TextOr(&'static str, &'static str),
    /// Like [`Cell::TextOr`], for fields whose zero Go prints like an absent one.
    NonEmptyOr(&'static str, &'static str),
    Number(&'static str),
    NumberOr(&'static str, &'static str),
    /// A number of another one, e.g. `1/3`.
    Fraction(&'static str, &'static str),
    /// The number of items or entries.
    Count(&'static str),
    Flag(&'static str, bool),
    Age(&'static str),
    AgeOr(&'static str, &'static str),
    /// The items of a list of strings.
    Join(&'static str),
    /// The names of the containers in a list.
    Names(&'static str),
    /// The images of the containers in a list.
    Images(&'static str),
    Labels(&'static str),
    Selector(&'static str),
    Print(fn(&View<'_>) -> String),
    Compute(fn(&View<'_>) -> Value),
}

pub(crate) const NAME: Cell = Cell::Text("/metadata/name");
pub(crate) const AGE: Cell = Cell::Age("/metadata/creationTimestamp");

impl Cell {
    pub(crate) fn print(self, view: &View<'_>) -> Value {
        let or = |text: String, otherwise: &str| match text.is_empty() {
            true => otherwise.to_owned(),
            false => text,
        };
        match self {
            Cell::Text(at) => scalar(view.at(at)),
            Cell::TextOr(at, otherwise) => match view.at(at) {
                Value::Null => otherwise.to_owned(),
                value => scalar(value),
            },
            Cell::NonEmptyOr(at, otherwise) => or(scalar(view.at(at)), otherwise),
            Cell::Number(at) => return view.number(at).into(),
            Cell::NumberOr(at, otherwise) => match view.at(at) {
                Value::Null => otherwise.to_owned(),
                value => return value.clone(),
            },
            Cell::Fraction(of, all) => format!("{}/{}", view.number(of), view.number(all)),
            Cell::Count(at) => return count(view.at(at)).into(),
            Cell::Flag(at, otherwise) => return view.at(at).as_bool().unwrap_or(otherwise).into(),
            Cell::Age(at) => view.age(at),
            Cell::AgeOr(at, otherwise) => match view.at(at) {
                Value::Null => otherwise.to_owned(),
                time => view.since(time),
            },
            Cell::Join(at) => join(view.items(at), ","),
            Cell::Names(at) => of_containers(view.at(at), "/name"),
            Cell::Images(at) => of_containers(view.at(at), "/image"),
            Cell::Labels(at) => print_labels(view.at(at)),
            Cell::Selector(at) => print_selector(view.at(at)).map_or("<error>".to_owned(), or_none),
            Cell::Print(print) => print(view),
            Cell::Compute(compute) => return compute(view),
        }
        .into()
    }
}

/// Returns the number of items or entries.
pub(crate) fn count(value: &Value) -> usize {
    value.as_array().map_or(0, Vec::len) + value.as_object().map_or(0, serde_json::Map::len)
}

pub(crate) fn join(list: &[Value], separator: &str) -> String {
    list.iter().map(scalar).collect::<Vec<_>>().join(separator)
}

fn of_containers(containers: &Value, field: &str) -> String {
    let texts = items(containers, "")
        .iter()
        .map(|container| text(container, field));
    texts.collect::<Vec<_>>().join(",")
}
