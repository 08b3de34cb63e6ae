//! Finds all markers in the source, even those that a run does not read.
//!
//! A manifest can lose an entry by mistake, e.g. because of a missing `mod` line, a disabled
//! feature, or a package that is no longer listed. Before removing anything, the command therefore
//! searches all available source for the marker. This is slower than a run, so it's done only if
//! something would be removed.

use std::collections::BTreeSet;
use std::sync::Arc;

use rbuilder_reader::cfg::Cfg;
use rbuilder_reader::grammar::{Function, Implementation, ItemKind, Items};
use rbuilder_reader::token::{Cursor, Mark, Tokens};
use rbuilder_reader::{Attribute, Span, TypeKind, TypeRef, has_derive};
use rbuilder_syntax::{
    MarkKind, Session, lex_file, parse_rbac_attribute, parse_type, parse_webhook_attribute, rbac_attributes,
    webhook_attributes,
};

use crate::Options;
use crate::cargo;
use crate::collect::{Build, Collected, collect_packages};
use crate::kubernetes_types::KubernetesTypes;
use crate::package::Package;
use crate::place::Files;
use crate::report::Report;
use crate::sources::{Sources, is_within, join};
use crate::standing::{LeftOut, Standing, StandingMarker};

const MAX_FOLDERS: usize = 20_000;

/// Symbolic links may form cycles.
const MAX_DEPTH: usize = 16;

/// Returns every marker in the current folder and in the packages of the run, by place.
pub fn find_standing_markers(sources: &dyn Sources, options: &Options) -> Vec<Standing> {
    let (asked, report) = collect_build(sources, options, Build::Asked);
    let files = report.files;
    let (every, _) = collect_build(sources, options, Build::Every);
    let mut found = Vec::new();
    for path in rust_files(sources, options, &every.files) {
        let reason = if asked.files.contains(&path) || every.files.contains(&path) {
            LeftOut::Cfg
        } else if every
            .folders
            .iter()
            .any(|folder| is_within(&join(folder, "src"), &path))
        {
            LeftOut::NoModule
        } else {
            LeftOut::NotRead
        };
        let Ok(Some(text)) = sources.text(&path) else {
            continue;
        };
        if may_hold_markers(&text) {
            read_file(&path, &text, reason, &mut found);
        }
    }
    // The manifests have every handler that the run reads, though possibly under another name.
    let read = read_handlers(&asked.package, &files);
    found.retain(|standing| !read.contains(&(standing.path.as_str(), standing.range.start)));
    let skipped = skipped_kinds(&asked.package, &files);
    for standing in &mut found {
        if skipped.contains(&(standing.path.as_str(), standing.range.start)) {
            standing.reason = LeftOut::Skipped;
        }
    }
    found
}

/// Returns the skipped kinds, each as its file and the offset of the struct's name.
fn skipped_kinds<'a>(package: &Package, files: &'a Files) -> BTreeSet<(&'a str, usize)> {
    let skipped = package.types.iter().filter(|item| item.skipped.is_some());
    skipped
        .filter_map(|item| {
            let start = item.model.as_ref()?.custom_resource.as_ref()?.span.start;
            Some((files.path(item.file), start as usize))
        })
        .collect()
}

/// Returns the webhooks read by the run, each as its file and the offset of the marker.
fn read_handlers<'a>(package: &Package, files: &'a Files) -> BTreeSet<(&'a str, usize)> {
    let handlers = package.handlers.iter();
    handlers
        .map(|handler| (files.path(handler.file), handler.webhook.span.start as usize))
        .collect()
}

pub(crate) fn files_of_every_build(sources: &dyn Sources, options: &Options) -> BTreeSet<String> {
    collect_build(sources, options, Build::Every).0.files
}

pub(crate) fn may_hold_markers(text: &str) -> bool {
    ["CustomResource", "rbac", "webhook"]
        .iter()
        .any(|word| text.contains(word))
}

/// The report can be ignored: the run itself reports errors in the source.
pub(crate) fn collect_build(sources: &dyn Sources, options: &Options, build: Build) -> (Collected, Report) {
    let mut report = Report::default();
    let packages =
        cargo::read_manifests(sources, options, &mut report).map_or_else(Vec::new, |read| read.packages);
    let kubernetes = KubernetesTypes::default();
    // Markers of this project can't be in a published package.
    let published = None;
    let collected = collect_packages(
        sources,
        packages,
        published,
        kubernetes,
        build,
        options,
        &mut report,
    );
    (collected, report)
}

/// Adds all Rust files of the current folder and of the packages of the run to `read`.
fn rust_files(sources: &dyn Sources, options: &Options, read: &BTreeSet<String>) -> BTreeSet<String> {
    let mut report = Report::default();
    let packages =
        cargo::read_manifests(sources, options, &mut report).map_or_else(Vec::new, |read| read.packages);
    let mut files = read.clone();
    let mut folders: Vec<(String, usize)> = packages.into_iter().map(|package| (package.folder, 0)).collect();
    folders.push((String::new(), 0));
    let mut seen: BTreeSet<String> = folders.iter().map(|(folder, _)| folder.clone()).collect();
    while let Some((folder, depth)) = folders.pop() {
        for name in sources.folders(&folder).unwrap_or_default() {
            if name.starts_with('.') || name == "target" || name == "node_modules" {
                continue;
            }
            let inner = join(&folder, &name);
            if depth >= MAX_DEPTH || seen.len() >= MAX_FOLDERS || !seen.insert(inner.clone()) {
                continue;
            }
            // `rust_files` is recursive, but skips nested packages.
            let is_package = matches!(sources.text(&join(&inner, "Cargo.toml")), Ok(Some(_)));
            if depth == 0 || is_package {
                files.extend(sources.rust_files(&inner).unwrap_or_default());
            }
            folders.push((inner, depth + 1));
        }
    }
    files
}

