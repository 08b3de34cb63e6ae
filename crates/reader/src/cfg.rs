//! Conditional compilation: evaluates `cfg` and `cfg_attr`.
//!
//! rustc does this before it invokes a procedural macro. For source files that we read ourselves,
//! we have to.

use std::collections::BTreeSet;

use crate::attribute::{Attribute, Form};
use crate::token::{Cursor, lex};
use crate::{Diagnostic, Span, attribute};

/// The configuration against which `cfg(…)` is evaluated: a release build for 64-bit Linux.
#[derive(Clone, Debug, Default)]
pub struct Cfg {
    features: BTreeSet<String>,
    /// Treat every predicate as true, even `not(…)`.
    everything: bool,
}

impl Cfg {
    /// Configuration of a non-test release build for Linux with these features.
    pub fn with_features(features: impl IntoIterator<Item = String>) -> Self {
        Cfg {
            features: features.into_iter().collect(),
            everything: false,
        }
    }

    /// A configuration in which every predicate and its negation are true, to find items regardless
    /// of their conditions.
    pub fn everything() -> Self {
        Cfg {
            features: BTreeSet::new(),
            everything: true,
        }
    }

    /// Returns a copy with an additional feature.
    pub fn with_feature(&self, feature: &str) -> Self {
        let mut with = self.clone();
        with.features.insert(feature.to_owned());
        with
    }

    /// Expands `cfg_attr`. Returns false if the item is disabled.
    pub(crate) fn configure<'a>(
        &self,
        attrs: &mut Vec<Attribute<'a>>,
        conditions: &mut Conditions<'a>,
    ) -> bool {
        if !attrs.iter().any(is_condition) {
            return true;
        }
        let mut active = true;
        let written = std::mem::take(attrs);
        for attr in written {
            active &= keep(attr, attrs, self, conditions);
        }
        active
    }

    /// Evaluates a predicate such as `any(windows, feature = "a")`. Returns `None` if the predicate
    /// is malformed or depends on the build.
    pub fn evaluate(&self, predicate: &str) -> Option<bool> {
        let tokens = lex(predicate).ok()?;
        self.holds(&mut tokens.cursor()).ok()?
    }

    fn holds(&self, cursor: &mut Cursor<'_>) -> Result<Option<bool>, Diagnostic> {
        let name = cursor.any_ident().ok_or_else(|| cursor.expected("identifier"))?;
        if cursor.eat(b'=') {
            let value = attribute::read_string(*cursor);
            cursor.skip();
            return Ok(value.and_then(|value| self.option(name.text, &value)));
        }
        if let Some(mut list) = cursor.any_group() {
            let mut values = Vec::new();
            while !list.is_end() {
                values.push(self.holds(&mut list)?);
                if !list.is_end() {
                    list.expect(b',')?;
                }
            }
            return Ok(match (name.text, values.as_slice()) {
                ("all", values) => all_of(values),
                // De Morgan: `any(a, b)` is `not(all(not(a), not(b)))`.
                ("any", values) => {
                    let negated: Vec<_> = values.iter().map(|value| negate(*value)).collect();
                    negate(all_of(&negated))
                }
                ("not", [value]) => negate(*value),
                _ => None,
            });
        }
        if cursor.eat_pair(b':', b':') {
            return Err(cursor.expected("`,`"));
        }
        Ok(flag(name.text))
    }

    fn option(&self, key: &str, value: &str) -> Option<bool> {
        match key {
            "feature" => Some(self.features.contains(value)),
            "target_os" => Some(value == "linux"),
            "target_family" => Some(value == "unix"),
            "target_pointer_width" => Some(value == "64"),
            "target_endian" => Some(value == "little"),
            "panic" => Some(value == "unwind"),
            _ => None,
        }
    }
}

fn flag(name: &str) -> Option<bool> {
    match name {
        "unix" | "true" => Some(true),
        "windows" | "test" | "doc" | "doctest" | "miri" | "proc_macro" | "debug_assertions" | "docsrs"
        | "false" => Some(false),
        // Only set by development tools for their own builds.
        "clippy" | "rust_analyzer" | "fuzzing" | "tarpaulin" | "tarpaulin_include" | "coverage"
        | "coverage_nightly" => Some(false),
        _ => None,
    }
}

