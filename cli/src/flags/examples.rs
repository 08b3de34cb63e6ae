//! Examples of each command, which appear in its help, in its manual page and in docs/commands.md.

use clap::{Command, CommandFactory};

use super::Cli;

/// The examples of each command, as pairs of a description and a command line.
#[rustfmt::skip]
pub const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    ("init", &[
        ("Initialize a project in the current directory", "rbuilder init --domain example.com"),
        ("Initialize a project whose manager watches its own namespace only", "rbuilder init --domain example.com --namespaced shop-operator"),
        ("Adopt the kube-rs package in the current directory", "rbuilder init --in-package --domain example.com"),
    ]),
    ("create api", &[
        ("Scaffold a kind with a controller", "rbuilder create api --group cache --version v1alpha1 --kind Memcached"),
        ("Scaffold another version of a kind", "rbuilder create api --group cache --version v1beta1 --kind Memcached"),
        ("Scaffold a kind in all versions of its CRD, with its types and a controller", "rbuilder create api --from-crd crd.yaml"),
        ("Scaffold a controller that runs an image", "rbuilder create api --group cache --version v1alpha1 --kind Memcached --image memcached:1.6 --image-container-port 11211"),
        ("Scaffold a controller for a built-in kind", "rbuilder create api --group apps --version v1 --kind ReplicaSet --controller"),
        ("Scaffold a controller for a kind that another project defines", "rbuilder create api --group gateway.networking.k8s.io --version v1 --kind Gateway --external-path crate::gateway_api::v1::gateway::Gateway"),
        ("Show the changes first", "rbuilder create api --group cache --version v1alpha1 --kind Memcached --dry-run"),
    ]),
    ("create webhook", &[
        ("Scaffold admission webhooks", "rbuilder create webhook --group cache --version v1alpha1 --kind Memcached --defaulting --validation"),
        ("Scaffold a webhook for a built-in kind", "rbuilder create webhook --group core --version v1 --kind Pod --defaulting"),
        ("Scaffold a conversion between versions", "rbuilder create webhook --group cache --version v1alpha1 --kind Memcached --conversion --spoke v1beta1"),
    ]),
    ("import", &[
        ("Create a Rust project in the current directory", "rbuilder import ../shop"),
        ("Show what is imported and what is left to port, without writing any file", "rbuilder import ../shop --dry-run"),
    ]),
    ("types", &[
        ("Generate the types of a CRD", "rbuilder types crd.yaml"),
        ("Generate the types of all CRDs in a directory", "rbuilder types crds/ --into src/api"),
        ("Print the types of the CRDs on the standard input, as `kubectl get crd --output yaml` prints them", "rbuilder types - --stdout"),
    ]),
    ("delete api", &[
        ("Show what would be deleted", "rbuilder delete api --group cache --version v1alpha1 --kind Memcached --dry-run"),
        ("Delete it, including files that you have changed", "rbuilder delete api --group cache --version v1alpha1 --kind Memcached --force"),
    ]),
    ("delete controller", &[
        ("Delete one of several controllers", "rbuilder delete controller --group cache --version v1alpha1 --kind Memcached --controller-name memcached-backup"),
    ]),
    ("delete webhook", &[
        ("Delete the validating webhook", "rbuilder delete webhook --group cache --version v1alpha1 --kind Memcached --validation"),
        ("Delete a version from the conversion, before the version itself", "rbuilder delete webhook --group cache --version v1 --kind Memcached --conversion --spoke v1alpha1"),
    ]),
    ("edit", &[
        ("Show which files move when the project gets several groups", "rbuilder edit --multigroup --dry-run"),
        ("Restrict the manager to its own namespace", "rbuilder edit --namespaced"),
        ("Change the license and the owner", "rbuilder edit --license mit --owner Shopkeepers"),
        ("Let Prometheus scrape the metrics, and cert-manager issue the certificates of webhooks", "rbuilder edit --enable prometheus,cert-manager"),
    ]),
    ("update", &[
        ("Show what this version of rbuilder scaffolds differently", "rbuilder update --dry-run"),
        ("Update the scaffold, unless it conflicts with your changes", "rbuilder update --no-conflicts"),
        ("Restore a deleted scaffolded file", "rbuilder update --restore src/main.rs"),
    ]),
    ("doctor", &[
        ("Check the tools and the project", "rbuilder doctor"),
        ("Print the findings as JSON", "rbuilder doctor --output json"),
    ]),
    ("explain", &[
        ("Explain a code", "rbuilder explain RB0201"),
        ("Explain a message", "rbuilder explain 'unknown marker `minimun`'"),
        ("List all codes", "rbuilder explain"),
    ]),
    ("validate", &[
        ("Judge the samples of the project", "rbuilder validate"),
        ("Judge the objects in a directory by the CRDs in another", "rbuilder validate deploy/ --crds crds/"),
        ("Judge a change of an object", "rbuilder validate new.yaml --old old.yaml"),
        ("Correct the mistakes that leave no choice", "rbuilder validate --fix"),
        ("Print the objects with their defaults", "rbuilder validate --show-defaults"),
    ]),
    ("diff", &[
        ("Compare the project with the merge base of its main branch", "rbuilder diff"),
        ("Compare the project with a release", "rbuilder diff v1.2.0"),
        ("Compare two directories of CRDs", "rbuilder diff old/ --to new/"),
        ("Compare the project with a cluster, and judge the objects in it", "rbuilder diff cluster"),
        ("Fail on risky changes too, and print a comment for a pull request", "rbuilder diff --fail-on risky --output markdown"),
        ("Find the fields that objects lose between the versions of a kind", "rbuilder diff --versions"),
    ]),
    ("library", &[
        ("Show the source of the library", "rbuilder library"),
        ("Get the library from a git repository", "rbuilder library --set git --url https://example.com/rbuilder.git --rev 0123456789012345678901234567890123456789"),
    ]),
    ("adopt", &[
        ("Show which kinds of a repository can be generated, and what would be written to Cargo.toml", "rbuilder adopt --dry-run"),
        ("Print the table as JSON", "rbuilder adopt --dry-run --output json"),
        ("Draft the role from the calls of kube in the source, and compare it with the one written by hand", "rbuilder adopt --role"),
    ]),
    ("manifests", &[
        ("Generate the manifests of a project", "rbuilder manifests"),
        ("Fail in CI if they are not up to date", "rbuilder manifests --check"),
        ("Generate the manifests of the kinds without errors", "rbuilder manifests --keep-going"),
        ("Print the CRDs of a package of a workspace", "rbuilder manifests --package shop-api --only crd --stdout"),
    ]),
    ("helm", &[
        ("Generate the chart, or update it from config/", "rbuilder helm"),
        ("Show what would change in it", "rbuilder helm --dry-run"),
        ("Fail in CI if it is not up to date", "rbuilder helm --check"),
    ]),
    ("docs", &[
        ("Write the API reference of a project to docs/api.html", "rbuilder docs"),
        ("Write it as Markdown", "rbuilder docs --file docs/api.md"),
        ("Write a JSON Schema for editors to docs/api.schema.json", "rbuilder docs --format json-schema"),
        ("Fail in CI if it is not up to date", "rbuilder docs --check"),
        ("Document the CRDs of any project", "rbuilder docs --file api.html config/crd/bases"),
    ]),
    ("bundle", &[
        ("Generate a bundle with the version in Cargo.toml", "rbuilder bundle --image registry.example.com/shop:v0.1.0"),
        ("Generate the bundle of a later version", "rbuilder bundle --version 0.2.0 --replaces 0.1.0 --image registry.example.com/shop:v0.2.0"),
    ]),
    ("grafana", &[
        ("Generate the dashboards and rules, or update them", "rbuilder grafana"),
        ("Show what would change in them", "rbuilder grafana --dry-run"),
        ("Fail in CI if they are not up to date", "rbuilder grafana --check"),
    ]),
    ("install", &[
        ("Install the CRDs into the cluster of a context", "rbuilder install --context kind-dev"),
    ]),
    ("uninstall", &[
        ("Delete the CRDs if they exist", "rbuilder uninstall --ignore-not-found"),
    ]),
    ("deploy", &[
        ("Deploy an image of the manager", "rbuilder deploy --image registry.example.com/shop:v1"),
    ]),
    ("undeploy", &[
        ("Delete what `deploy` created", "rbuilder undeploy"),
    ]),
    ("migrate-storage", &[
        ("Store all objects of the project's kinds in the storage version", "rbuilder migrate-storage"),
        ("Find the objects that the API server would refuse, without a change", "rbuilder migrate-storage --dry-run"),
        ("Migrate the objects of another CRD, with 20 writes per second", "rbuilder migrate-storage cups.example.com --qps 20"),
    ]),
    ("run", &[
        ("Pass arguments to the manager", "rbuilder run -- --log-format text"),
    ]),
    ("dev", &[
        ("Run the manager on a local control plane", "rbuilder dev"),
        ("Run it against a cluster that reaches this machine for webhooks", "rbuilder dev --context kind-dev --webhook-host 172.17.0.1"),
    ]),
    ("simulate", &[
        ("Run 1,000 histories of each simulation", "rbuilder simulate"),
        ("Run the simulations of one file for ten minutes each, optimized", "rbuilder simulate --seconds 600 -- --test memcached --release"),
        ("Make the page from the reports of another run", "rbuilder simulate --from reports/"),
        ("Compare the simulated API server with a real one", "rbuilder simulate --on-server"),
    ]),
    ("envtest install", &[
        ("Install the binaries for the project's Kubernetes version", "rbuilder envtest install"),
        ("Install the newest version", "rbuilder envtest install latest"),
    ]),
    ("envtest list", &[
        ("List what is installed", "rbuilder envtest list --installed-only"),
    ]),
    ("envtest path", &[
        ("Run the tests that need an API server", "KUBEBUILDER_ASSETS=$(rbuilder envtest path) cargo test"),
    ]),
    ("envtest remove", &[
        ("Remove versions before 1.35", "rbuilder envtest remove '<1.35'"),
    ]),
    ("completion", &[
        ("Install completions for bash", "rbuilder completion bash > ~/.local/share/bash-completion/completions/rbuilder"),
    ]),
    ("version", &[
        ("Print the version", "rbuilder version"),
    ]),
    ("man", &[
        ("Read the manual page of a command", "rbuilder man create api | man --local-file -"),
    ]),
];

