//! Parts of the source whose items are unknown: those behind a syntax error, those that macros or a build make, and imports
//! under a `cfg` that cannot be evaluated.
//!
//! Nothing is omitted silently, also where other kinds are written in spite of an error: a name that such a part may
//! declare is not looked for elsewhere, and a kind that it may declare a version of is not written.

use crate::place::FileId;

/// The number of a [`Gap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GapId(pub(crate) usize);

/// A part of the source whose items are unknown.
#[derive(Debug)]
pub(crate) struct Gap {
    pub(crate) file: FileId,
    pub(crate) sort: GapSort,
    /// The part as written.
    pub(crate) text: Box<str>,
    /// True if a `derive(CustomResource)` stands in it.
    pub(crate) hides_kind: bool,
    /// The error about it, which concerns whatever needs an item of it.
    pub(crate) reason: rbuilder_syntax::Diagnostic,
}

/// A sort of gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GapSort {
    /// The source behind a syntax error. Its items are as written.
    Unread,
    /// A macro, or an item that an attribute macro may change. Any name in it may be that of an item.
    Macro,
    /// A kind whose attributes could not be read. The text is that of the attributes, which have the name of the type.
    Kind,
    /// Imports, of which nobody knows whether they are compiled. The text is their names.
    Undecided,
    /// A file that a build makes. Nothing of it is known.
    Built,
}

impl Gap {
    /// A file that a build makes, with the error about it.
    pub(crate) fn of_build(file: FileId, reason: rbuilder_syntax::Diagnostic) -> Gap {
        Gap {
            file,
            sort: GapSort::Built,
            text: "".into(),
            hides_kind: false,
            reason,
        }
    }

    /// Returns true if the part may declare or import a type, a module, a function or a constant of this name.
    pub(crate) fn may_declare(&self, name: &str) -> bool {
        match self.sort {
            GapSort::Unread => declares(&self.text, name),
            GapSort::Macro | GapSort::Undecided | GapSort::Kind => has_word(&self.text, name),
            GapSort::Built => true,
        }
    }

    /// Returns true if the part may implement one of serde's traits or a schema for a type.
    pub(crate) fn may_implement_for(&self, name: &str) -> bool {
        self.sort == GapSort::Unread
            && has_word(&self.text, "impl")
            && ["Serialize", "Deserialize", "JsonSchema"]
                .iter()
                .any(|of_trait| has_word(&self.text, of_trait))
            && has_word(&self.text, name)
    }

    /// Returns true if the part mentions a kind.
    pub(crate) fn mentions(&self, kind: &str) -> bool {
        has_word(&self.text, kind)
    }
}

/// The words of a text: names, keywords and numbers, wherever they stand.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.split(move |c| !is_part(c)).filter(|word| !word.is_empty())
}

fn has_word(text: &str, name: &str) -> bool {
    words(text).any(|word| word == name)
}

/// Returns true if a keyword that begins an item stands before the name, if a `use` has it, or if kube makes the type of it:
/// `kind = "Foo"`.
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
    fn items_and_imports_are_declared() {
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
