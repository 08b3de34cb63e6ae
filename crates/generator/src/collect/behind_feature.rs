//! Notes about kinds behind a disabled Cargo feature. The note names the feature, because a missing
//! kind is easy to overlook.

use std::collections::BTreeSet;

use rbuilder_reader::cfg::Cfg;
use rbuilder_reader::grammar::{Item, ItemKind, Items};
use rbuilder_reader::has_derive;
use rbuilder_reader::token::lex;
use rbuilder_syntax::Diagnostic;

use super::file::FileReader;
use super::path::{self, Location};
use super::{Build, attributes};
use crate::gap::words;

const KIND: &str = "CustomResource";

impl FileReader<'_, '_> {
    pub(super) fn note_kinds_behind_feature(&mut self, item: &Item<'_>, location: &Location) {
        let [written, _] = item.written;
        let conditions = &self.text[written.range()];
        if self.is_foreign || self.collector.build != Build::Asked || !conditions.contains("feature") {
            return;
        }
        let whole = attributes::whole_span(item);
        let text = &self.text[whole.range()];
        let has_kind = || match text.ends_with(';') {
            true => self.has_kinds_in_file(text, location),
            false => has_word(text, KIND),
        };
        let adds_kind = |feature: &&str| adds_kind(text, &self.cfg.with_feature(feature));
        let Some(feature) = features_in(conditions)
            .into_iter()
            .find(adds_kind)
            .filter(|_| has_kind())
        else {
            return;
        };
        let message = format!("kinds are left out here: the feature `{feature}` is off");
        let help = format!(
            "to generate their CRDs, pass `--features {feature}`, or add `features = [\"{feature}\"]` to `[package.metadata.rbuilder]` in Cargo.toml"
        );
        self.session.report(Diagnostic::note(written, message).help(help));
    }

    fn has_kinds_in_file(&self, declaration: &str, location: &Location) -> bool {
        let Some(name) = words(declaration).last() else {
            return false;
        };
        let is_file = |path: &str| self.collector.is_file(path);
        let Ok(found) = path::find_file(is_file, &location.folder, name, None) else {
            return false;
        };
        let inner = self
            .collector
            .sources
            .rust_files(&found.folder)
            .unwrap_or_default();
        let mut files = std::iter::once(found.path).chain(inner);
        files.any(|path| {
            let text = self.collector.sources.text(&path).ok().flatten();
            text.is_some_and(|text| has_word(&text, KIND))
        })
    }
}

fn adds_kind(text: &str, cfg: &Cfg) -> bool {
    let Ok(tokens) = lex(text) else { return false };
    let Ok(Some(item)) = Items::new(tokens.cursor(), Some(cfg)).read() else {
        return false;
    };
    let is_type = matches!(item.kind, ItemKind::Type(_));
    item.active && !attributes::is_test(&item.attrs) && (!is_type || has_derive(&item.attrs, KIND))
}

/// Returns e.g. `a` for `feature = "a"`.
fn features_in(conditions: &str) -> BTreeSet<&str> {
    let options = conditions.match_indices("feature");
    options
        .filter_map(|(at, word)| {
            let value = conditions[at + word.len()..].trim_start().strip_prefix('=')?;
            value.trim_start().strip_prefix('"')?.split('"').next()
        })
        .collect()
}

fn has_word(text: &str, word: &str) -> bool {
    words(text).any(|found| found == word)
}
