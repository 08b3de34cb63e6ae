//! Roles from rules: the rows that controller-gen's own tests cover, and that no permission is lost or won.

use std::collections::BTreeSet;

use proptest::prelude::*;
use rbuilder_generator::rbac::{PolicyRule, normalize};
use rbuilder_syntax::RbacRule;

/// `groups resources verbs [names]`, lists with `;`, the core group as `""`; a URL rule as `/url verbs`.
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
fn rules_are_grouped_as_by_controller_gen() {
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

/// Every single permission, a wildcard verb standing for all of its target's.
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
        some_of(&["n", "m"], 0),
        some_of(&["get", "list", "watch", "*"], 1),
    )
        .prop_map(|(groups, resources, resource_names, verbs)| RbacRule {
            groups,
            resources,
            resource_names,
            verbs,
            ..RbacRule::default()
        });
    let on_urls =
        (some_of(&["/x", "/y"], 1), some_of(&["get", "post", "*"], 1)).prop_map(|(urls, verbs)| RbacRule {
            urls,
            verbs,
            ..RbacRule::default()
        });
    prop_oneof![4 => on_resources, 1 => on_urls]
}

proptest! {
    #[test]
    fn permissions_in_are_permissions_out(rules in proptest::collection::vec(any_rule(), 0..8)) {
        let out: Vec<RbacRule> = normalize(&rules).iter().map(as_marker).collect();
        prop_assert_eq!(permissions(rules.iter()), permissions(out.iter()));
    }

    #[test]
    fn order_and_repetition_do_not_matter(rules in proptest::collection::vec(any_rule(), 0..8)) {
        let reversed: Vec<&RbacRule> = rules.iter().rev().chain(&rules).collect();
        prop_assert_eq!(normalize(&rules), normalize(reversed));
    }
}
