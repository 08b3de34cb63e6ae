//! Derives that a file imports under another name, as in `use kube::CustomResource as Resource;`.
//!
//! Derives are recognized by name, so an item with a renamed derive gets a second derive attribute
//! with the real name.

use std::sync::OnceLock;

use rbuilder_reader::token::{Cursor, Tokens, lex};
use rbuilder_reader::{Attribute, read_derives};
use rbuilder_syntax::Diagnostic;

use super::Collector;
use crate::gap::words;
use crate::place::FileId;
use crate::sources::is_in_file;

/// One attribute for each derive that is recognized under another name.
const ATTRIBUTES: &str = "
    #[derive(CustomResource)] #[derive(CrdSchema)]
    #[derive(JsonSchema)] #[derive(KubeSchema)] #[derive(CELSchema)] #[derive(JsonSchema_repr)]
    #[derive(Serialize)] #[derive(Deserialize)] #[derive(Serialize_repr)] #[derive(Deserialize_repr)]
";

fn all_attributes<'a>() -> Vec<Attribute<'a>> {
    static TOKENS: OnceLock<Option<Tokens<'static>>> = OnceLock::new();
    let Some(tokens) = TOKENS.get_or_init(|| lex(ATTRIBUTES).ok()) else {
        return Vec::new();
    };
    let mut cursor: Cursor<'a> = tokens.cursor();
    Attribute::read_outer(&mut cursor).unwrap_or_default()
}

fn derive_of<'a>(attr: &Attribute<'a>) -> Option<&'a str> {
    let paths = read_derives(std::slice::from_ref(attr));
    paths.first()?.last().copied()
}

#[derive(Clone, Debug, Default)]
pub(super) struct RenamedDerives {
    /// (name in the file, real name).
    list: Vec<(String, &'static str)>,
}

impl RenamedDerives {
    pub(super) fn find(tokens: &Tokens<'_>) -> Self {
        let mut found = RenamedDerives::default();
        // Most files rename nothing; don't look at each of their tokens.
        if is_in_file(" as ", tokens.text()) {
            let derives: Vec<_> = all_attributes().iter().filter_map(derive_of).collect();
            found.add_from(tokens.cursor(), &derives);
        }
        found
    }

    fn add_from(&mut self, mut cursor: Cursor<'_>, derives: &[&'static str]) {
        while !cursor.is_end() {
            if let Some(inner) = cursor.any_group() {
                self.add_from(inner, derives);
                continue;
            }
            let derive = derives.iter().find(|name| cursor.is_word(name));
            cursor.skip();
            if let Some(name) = derive
                && cursor.eat_word("as")
                && let Some(alias) = cursor.any_ident().filter(|alias| alias.text != "_")
            {
                self.list.push((alias.text.to_owned(), name));
            }
        }
    }

    /// The imports of a file also apply to the parts of it that are read separately.
    pub(super) fn extend(&mut self, around: &RenamedDerives) {
        self.list.extend(around.list.iter().cloned());
    }

    pub(super) fn add_to<'a>(&self, attrs: &mut Vec<Attribute<'a>>) {
        if self.list.is_empty() {
            return;
        }
        let paths = read_derives(attrs);
        let is_derived = |alias: &str| paths.iter().any(|path| path.as_slice() == [alias]);
        let derived: Vec<_> = self.list.iter().filter(|(alias, _)| is_derived(alias)).collect();
        let is_real = |name: &str| derived.iter().any(|(_, real)| *real == name);
        attrs.extend(
            all_attributes()
                .into_iter()
                .filter(|attr| derive_of(attr).is_some_and(is_real)),
        );
    }

    pub(super) fn hide_kind_in(&self, text: &str) -> bool {
        let mut kinds = self.list.iter().filter(|(_, name)| *name == "CustomResource");
        kinds.any(|(alias, _)| words(text).any(|word| word == alias))
    }
}

/// A file that renames a derive. Other files may import the new name from there.
pub(super) struct RenamedImport {
    pub(super) file: FileId,
    pub(super) path: String,
    pub(super) alias: String,
    pub(super) reason: Diagnostic,
}

impl Collector<'_> {
    /// Reports renamed derives that another file of this run seems to use: they aren't recognized
    /// there.
    pub(super) fn report_renamed(&mut self) {
        for import in std::mem::take(&mut self.renamed) {
            let others = self.seen.iter().filter(|path| **path != import.path);
            let mut texts = others.filter_map(|path| self.sources.text(path).ok().flatten());
            if texts.any(|text| derives(&text, &import.alias)) {
                self.report.add_all(import.file, [import.reason]);
            }
        }
    }
}

/// Ignores derives of this name if the file itself renames something to `alias`.
fn derives(text: &str, alias: &str) -> bool {
    let lists = text.split("derive(").skip(1);
    let mut lists = lists.filter_map(|rest| rest.split(')').next());
    lists.any(|list| words(list).any(|word| word == alias)) && !text.contains(&format!(" as {alias}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rbuilder_reader::has_derive;

    #[test]
    fn renamed_derives_get_their_real_names() {
        for (text, expected) in [
            (
                "use kube::CustomResource as CR;\n#[derive(Clone, CR)] struct S;",
                "CustomResource",
            ),
            (
                "#[derive(R)] struct S;\nuse k::{a, JsonSchema_repr as R};",
                "JsonSchema_repr",
            ),
            (
                "mod m { use kube::CustomResource as CR; }\n#[derive(Clone)] struct S;",
                "",
            ),
            ("use kube::CustomResource as _;\n#[derive(Clone)] struct S;", ""),
            ("use other::Thing as CR;\n#[derive(CR)] struct S;", ""),
        ] {
            let tokens = lex(text).expect("tokens");
            let at = text.find("#[").unwrap_or_default();
            let item = lex(&text[at..]).expect("tokens");
            let mut attrs = Attribute::read_outer(&mut item.cursor()).expect("attributes");
            RenamedDerives::find(&tokens).add_to(&mut attrs);
            let added: Vec<&str> = all_attributes().iter().filter_map(derive_of).collect();
            let found: Vec<&str> = added
                .into_iter()
                .filter(|name| has_derive(&attrs, name))
                .collect();
            assert_eq!(found.join(" "), expected, "{text}");
        }
    }
}
