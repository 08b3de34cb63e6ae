//! Derives the source of a new version of a kind from the preceding version, as if the file were
//! copied and the version in it replaced.

use std::collections::BTreeSet;
use std::ops::Range;

use proc_macro2::{TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprLit, Item, Lit, Meta, Token};

/// A kind's definition in one version: its source, and the arguments of its `#[kube(…)]`.
#[derive(Debug)]
pub struct Definition<'a> {
    text: &'a str,
    arguments: Vec<Argument>,
}

#[derive(Debug)]
struct Argument {
    name: String,
    place: Range<usize>,
    /// The value of a string literal.
    string: Option<String>,
    /// The value of a boolean; an argument without a value is `true`.
    flag: Option<bool>,
    value: Option<Range<usize>>,
    /// End of the preceding argument in the same attribute.
    previous: Option<usize>,
    /// Start of the following argument in the same attribute.
    next: Option<usize>,
}

impl Argument {
    /// Range to remove with the argument: up to the comma after it, or from the comma before it for
    /// the last argument.
    fn place_with_comma(&self) -> Range<usize> {
        match (self.next, self.previous) {
            (Some(next), _) => self.place.start..next,
            (None, Some(previous)) => previous..self.place.end,
            (None, None) => self.place.clone(),
        }
    }
}

