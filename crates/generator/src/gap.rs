//! Parts of the source whose items aren't known: text after a syntax error, macros, files that a
//! build generates, and imports under a `cfg` that can't be evaluated.
//!
//! Other kinds are generated despite an error, but nothing is left out silently. A name that a gap
//! may declare isn't looked up elsewhere, and a kind isn't generated if a gap may declare one of
//! its versions.

use crate::place::FileId;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GapId(pub(crate) usize);

#[derive(Debug)]
pub(crate) struct Gap {
    pub(crate) file: FileId,
    pub(crate) sort: GapSort,
    pub(crate) text: Box<str>,
    pub(crate) hides_kind: bool,
    /// Reported for everything that needs an item of this gap.
    pub(crate) reason: rbuilder_syntax::Diagnostic,
}

/// Why the items aren't known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GapSort {
    /// Text after a syntax error. The names of items in it are still reliable.
    Unread,
    /// A macro call, or an item that an attribute macro may change. Any word in it may be the name
    /// of an item.
    Macro,
    /// A kind with unparsable attributes. `text` has all of them, including the name of the type.
    Kind,
    /// Imports under a `cfg` that can't be evaluated. `text` has the imported names.
    Undecided,
    /// A file that a build generates, about which nothing is known.
    Built,
}

impl Gap {
    pub(crate) fn of_build(file: FileId, reason: rbuilder_syntax::Diagnostic) -> Gap {
        Gap {
            file,
            sort: GapSort::Built,
            text: "".into(),
            hides_kind: false,
            reason,
        }
    }

    pub(crate) fn may_declare(&self, name: &str) -> bool {
        match self.sort {
            GapSort::Unread => declares(&self.text, name),
            GapSort::Macro | GapSort::Undecided | GapSort::Kind => has_word(&self.text, name),
            GapSort::Built => true,
        }
    }

    pub(crate) fn may_implement_for(&self, name: &str) -> bool {
        self.sort == GapSort::Unread
            && has_word(&self.text, "impl")
            && ["Serialize", "Deserialize", "JsonSchema"]
                .iter()
                .any(|of_trait| has_word(&self.text, of_trait))
            && has_word(&self.text, name)
    }

    pub(crate) fn mentions(&self, kind: &str) -> bool {
        has_word(&self.text, kind)
    }
}

/// Splits a text into names, keywords and numbers.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.split(move |c| !is_part(c)).filter(|word| !word.is_empty())
}

fn has_word(text: &str, name: &str) -> bool {
    words(text).any(|word| word == name)
}

/// Returns true if the name is in a `use`, after a keyword, or the name of a type that kube
/// generates (`kind = "Foo"`).
fn declares(text: &str, name: &str) -> bool {
    const KEYWORDS: [&str; 10] = [
        "struct", "enum", "union", "type", "trait", "mod", "fn", "const", "static", "kind",
    ];
    let mut before = "";
    for word in words(text) {
        if word == name && KEYWORDS.contains(&before) {
            return true;
        }
        before = word;
    }
    text.split(';')
        .filter_map(|statement| statement.split_once("use ").map(|(_, tree)| tree))
        .any(|tree| has_word(tree, name) || tree.contains('*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_declared_and_imported_names() {
        let text = "pub struct Foo { bar: Bar }\nuse a::{Baz as Qux, b};\nfn make() -> Quux { todo!() ";
        for (name, expected) in [
            ("Foo", true),
            ("Bar", false),
            ("Qux", true),
            ("b", true),
            ("make", true),
            ("Quux", false),
        ] {
            assert_eq!(declares(text, name), expected, "{name}");
        }
        assert!(declares("use a::*; )", "Anything"));
        assert!(declares("#[kube(kind = \"Foo\")] struct FooSpec ", "Foo"));
    }
}
