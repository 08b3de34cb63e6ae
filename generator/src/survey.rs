//! Markers that stand in source text, whether or not a run takes them in.
//!
//! A manifest that is about to lose something may lose it because of a slip: a `mod` line that went missing, a feature
//! that is off, a package that is no longer listed. So before anything is lost, all available source text is looked
//! through for what stood for it. This costs more than a run and happens only then.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use rbuilder_reader::cfg::Cfg;
use rbuilder_reader::grammar::{Function, Implementation, ItemKind, Items};
use rbuilder_reader::token::{Cursor, Mark, Tokens};
use rbuilder_reader::{Attribute, Span, TypeKind, TypeRef, has_derive};
use rbuilder_syntax::{
    MarkKind, RbacRule, Session, Webhook, lex_file, parse_rbac_attribute, parse_type,
    parse_webhook_attribute, rbac_attributes, webhook_attributes,
};

use crate::Options;
use crate::cargo;
use crate::collect::{Build, Collected, collect_packages};
use crate::kubernetes_types::KubernetesTypes;
use crate::package::Package;
use crate::place::Files;
use crate::report::Report;
use crate::sources::{Sources, is_within, join};

/// Folders looked into for source text at the most.
const MAX_FOLDERS: usize = 20_000;

/// Folders within each other at the most; links may lead in circles.
const MAX_DEPTH: usize = 16;

/// A marker in source text.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The file, as [`Sources`] knows it.
    pub path: String,
    /// The bytes of the marker.
    pub range: Range<usize>,
    /// The marker.
    pub marker: StandingMarker,
    /// Why a run may not take it in.
    pub reason: LeftOut,
}

/// A marker in source text, by its meaning.
#[derive(Clone, Debug)]
pub enum StandingMarker {
    /// `#[kube(group, version, kind, …)]` under `derive(CustomResource)`.
    Kind {
        /// The API group.
        group: String,
        /// The kind.
        kind: String,
        /// The plural, as written or derived.
        plural: String,
        /// The version.
        version: String,
    },
    /// `#[rbac(…)]`.
    Rule(RbacRule),
    /// `#[webhook(…)]`, and the names of the types that its handler mentions.
    Webhook(Box<Webhook>, Vec<String>),
    /// A marker that cannot be read where it stands, with the text of its file.
    Hidden(MarkKind, Arc<str>),
}

/// Why a run does not take in what stands in source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// No `mod` declares the file.
    NoModule,
    /// A `cfg` that is off leaves it out.
    Cfg,
    /// The file belongs to no package whose kinds are read.
    NotRead,
    /// The kind is not among those to write.
    Skipped,
}

/// Every marker in the source text of the folder that the command runs in and of the packages that are read,
/// ordered by place.
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
    // A handler that the run has read is in the manifests, under whatever name.
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

/// The places of the kinds that are read and not written: the file, and the first byte of the struct's name.
fn skipped_kinds<'a>(package: &Package, files: &'a Files) -> BTreeSet<(&'a str, usize)> {
    let skipped = package.types.iter().filter(|item| item.skipped.is_some());
    skipped
        .filter_map(|item| {
            let start = item.model.as_ref()?.custom_resource.as_ref()?.span.start;
            Some((files.path(item.file), start as usize))
        })
        .collect()
}

/// The places of the webhook markers that are read: the file, and the first byte of the marker.
fn read_handlers<'a>(package: &Package, files: &'a Files) -> BTreeSet<(&'a str, usize)> {
    let handlers = package.handlers.iter();
    handlers
        .map(|handler| (files.path(handler.file), handler.webhook.span.start as usize))
        .collect()
}

/// The files that some build of the packages reads.
pub(crate) fn files_of_every_build(sources: &dyn Sources, options: &Options) -> BTreeSet<String> {
    collect_build(sources, options, Build::Every).0.files
}

/// Returns whether a file may hold a marker; most do not, and need not be read.
pub(crate) fn may_hold_markers(text: &str) -> bool {
    ["CustomResource", "rbac", "webhook"]
        .iter()
        .any(|word| text.contains(word))
}

/// Collects a build without its diagnostics: the run itself says what is wrong with the source.
/// Reads the packages for what they define; the report has their files, and what nobody is to be told again.
pub(crate) fn collect_build(sources: &dyn Sources, options: &Options, build: Build) -> (Collected, Report) {
    let mut report = Report::default();
    let packages =
        cargo::read_manifests(sources, options, &mut report).map_or_else(Vec::new, |read| read.packages);
    let kubernetes = KubernetesTypes::default();
    // The markers of other projects are not the project's.
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

/// The Rust files here and in the packages that are read, with those that builds read.
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
            // What is below a folder is listed with it, without the packages in there.
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
    // What stands in a macro, or behind a place that cannot be read.
    let marks: Vec<&Mark> = tokens.marks().iter().filter(|mark| !mark.in_body).collect();
    for (index, mark) in marks.iter().enumerate() {
        let start = mark.at as usize;
        // A kind is known by its struct, which stands behind the derive.
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

    /// Reads items up to the first that is not Rust.
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

/// The last names of all paths in a type.
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