impl<'a> Definition<'a> {
    /// Finds the top-level definition of `kind` in `version`.
    ///
    /// # Errors
    /// Fails with the reason if the file does not parse, or if it does not define exactly this kind
    /// once.
    pub fn find(text: &'a str, kind: &str, version: &str) -> Result<Definition<'a>, String> {
        // The parser strips both, which would shift its positions.
        if text.starts_with('\u{feff}') || (text.starts_with("#!") && !text.starts_with("#![")) {
            return Err("it begins with a byte order mark or a `#!` line".into());
        }
        let file = super::rust::parse_file(text)?;
        let mut found = Vec::new();
        for attrs in file.items.iter().filter_map(attributes_of_type) {
            let arguments = kube_arguments(attrs)?;
            if arguments.iter().any(|argument| argument.name == "kind") {
                found.push(arguments);
            }
        }
        let mut found = found.into_iter();
        let (Some(arguments), None) = (found.next(), found.next()) else {
            return Err("it does not define exactly one kind".into());
        };
        let definition = Definition { text, arguments };
        if definition.string("kind") != Some(kind) || definition.string("version") != Some(version) {
            return Err(format!("it does not define `{kind}` in version `{version}`"));
        }
        Ok(definition)
    }

    /// The plural, if it is specified.
    pub fn plural(&self) -> Option<&str> {
        self.string("plural")
    }

    /// Whether the kind is namespaced.
    pub fn is_namespaced(&self) -> bool {
        self.argument("namespaced")
            .is_some_and(|argument| argument.flag != Some(false))
    }

    /// Source of the arguments that all versions of a kind must share, apart from plural and scope.
    pub fn names(&self) -> Vec<String> {
        const NAMES: [&str; 3] = ["singular", "shortname", "category"];
        let arguments = self.arguments.iter();
        let named = arguments.filter(|argument| NAMES.contains(&argument.name.as_str()));
        named
            .map(|argument| self.text[argument.place.clone()].to_owned())
            .collect()
    }

    /// Returns the source for another version. The copy is served, and neither the storage version
    /// nor deprecated. Everything else stays the same.
    ///
    /// # Errors
    /// Fails with the reason if a part of the file would change its meaning in the copy, or would
    /// conflict with the original.
    pub fn copy(&self, version: &str) -> Result<String, String> {
        let (kind, from) = (self.kind(), self.string("version").unwrap_or_default());
        let file = super::rust::parse_file(self.text)?;
        check_copyable(self.text, &file, kind)?;
        let mut changes = self.changes(version);
        changes.extend(conversion_marker(self.text, &file));
        changes.extend(version_in_heading(self.text, from, version));
        // Apply the last change first, so that the other ranges stay valid.
        changes.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
        let mut copy = self.text.to_owned();
        for (place, text) in changes {
            copy.replace_range(place, &text);
        }
        // So far this was text editing, so parse the result and check what it says.
        let made = Definition::find(&copy, kind, version)?;
        let stored = made.argument("storage").and_then(|argument| argument.flag);
        if stored != Some(false) {
            return Err("its `#[kube(…)]` has an unsupported form".into());
        }
        Ok(copy)
    }

    /// Whether this is the storage version, which is the default.
    pub fn is_stored(&self) -> bool {
        self.argument("storage")
            .is_none_or(|argument| argument.flag != Some(false))
    }

    /// Sets or unsets this version as the storage version by editing the `storage` argument.
    /// Returns `None` if nothing changes.
    ///
    /// # Errors
    /// Fails with the reason if `#[kube(…)]` has an unsupported form.
    pub fn with_storage(&self, is_stored: bool) -> Result<Option<String>, String> {
        let argument = self.argument("storage");
        let before = argument.map_or(Some(true), |argument| argument.flag);
        if before == Some(is_stored) {
            return Ok(None);
        }
        let change = match argument {
            Some(argument) if is_stored => Some((argument.place_with_comma(), String::new())),
            Some(argument) => Some((argument.place.clone(), "storage = false".to_owned())),
            None => self.storage(),
        };
        let unusual = || "its `#[kube(…)]` has an unsupported form".to_owned();
        let (place, with) = change.ok_or_else(unusual)?;
        let mut text = self.text.to_owned();
        text.replace_range(place, &with);
        let (kind, version) = (self.kind(), self.string("version").unwrap_or_default());
        let made = Definition::find(&text, kind, version)?;
        let stored = made
            .argument("storage")
            .map_or(Some(true), |argument| argument.flag);
        if stored != Some(is_stored) {
            return Err(unusual());
        }
        Ok(Some(text))
    }

    fn changes(&self, version: &str) -> Vec<(Range<usize>, String)> {
        let mut changes = Vec::new();
        for argument in &self.arguments {
            match (argument.name.as_str(), &argument.value) {
                ("version", Some(value)) => changes.push((value.clone(), format!("{version:?}"))),
                ("storage", _) => changes.push((argument.place.clone(), "storage = false".to_owned())),
                _ => {}
            }
        }
        changes.extend(self.removals().into_iter().map(|place| (place, String::new())));
        if self.argument("storage").is_none() {
            changes.extend(self.storage());
        }
        changes
    }

    /// Ranges of the arguments that deprecate a version, each with a comma; the new version isn't
    /// deprecated.
    fn removals(&self) -> Vec<Range<usize>> {
        let is_removed = |argument: &&Argument| matches!(&*argument.name, "served" | "deprecated");
        let mut removals = Vec::new();
        for argument in self.arguments.iter().filter(is_removed) {
            let place = argument.place_with_comma();
            match removals.last_mut() {
                // At the end of the list, remove the comma before the first argument instead of the
                // one between the two.
                Some(Range { start, end }) if *end > place.start => {
                    let before = self.text[..*start].trim_end();
                    let before = before.strip_suffix(',').unwrap_or(before);
                    (*start, *end) = (before.len(), place.end);
                }
                _ => removals.push(place),
            }
        }
        removals
    }

    /// Inserts `storage = false` before the status, where `create api` writes it, or at the end if
    /// there is no status.
    fn storage(&self) -> Option<(Range<usize>, String)> {
        if let Some(status) = self.argument("status") {
            let at = status.place.start;
            return Some((at..at, format!("storage = false,{}", self.gap_before(at))));
        }
        let last = self.arguments.last()?;
        let at = last.place.end;
        let gap = self.gap_before(last.place.start);
        Some((at..at, format!(",{gap}storage = false")))
    }

    /// Whitespace before an argument: a newline with indentation, or a space.
    fn gap_before(&self, at: usize) -> String {
        let line = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        let indent = &self.text[line..at];
        if !indent.trim().is_empty() {
            return " ".into();
        }
        let end = if self.text[..line].ends_with("\r\n") {
            "\r\n"
        } else {
            "\n"
        };
        format!("{end}{indent}")
    }

    fn kind(&self) -> &str {
        self.string("kind").unwrap_or_default()
    }

    fn argument(&self, name: &str) -> Option<&Argument> {
        self.arguments.iter().find(|argument| argument.name == name)
    }

    fn string(&self, name: &str) -> Option<&str> {
        self.argument(name)?.string.as_deref()
    }
}

/// Returns a sample for another version, and the name of its object. The version is appended to the
/// name, since two samples with the same name would be the same object in different versions.
///
/// # Errors
/// Fails with the reason if the file is not a single object of the kind in version `from`.
pub fn copy_sample(text: &str, kind: &str, from: &str, to: &str) -> Result<(String, String), String> {
    let object: serde_json::Value =
        rbuilder_yaml::parse(text).map_err(|_| "it is not a single YAML document".to_owned())?;
    let name = object["metadata"]["name"].as_str();
    let (Some(name), true) = (name, object["kind"] == kind && object["apiVersion"] == from) else {
        return Err(format!("it is not a named `{kind}` in {from}"));
    };
    let is_version = |line: &&str| {
        let value = line.strip_prefix("apiVersion:").map(str::trim);
        value.is_some_and(|value| value.trim_matches(['"', '\'']) == from)
    };
    let mut lines = text.lines().filter(is_version);
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Err("its `apiVersion` is not on a line of its own".into());
    };
    let copy = text.replacen(line, &line.replace(from, to), 1);
    let renamed = versioned_name(name, from, to);
    Ok((rename_object(&copy, name, &renamed)?, renamed))
}