fn negate(value: Option<bool>) -> Option<bool> {
    value.map(|value| !value)
}

/// One false predicate makes `all(…)` false, even if others are unknown.
fn all_of(values: &[Option<bool>]) -> Option<bool> {
    if values.contains(&Some(false)) {
        return Some(false);
    }
    values.iter().all(|value| *value == Some(true)).then_some(true)
}

/// The conditions on an item and its parts, for diagnostics.
#[derive(Debug, Default)]
pub struct Conditions<'a> {
    /// Predicates that depend on the build, treated as true.
    pub undecided: Vec<Span>,
    /// All `cfg` and `cfg_attr` on fields and variants, including disabled ones.
    pub on_parts: Vec<Attribute<'a>>,
}

impl<'a> Conditions<'a> {
    pub(crate) fn add_part(&mut self, attrs: &[Attribute<'a>]) {
        let conditions = attrs.iter().filter(|attr| is_condition(attr));
        self.on_parts.extend(conditions.cloned());
    }
}

fn is_condition(attr: &Attribute<'_>) -> bool {
    attr.is("cfg") || attr.is("cfg_attr")
}

/// Adds an attribute, or the expansion of a `cfg_attr`. Returns false if the item is disabled.
fn keep<'a>(
    attr: Attribute<'a>,
    to: &mut Vec<Attribute<'a>>,
    cfg: &Cfg,
    conditions: &mut Conditions<'a>,
) -> bool {
    if attr.is("cfg") {
        return match attr.form() {
            Form::List(mut list) => ask(&mut list, cfg, conditions).unwrap_or(false),
            _ => false,
        };
    }
    if !attr.is("cfg_attr") {
        to.push(attr);
        return true;
    }
    let Form::List(mut list) = attr.form() else {
        return true;
    };
    let mut active = true;
    let start = list;
    // Malformed predicates are reported by rustc.
    let Ok(holds) = cfg.holds(&mut list) else {
        return true;
    };
    let predicate = list.span_since(start);
    let conditional = split_conditional(list, attr.span());
    // Undecidable, which only matters if the attributes do.
    if holds.is_none() && !cfg.everything {
        if !conditional.iter().any(decides) {
            return true;
        }
        conditions.undecided.push(predicate);
    }
    if holds.unwrap_or(true) || cfg.everything {
        for attr in conditional {
            active &= keep(attr, to, cfg, conditions);
        }
    }
    active
}

fn split_conditional<'a>(mut list: Cursor<'a>, span: Span) -> Vec<Attribute<'a>> {
    let mut attrs = Vec::new();
    while list.eat(b',') && !list.is_end() {
        attrs.push(Attribute::of_meta(list, span));
        while !list.is_end() && !list.is_punct(b',') {
            list.skip();
        }
    }
    attrs
}

/// Built-in attributes that don't affect our results.
const IDLE: &[&str] = &[
    "allow",
    "cold",
    "deny",
    "expect",
    "feature",
    "forbid",
    "inline",
    "must_use",
    "no_mangle",
    "non_exhaustive",
    "track_caller",
    "warn",
];

/// Tools with their own attributes, e.g. `#[rustfmt::skip]`.
const TOOLS: &[&str] = &[
    "clippy",
    "diagnostic",
    "miri",
    "rust_analyzer",
    "rustfmt",
    "verifier",
];

/// Returns true if the presence of an attribute matters. Inner attributes only matter if they are
/// conditions, because macros can't be inner attributes.
fn decides(attr: &Attribute<'_>) -> bool {
    if is_condition(attr) {
        return true;
    }
    let mut segments = attr.segments();
    let first = segments.next().unwrap_or_default();
    let is_idle = match segments.next() {
        Some(_) => TOOLS.contains(&first),
        None => IDLE.contains(&first),
    };
    !(is_idle || attr.text().starts_with("#!"))
}

