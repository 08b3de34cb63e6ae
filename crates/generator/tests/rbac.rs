//! Roles from rules. We use the rows of controller-gen's own tests, and check e.g. that no
//! permission is lost or added on the way from the markers to the YAML.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rbuilder_generator::rbac::{PolicyRule, normalize};
use rbuilder_generator::{Generated, Options, Severity, SourceSet, generate};
use rbuilder_syntax::RbacRule;
use serde_json::Value;

/// A row is `groups resources verbs [names]` or `/url verbs`. Lists are separated by `;`, and `""`
/// is the core group.
fn parse(row: &str) -> RbacRule {
    let list = |text: &str| {
        text.split(';')
            .map(|part| part.replace("\"\"", ""))
            .collect::<Vec<String>>()
    };
    let words: Vec<&str> = row.split_whitespace().collect();
    match words[..] {
        [urls, verbs] => RbacRule {
            urls: list(urls),
            verbs: list(verbs),
            ..RbacRule::default()
        },
        [groups, resources, verbs, ref names @ ..] => RbacRule {
            groups: list(groups),
            resources: list(resources),
            verbs: list(verbs),
            resource_names: names.iter().flat_map(|names| list(names)).collect(),
            ..RbacRule::default()
        },
        _ => panic!("a row has two words at least: {row}"),
    }
}

fn show(rule: &PolicyRule) -> String {
    let join = |names: &BTreeSet<String>| {
        names
            .iter()
            .map(|name| if name.is_empty() { "\"\"" } else { name })
            .collect::<Vec<_>>()
            .join(";")
    };
    let lists = [
        &rule.groups,
        &rule.resources,
        &rule.urls,
        &rule.verbs,
        &rule.resource_names,
    ];
    lists
        .into_iter()
        .filter(|list| !list.is_empty())
        .map(join)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn groups_rules_like_controller_gen() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        (
            "verbs are sorted, subresources apart",
            &[
                "batch.io cronjobs get;watch;create",
                "batch.io cronjobs/status get;update;patch",
            ],
            &[
                "batch.io cronjobs create;get;watch",
                "batch.io cronjobs/status get;patch;update",
            ],
        ),
        (
            "duplicates within and across rules",
            &[
                "batch;batch;batch jobs/status watch",
                "batch jobs/status watch;watch",
            ],
            &["batch jobs/status watch"],
        ),
        (
            "the same groups in another order",
            &[
                "batch jobs/status watch",
                "batch;cron jobs/status create;get",
                "cron;batch jobs/status get;create",
            ],
            &["batch jobs/status watch", "batch;cron jobs/status create;get"],
        ),
        (
            "resource names apart from all objects",
            &[
                "batch.io cronjobs get;watch;create",
                "batch.io cronjobs get;watch foo;bar;baz",
            ],
            &[
                "batch.io cronjobs create;get;watch",
                "batch.io cronjobs get;watch bar;baz;foo",
            ],
        ),
        (
            "verbs are joined",
            &["dedup some get;list", "dedup some get", "dedup some list"],
            &["dedup some get;list"],
        ),
        (
            "resources are joined",
            &["g one create", "g two create", "g three create"],
            &["g one;three;two create"],
        ),
        (
            "groups are joined",
            &["g1 foo patch", "g2 foo patch", "g3 foo patch"],
            &["g1;g2;g3 foo patch"],
        ),
        (
            "all three are joined",
            &[
                "all foo;bar get;list",
                "all foo get",
                "all bar list",
                "more foo;bar get;list",
            ],
            &["all;more bar;foo get;list"],
        ),
        (
            "a wildcard verb takes in the others",
            &["g xyz get;update;patch", "g xyz *"],
            &["g xyz *"],
        ),
        (
            "different verbs keep resources apart",
            &["nd some get", "nd another list", "g1 some get", "g2 some list"],
            &["g1;nd some get", "g2 some list", "nd another list"],
        ),
        (
            "urls are joined and come first",
            &[
                "g x get",
                "/url-to-duplicate get",
                "/another/url-to-duplicate get",
            ],
            &["/another/url-to-duplicate;/url-to-duplicate get", "g x get"],
        ),
        (
            "core is the empty group",
            &["core deduplicate list", "\"\" me list"],
            &["\"\" deduplicate;me list"],
        ),
        (
            "core and the empty group are one",
            &["core;\"\";some-other me list;get"],
            &["\"\";some-other me get;list"],
        ),
        (
            "groups of two markers",
            &["wave jobs get", "art jobs get"],
            &["art;wave jobs get"],
        ),
        (
            "two resources with their own verbs",
            &[
                "apps deployments get;list;watch;create;delete",
                "apps statefulsets get;list",
            ],
            &[
                "apps deployments create;delete;get;list;watch",
                "apps statefulsets get;list",
            ],
        ),
        (
            "the empty group alone",
            &["\"\" secrets get;list"],
            &["\"\" secrets get;list"],
        ),
        (
            "rules that controller-gen loses in the merge",
            &["a x get", "b x get", "a;b x list"],
            &["a;b x get;list"],
        ),
        (
            "a rule within another",
            &["a;b x get", "a x get;list"],
            &["a x get;list", "a;b x get"],
        ),
        (
            "wildcards of two resources",
            &["g x get;*", "g y *"],
            &["g x;y *"],
        ),
    ];
    for (name, input, expected) in cases {
        let rules: Vec<RbacRule> = input.iter().map(|row| parse(row)).collect();
        let grouped: Vec<String> = normalize(&rules).iter().map(show).collect();
        assert_eq!(grouped, *expected, "{name}");
    }
}

