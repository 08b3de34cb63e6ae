//! Reports skipped kinds, kinds in other domains, and names in `only` and `skip` that match no
//! kind.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_diagnostic::suggest;
use rbuilder_kubernetes::gvk;
use rbuilder_syntax::CustomResource;

use super::{Selector, fits, is_named};
use crate::cargo::Selection;
use crate::package::{Package, PackageId, Skipped};
use crate::place::Place;
use crate::report::{PlacedDiagnostic, Report};
use crate::sign::Sign;
use crate::sources::is_within;
use crate::standing::{Standing, StandingMarker};
use crate::{Diagnostic, FileRange};

const MAX_EXAMPLES: usize = 6;

impl Selector {
    /// `find_standing` returns all markers in the source. It is slow, so it's only called if a name
    /// is wrong.
    pub(crate) fn report(
        &self,
        package: &Package,
        find_standing: &dyn Fn() -> Vec<Standing>,
        report: &mut Report,
    ) {
        let mut said = BTreeSet::new();
        // Warn once per group, because the kinds of a group usually belong to the same project.
        let mut others: BTreeMap<(usize, &str), Vec<(Place, &CustomResource)>> = BTreeMap::new();
        let mut doubtful: Vec<Doubtful<'_>> = Vec::new();
        for (place, package_id, resource, skipped) in kinds(package) {
            // Mention a kind with several versions only once.
            if said.insert((&resource.group, &resource.kind, skipped.is_some())) {
                match skipped {
                    Some(Skipped::Seems(sign)) => doubtful.push(Doubtful {
                        place,
                        resource,
                        sign,
                    }),
                    Some(skipped) => self.note(package, place, resource, skipped, report),
                    None if self.is_of_other_domain(package_id, resource) => {
                        let key = (package_id.0, resource.group.as_str());
                        others.entry(key).or_default().push((place, resource));
                    }
                    None => {}
                }
            }
        }
        for kinds in others.values() {
            self.warn_of_other_domain(package, kinds, report);
        }
        note_doubtful(package, &doubtful, report);
        self.check_names(package, find_standing, report);
    }

    fn note(
        &self,
        package: &Package,
        place: Place,
        resource: &CustomResource,
        skipped: Skipped,
        report: &mut Report,
    ) {
        let CustomResource { kind, group, .. } = resource;
        let why = match skipped {
            // Skipped on request, or included in the note about doubtful kinds.
            Skipped::Flag | Skipped::Listed | Skipped::Disowned | Skipped::Seems(_) => return,
            Skipped::Unlisted => "`only` in `[package.metadata.rbuilder]` does not list it".to_owned(),
            Skipped::Foreign(owner) => format!("the group `{group}` belongs to {owner}"),
            Skipped::NoSchema => "`schema = \"disabled\"` means that its CRD comes from elsewhere".to_owned(),
        };
        let help = if skipped == Skipped::Unlisted {
            format!("add `\"{kind}\"` to `only`, or to `skip` to silence this note")
        } else {
            format!(
                "if the kind is your own, add `only = [{}]` to `[package.metadata.rbuilder]` in Cargo.toml, or pass `--kind {kind}`; otherwise add `skip = [\"{kind}\"]` to silence this note",
                example(package, group)
            )
        };
        let message = format!("skipping the CRD of kind `{kind}`: {why}");
        report.add(PlacedDiagnostic::note(place, message).help(help));
    }

    /// Returns true if the kind is outside of the project's domain and no setting decides whether
    /// it belongs to the project.
    fn is_of_other_domain(&self, id: PackageId, resource: &CustomResource) -> bool {
        let is_chosen = !self.kinds.is_empty() || self.of_package[id.0].only.is_some();
        let project = self.project.as_ref().filter(|_| !is_chosen);
        project.is_some_and(|project| {
            !project.domain.is_empty() && !project.has_group(&resource.group) && !project.lists(resource)
        })
    }

    /// Warns about the kinds of a group outside of the project's domain. Only the author knows
    /// whether they belong to the project.
    fn warn_of_other_domain(
        &self,
        package: &Package,
        kinds: &[(Place, &CustomResource)],
        report: &mut Report,
    ) {
        let (Some(project), Some((place, CustomResource { kind, group, .. }))) =
            (&self.project, kinds.first())
        else {
            return;
        };
        let domain = &project.domain;
        let (message, skip) = match kinds.len() {
            1 => (
                format!(
                    "kind `{kind}` has a CRD, but its group `{group}` is not in the project's domain `{domain}`"
                ),
                kind.clone(),
            ),
            2 => (
                format!(
                    "kinds `{kind}` and `{}` have CRDs, but their group `{group}` is not in the project's domain `{domain}`",
                    kinds[1].1.kind
                ),
                format!("*.{group}"),
            ),
            more => (
                format!(
                    "kind `{kind}` and {} more have CRDs, but their group `{group}` is not in the project's domain `{domain}`",
                    more - 1
                ),
                format!("*.{group}"),
            ),
        };
        let (crds, own) = match kinds.len() {
            1 => ("the CRD", "the kind is"),
            _ => ("the CRDs", "they are"),
        };
        let help = format!(
            "if another project installs {crds}, add `skip = [\"{skip}\"]` to `[package.metadata.rbuilder]` in Cargo.toml; if {own} your own, add `only = [{}]`",
            example(package, group)
        );
        report.warning(*place, message, &help);
    }

