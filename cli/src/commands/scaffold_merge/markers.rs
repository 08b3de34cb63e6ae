//! Changes to the arguments of `#[rbac(…)]` and `#[webhook(…)]`.
//!
//! Lines of a marker that both sides changed would conflict, though they changed different
//! arguments: `edit --namespaced` adds a namespace to markers whose verbs `import` has written.

use std::ops::Range;

use rbuilder_reader::grammar::Items;
use rbuilder_reader::token::lex;
use rbuilder_reader::{Attribute, Form};

use super::Followed;

/// Maximum length of arguments on one line.
const WIDTH: usize = 70;

const MARKERS: [&str; 2] = ["rbac", "webhook"];

/// Arguments that tell markers apart.
const KEYS: [&str; 4] = ["groups", "resources", "validating", "mutating"];

/// Makes the changes from `base` to `theirs` in the arguments of markers. A marker that `ours` lacks,
/// or whose changed arguments differ there, stays as it is. Returns `None` if no argument changes,
/// or if a text doesn't parse.
pub(super) fn follow((base, ours, theirs): (&str, &str, &str)) -> Option<Followed> {
    let (old, own, new) = (read(base)?, read(ours)?, read(theirs)?);
    let (mut of_base, mut of_ours) = (Vec::new(), Vec::new());
    for marker in &old {
        let only = |list: &[Marker]| {
            let mut same = list.iter().filter(|other| other.is_same(marker));
            same.next().filter(|_| same.next().is_none()).cloned()
        };
        let Some(changed) = only(&new).filter(|changed| changed.arguments != marker.arguments) else {
            continue;
        };
        if only(&old).is_none() {
            continue;
        }
        let text = &theirs[changed.range.clone()];
        of_base.push((marker.range.clone(), text.to_owned()));
        // E.g. the webhook for deletions has a marker of its own.
        for own in own.iter().filter(|own| own.is_same(marker)) {
            let edited = own.with_change(marker, &changed);
            of_ours.extend(edited.map(|edited| (own.range.clone(), edited.print())));
        }
    }
    of_ours.sort_by_key(|(range, _)| range.start);
    (!of_base.is_empty()).then(|| Followed {
        base: replace(base, of_base),
        ours: replace(ours, of_ours),
    })
}

/// Replaces parts of a text, given in order.
fn replace(text: &str, parts: Vec<(Range<usize>, String)>) -> String {
    let mut replaced = text.to_owned();
    for (range, part) in parts.into_iter().rev() {
        replaced.replace_range(range, &part);
    }
    replaced
}

#[derive(Clone)]
struct Marker {
    name: String,
    range: Range<usize>,
    /// The arguments as written.
    arguments: Vec<String>,
}

impl Marker {
    fn is_same(&self, other: &Marker) -> bool {
        let keys = |marker: &Marker| -> Vec<String> {
            let arguments = marker.arguments.iter();
            let keys = arguments.filter(|argument| KEYS.contains(&name_of(argument)));
            keys.cloned().collect()
        };
        self.name == other.name && keys(self) == keys(other)
    }

    /// The marker after the changes from `before` to `after`, or `None` if one of them is in an
    /// argument with another value here.
    fn with_change(&self, before: &Marker, after: &Marker) -> Option<Marker> {
        let mut arguments = self.arguments.clone();
        for removed in before.without(after) {
            let at = arguments.iter().position(|argument| argument == removed)?;
            let replacement = after
                .without(before)
                .find(|added| name_of(added) == name_of(removed));
            match replacement {
                Some(added) => arguments[at].clone_from(added),
                None => drop(arguments.remove(at)),
            }
        }
        for added in after.without(before) {
            // Only arguments in parentheses can occur several times.
            let is_same = |argument: &String| match added.ends_with(')') {
                true => argument == added,
                false => name_of(argument) == name_of(added),
            };
            if !arguments.iter().any(is_same) {
                arguments.push(added.clone());
            }
        }
        Some(Marker {
            arguments,
            ..self.clone()
        })
    }

    /// The arguments that another marker lacks.
    fn without<'a>(&'a self, other: &'a Marker) -> impl Iterator<Item = &'a String> {
        let own = self.arguments.iter();
        own.filter(move |argument| !other.arguments.contains(argument))
    }

    /// Prints the marker as rustfmt does.
    fn print(&self) -> String {
        let Marker { name, arguments, .. } = self;
        let line = arguments.join(", ");
        match line.len() > WIDTH || line.contains('\n') {
            true => format!("#[{name}(\n    {}\n)]", arguments.join(",\n    ")),
            false => format!("#[{name}({line})]"),
        }
    }
}

/// The name of an argument, e.g. `verbs` of `verbs = "get"`.
fn name_of(argument: &str) -> &str {
    let end = argument.find(|c: char| !c.is_alphanumeric() && c != '_');
    &argument[..end.unwrap_or(argument.len())]
}