/// Replaces the version suffix in an object's name. `from` and `to` are of the form `group/v1`.
fn versioned_name(name: &str, from: &str, to: &str) -> String {
    let version = |api_version: &str| api_version.rsplit('/').next().unwrap_or_default().to_owned();
    let base = name.strip_suffix(&format!("-{}", version(from)));
    format!("{}-{}", base.unwrap_or(name), version(to))
}

/// Replaces `metadata.name`, which must be on a line of its own.
fn rename_object(text: &str, name: &str, new: &str) -> Result<String, String> {
    let unusual = || "its `metadata.name` is not on a line of its own".to_owned();
    let mut lines = text
        .lines()
        .skip_while(|line| line.trim_end() != "metadata:")
        .skip(1);
    let is_name = |line: &&str| {
        let value = line.trim_start().strip_prefix("name:").map(str::trim);
        value.is_some_and(|value| value.trim_matches(['"', '\'']) == name)
    };
    let mut inside = lines.by_ref().take_while(|line| line.starts_with([' ', '#']));
    let line = inside.find(is_name).ok_or_else(unusual)?;
    // `line` is a slice of `text`, so this is its offset.
    let at = line.as_ptr() as usize - text.as_ptr() as usize;
    let place = at + line.rfind(name).ok_or_else(unusual)?;
    let mut renamed = text.to_owned();
    renamed.replace_range(place..place + name.len(), new);
    let object = |text: &str| rbuilder_yaml::parse::<serde_json::Value>(text).unwrap_or_default();
    let mut expected = object(text);
    expected["metadata"]["name"] = new.into();
    // Make sure that only the name was replaced.
    if object(&renamed) == expected {
        Ok(renamed)
    } else {
        Err(unusual())
    }
}

fn attributes_of_type(item: &Item) -> Option<&[Attribute]> {
    match item {
        Item::Struct(item) => Some(&item.attrs),
        Item::Enum(item) => Some(&item.attrs),
        _ => None,
    }
}

fn kube_arguments(attrs: &[Attribute]) -> Result<Vec<Argument>, String> {
    let mut arguments = Vec::new();
    for attribute in attrs.iter().filter(|attribute| attribute.path().is_ident("kube")) {
        let list = attribute
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .map_err(|error| format!("its `#[kube(…)]` cannot be parsed: {error}"))?;
        let places: Vec<Range<usize>> = list.iter().map(|meta| meta.span().byte_range()).collect();
        for (at, meta) in list.iter().enumerate() {
            arguments.push(Argument {
                place: places[at].clone(),
                previous: at.checked_sub(1).map(|at| places[at].end),
                next: places.get(at + 1).map(|place| place.start),
                ..argument(meta)
            });
        }
    }
    Ok(arguments)
}

fn argument(meta: &Meta) -> Argument {
    let literal = match meta {
        Meta::NameValue(pair) => Some(&pair.value),
        _ => None,
    };
    let (mut string, mut flag) = (None, None);
    match literal {
        Some(Expr::Lit(ExprLit {
            lit: Lit::Str(text), ..
        })) => string = Some(text.value()),
        Some(Expr::Lit(ExprLit {
            lit: Lit::Bool(set), ..
        })) => flag = Some(set.value()),
        Some(_) => {}
        None => flag = Some(true),
    }
    Argument {
        name: meta
            .path()
            .get_ident()
            .map(ToString::to_string)
            .unwrap_or_default(),
        place: 0..0,
        string,
        flag,
        value: literal.map(|value| value.span().byte_range()),
        previous: None,
        next: None,
    }
}