    /// Each name in `only` and `skip` should match a kind.
    fn check_names(&self, package: &Package, find_standing: &dyn Fn() -> Vec<Standing>, report: &mut Report) {
        let mut unknown: Vec<Unknown<'_>> = Vec::new();
        for (index, Selection { only, skip, .. }) in self.of_package.iter().enumerate() {
            let own = || kinds(package).filter(|(_, id, ..)| id.0 == index);
            for named in only.iter().flatten().chain(skip) {
                if !own().any(|(.., resource, _)| is_named(&named.name, resource)) {
                    let known = own().map(|(.., resource, _)| resource).collect();
                    unknown.push(Unknown {
                        name: &named.name,
                        folder: &package.members[index].folder,
                        problem: named.problem(),
                        known,
                    });
                }
            }
        }
        for name in self.kinds.iter().chain(&self.skip_kinds) {
            if !kinds(package).any(|(.., resource, _)| is_named(name, resource)) {
                let problem = Diagnostic::error(
                    FileRange::new("Cargo.toml", 0..0),
                    format!("no package has a kind `{name}`"),
                );
                unknown.push(Unknown {
                    name,
                    folder: "",
                    problem,
                    known: kinds(package).map(|(.., resource, _)| resource).collect(),
                });
            }
        }
        if unknown.is_empty() {
            return;
        }
        // The kind may be behind a disabled feature and thus invisible, but may still be named.
        let standing = find_standing();
        for Unknown {
            name,
            folder,
            problem,
            known,
        } in unknown
        {
            let is_standing = standing.iter().any(|standing| match &standing.marker {
                StandingMarker::Kind { group, kind, .. } => {
                    fits(name, kind, group) && is_within(folder, &standing.path)
                }
                _ => false,
            });
            if !is_standing {
                let candidates = candidates(name, &known);
                let help = suggest::describe_candidates(name, candidates.iter().map(String::as_str));
                report.push(problem.maybe_help((!candidates.is_empty()).then_some(help)));
            }
        }
    }
}

struct Doubtful<'a> {
    place: Place,
    resource: &'a CustomResource,
    sign: Sign,
}

fn note_doubtful(package: &Package, doubtful: &[Doubtful<'_>], report: &mut Report) {
    let Some(first) = doubtful.first() else { return };
    let mut by_sign: BTreeMap<Sign, Vec<String>> = BTreeMap::new();
    for Doubtful { resource, sign, .. } in doubtful {
        by_sign
            .entry(*sign)
            .or_default()
            .push(format!("`{}`", resource.kind));
    }
    let reasons = by_sign.iter().map(|(sign, kinds)| match doubtful.len() {
        1 => sign.describe().to_owned(),
        _ => format!("{}: {}", kinds.join(", "), sign.describe()),
    });
    let reasons = reasons.collect::<Vec<_>>().join("; ");
    let message = match doubtful {
        [only] => format!(
            "skipping the CRD of kind `{}`, which seems to belong to another project: {reasons}",
            only.resource.kind
        ),
        many => format!(
            "skipping the CRDs of {} kinds, which seem to belong to other projects: {reasons}",
            many.len()
        ),
    };
    let groups = doubtful.iter().map(|doubtful| doubtful.resource.group.as_str());
    let kinds: BTreeSet<String> = doubtful
        .iter()
        .map(|doubtful| format!("\"{}.{}\"", doubtful.resource.kind, doubtful.resource.group))
        .collect();
    let kinds = kinds.into_iter().collect::<Vec<_>>().join(", ");
    let help = format!(
        "if they are your own, add `only = [{}]` to `[package.metadata.rbuilder]` in Cargo.toml; otherwise add `skip = [{kinds}]` to silence this note",
        examples(package, groups)
    );
    let help = match doubtful {
        [_] => help.replacen("they are", "the kind is", 1),
        _ => help,
    };
    report.add(PlacedDiagnostic::note(first.place, message).help(help));
}

struct Unknown<'a> {
    name: &'a str,
    folder: &'a str,
    problem: Diagnostic,
    known: Vec<&'a CustomResource>,
}

fn kinds(package: &Package) -> impl Iterator<Item = (Place, PackageId, &CustomResource, Option<Skipped>)> {
    let own = package
        .types
        .iter()
        .filter(|item| !package.module(item.module).is_foreign);
    own.filter_map(|item| {
        let resource = item.model.as_ref()?.custom_resource.as_ref()?;
        let place = Place {
            file: item.file,
            span: resource.span,
        };
        Some((place, package.module(item.module).package, resource, item.skipped))
    })
}

fn candidates(name: &str, known: &[&CustomResource]) -> Vec<String> {
    let form = |resource: &CustomResource| match name.split_once('.') {
        None => resource.kind.clone(),
        Some(("*", _)) => format!("*.{}", resource.group),
        Some(_) => gvk::qualify(&resource.kind, &resource.group),
    };
    let names: BTreeSet<String> = known.iter().map(|resource| form(resource)).collect();
    names.into_iter().collect()
}

/// Returns the items for an `only` with the current kinds and one more group.
fn example(package: &Package, group: &str) -> String {
    examples(package, [group])
}

fn examples<'a>(package: &'a Package, added: impl IntoIterator<Item = &'a str>) -> String {
    let written = kinds(package).filter(|(.., skipped)| skipped.is_none());
    let mut groups: BTreeSet<&str> = written.map(|(.., resource, _)| resource.group.as_str()).collect();
    groups.extend(added);
    let mut items: Vec<String> = groups
        .iter()
        .take(MAX_EXAMPLES)
        .map(|group| format!("\"*.{group}\""))
        .collect();
    if groups.len() > MAX_EXAMPLES {
        items.push("…".into());
    }
    items.join(", ")
}
