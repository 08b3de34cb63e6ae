//! The one reader of argument lists: each list is read by a table with a row for each argument.
//!
//! Every list behaves alike. An unknown name is an error with a suggestion from the table. A duplicate is an error at
//! the second place, and the first value is kept. Reading goes on behind either, so that further mistakes are found.

use rbuilder_diagnostic::suggest;
use rbuilder_reader::Span;

use crate::Session;
use crate::args::{Arg, ReadArg as _};

/// A row of a table of arguments.
pub(crate) trait Row<T> {
    /// The name of the argument.
    fn name(&self) -> &'static str;

    /// True if it may be written more than once.
    fn is_repeatable(&self) -> bool;

    /// Checks that the argument may stand in this list, and reports it if not.
    fn check_place(&self, _arg: &Arg<'_>, _target: &mut T, _session: &mut Session) -> bool {
        true
    }

    /// Reads the argument into the target.
    fn read(&self, arg: &Arg<'_>, target: &mut T, session: &mut Session);
}

/// A target that arguments are read into.
pub(crate) trait Target {
    /// The arguments read so far.
    fn seen(&mut self) -> &mut Seen;
}

/// Reads arguments by the rows that `find` knows; `report_unknown` says which there are.
pub(crate) fn read_args<T: Target, R: Row<T> + 'static>(
    args: &[Arg<'_>],
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

/// The arguments read at one place, each with the span of its value.
#[derive(Default)]
pub(crate) struct Seen {
    list: Vec<(&'static str, Span)>,
}

impl Seen {
    /// Returns true if the argument has been written.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.list.iter().any(|(seen, _)| *seen == name)
    }

    /// Returns the place of the value, or of its first one.
    pub(crate) fn at(&self, name: &str) -> Option<Span> {
        let found = self.list.iter().find(|(seen, _)| *seen == name);
        found.map(|(_, span)| *span)
    }

    /// Returns the names and the places of the values, in source order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, Span)> {
        self.list.iter().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Notes an argument; reports a duplicate and returns false.
    fn add(&mut self, name: &'static str, repeatable: bool, arg: &Arg<'_>, session: &mut Session) -> bool {
        if !repeatable && self.has(name) {
            report_duplicate(arg, session);
            return false;
        }
        self.list.push((name, arg.value_span()));
        true
    }
}

/// Reports the second of two arguments that are mutually exclusive by having one name.
pub(crate) fn report_duplicate(arg: &Arg<'_>, session: &mut Session) {
    session.error(arg.span, format!("duplicate argument `{}`", arg.name));
}

/// One argument: a row of the reference page, and all that its reader and "did you mean" go by.
pub struct ArgRow<T: 'static> {
    /// Its name.
    pub name: &'static str,
    /// Its meaning, one line.
    pub doc: &'static str,
    /// True if it may be written more than once.
    pub repeatable: bool,
    read: fn(&Arg<'_>, &mut T, &mut Session),
}

/// An argument as the reference page describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgDoc {
    /// Its name.
    pub name: &'static str,
    /// Its meaning, one line.
    pub doc: &'static str,
    /// True if it may be written more than once.
    pub repeatable: bool,
}

/// Returns the documentation of each argument of a table.
pub(crate) fn describe_rows<T>(rows: &[ArgRow<T>]) -> Vec<ArgDoc> {
    rows.iter().map(ArgRow::describe).collect()
}

impl<T> ArgRow<T> {
    /// Returns the documentation of the argument.
    pub fn describe(&self) -> ArgDoc {
        ArgDoc {
            name: self.name,
            doc: self.doc,
            repeatable: self.repeatable,
        }
    }

    /// A row of an argument that is written once.
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

    /// A row of an argument that may be written more than once.
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

/// A value while its arguments are read.
#[derive(Default)]
pub(crate) struct Draft<T> {
    pub(crate) value: T,
    pub(crate) seen: Seen,
    /// True if there is an argument without a row, which may be one that is missing by another name.
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

    /// Reads the arguments of `owner` by a table. `advice` has what to write in place of names that other tools know.
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

    /// Reads those arguments that have a row, and passes over the others, which another reader judges.
    pub(crate) fn read_known(&mut self, args: &[Arg<'_>], rows: &'static [ArgRow<T>], session: &mut Session) {
        read_args(args, self, find_row(rows), |_, _, _| {}, session);
    }

    /// Checks that arguments are there, and reports each that is not, unless an unknown one is to be corrected first. `samples`
    /// are values to show.
    pub(crate) fn require(&self, owner: &Arg<'_>, samples: &[(&str, &str)], session: &mut Session) -> bool {
        let mut is_whole = true;
        for (name, sample) in samples.iter().filter(|(name, _)| !self.seen.has(name)) {
            is_whole = false;
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
    /// Reads `name(…)` by a table. `None` if the argument has no parentheses.
    pub(crate) fn of_list(arg: &Arg<'_>, rows: &'static [ArgRow<T>], session: &mut Session) -> Option<Self> {
        let mut draft = Draft::default();
        draft.read(arg.name, arg.list(session)?, rows, &[], session);
        Some(draft)
    }
}

/// Returns the lookup in a table.
pub(crate) fn find_row<T>(rows: &'static [ArgRow<T>]) -> impl Fn(&str) -> Option<&'static ArgRow<T>> {
    |name| rows.iter().find(|row| row.name == name)
}