/// A wildcard verb includes the other verbs of its target.
fn permissions<'a>(rules: impl Iterator<Item = &'a RbacRule>) -> BTreeSet<[String; 4]> {
    let mut all = BTreeSet::new();
    for rule in rules {
        for verb in &rule.verbs {
            for url in &rule.urls {
                all.insert([String::new(), url.clone(), String::new(), verb.clone()]);
            }
            for group in &rule.groups {
                for resource in &rule.resources {
                    let group = if group == "core" {
                        String::new()
                    } else {
                        group.clone()
                    };
                    let mut names: Vec<String> = rule
                        .resource_names
                        .iter()
                        .map(|name| format!("={name}"))
                        .collect();
                    if names.is_empty() {
                        names.push("any".into());
                    }
                    all.extend(
                        names
                            .into_iter()
                            .map(|name| [group.clone(), resource.clone(), name, verb.clone()]),
                    );
                }
            }
        }
    }
    let has_wildcard =
        |[a, b, c, _]: &[String; 4]| all.contains(&[a.clone(), b.clone(), c.clone(), "*".to_owned()]);
    all.iter()
        .filter(|permission| permission[3] == "*" || !has_wildcard(permission))
        .cloned()
        .collect()
}

fn as_marker(rule: &PolicyRule) -> RbacRule {
    let list = |names: &BTreeSet<String>| names.iter().cloned().collect();
    RbacRule {
        groups: list(&rule.groups),
        resources: list(&rule.resources),
        resource_names: list(&rule.resource_names),
        urls: list(&rule.urls),
        verbs: list(&rule.verbs),
        ..RbacRule::default()
    }
}

fn some_of(words: &'static [&'static str], least: usize) -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(proptest::sample::select(words), least..4)
        .prop_map(|words| words.into_iter().map(str::to_owned).collect())
}

fn any_rule() -> impl Strategy<Value = RbacRule> {
    let on_resources = (
        some_of(&["", "core", "a", "b", "*"], 1),
        some_of(&["x", "y", "x/status", "*"], 1),
        some_of(&["n", "m", "y", "1_0"], 0),
        some_of(&["get", "list", "watch", "*"], 1),
    )
        .prop_map(|(groups, resources, resource_names, verbs)| RbacRule {
            groups,
            resources,
            resource_names,
            verbs,
            ..RbacRule::default()
        });
    let on_urls = (
        some_of(&["/x", "/y", "/x/*", "*"], 1),
        some_of(&["get", "post", "*"], 1),
    )
        .prop_map(|(urls, verbs)| RbacRule {
            urls,
            verbs,
            ..RbacRule::default()
        });
    prop_oneof![4 => on_resources, 1 => on_urls]
}

fn marker(rule: &RbacRule) -> String {
    let lists = [
        ("groups", &rule.groups),
        ("resources", &rule.resources),
        ("resource_names", &rule.resource_names),
        ("verbs", &rule.verbs),
        ("urls", &rule.urls),
    ];
    let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
    let mut args: Vec<String> = lists.map(|(name, list)| format!("{name} = {list:?}")).collect();
    for (name, text) in [("namespace", &rule.namespace), ("role_name", &rule.role_name)] {
        args.extend(text.iter().map(|text| format!("{name} = {text:?}")));
    }
    format!("#[rbac({})]\n", args.join(", "))
}

