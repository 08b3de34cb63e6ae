//! Macros that define kinds: `macro_rules!` whose result contains `derive(CustomResource)`, or a
//! call of such a macro.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_reader::token::Cursor;
use rbuilder_syntax::Diagnostic;

use super::Collector;
use crate::place::FileId;

/// Macros are identified by name only: several definitions with the same name count as one.
#[derive(Debug, Default)]
pub(super) struct KindMacros {
    /// Macros that derive a kind themselves.
    direct: BTreeSet<String>,
    calls: BTreeMap<String, BTreeSet<String>>,
}

impl KindMacros {
    pub(super) fn defines_kinds(&self, name: &str) -> bool {
        self.reached_from([name])
            .iter()
            .any(|name| self.direct.contains(*name))
    }

    /// Returns all macros that `names` can expand to, including `names` themselves.
    pub(super) fn reached_from<'s>(&'s self, names: impl IntoIterator<Item = &'s str>) -> BTreeSet<&'s str> {
        let mut found = BTreeSet::new();
        let mut next: Vec<&str> = names.into_iter().collect();
        while let Some(name) = next.pop() {
            if found.insert(name) {
                next.extend(self.calls.get(name).into_iter().flatten().map(String::as_str));
            }
        }
        found
    }

    pub(super) fn add_rules(&mut self, name: &str, mut cursor: Cursor<'_>) {
        while !cursor.is_end() {
            if let Some(inner) = cursor.any_group() {
                self.add_rules(name, inner);
                continue;
            }
            let Some(ident) = cursor.any_ident() else {
                cursor.skip();
                continue;
            };
            if ident.text == "CustomResource" {
                self.direct.insert(name.to_owned());
            } else if cursor.is_punct(b'!') {
                let calls = self.calls.entry(name.to_owned()).or_default();
                calls.insert(ident.text.to_owned());
            }
        }
    }
}

/// Errors about kinds in macros.
///
/// The call is the preferred place, because that is where the user should write the struct. The
/// definition gets an error only if no call has one.
#[derive(Debug, Default)]
pub(super) struct KindErrors {
    /// Macros with a reported call, as (folder of the package, name).
    called: BTreeSet<(String, String)>,
    definitions: Vec<Definition>,
}

#[derive(Debug)]
pub(super) struct Definition {
    pub(super) folder: String,
    pub(super) name: String,
    pub(super) file: FileId,
    pub(super) error: Diagnostic,
}

impl KindErrors {
    pub(super) fn add_call(&mut self, folder: String, name: &str) {
        self.called.insert((folder, name.to_owned()));
    }

    pub(super) fn add_definition(&mut self, definition: Definition) {
        // Don't report anything yet, because calls may follow.
        self.definitions.push(definition);
    }
}

impl Collector<'_> {
    pub(super) fn report_kind_macros(&mut self) {
        let KindErrors { called, definitions } = std::mem::take(&mut self.kind_errors);
        for Definition {
            folder,
            name,
            file,
            error,
        } in definitions
        {
            let names = called.iter().filter(|(of, _)| *of == folder);
            let names = names.map(|(_, name)| name.as_str());
            let is_reported = self
                .macros
                .get(&folder)
                .is_some_and(|macros| macros.kinds().reached_from(names).contains(name.as_str()));
            if !is_reported {
                self.report.add_all(file, [error]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::macro_rules::visit_macros;

    fn names(text: &str) -> Vec<&'static str> {
        let mut macros = KindMacros::default();
        visit_macros(text, |name, rules| macros.add_rules(name, rules));
        let mut names = vec!["a", "all", "both", "kind", "other"];
        names.retain(|name| macros.defines_kinds(name));
        names
    }

    #[test]
    fn follows_macros_to_those_that_derive_kinds() {
        let kind = "macro_rules! kind { ($k:literal) => { #[derive(Clone, CustomResource)] struct S; } }";
        let outer =
            "mod m { macro_rules! both { ($k:literal) => { $crate::kind! { $k } impl A for B {} } } }";
        let outermost = "macro_rules! all { () => { both!(\"A\"); } }";
        let other = "macro_rules! other { () => { struct CustomResourceSpec; vec![kind]; } }";
        assert_eq!(names(kind), ["kind"]);
        assert_eq!(
            names(&format!("{outermost}{other}{outer}{kind}")),
            ["all", "both", "kind"]
        );
        assert_eq!(names(&format!("{outermost}{outer}")), Vec::<&str>::new());
        assert_eq!(
            names("macro_rules! a { () => { b!(); } } macro_rules! b { () => { a!(); } }"),
            Vec::<&str>::new()
        );
    }
}
