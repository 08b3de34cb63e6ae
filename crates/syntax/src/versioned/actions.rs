//! The actions on a field or variant: the versions in which it was added, changed and deprecated.

use rbuilder_reader::{Arg, ArgValue, Attribute, Expr, ExprKind, Span, TypeRef};

use super::VERSIONED;
use super::module::{ModuleVersion, list_of, text_of, unknown};
use crate::Diagnostic;

/// Versions are indexes into the module's list of versions.
#[derive(Default)]
pub(super) struct Actions<'a> {
    added: Option<usize>,
    /// The changes, earliest version first.
    changes: Vec<Change<'a>>,
    deprecated: Option<(usize, Attribute<'a>)>,
}

/// The state of an item before a version.
struct Change<'a> {
    since: usize,
    name: Option<&'a str>,
    ty: Option<TypeRef>,
}

pub(super) struct Past<'a> {
    pub(super) name: &'a str,
    /// `None` for the declared type.
    pub(super) ty: Option<TypeRef>,
    /// Carries the arguments of rustc's `#[deprecated]`.
    pub(super) deprecated: Option<Attribute<'a>>,
}

impl<'a> Actions<'a> {
    /// Reads the actions of an item, or returns `None` if there are none. `prefix` is the name
    /// prefix of deprecated items.
    ///
    /// # Errors
    ///
    /// Returns an error for everything that the macro rejects, and for unknown arguments.
    pub(super) fn read(
        attrs: &[Attribute<'a>],
        (name, at): (&str, Span),
        prefix: &str,
        version: &ModuleVersion,
    ) -> Result<Option<Self>, Diagnostic> {
        let mut found = Actions::default();
        let mut is_versioned = false;
        for attr in attrs.iter().filter(|attr| attr.is(VERSIONED)) {
            is_versioned = true;
            let args = attr.args();
            if let Some(error) = &args.malformed {
                return Err(error.clone());
            }
            for arg in &args.list {
                found.add(arg, attr, prefix, version)?;
            }
        }
        found.check_order(at)?;
        match (found.deprecated.is_some(), name.starts_with(prefix)) {
            (true, false) => {
                let message = format!("`{name}` is deprecated, and its name does not begin with `{prefix}`");
                let help =
                    format!("rename it to `{prefix}{name}`: earlier versions have it without the prefix");
                Err(Diagnostic::error(at, message).help(help))
            }
            (false, true) if is_versioned => {
                let message =
                    format!("the name of `{name}` begins with `{prefix}`, but nothing deprecates it");
                let help = "add `deprecated(since = \"…\")`, or rename it";
                Err(Diagnostic::error(at, message).help(help))
            }
            _ => Ok(is_versioned.then_some(found)),
        }
    }

    fn add(
        &mut self,
        arg: &Arg<'_>,
        attr: &Attribute<'a>,
        prefix: &str,
        version: &ModuleVersion,
    ) -> Result<(), Diagnostic> {
        match arg.name {
            "added" => {
                let since = read_since(arg, &["default"], version)?;
                refuse_second(arg, self.added.replace(since).is_some())
            }
            "deprecated" => {
                let since = read_since(arg, &["note"], version)?;
                let written = attr.argument("deprecated");
                let earlier = written.and_then(|written| self.deprecated.replace((since, written)));
                refuse_second(arg, earlier.is_some())
            }
            "changed" => {
                let change = read_change(arg, attr, prefix, version)?;
                self.changes.push(change);
                Ok(())
            }
            // Only affects conversions.
            "hint" | "nested" => Ok(()),
            _ => Err(unknown(arg, VERSIONED)),
        }
    }

    fn check_order(&self, at: Span) -> Result<(), Diagnostic> {
        let changes = self.changes.iter().map(|change| change.since);
        let deprecated = self.deprecated.as_ref().map(|(since, _)| *since);
        let all: Vec<usize> = self.added.into_iter().chain(changes).chain(deprecated).collect();
        if all.windows(2).all(|pair| pair[0] < pair[1]) {
            return Ok(());
        }
        let message = "the actions are not in the order of versions";
        let help = "an item is added, then changed, and then deprecated, each in a later version";
        Err(Diagnostic::error(at, message).help(help))
    }

    pub(super) fn at(&self, version: &ModuleVersion, name: &'a str, prefix: &str) -> Option<Past<'a>> {
        let position = version.position;
        if self.added.is_some_and(|since| since > position) {
            return None;
        }
        let mut past = Past {
            name,
            ty: None,
            deprecated: None,
        };
        match &self.deprecated {
            Some((since, written)) if *since <= position => past.deprecated = Some(written.clone()),
            // An item gets the prefix when it's deprecated; earlier versions lack it.
            Some(_) => past.name = name.trim_start_matches(prefix),
            None => {}
        }
        // Go back in time, from the latest change to the first one after this version.
        for change in self.changes.iter().rev().filter(|change| change.since > position) {
            past.name = change.name.unwrap_or(past.name);
            past.ty = change.ty.clone().or(past.ty);
        }
        Some(past)
    }
}

fn refuse_second(arg: &Arg<'_>, is_second: bool) -> Result<(), Diagnostic> {
    match is_second {
        true => Err(Diagnostic::error(
            arg.span,
            format!("duplicate argument `{}`", arg.name),
        )),
        false => Ok(()),
    }
}

/// Returns the index of the version in `since`. `others` are the other allowed arguments.
fn read_since(owner: &Arg<'_>, others: &[&str], version: &ModuleVersion) -> Result<usize, Diagnostic> {
    let mut since = None;
    for arg in list_of(owner)? {
        if arg.name == "since" {
            since = Some((text_of(arg)?, arg.value_span()));
        } else if !others.contains(&arg.name) {
            return Err(unknown(arg, owner.name));
        }
    }
    let Some((name, at)) = since else {
        let message = format!("missing argument `since` of `{}`", owner.name);
        return Err(Diagnostic::error(owner.span, message).help("add `since = \"…\"`"));
    };
    let names = version.all_names();
    names.iter().position(|known| known == name).ok_or_else(|| {
        let message = format!("the module has no version `{name}`");
        Diagnostic::error(at, message).help(format!("its versions are {}", names.join(", ")))
    })
}

fn read_change<'a>(
    owner: &Arg<'_>,
    attr: &Attribute<'a>,
    prefix: &str,
    version: &ModuleVersion,
) -> Result<Change<'a>, Diagnostic> {
    let others = ["from_name", "from_type", "upgrade_with", "downgrade_with"];
    let mut change = Change {
        since: read_since(owner, &others, version)?,
        name: None,
        ty: None,
    };
    for arg in list_of(owner)? {
        match arg.name {
            "from_name" => change.name = Some(read_name(arg, attr, prefix)?),
            "from_type" => change.ty = Some(read_type(arg)?),
            _ => {}
        }
    }
    if change.name.is_none() && change.ty.is_none() {
        let message = "`changed` has neither `from_name` nor `from_type`";
        let help = "add the name or the type that earlier versions have, or remove it";
        return Err(Diagnostic::error(owner.span, message).help(help));
    }
    Ok(change)
}