/// Names are e.g. `ClusterRole manager-role` or `Role zoo/manager-role`. The rules keep their
/// order.
fn roles(source: &str) -> Vec<(String, Vec<RbacRule>)> {
    let mut sources = SourceSet::default();
    sources.insert(
        "Cargo.toml",
        "[package]\nname = \"roles\"\n[dependencies]\nrbuilder = \"0.1\"\n",
    );
    sources.insert("src/lib.rs", source);
    let Generated {
        files, diagnostics, ..
    } = generate(&sources, &Options::default());
    let errors: Vec<_> = diagnostics
        .iter()
        .filter(|said| said.severity == Severity::Error)
        .collect();
    assert!(errors.is_empty(), "{source}{errors:?}");
    let text = files.first().map_or("", |file| file.text.as_str());
    let documents = text.split("---\n").filter(|document| !document.is_empty());
    documents
        .map(|document| read_role(&serde_saphyr::from_str(document).expect("YAML")))
        .collect()
}

fn read_role(role: &Value) -> (String, Vec<RbacRule>) {
    let list = |rule: &Value, name: &str| -> Vec<String> {
        let texts = rule[name].as_array().into_iter().flatten();
        texts
            .map(|text| text.as_str().expect("a text").to_owned())
            .collect()
    };
    let rules = role["rules"].as_array().expect("rules").iter();
    let rules = rules.map(|rule| RbacRule {
        groups: list(rule, "apiGroups"),
        resources: list(rule, "resources"),
        resource_names: list(rule, "resourceNames"),
        verbs: list(rule, "verbs"),
        urls: list(rule, "nonResourceURLs"),
        ..RbacRule::default()
    });
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let metadata = &role["metadata"];
    let name = match &metadata["namespace"] {
        Value::Null => text(&metadata["name"]),
        namespace => format!("{}/{}", text(namespace), text(&metadata["name"])),
    };
    (format!("{} {name}", text(&role["kind"])), rules.collect())
}

/// All rows are in one package, as in controller-gen's test. Whatever the order of the markers, the
/// seven documents and their rules come in this order.
#[test]
fn generates_roles_like_controller_gen() {
    let rows = [
        "batch.io cronjobs get;watch;create",
        "batch.io cronjobs/status get;update;patch",
        "art jobs get | zoo",
        "wave jobs get | zoo",
        "batch;batch;batch jobs/status watch",
        "batch;cron jobs/status create;get",
        "art jobs get | park",
        "cron;batch jobs/status get;create",
        "batch jobs/status watch;watch",
        "batch.io cronjobs get;watch foo;bar;baz",
        "dedup-verbs some get;list",
        "dedup-verbs some get",
        "dedup-verbs some list",
        "dedup-resources one create",
        "dedup-resources two create",
        "dedup-resources three create",
        "groups1 foo patch",
        "groups2 foo patch",
        "groups3 foo patch",
        "dedup-all foo;bar get;list",
        "dedup-all foo get",
        "dedup-all bar list",
        "dedup-more foo;bar get;list",
        "groups4 xyz get;update;patch",
        "groups4 xyz *",
        "not-dedup some get",
        "not-dedup another list",
        "groups1 some get",
        "groups2 some list",
        "/url-to-duplicate get",
        "/another/url-to-duplicate get",
        "core deduplicate list",
        "\"\" me list",
        "core;\"\";some-other me list;get",
        "here abc get;update;patch | here",
        "here abc * | here",
        "apps deployments get;list;watch;create;delete | infrastructure infra-deployment-manager",
        "apps statefulsets get;list | infrastructure infra-deployment-manager",
        "\"\" secrets get;list | users user-secrets-reader",
        "\"\" configmaps get | observability",
    ];
    let expected: &[(&str, &[&str])] = &[
        (
            "ClusterRole manager-role",
            &[
                "/another/url-to-duplicate;/url-to-duplicate get",
                "\"\" deduplicate;me list",
                "\"\";some-other me get;list",
                "batch jobs/status watch",
                "batch;cron jobs/status create;get",
                "batch.io cronjobs create;get;watch",
                "batch.io cronjobs get;watch bar;baz;foo",
                "batch.io cronjobs/status get;patch;update",
                "dedup-all;dedup-more bar;foo get;list",
                "dedup-resources one;three;two create",
                "dedup-verbs some get;list",
                "groups1;groups2;groups3 foo patch",
                "groups1;not-dedup some get",
                "groups2 some list",
                "groups4 xyz *",
                "not-dedup another list",
            ],
        ),
        ("Role here/manager-role", &["here abc *"]),
        (
            "Role infrastructure/infra-deployment-manager",
            &[
                "apps deployments create;delete;get;list;watch",
                "apps statefulsets get;list",
            ],
        ),
        ("Role observability/manager-role", &["\"\" configmaps get"]),
        ("Role park/manager-role", &["art jobs get"]),
        ("Role users/user-secrets-reader", &["\"\" secrets get;list"]),
        ("Role zoo/manager-role", &["art;wave jobs get"]),
    ];
    let mut markers: Vec<String> = rows
        .iter()
        .map(|row| {
            let (rule, role) = row.split_once(" | ").unwrap_or((row, ""));
            let mut role = role.split_whitespace().map(str::to_owned);
            marker(&RbacRule {
                namespace: role.next(),
                role_name: role.next(),
                ..parse(rule)
            })
        })
        .collect();
    for turn in [0, 7, 20] {
        markers.rotate_left(turn);
        let made = roles(&format!("{}fn reconcile() {{}}\n", markers.concat()));
        let shown: Vec<(&str, Vec<String>)> = made
            .iter()
            .map(|(role, rules)| {
                let list = |names: &[String]| names.iter().cloned().collect();
                let shown = rules.iter().map(|rule| {
                    show(&PolicyRule {
                        groups: list(&rule.groups),
                        resources: list(&rule.resources),
                        resource_names: list(&rule.resource_names),
                        urls: list(&rule.urls),
                        verbs: list(&rule.verbs),
                    })
                });
                (role.as_str(), shown.collect())
            })
            .collect();
        let expected: Vec<(&str, Vec<String>)> = expected
            .iter()
            .map(|(role, rules)| (*role, rules.iter().map(|&rule| rule.to_owned()).collect()))
            .collect();
        assert_eq!(shown, expected);
    }
}