/// Checks that the file keeps its meaning when copied to another version, and that nothing in it
/// would conflict with the original.
fn check_copyable(text: &str, file: &syn::File, kind: &str) -> Result<(), String> {
    let mut own: BTreeSet<String> = file.items.iter().filter_map(name_of_type).collect();
    own.insert(kind.to_owned());
    for item in &file.items {
        match item {
            Item::Mod(module) if module.content.is_none() => {
                return Err(format!("it has a module `{}` in a file of its own", module.ident));
            }
            Item::Macro(call) if call.mac.path.is_ident("include") => {
                return Err("it includes another file".into());
            }
            Item::Impl(block) => {
                let head = item.span().byte_range().start..block.brace_token.span.open().byte_range().start;
                if !names_any(tokens(text, head), &own) {
                    return Err("it has an `impl` for a type that it does not define".into());
                }
            }
            Item::Fn(function) if function.attrs.iter().any(is_webhook) => {
                return Err(format!("it has the webhook handler `{}`", function.sig.ident));
            }
            _ => {}
        }
        if climbs(tokens(text, item.span().byte_range()), 0) {
            return Err("it refers to its parent module with `super::`".into());
        }
    }
    Ok(())
}

fn name_of_type(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Struct(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

fn is_webhook(attribute: &Attribute) -> bool {
    let last = attribute.path().segments.last();
    last.is_some_and(|last| last.ident == "webhook")
}

fn tokens(text: &str, place: Range<usize>) -> TokenStream {
    text[place].parse().unwrap_or_default()
}

fn names_any(tokens: TokenStream, names: &BTreeSet<String>) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => names.contains(&ident.to_string()),
        TokenTree::Group(group) => names_any(group.stream(), names),
        _ => false,
    })
}

/// Whether a path has more `super`s than enclosing modules, i.e. leaves the file.
fn climbs(tokens: TokenStream, depth: usize) -> bool {
    let mut steps = 0;
    let mut in_module = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                if climbs(group.stream(), depth + usize::from(in_module)) {
                    return true;
                }
                (steps, in_module) = (0, false);
            }
            TokenTree::Ident(ident) if ident == "super" => steps += 1,
            TokenTree::Ident(ident) => (steps, in_module) = (0, in_module || ident == "mod"),
            TokenTree::Punct(punct) if punct.as_char() == ':' => {
                if steps > depth {
                    return true;
                }
            }
            TokenTree::Literal(literal) => {
                // Strings in serde attributes may be paths as well.
                let text = literal.to_string();
                if text.starts_with("\"super::") && text.matches("super::").count() > depth {
                    return true;
                }
            }
            TokenTree::Punct(_) => (steps, in_module) = (0, false),
        }
    }
    false
}

/// Removes the line of a bare `#[crd(conversion)]`, which only one version of a kind may have.
fn conversion_marker(text: &str, file: &syn::File) -> Vec<(Range<usize>, String)> {
    let attributes = file.items.iter().filter_map(attributes_of_type).flatten();
    let bare = attributes.filter(|attribute| {
        attribute.path().is_ident("crd")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|argument| argument == "conversion")
    });
    bare.map(|attribute| {
        let place = attribute.span().byte_range();
        let line = text[..place.start].rfind('\n').map_or(0, |end| end + 1);
        let end = text[place.end..]
            .find('\n')
            .map_or(text.len(), |end| place.end + end + 1);
        let alone = text[line..place.start].trim().is_empty() && text[place.end..end].trim().is_empty();
        (if alone { line..end } else { place }, String::new())
    })
    .collect()
}

/// Edits the version in the module documentation, e.g. in `//! The Cup API in version v1 of …`.
fn version_in_heading(text: &str, from: &str, to: &str) -> Vec<(Range<usize>, String)> {
    let named = format!("version {from} ");
    let mut changes = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("//!")
            && let Some(at) = line.find(&named)
        {
            let at = start + at + "version ".len();
            changes.push((at..at + from.len(), to.to_owned()));
        }
        start += line.len();
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = r#"//! The Cup API in version v1 of the cache.example.com group.

use serde::Serialize;

#[derive(CustomResource)]
#[kube(
    group = "cache.example.com",
    version = "v1",
    kind = "Cup",
    plural = "cups",
    shortname = "cp",
    category = "all",
    namespaced,
    served = true,
    status = "CupStatus",
    deprecated = "use v2",
)]
#[crd(conversion)]
#[crd(annotation("a", "b"))]
struct CupSpec {
    /// Since version v1 of the API.
    size: i32,
}

