//! Looks up a command line in the tables.

use super::{COMMANDS, FLAGS, PLUGINS, Row};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// E.g. `kubebuilder alpha update`.
    pub(super) span: &'static str,
    /// Second column of the row.
    pub(super) ours: &'static str,
}

/// Finds the row for a command. The span with the longest common prefix (in words) wins.
pub(super) fn find_command(words: &[&str]) -> Option<Found> {
    let candidates = spans(COMMANDS.rows).filter_map(|found| {
        let score = match found.span.split_once(' ')? {
            ("controller-gen", generators) => usize::from(has_generator(generators, words.first()?)),
            // `rbuilder envtest` replaces this program.
            ("setup-envtest", command) if words.first() == Some(&"envtest") => {
                shared_words(command, &words[1..])
            }
            ("kubebuilder" | "operator-sdk", command) => shared_words(command, words),
            _ => 0,
        };
        (score > 0).then_some((score, found))
    });
    // In a tie, the first row in the table wins.
    let best = candidates.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map(|(_, found)| found)
}

/// Finds the row for a flag, e.g. `--repo`. Prefers a row that names the command.
pub(super) fn find_flag(command: &[&str], flag: &str) -> Option<Found> {
    // A span with several flags is about the last one, e.g. `--output-dir` in `edit
    // --plugins=helm/v2-alpha --output-dir`.
    let has_flag = |found: &Found| {
        let last = found.span.rsplit(' ').find(|word| word.starts_with("--"));
        let name = last.and_then(|word| word.split('=').next());
        name == Some(flag) && !found.ours.starts_with("the same")
    };
    let is_of_command = |found: &Found| found.span.starts_with(&command.join(" "));
    let in_flags = || spans(FLAGS.rows).filter(has_flag);
    in_flags().find(is_of_command).or_else(|| in_flags().next())
}

/// Finds the row for a controller-gen argument, e.g. `paths=./...` or `crd:maxDescLen=0`.
pub(super) fn find_option(argument: &str) -> Option<Found> {
    let (name, _) = argument.split_once('=')?;
    let name = format!("{name}=");
    spans(FLAGS.rows).find(|found| {
        found
            .span
            .split(' ')
            .any(|word| word == name || Some(word) == name.strip_suffix('='))
    })
}

/// Finds the row for a plugin by its key `helm/v2-alpha`, its name alone, or its full name
/// `helm.kubebuilder.io/v2-alpha`.
pub(super) fn find_plugin(key: &str) -> Option<Found> {
    let name = |key: &str| key.split(['/', '.']).next().unwrap_or_default().to_owned();
    spans(PLUGINS.rows).find(|found| !key.is_empty() && name(found.span) == name(key))
}

fn spans(rows: &'static [Row]) -> impl Iterator<Item = Found> {
    rows.iter().flat_map(|row| {
        let spans = row.theirs.split('`').skip(1).step_by(2);
        spans.map(|span| Found { span, ours: row.ours })
    })
}

fn shared_words(span: &str, words: &[&str]) -> usize {
    let own = span.split(' ').take_while(|word| !word.starts_with('-'));
    own.zip(words).take_while(|(own, word)| own == *word).count()
}

/// Whether the controller-gen arguments in a span include this generator, with any options.
fn has_generator(span: &str, word: &str) -> bool {
    let name = |word: &str| word.split([':', '=']).next().unwrap_or_default().to_owned();
    span.split(' ').any(|own| name(own) == name(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_rows_of_commands() {
        for (line, expected) in [
            ("alpha update", Some("kubebuilder alpha update")),
            ("alpha generate", Some("kubebuilder alpha generate")),
            ("generate bundle", Some("operator-sdk generate bundle")),
            ("generate", Some("operator-sdk generate bundle")),
            (
                "generate kustomize manifests",
                Some("operator-sdk generate kustomize manifests"),
            ),
            (
                "run bundle quay.io/example/shop:v1",
                Some("operator-sdk run bundle"),
            ),
            ("bundle validate ./bundle", Some("operator-sdk bundle validate")),
            ("olm install", Some("operator-sdk olm install")),
            ("scorecard bundle", Some("operator-sdk scorecard")),
            ("envtest use 1.36.x", Some("setup-envtest use")),
            ("object paths=./...", Some("controller-gen object")),
            ("plugins", None),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(find_command(&words).map(|found| found.span), expected, "{line}");
        }
    }

    #[test]
    fn finds_rows_of_plugins() {
        for (key, expected) in [
            ("helm/v2-alpha", Some("helm/v2-alpha")),
            ("helm.kubebuilder.io/v2-alpha", Some("helm/v2-alpha")),
            ("deploy-image", Some("deploy-image/v1-alpha")),
            ("", None),
            ("ours/v1", None),
        ] {
            assert_eq!(find_plugin(key).map(|found| found.span), expected, "{key}");
        }
    }
}