/// The marker is valid, and may be for any role.
fn any_marker() -> impl Strategy<Value = RbacRule> {
    let namespace = proptest::option::of(proptest::sample::select(vec!["zoo", "park"]));
    let role_name = proptest::option::of(proptest::sample::select(vec!["reader", "y", "no"]));
    (any_rule(), namespace, role_name).prop_map(|(rule, namespace, role_name)| RbacRule {
        // A Role can't contain URLs.
        namespace: namespace.filter(|_| rule.urls.is_empty()).map(str::to_owned),
        role_name: role_name.map(str::to_owned),
        ..rule
    })
}

fn role_of(rule: &RbacRule) -> String {
    let name = rule.role_name.as_deref().unwrap_or("manager-role");
    match &rule.namespace {
        Some(namespace) => format!("Role {namespace}/{name}"),
        None => format!("ClusterRole {name}"),
    }
}

proptest! {
    #[test]
    fn normalizing_keeps_permissions(rules in proptest::collection::vec(any_rule(), 0..8)) {
        let out: Vec<RbacRule> = normalize(&rules).iter().map(as_marker).collect();
        prop_assert_eq!(permissions(rules.iter()), permissions(out.iter()));
    }

    #[test]
    fn order_and_repetition_do_not_matter(rules in proptest::collection::vec(any_rule(), 0..8)) {
        let reversed: Vec<&RbacRule> = rules.iter().rev().chain(&rules).collect();
        prop_assert_eq!(normalize(&rules), normalize(reversed));
    }

    #[test]
    fn roles_grant_what_markers_state(rules in proptest::collection::vec(any_marker(), 0..10), split in 0..10_usize) {
        let mut wanted: BTreeMap<String, Vec<&RbacRule>> = BTreeMap::new();
        for rule in &rules {
            wanted.entry(role_of(rule)).or_default().push(rule);
        }
        let wanted: BTreeMap<_, _> = wanted
            .into_iter()
            .map(|(role, rules)| (role, permissions(rules.into_iter())))
            .collect();
        let (some, others) = rules.split_at(split.min(rules.len()));
        let markers = |rules: &[RbacRule]| rules.iter().map(marker).collect::<String>();
        let source = format!("{}fn a() {{}}\n{}impl X {{}}\n", markers(some), markers(others));
        let made = roles(&source);
        let names: Vec<&String> = made.iter().map(|(role, _)| role).collect();
        prop_assert!(names.is_sorted(), "{names:?}");
        let made: BTreeMap<_, _> = made
            .iter()
            .map(|(role, rules)| (role.clone(), permissions(rules.iter())))
            .collect();
        prop_assert_eq!(made, wanted);
    }
}
