//! Crates whose types and traits a program shares with its dependencies.
//!
//! A type for one version of kube does not implement the traits of another, and two versions of
//! k8s-openapi each need a feature for the version of Kubernetes. rustc then reports a missing trait,
//! or a build script of k8s-openapi fails, without the name of the dependency that is the cause.

use std::collections::BTreeSet;

use super::graph::{Graph, Index, Wanted};
use super::lock::{Lock, LockId, has_several_versions};
use crate::{Diagnostic, FileRange};

const SHARED: [&str; 2] = ["kube-core", "k8s-openapi"];

/// The package of the library, which projects rename to `rbuilder`.
const LIBRARY: &str = "rbuilder-runtime";

/// The dependencies that choose the versions of a package, the first one that it has.
const CHOOSERS: [&str; 4] = ["kube", "kube-core", "k8s-openapi", LIBRARY];

/// Warns of dependencies that use another version of a shared crate than the package itself.
pub(super) fn find_conflicts(text: &str, graph: &Graph<'_>, selected: &[Index]) -> Vec<Diagnostic> {
    if !SHARED.iter().any(|name| has_several_versions(text, name)) {
        return Vec::new();
    }
    // Without a readable lock file, nothing is known about versions.
    let Ok(lock) = Lock::parse(text) else {
        return Vec::new();
    };
    let conflicts = selected.iter().flat_map(|index| of_package(&lock, graph, *index));
    conflicts.collect()
}

fn of_package(lock: &Lock, graph: &Graph<'_>, index: Index) -> Vec<Diagnostic> {
    let node = &graph.nodes[index];
    let Some(own) = lock.find_local(graph.name(index), graph.version(index)) else {
        return Vec::new();
    };
    let locked = |wanted: &Wanted| lock.find_dependency(own, &wanted.package, wanted.requirement.as_deref());
    let chooser = CHOOSERS.iter().find_map(|name| {
        let mut wanted = node.wanted.values().filter(|wanted| wanted.package == *name);
        locked(wanted.next()?)
    });
    let Some(chooser) = chooser else {
        return Vec::new();
    };
    let active = node.wanted.values().filter(|wanted| wanted.on);
    let found = active.filter_map(|wanted| {
        let (message, help) = describe(lock, locked(wanted)?, chooser)?;
        let place = FileRange::new(&node.file.path, wanted.at.clone()?);
        Some(Diagnostic::warning(place, message).help(help))
    });
    found.collect()
}

/// Describes the first shared crate of which a dependency uses another version than `chooser`.
fn describe(lock: &Lock, dependency: LockId, chooser: LockId) -> Option<(String, String)> {
    SHARED.iter().find_map(|shared| {
        let own = lock.versions_below(chooser, shared);
        let other: BTreeSet<&str> = lock.versions_below(dependency, shared);
        let (own, other) = (own.first()?, other.difference(&own).next()?);
        let package = lock.package(dependency);
        let (name, version) = (&package.name, &package.version);
        let message =
            format!("`{name}` {version} uses {shared} {other}, and this package uses {shared} {own}");
        let help = match name.as_str() {
            LIBRARY => format!("change `kube` and `k8s-openapi` to the versions that use {shared} {other}"),
            _ => format!(
                "choose a version of `{name}` that uses {shared} {own}, or generate the types that you need with `rbuilder types`; `cargo tree --invert {shared}@{other}` shows what else uses it"
            ),
        };
        Some((message, help))
    })
}

#[cfg(test)]
mod tests {
    use crate::{Options, SourceSet, generate};

    const MANIFEST: &str = "[package]\nname = \"op\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nkube = \"5\"\nk8s-openapi = { version = \"0.29\", features = [\"v1_37\"] }\ngateway-api = \"0.22\"\n";

    fn package(name: &str, version: &str, dependencies: &[&str]) -> String {
        let list: Vec<String> = dependencies.iter().map(|name| format!("{name:?}")).collect();
        format!(
            "\n[[package]]\nname = {name:?}\nversion = {version:?}\ndependencies = [{}]\n",
            list.join(", ")
        )
    }

    /// Returns each message with the text at its place.
    fn conflicts(lock: &[String]) -> Vec<(String, String)> {
        let mut sources = SourceSet::default();
        sources.insert("Cargo.toml", MANIFEST);
        sources.insert("Cargo.lock", format!("version = 4\n{}", lock.concat()));
        sources.insert("src/lib.rs", "");
        let found = generate(&sources, &Options::default()).diagnostics;
        let placed = found
            .into_iter()
            .map(|said| (said.message, MANIFEST[said.place.range].to_owned()));
        placed.collect()
    }

    #[test]
    fn dependency_with_another_version_is_reported() {
        let op = package(
            "op",
            "0.1.0",
            &["gateway-api", "k8s-openapi 0.29.0", "kube 5.0.0"],
        );
        let kube = |version: &str, openapi: &str| {
            package("kube", version, &[&format!("kube-core {version}")])
                + &package("kube-core", version, &[&format!("k8s-openapi {openapi}")])
        };
        let openapi = package("k8s-openapi", "0.28.0", &[]) + &package("k8s-openapi", "0.29.0", &[]);
        let gateway = |dependency: &str| package("gateway-api", "0.22.0", &[dependency]);
        let (old, new) = (kube("4.2.0", "0.28.0"), kube("5.0.0", "0.29.0"));
        let place = "\"0.22\"".to_owned();
        let all = [op, openapi, old, new];
        let of = |dependency: &str| conflicts(&[all.concat(), gateway(dependency)]);
        assert_eq!(
            of("kube 4.2.0"),
            [(
                "`gateway-api` 0.22.0 uses kube-core 4.2.0, and this package uses kube-core 5.0.0".to_owned(),
                place.clone()
            )]
        );
        assert_eq!(
            of("k8s-openapi 0.28.0"),
            [(
                "`gateway-api` 0.22.0 uses k8s-openapi 0.28.0, and this package uses k8s-openapi 0.29.0"
                    .to_owned(),
                place
            )]
        );
        assert_eq!(of("kube 5.0.0"), []);
        assert_eq!(conflicts(&["<<<<<<< HEAD kube-core".to_owned()]), []);
    }
}