fn read_file(path: &str, text: &Arc<str>, reason: LeftOut, found: &mut Vec<Standing>) {
    let mut reader = Reader {
        path,
        reason,
        found: Vec::new(),
    };
    let Ok(tokens) = lex_file(text) else {
        let kinds = [MarkKind::Kind, MarkKind::Rbac, MarkKind::Webhook];
        for kind in kinds.into_iter().filter(|kind| text.contains(kind.word())) {
            reader.add(Span::default(), StandingMarker::Hidden(kind, Arc::clone(text)));
        }
        return found.append(&mut reader.found);
    };
    reader.file(&tokens);
    // Anything that wasn't parsed is in a macro or after a syntax error.
    let marks: Vec<&Mark> = tokens.marks().iter().filter(|mark| !mark.in_body).collect();
    for (index, mark) in marks.iter().enumerate() {
        let start = mark.at as usize;
        // A kind's token is in its derive, whereas `range` covers the struct's name.
        let next = marks[index + 1..]
            .iter()
            .find(|next| MarkKind::of(next) == MarkKind::Kind);
        let end = next.map_or(usize::MAX, |next| next.at as usize);
        let is_read = reader.found.iter().any(|known| match known.marker {
            StandingMarker::Kind { .. } => {
                MarkKind::of(mark) == MarkKind::Kind && (start..end).contains(&known.range.start)
            }
            _ => known.range.contains(&start),
        });
        if !is_read {
            let hidden = StandingMarker::Hidden(MarkKind::of(mark), Arc::clone(text));
            reader.add(mark.span(), hidden);
        }
    }
    found.append(&mut reader.found);
}

struct Reader<'p> {
    path: &'p str,
    reason: LeftOut,
    found: Vec<Standing>,
}

impl Reader<'_> {
    fn add(&mut self, at: Span, marker: StandingMarker) {
        self.found.push(Standing {
            path: self.path.to_owned(),
            range: at.range(),
            marker,
            reason: self.reason,
        });
    }

    fn file(&mut self, tokens: &Tokens<'_>) {
        let cfg = Cfg::everything();
        let mut items = Items::new(tokens.cursor(), Some(&cfg));
        if let Ok(inner) = items.read_inner_attributes() {
            self.rules(&inner.attrs, &mut Session::default());
            self.items(items, &cfg, None);
        }
    }

    /// Reads items up to the first syntax error.
    fn items(&mut self, mut items: Items<'_, '_>, cfg: &Cfg, around: Option<&Implementation<'_>>) {
        let mut session = Session::default();
        while let Ok(Some(item)) = items.read() {
            let attrs = item.attrs;
            self.rules(&attrs, &mut session);
            match item.kind {
                ItemKind::Type(ty) if has_derive(&attrs, "CustomResource") => {
                    let model = parse_type(&attrs, ty, &mut session);
                    if let Some(resource) = model.and_then(|model| model.custom_resource) {
                        let marker = StandingMarker::Kind {
                            plural: resource.plural_name(),
                            group: resource.group,
                            kind: resource.kind,
                            version: resource.version,
                        };
                        self.add(resource.span, marker);
                    }
                }
                ItemKind::Function(function) => self.webhooks(&attrs, &function, around, &mut session),
                ItemKind::Impl(item) => self.inner(item.content, cfg, Some(&item)),
                ItemKind::Module(_, Some(content)) | ItemKind::Trait(_, content) => {
                    self.inner(content, cfg, None);
                }
                _ => {}
            }
        }
    }

    fn inner(&mut self, content: Cursor<'_>, cfg: &Cfg, around: Option<&Implementation<'_>>) {
        self.items(Items::new(content, Some(cfg)), cfg, around);
    }

    fn rules(&mut self, attrs: &[Attribute<'_>], session: &mut Session) {
        for attr in rbac_attributes(attrs) {
            if let Some(rule) = parse_rbac_attribute(attr, session) {
                self.add(attr.span(), StandingMarker::Rule(rule));
            }
        }
    }

    fn webhooks(
        &mut self,
        attrs: &[Attribute<'_>],
        function: &Function<'_>,
        around: Option<&Implementation<'_>>,
        session: &mut Session,
    ) {
        for attr in webhook_attributes(attrs) {
            let Some(webhook) = parse_webhook_attribute(attr, session) else {
                continue;
            };
            let mut words = Vec::new();
            for parameter in function.parameters().unwrap_or_default() {
                if let Some(ty) = parameter.ty {
                    add_names(&ty, &mut words);
                }
            }
            if let Some(Ok(own)) = around.map(Implementation::self_type) {
                add_names(&own, &mut words);
            }
            self.add(attr.span(), StandingMarker::Webhook(Box::new(webhook), words));
        }
    }
}

fn add_names(ty: &TypeRef, to: &mut Vec<String>) {
    match &ty.kind {
        TypeKind::Path(segments, args) => {
            to.extend(segments.last().cloned());
            args.iter().for_each(|arg| add_names(arg, to));
        }
        TypeKind::Array(item, _) => add_names(item, to),
        TypeKind::Tuple(items) => items.iter().for_each(|item| add_names(item, to)),
        TypeKind::Other(_) => {}
    }
}
