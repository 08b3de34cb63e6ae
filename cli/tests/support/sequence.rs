//! Random sequences of commands, as in the life of a project. `cargo xtask scaffold` compiles the
//! results of some of them.

use super::random::Random;

/// Each of these creates a project.
const INITS: &[&str] = &[
    "init --domain example.com --project-name shop",
    "init --domain example.com --project-name shop --multigroup",
    "init --domain example.com --project-name shop --namespaced --license none",
    "init --domain example.com --project-name shop --multigroup --namespaced --owner Shopkeepers",
];

/// The columns are the flag for the group, and the kind.
const KINDS: &[(&str, &str)] = &[
    ("--group cache", "Cup"),
    ("--group cache", "HTTPRoute"),
    ("--group crew", "Mate"),
    ("--group batch", "CronJob"),
    ("", "Cup"),
];

const VERSIONS: &[&str] = &["v1", "v1alpha1", "v2"];

/// These kinds are built into Kubernetes.
const FOREIGN: &[&str] = &[
    "--group apps --version v1 --kind ReplicaSet",
    "--group apps --version v1 --kind Deployment",
    "--group core --version v1 --kind Pod",
    "--version v1 --kind Node",
    "--group batch --version v1 --kind CronJob",
];

/// For `create api`. Each row is equally likely.
const API_ARGUMENTS: &[&str] = &[
    "",
    "",
    "",
    "--controller=false",
    "--resource=false",
    "--controller-name cup-audit",
    "--namespaced=false",
    "--manifests=false",
    "--force",
    "--plural cuppas",
    "--image memcached:1.6.26 --image-container-port 11211 --run-as-user 1001",
    "--dry-run",
];

const WEBHOOK_ARGUMENTS: &[&str] = &[
    "--defaulting",
    "--validation",
    "--programmatic-validation --defaulting",
    "--defaulting --defaulting-path /fill-in",
    "--conversion --spoke v2",
    "--conversion --spoke v1",
    "--conversion --spoke v1alpha1,v2",
    "--defaulting --validation --conversion --spoke v1alpha1",
    "--validation --manifests=false",
];

const DELETE_ARGUMENTS: &[(&str, &str)] = &[
    ("api", ""),
    ("api", "--force"),
    ("controller", ""),
    ("controller", "--controller-name cup-audit"),
    ("webhook", ""),
    ("webhook", "--force"),
    ("webhook", "--conversion"),
    ("webhook", "--defaulting --force"),
];

const SETTINGS: &[&str] = &[
    "edit --multigroup",
    "edit --namespaced",
    "edit --namespaced=false",
    "edit --license none",
    "edit --license apache2 --owner Others",
    "edit --kubernetes 1.35",
    "edit --enable prometheus,network-policy",
    "edit --enable cert-manager",
    "edit --enable sharding",
    "edit --disable sharding --namespaced",
    "edit --disable metrics,webhooks",
    "edit --enable metrics,webhooks --disable cert-manager",
    "update",
    "manifests",
    "doctor",
    "library",
];

/// A merge with conflicts is rejected.
pub(crate) const NO_CONFLICTS: &str = "--no-conflicts";

/// Starts with `init`, followed by 2 to 11 other commands.
pub(crate) fn sequence(random: &mut Random) -> Vec<String> {
    let mut commands = vec![random.text(INITS).to_owned(), create_api(random)];
    let length = 3 + random.below(10);
    while commands.len() < length {
        commands.push(match random.below(20) {
            0..=6 => create_api(random),
            7..=12 => {
                let arguments = random.text(WEBHOOK_ARGUMENTS);
                format!("create webhook {} {arguments}", any_kind(random))
            }
            13..=15 => {
                let (what, arguments) = random.one_of(DELETE_ARGUMENTS);
                format!("delete {what} {} {arguments}", any_kind(random))
            }
            _ => change_settings(random),
        });
    }
    commands
}

fn change_settings(random: &mut Random) -> String {
    let command = random.text(SETTINGS);
    let merges = command == "update" || command.starts_with("edit");
    match merges && random.once_in(2) {
        true => format!("{command} {NO_CONFLICTS}"),
        false => command.to_owned(),
    }
}

fn create_api(random: &mut Random) -> String {
    match random.once_in(4) {
        true => {
            let form = random.text(&[
                "--controller",
                "--resource=false",
                "--controller-name replica-audit",
            ]);
            format!("create api {} {form}", random.text(FOREIGN))
        }
        false => format!("create api {} {}", own_kind(random), random.text(API_ARGUMENTS)),
    }
}

fn any_kind(random: &mut Random) -> String {
    match random.once_in(4) {
        true => random.text(FOREIGN).to_owned(),
        false => own_kind(random),
    }
}

/// Chooses from few kinds, so that commands find what others have created.
fn own_kind(random: &mut Random) -> String {
    let kinds = &KINDS[..if random.once_in(3) { KINDS.len() } else { 1 }];
    let versions = &VERSIONS[..if random.once_in(2) { VERSIONS.len() } else { 1 }];
    let ((group, kind), version) = (random.one_of(kinds), random.text(versions));
    format!("{group} --version {version} --kind {kind}")
}

/// Does what people and formatters do to a Rust file without changing its meaning.
pub(crate) fn edit_rust(text: &str, random: &mut Random) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    match random.below(9) {
        0 => format!("{text}\n// See the design document.\n"),
        1 if !text.contains("fn answer") && !text.contains("mod tests") => {
            format!("{text}\n/// Returns the answer.\npub fn answer() -> u8 {{\n    42\n}}\n")
        }
        2 => text.replace("\r\n", "\n").replace('\n', "\r\n"),
        3 => text.trim_end().to_owned(),
        4 => text.replace("manager", "m"),
        5 => text.replace("    manager\n        .", "    manager /* all */\n        ."),
        6 => swap_modules(&lines),
        7 if !text.contains("#[inline]") => text.replacen("\npub fn ", "\n#[inline]\npub fn ", 1),
        _ => text.replacen('\n', "\n\n", 1),
    }
}

/// Reverses the order of the first module lines that follow each other.
fn swap_modules(lines: &[&str]) -> String {
    fn is_module(line: &&str) -> bool {
        line.starts_with("pub mod ") && line.trim_end().ends_with(';')
    }
    let start = lines.iter().position(is_module).unwrap_or(lines.len());
    let (before, rest) = lines.split_at(start);
    let length = rest.iter().take_while(|line| is_module(line)).count();
    let (modules, after) = rest.split_at(length);
    let modules = modules.iter().rev();
    before.iter().chain(modules).chain(after).copied().collect()
}