/// Reads the markers of all items. `None` if the file doesn't parse.
fn read(text: &str) -> Option<Vec<Marker>> {
    let tokens = lex(text).ok()?;
    let mut items = Items::new(tokens.cursor(), None);
    items.read_inner_attributes().ok()?;
    let mut markers = Vec::new();
    while let Some(item) = items.read().ok()? {
        let attributes = item.attrs.iter();
        let own = attributes.filter(|attribute| MARKERS.iter().any(|name| attribute.is(name)));
        markers.extend(own.map(marker));
    }
    Some(markers)
}

fn marker(attribute: &Attribute<'_>) -> Marker {
    let mut arguments = Vec::new();
    if let Form::List(mut list) = attribute.form() {
        while !list.is_end() {
            let start = list;
            while !list.is_end() && !list.is_punct(b',') {
                list.skip();
            }
            arguments.push(start.text_of(list.span_since(start)).to_owned());
            list.eat(b',');
        }
    }
    Marker {
        name: attribute.last_segment().to_owned(),
        range: attribute.span().range(),
        arguments,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: &str = "#[webhook(validating)]\nfn a() {}\n";
    const LONG: &str =
        "#[webhook(\n    validating,\n    match_condition(\n        name = \"a\"\n    )\n)]\nfn a() {}\n";

    #[track_caller]
    fn check((base, ours, theirs): (&str, &str, &str), expected: &str) {
        let followed = follow((base, ours, theirs)).expect("an argument changes");
        assert_eq!((&*followed.base, &*followed.ours), (theirs, expected));
    }

    #[test]
    fn arguments_are_added_and_removed_beside_others() {
        let named = "#[webhook(validating, name = \"n\")]\nfn b() {}\n";
        let both = "#[webhook(\n    validating,\n    name = \"n\",\n    match_condition(\n        name = \"a\"\n    )\n)]\nfn b() {}\n";
        check((SHORT, named, LONG), both);
        check((LONG, both, SHORT), named);
        // Lists have no trailing comma, and commas in values separate nothing.
        let rule = |verbs: &str, more: &str| {
            format!(
                "#[rbac(\n    groups = \"crew.example.com\",\n    resources = \"cups\",\n    verbs = {verbs}{more}\n)]\nfn a() {{}}\n"
            )
        };
        let namespace = |name: &str| format!(",\n    namespace = \"{name}\"");
        let (base, theirs) = (
            rule("[\"a\", \"b\"]", ""),
            rule("[\"a\", \"b\"]", &namespace("n")),
        );
        let status = "#[rbac(groups = \"crew.example.com\", resources = \"cups/status\", verbs = \"get\")]\n";
        let ours = format!("{status}{}", rule("\"get;list;watch;update\"", ","));
        let expected = format!("{status}{}", rule("\"get;list;watch;update\"", &namespace("n")));
        check((&base, &ours, &theirs), &expected);
        let renamed = rule("[\"a\", \"b\"]", &namespace("m"));
        let expected = format!("{status}{}", rule("\"get;list;watch;update\"", &namespace("m")));
        let ours = format!("{status}{}", rule("\"get;list;watch;update\"", &namespace("n")));
        check((&theirs, &ours, &renamed), &expected);
    }

    #[test]
    fn every_marker_of_a_kind_follows() {
        let two = "#[webhook(validating)]\n#[webhook(validating, operations = \"delete\")]\nfn a() {}\n";
        let condition = "    match_condition(\n        name = \"a\"\n    )\n)]\n";
        let expected = format!(
            "#[webhook(\n    validating,\n{condition}#[webhook(\n    validating,\n    operations = \"delete\",\n{condition}fn a() {{}}\n"
        );
        check((SHORT, two, LONG), &expected);
        check((LONG, &expected, SHORT), two);
        let other = LONG.replace("\"a\"", "\"b\"");
        let both = LONG.replace(
            "    match",
            "    match_condition(\n        name = \"b\"\n    ),\n    match",
        );
        check((SHORT, &other, LONG), &both);
        check((LONG, &both, SHORT), &other);
    }

    #[test]
    fn marker_with_another_value_is_kept() {
        let rule = |more: &str| format!("#[rbac(groups = \"x\", resources = \"y\"{more})]\nfn a() {{}}\n");
        let (base, ours, theirs) = (rule(""), rule(", namespace = \"b\""), rule(", namespace = \"a\""));
        check((&base, &ours, &theirs), &ours);
        check((&theirs, &ours, &base), &ours);
        let none = "fn a() {}\n";
        check((SHORT, none, LONG), none);
        let mutating = SHORT.replace("validating", "mutating");
        check((SHORT, &mutating, LONG), &mutating);
    }

    #[test]
    fn nothing_changes_without_a_changed_argument() {
        assert!(follow((SHORT, LONG, SHORT)).is_none());
        assert!(follow((SHORT, SHORT, "fn a() {}\n")).is_none());
        assert!(follow((SHORT, "fn a() {", LONG)).is_none());
    }
}