impl From<i32> for Cup {}

#[cfg(test)]
mod tests {
    use super::*;
}
"#;

    fn copy(text: &str) -> Result<String, String> {
        Definition::find(text, "Cup", "v1").and_then(|found| found.copy("v2"))
    }

    #[test]
    fn copy_changes_only_version_specific_parts() {
        let expected = V1
            .replacen("version v1 of", "version v2 of", 1)
            .replace("\"v1\"", "\"v2\"")
            .replace(
                "    served = true,\n    status",
                "    storage = false,\n    status",
            )
            .replace(
                "\"CupStatus\",\n    deprecated = \"use v2\",\n",
                "\"CupStatus\",\n",
            )
            .replace("#[crd(conversion)]\n", "");
        assert_eq!(copy(V1).as_deref(), Ok(&*expected));
        let windows = V1.replace('\n', "\r\n");
        assert_eq!(copy(&windows), Ok(expected.replace('\n', "\r\n")));
    }

    #[test]
    fn with_storage_handles_every_notation() {
        let check = |arguments: &str, expected: &str| {
            let item = |arguments: &str, version: &str| {
                format!("#[kube(version = {version:?}, kind = \"Cup\"{arguments})]\nstruct CupSpec {{}}\n")
            };
            let copy = copy(&item(arguments, "v1"));
            assert_eq!(copy, Ok(item(expected, "v2")), "{arguments}");
        };
        check("", ", storage = false");
        check(", storage", ", storage = false");
        check(", storage = true, namespaced", ", storage = false, namespaced");
        check(", storage = false", ", storage = false");
        check(", status = \"S\"", ", storage = false, status = \"S\"");
        check(", deprecated", ", storage = false");
        check(", served = false, deprecated", ", storage = false");
        check(
            ", namespaced, deprecated, served",
            ", namespaced, storage = false",
        );
        check(
            ", served = false, status = \"S\", deprecated = \"x\"",
            ", storage = false, status = \"S\"",
        );
    }

    #[test]
    fn finds_names_that_versions_share() {
        let found = Definition::find(V1, "Cup", "v1").expect("it is there");
        assert_eq!(found.names(), ["shortname = \"cp\"", "category = \"all\""]);
        assert_eq!(found.plural(), Some("cups"));
        assert!(found.is_namespaced());
    }

    #[test]
    fn rejects_parts_that_would_change_their_meaning() {
        for (line, reason) in [
            ("use super::Mug;", "`super::`"),
            ("mod more;", "a file of its own"),
            ("include!(\"x.rs\");", "includes"),
            ("impl From<u8> for Mug {}", "`impl`"),
            (
                "#[rbuilder::webhook(mutating)] fn default(cup: &mut Cup) {}",
                "`default`",
            ),
            ("struct A { #[serde(default = \"super::f\")] a: u8 }", "`super::`"),
            ("mod inner { use super::super::Mug; }", "`super::`"),
            ("#[kube(kind = \"Mug\")] struct MugSpec;", "exactly one kind"),
        ] {
            let error = copy(&format!("{V1}{line}\n")).expect_err(line);
            assert!(error.contains(reason), "{line}: {error}");
        }
        for (text, reason) in [
            (V1.replace("\"Cup\"", "\"Mug\""), "`Cup` in version `v1`"),
            (V1.replace("#[kube(", "#[kube(1"), "cannot be parsed"),
            (format!("{V1}}}"), "does not parse"),
            (format!("\u{feff}{V1}"), "byte order mark"),
            (String::new(), "exactly one kind"),
        ] {
            let error = copy(&text).expect_err(reason);
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn copied_sample_has_the_new_version() {
        let sample = "apiVersion: a.io/v1\nkind: Cup\nmetadata:\n  name: mine\nspec:\n  # Kept.\n  size: 3\n";
        let copied = copy_sample(sample, "Cup", "a.io/v1", "a.io/v2");
        let expected = sample
            .replace("a.io/v1", "a.io/v2")
            .replace("name: mine", "name: mine-v2");
        assert_eq!(copied, Ok((expected, "mine-v2".to_owned())));
        for other in [
            sample.replace("Cup", "Mug"),
            sample.replace("  name: mine\n", "  labels: {}\n"),
            format!("{sample}---\n{sample}"),
            format!("{{{sample}"),
        ] {
            assert!(
                copy_sample(&other, "Cup", "a.io/v1", "a.io/v2").is_err(),
                "{other}"
            );
        }
    }
}