fn ask(list: &mut Cursor<'_>, cfg: &Cfg, conditions: &mut Conditions<'_>) -> Result<bool, Diagnostic> {
    let start = *list;
    let holds = cfg.holds(list)?;
    if cfg.everything {
        return Ok(true);
    }
    Ok(holds.unwrap_or_else(|| {
        conditions.undecided.push(list.span_since(start));
        true
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::lex;

    fn check(predicate: &str, expected: Option<bool>) {
        let cfg = Cfg::with_features(["a".to_owned()]);
        assert_eq!(cfg.evaluate(predicate), expected, "{predicate}");
    }

    #[test]
    fn evaluates_predicates() {
        check("unix", Some(true));
        check("windows", Some(false));
        check("test", Some(false));
        check("not(tarpaulin_include)", Some(true));
        check("any(coverage, coverage_nightly, fuzzing)", Some(false));
        check("feature = \"a\"", Some(true));
        check("feature = \"b\"", Some(false));
        check("not(feature = \"b\")", Some(true));
        check("any(test, feature = \"a\")", Some(true));
        check("all(unix, feature = \"b\")", Some(false));
        check("any()", Some(false));
        check("all()", Some(true));
        check("tokio_unstable", None);
        check("any(unix, tokio_unstable)", Some(true));
        check("all(windows, tokio_unstable)", Some(false));
        check("all(unix, tokio_unstable)", None);
    }

    #[test]
    fn everything_disables_nothing() {
        let source = "#[cfg(test)] #[cfg(not(test))] #[cfg_attr(windows, a)]";
        let tokens = lex(source).expect("tokens");
        let mut attrs = Attribute::read_outer(&mut tokens.cursor()).expect("attributes");
        assert!(Cfg::everything().configure(&mut attrs, &mut Conditions::default()));
        assert!(attrs.iter().any(|attr| attr.is("a")));
    }

    fn check_attributes(source: &str, expected: Option<&[&str]>) {
        let tokens = lex(source).expect("tokens");
        let mut attrs = Attribute::read_outer(&mut tokens.cursor()).expect("attributes");
        let mut conditions = Conditions::default();
        let active = Cfg::default().configure(&mut attrs, &mut conditions);
        let left: Vec<String> = attrs
            .iter()
            .map(|attr| match attr.form() {
                Form::List(list) => format!("{}({})", attr.last_segment(), list.text()),
                _ => attr.last_segment().to_owned(),
            })
            .collect();
        assert!(conditions.undecided.is_empty(), "{source}");
        assert_eq!(
            active.then_some(left),
            expected.map(|names| names.iter().map(|&name| name.to_owned()).collect())
        );
    }

    #[test]
    fn removes_disabled_attributes() {
        check_attributes("#[cfg(windows)] #[a]", None);
        check_attributes("#[cfg(unix)] #[a] /// b", Some(&["a", "doc"]));
        check_attributes(
            "#[cfg_attr(unix, serde(rename), kube(optional))]",
            Some(&["serde(rename)", "kube(optional)"]),
        );
        check_attributes("#[cfg_attr(windows, serde(rename))] #[a]", Some(&["a"]));
        check_attributes("#[cfg_attr(unix, cfg(windows))]", None);
        check_attributes("#[cfg_attr(unix, cfg_attr(unix, a(b), c))]", Some(&["a(b)", "c"]));
    }

    #[test]
    fn undecided_conditions_on_idle_attributes_are_ignored() {
        check_attributes(
            "#[cfg_attr(kani, allow(unused), rustfmt::skip)] #[a]",
            Some(&["a"]),
        );
        check_attributes("#[cfg_attr(verus, verifier::external)]", Some(&[]));
        for source in [
            "#[cfg_attr(kani, serde(rename = \"b\"))]",
            "#[cfg_attr(kani, allow(unused), serde_with::serde_as)]",
            "#[cfg_attr(kani, cfg(windows))]",
        ] {
            let tokens = lex(source).expect("tokens");
            let mut attrs = Attribute::read_outer(&mut tokens.cursor()).expect("attributes");
            let mut conditions = Conditions::default();
            Cfg::default().configure(&mut attrs, &mut conditions);
            assert_eq!(conditions.undecided.len(), 1, "{source}");
        }
    }
}
