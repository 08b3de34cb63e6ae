//! Reads argument lists, each described by a table with one row per argument.
//!
//! All lists behave the same. An unknown name is an error, with a suggestion from the table. A
//! duplicate is an error at its second place, and the first value is kept. Reading continues after
//! either error, to find further mistakes.

use rbuilder_diagnostic::suggest;
use rbuilder_reader::Span;

use crate::Session;
use crate::args::{Arg, ReadArg as _};

pub(crate) trait Row<T> {
    fn name(&self) -> &'static str;

    fn is_repeatable(&self) -> bool;

    /// Returns false after reporting that the argument is not allowed in this list.
    fn check_place(&self, _arg: &Arg<'_>, _target: &mut T, _session: &mut Session) -> bool {
        true
    }

    fn read(&self, arg: &Arg<'_>, target: &mut T, session: &mut Session);
}

pub(crate) trait Target {
    fn seen(&mut self) -> &mut Seen;
}

/// `find` looks up the row of an argument, and `report_unknown` reports an argument without one.
pub(crate) fn read_args<'t, 'a: 't, T: Target, R: Row<T> + 'static>(
    args: impl IntoIterator<Item = &'t Arg<'a>>,
    target: &mut T,
    find: impl Fn(&str) -> Option<&'static R>,
    report_unknown: impl Fn(&Arg<'_>, &mut T, &mut Session),
    session: &mut Session,
) {
    for arg in args {
        let Some(row) = find(arg.name) else {
            report_unknown(arg, target, session);
            continue;
        };
        if row.check_place(arg, target, session)
            && target.seen().add(row.name(), row.is_repeatable(), arg, session)
        {
            row.read(arg, target, session);
        }
    }
}

/// The arguments read so far, with the spans of their values.
#[derive(Default)]
pub(crate) struct Seen {
    list: Vec<(&'static str, Span)>,
}

impl Seen {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.list.iter().any(|(seen, _)| *seen == name)
    }

    /// Returns the span of an argument's (first) value.
    pub(crate) fn at(&self, name: &str) -> Option<Span> {
        let found = self.list.iter().find(|(seen, _)| *seen == name);
        found.map(|(_, span)| *span)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, Span)> {
        self.list.iter().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn add(&mut self, name: &'static str, repeatable: bool, arg: &Arg<'_>, session: &mut Session) -> bool {
        if !repeatable && self.has(name) {
            report_duplicate(arg, session);
            return false;
        }
        self.list.push((name, arg.value_span()));
        true
    }
}

pub(crate) fn report_duplicate(arg: &Arg<'_>, session: &mut Session) {
    session.error(arg.span, format!("duplicate argument `{}`", arg.name));
}

/// An argument in a list: its entry in the reference, and its parser.
pub struct ArgRow<T: 'static> {
    /// The name of the argument.
    pub name: &'static str,
    /// A one-line description.
    pub doc: &'static str,
    /// True if the argument may be repeated.
    pub repeatable: bool,
    read: fn(&Arg<'_>, &mut T, &mut Session),
}

/// An argument's entry in the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgDoc {
    /// The name of the argument.
    pub name: &'static str,
    /// A one-line description.
    pub doc: &'static str,
    /// True if the argument may be repeated.
    pub repeatable: bool,
}

pub(crate) fn describe_rows<T>(rows: &[ArgRow<T>]) -> Vec<ArgDoc> {
    rows.iter().map(ArgRow::describe).collect()
}

impl<T> ArgRow<T> {
    /// Describes the argument for the reference.
    pub fn describe(&self) -> ArgDoc {
        ArgDoc {
            name: self.name,
            doc: self.doc,
            repeatable: self.repeatable,
        }
    }

    pub(crate) const fn once(
        name: &'static str,
        doc: &'static str,
        read: fn(&Arg<'_>, &mut T, &mut Session),
    ) -> Self {
        ArgRow {
            name,
            doc,
            repeatable: false,
            read,
        }
    }

    pub(crate) const fn repeatable(
        name: &'static str,
        doc: &'static str,
        read: fn(&Arg<'_>, &mut T, &mut Session),
    ) -> Self {
        ArgRow {
            name,
            doc,
            repeatable: true,
            read,
        }
    }
}

impl<T> Row<Draft<T>> for ArgRow<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_repeatable(&self) -> bool {
        self.repeatable
    }

    fn read(&self, arg: &Arg<'_>, draft: &mut Draft<T>, session: &mut Session) {
        (self.read)(arg, &mut draft.value, session);
    }
}

/// A value being filled with arguments.
#[derive(Default)]
pub(crate) struct Draft<T> {
    pub(crate) value: T,
    pub(crate) seen: Seen,
    /// An unknown argument was found, which may be a misspelled required one.
    pub(crate) has_unknown: bool,
}

impl<T> Target for Draft<T> {
    fn seen(&mut self) -> &mut Seen {
        &mut self.seen
    }
}

impl<T: 'static> Draft<T> {
    pub(crate) fn new(value: T) -> Self {
        Draft {
            value,
            seen: Seen::default(),
            has_unknown: false,
        }
    }

    /// Reads the arguments of `owner`. `advice` maps names from other tools to help.
    pub(crate) fn read(
        &mut self,
        owner: &str,
        args: &[Arg<'_>],
        rows: &'static [ArgRow<T>],
        advice: &[(&str, &str)],
        session: &mut Session,
    ) {
        let report_unknown = |arg: &Arg<'_>, draft: &mut Self, session: &mut Session| {
            draft.has_unknown = true;
            let help = match advice.iter().find(|(name, _)| *name == arg.name) {
                Some((_, help)) => (*help).to_owned(),
                None => suggest::describe_candidates(arg.name, rows.iter().map(|row| row.name)),
            };
            let message = format!("unknown argument `{}` of `{owner}`", arg.name);
            session.error_help(arg.span, message, help);
        };
        read_args(args, self, find_row(rows), report_unknown, session);
    }

    /// Reads the arguments that have a row. The others are checked elsewhere.
    pub(crate) fn read_known<'t, 'a: 't>(
        &mut self,
        args: impl IntoIterator<Item = &'t Arg<'a>>,
        rows: &'static [ArgRow<T>],
        session: &mut Session,
    ) {
        read_args(args, self, find_row(rows), |_, _, _| {}, session);
    }

    /// Checks for required arguments and returns whether all of them are present. `samples` has
    /// their names, each with a suggested value.
    pub(crate) fn require(&self, owner: &Arg<'_>, samples: &[(&str, &str)], session: &mut Session) -> bool {
        let mut is_whole = true;
        for (name, sample) in samples.iter().filter(|(name, _)| !self.seen.has(name)) {
            is_whole = false;
            // The unknown argument may be a misspelling of this required one.
            if self.has_unknown {
                continue;
            }
            let message = format!("missing argument `{name}` of `{}`", owner.name);
            session.error_help(owner.span, message, format!("add `{name} = \"{sample}\"`"));
        }
        is_whole
    }
}

impl<T: Default + 'static> Draft<T> {
    /// Reads `name(…)`. Returns `None` without the parentheses.
    pub(crate) fn of_list(arg: &Arg<'_>, rows: &'static [ArgRow<T>], session: &mut Session) -> Option<Self> {
        let mut draft = Draft::default();
        draft.read(arg.name, arg.list(session)?, rows, &[], session);
        Some(draft)
    }
}

pub(crate) fn find_row<T>(rows: &'static [ArgRow<T>]) -> impl Fn(&str) -> Option<&'static ArgRow<T>> {
    |name| rows.iter().find(|row| row.name == name)
}