/// Returns the clap command with the examples in its help.
pub fn command() -> Command {
    EXAMPLES.iter().fold(Cli::command(), |command, (path, examples)| {
        let words: Vec<&str> = path.split(' ').collect();
        add_examples(command, &words, examples)
    })
}

fn add_examples(command: Command, path: &[&str], examples: &[(&str, &str)]) -> Command {
    match path {
        [] => command.after_help(render_examples(examples)),
        // A command may be missing from this build.
        [word, ..] if command.find_subcommand(word).is_none() => command,
        [word, rest @ ..] => command.mut_subcommand(word, |inner| add_examples(inner, rest, examples)),
    }
}

/// Returns the examples of a command as the end of its help, or `None` for a command with
/// subcommands.
pub(crate) fn find_examples(path: &str) -> Option<String> {
    let (_, examples) = EXAMPLES.iter().find(|(command, _)| *command == path)?;
    Some(render_examples(examples))
}

fn render_examples(examples: &[(&str, &str)]) -> String {
    let lines = examples
        .iter()
        .map(|(about, line)| format!("  # {about}\n  {line}"));
    format!("Examples:\n{}", lines.collect::<Vec<_>>().join("\n\n"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Collects the paths of all commands without subcommands.
    fn collect_paths(command: &Command, path: &str, paths: &mut BTreeSet<String>) {
        let inner: Vec<&Command> = command
            .get_subcommands()
            .filter(|inner| !inner.is_hide_set())
            .collect();
        if inner.is_empty() {
            paths.insert(path.to_owned());
        }
        for command in inner {
            collect_paths(command, format!("{path} {}", command.get_name()).trim(), paths);
        }
    }

    #[test]
    fn every_command_has_examples() {
        let mut paths = BTreeSet::new();
        collect_paths(&Cli::command(), "", &mut paths);
        let known: BTreeSet<String> = EXAMPLES.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(known, paths);
    }

    /// Returns the words of the rbuilder command in a line of shell.
    fn words(line: &str) -> Vec<String> {
        let (_, line) = line.split_once("$(").unwrap_or(("", line));
        let line = line.split([')', '>', '|']).next().unwrap_or(line);
        let words = line.split_whitespace();
        words.map(|word| word.trim_matches('\'').to_owned()).collect()
    }

    #[test]
    fn every_example_is_a_command_line() {
        for (path, examples) in EXAMPLES {
            for (_, line) in *examples {
                let words = words(line);
                assert!(words.join(" ").starts_with(&format!("rbuilder {path}")), "{line}");
                if let Err(error) = Cli::command().try_get_matches_from(&words) {
                    panic!("{line}: {error}");
                }
            }
        }
    }
}