/// Returns a slice of the source, which lives long enough to replace an identifier.
fn read_name<'a>(arg: &Arg<'_>, attr: &Attribute<'a>, prefix: &str) -> Result<&'a str, Diagnostic> {
    let value = text_of(arg)?;
    let span = arg.value_span();
    if value.starts_with(prefix) {
        let message = format!("an earlier name must not begin with `{prefix}`, found `{value}`");
        return Err(Diagnostic::error(span, message));
    }
    let start = (span.start - attr.span().start) as usize;
    let literal = attr.text().get(start..start + span.range().len());
    let name = literal.and_then(|literal| {
        let quote = literal.find('"')?;
        literal.get(quote + 1..quote + 1 + value.len())
    });
    name.filter(|name| *name == value && !name.is_empty())
        .ok_or_else(|| {
            let help = "write the name in quotes, without escapes";
            Diagnostic::error(span, "expected the earlier name").help(help)
        })
}

fn read_type(arg: &Arg<'_>) -> Result<TypeRef, Diagnostic> {
    let span = arg.value_span();
    let text = match &arg.value {
        ArgValue::Expr(expr) => path_of(expr),
        _ => Some(text_of(arg)?.to_owned()),
    };
    text.and_then(|text| TypeRef::parse(&text, span)).ok_or_else(|| {
        let help = "write it in quotes: `from_type = \"Vec<u8>\"`";
        Diagnostic::error(span, "expected the earlier type").help(help)
    })
}

fn path_of(expr: &Expr<'_>) -> Option<String> {
    match &expr.kind {
        ExprKind::Path(names) => Some(names.join("::")),
        _ => None,
    }
}
