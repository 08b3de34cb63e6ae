//! `rbuilder bundle`: the bundle follows config/ and preserves the user's edits.
//! `cargo xtask bundle` runs the validators on bundles.

use crate::support;

use serde_json::Value;
use support::Folder;

const COMMANDS: [&str; 3] = [
    "init --domain example.com --project-name shop --owner Shopkeepers",
    "create api --group cache --version v1 --kind Cup",
    "create webhook --group cache --version v1 --kind Cup --defaulting --validation",
];
const BUNDLE: &str = "bundle --image registry.example.com/shop:v0.1.0";
const CSV: &str = "bundle/manifests/shop.clusterserviceversion.yaml";

fn project() -> Folder {
    let folder = Folder::new();
    for command in COMMANDS.into_iter().chain([BUNDLE]) {
        folder.run(command).ok();
    }
    folder
}

fn csv(folder: &Folder) -> Value {
    serde_saphyr::from_str(&folder.tree()[CSV]).expect("YAML")
}

#[test]
fn bundle_has_the_expected_files() {
    let folder = project();
    let is_of_bundle = |path: &str| path.starts_with("bundle") || path.starts_with("catalog");
    let tree = folder.tree();
    let files: Vec<&String> = tree.keys().filter(|path| is_of_bundle(path)).collect();
    let listing: String = files.iter().map(|path| format!("{path}\n")).collect();
    support::golden("bundle/tree.txt", &listing);
    for path in [
        CSV,
        "bundle.Dockerfile",
        "bundle/metadata/annotations.yaml",
        "bundle/tests/scorecard/config.yaml",
        "catalog/shop/catalog.yaml",
    ] {
        let name = path.rsplit('/').next().unwrap_or(path);
        support::golden(&format!("bundle/{name}"), &tree[path]);
    }
    for command in [BUNDLE, &format!("{BUNDLE} --check")] {
        let ran = folder.run(command).ok();
        assert!(ran.out.starts_with("unchanged"), "{command}: {}", ran.out);
    }
}

/// Edits the ClusterServiceVersion like a user.
#[track_caller]
fn describe(folder: &Folder) {
    folder.replace(
        CSV,
        "description: Shop manages Cup objects.",
        "description: Cups and more.",
    );
    folder.replace(CSV, "displayName: Foo", "displayName: The foo");
}

#[test]
fn user_descriptions_survive_a_release() {
    let folder = project();
    describe(&folder);
    folder
        .run("bundle --version 0.2.0 --replaces 0.1.0 --skips 0.1.1 --image registry.example.com/shop:v0.2.0")
        .ok();
    let csv = csv(&folder);
    let (metadata, spec) = (&csv["metadata"], &csv["spec"]);
    assert_eq!(metadata["name"], "shop.v0.2.0");
    assert_eq!(spec["replaces"], "shop.v0.1.0");
    assert_eq!(spec["skips"][0], "shop.v0.1.1");
    assert_eq!(spec["description"], "Cups and more.");
    let owned = &spec["customresourcedefinitions"]["owned"][0];
    assert_eq!(owned["specDescriptors"][0]["displayName"], "The foo");
    assert_eq!(
        metadata["annotations"]["containerImage"],
        "registry.example.com/shop:v0.2.0"
    );
}

const CATALOG: &str = "catalog/shop/catalog.yaml";

fn documents(folder: &Folder, schema: &str) -> Vec<Value> {
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(&folder.tree()[CATALOG]).expect("YAML");
    documents.retain(|document| document["schema"] == schema);
    documents
}

#[test]
fn catalog_keeps_earlier_releases() {
    let folder = project();
    folder.replace(
        CATALOG,
        "- name: shop.v0.1.0\n",
        "- name: shop.v0.1.0\n  skipRange: <0.1.0\n",
    );
    let text = folder.tree()[CATALOG].clone();
    folder.write(
        CATALOG,
        &format!("{text}---\nschema: olm.deprecations\npackage: shop\nentries: []\n"),
    );
    let release = "bundle --version 0.2.0 --image registry.example.com/shop:v0.2.0";
    folder.run(release).ok();
    let check = |channels: Value| {
        let found: Vec<Value> = documents(&folder, "olm.channel")
            .into_iter()
            .map(|channel| serde_json::json!([channel["name"], channel["entries"]]))
            .collect();
        assert_eq!(Value::from(found), channels);
    };
    let first = serde_json::json!({ "name": "shop.v0.1.0", "skipRange": "<0.1.0" });
    let second = serde_json::json!({ "name": "shop.v0.2.0", "replaces": "shop.v0.1.0" });
    check(serde_json::json!([["stable", [second, first]]]));
    assert_eq!(csv(&folder)["spec"]["replaces"], "shop.v0.1.0");
    let images: Vec<Value> = documents(&folder, "olm.bundle")
        .into_iter()
        .map(|bundle| bundle["image"].clone())
        .collect();
    let image = |version: &str| format!("registry.example.com/shop-bundle:v{version}");
    assert_eq!(images, [image("0.2.0"), image("0.1.0")]);
    assert_eq!(documents(&folder, "olm.deprecations").len(), 1);
    for command in [release, &format!("{release} --check")] {
        let ran = folder.run(command).ok();
        assert!(ran.out.starts_with("unchanged"), "{command}: {}", ran.out);
    }
    // If a version is skipped, it must not be replaced as well.
    folder.run("bundle --version 0.2.1 --skips 0.2.0").ok();
    assert_eq!(csv(&folder)["spec"]["replaces"], "shop.v0.1.0");
    folder.run(release).ok();
    let third =
        serde_json::json!({ "name": "shop.v0.2.1", "replaces": "shop.v0.1.0", "skips": ["shop.v0.2.0"] });
    check(serde_json::json!([["stable", [third, second, first]]]));
    // A release in another channel has nothing to replace there.
    folder.run("bundle --version 0.3.0 --channels beta").ok();
    let other = serde_json::json!({ "name": "shop.v0.3.0" });
    check(serde_json::json!([
        ["beta", [other]],
        ["stable", [third, second, first]]
    ]));
    folder.run(release).ok();
    assert_eq!(csv(&folder)["spec"]["replaces"], "shop.v0.1.0");
}

/// Formats each entry like `0.2.0 > 0.1.0 ~ 0.1.1 <0.1.0`, i.e. a version, the version that it
/// replaces, the versions that it skips, and its skip range.
fn channels(folder: &Folder) -> String {
    let version = |name: &Value| name.as_str().unwrap_or_default().replace("shop.v", "");
    let entry = |entry: &Value| {
        let mut line = version(&entry["name"]);
        if let Some(name) = entry.get("replaces") {
            line += &format!(" > {}", version(name));
        }
        if let Some(names) = entry["skips"].as_array() {
            let names: Vec<String> = names.iter().map(version).collect();
            line += &format!(" ~ {}", names.join(","));
        }
        if let Some(range) = entry["skipRange"].as_str() {
            line += &format!(" {range}");
        }
        line
    };
    let channel = |channel: Value| {
        let entries = channel["entries"].as_array().into_iter().flatten();
        let entries: Vec<String> = entries.map(entry).collect();
        format!(
            "{}: {}",
            channel["name"].as_str().unwrap_or_default(),
            entries.join(" | ")
        )
    };
    let lines: Vec<String> = documents(folder, "olm.channel")
        .into_iter()
        .map(channel)
        .collect();
    lines.join("\n")
}

#[test]
fn warns_of_omitted_metrics_certificate() {
    let folder = project();
    folder.run("edit --enable prometheus,metrics-certificate").ok();
    let ran = folder.run(BUNDLE).ok();
    let warnings: Vec<&str> = ran
        .err
        .lines()
        .filter(|line| line.starts_with("warning: "))
        .collect();
    assert_eq!(
        warnings,
        [
            "warning: a bundle cannot have a certificate of cert-manager, so the manager serves metrics with a self-signed one"
        ]
    );
    let tree = folder.tree();
    for (path, text) in tree.iter().filter(|(path, _)| path.starts_with("bundle/")) {
        assert!(
            !text.contains("METRICS_CERT_PATH") && !text.contains("metrics-server-cert"),
            "{path}"
        );
    }
    let monitors = tree.iter().filter(|(path, text)| {
        path.starts_with("bundle/")
            && text.contains("kind: ServiceMonitor")
            && text.contains("insecureSkipVerify: true")
    });
    assert_eq!(monitors.count(), 1);
}

#[test]
fn warns_of_accidental_release() {
    let folder = Folder::new();
    for command in COMMANDS {
        folder.run(command).ok();
    }
    let check = |flags: &str, expected: &[&str]| {
        let ran = folder.run(&format!("bundle {flags}")).ok();
        let warnings: Vec<&str> = ran
            .err
            .lines()
            .filter(|line| line.starts_with("warning: "))
            .collect();
        assert_eq!(warnings, expected, "{flags}");
    };
    let image = "--image example.com/shop:v1";
    check(
        "--version 0.1.0",
        &["warning: the image of the manager is the placeholder `controller:latest`"],
    );
    check(&format!("--version 0.1.0 {image}"), &[]);
    check(&format!("--version 0.2.0 {image}"), &[]);
    check(
        image,
        &["warning: the bundle has version 0.1.0 from Cargo.toml, and the catalog already has 0.2.0"],
    );
    check(
        &format!("--version 0.3.0-rc.1 --channels candidate {image}"),
        &["warning: clusters with version 0.2.0 do not upgrade to 0.3.0-rc.1 in channel `candidate`"],
    );
    for flags in ["--replaces 0.2.0", "--skip-range <0.3.0"] {
        check(
            &format!("--version 0.3.0-rc.1 --channels candidate {image} {flags}"),
            &[],
        );
    }
    check(&format!("--version 0.3.0 {image}"), &[]);
}

/// `expected` has the channels after the series of releases.
#[track_caller]
fn check_releases(releases: &[&str], expected: &str, default_channel: &str) {
    let folder = project();
    for release in releases {
        folder.run(&format!("bundle {release}")).ok();
        let again = folder.run(&format!("bundle {release} --check")).ok();
        assert!(again.out.starts_with("unchanged"), "{release}: {}", again.out);
    }
    assert_eq!(channels(&folder), expected, "{releases:?}");
    assert_eq!(
        documents(&folder, "olm.package")[0]["defaultChannel"],
        default_channel,
        "{releases:?}"
    );
    let annotations = &folder.tree()["bundle/metadata/annotations.yaml"];
    let label = format!("channel.default.v1: {default_channel}\n");
    assert!(annotations.contains(&label), "{annotations}");
}

#[test]
fn each_channel_has_its_own_edges() {
    for (releases, expected) in [
        (
            &["--version 0.2.0", "--version 0.3.0 --skips 0.2.0"] as &[&str],
            "stable: 0.3.0 > 0.1.0 ~ 0.2.0 | 0.2.0 > 0.1.0 | 0.1.0",
        ),
        (
            &["--version 0.2.0 --skip-range <0.2.0"],
            "stable: 0.2.0 > 0.1.0 <0.2.0 | 0.1.0",
        ),
        (
            &["--version 0.2.0", "--version 0.1.1 --channels stable-0.1"],
            "stable-0.1: 0.1.1\nstable: 0.2.0 > 0.1.0 | 0.1.0",
        ),
        (
            &[
                "--version 0.2.0-rc.1 --channels candidate",
                "--version 0.2.0 --channels candidate,stable",
            ],
            "candidate: 0.2.0 > 0.2.0-rc.1 | 0.2.0-rc.1\nstable: 0.2.0 > 0.1.0 | 0.1.0",
        ),
        (
            &[
                "--version 0.2.0-rc.1 --channels candidate",
                "--version 0.2.0 --replaces 0.1.0 --channels stable,candidate",
            ],
            "candidate: 0.2.0 > 0.2.0-rc.1 | 0.2.0-rc.1\nstable: 0.2.0 > 0.1.0 | 0.1.0",
        ),
        // The new channel has no other entries, so the release gets the same edge as in the first
        // channel.
        (
            &["--version 0.2.0", "--version 0.2.0 --channels stable,candidate"],
            "candidate: 0.2.0 > 0.1.0\nstable: 0.2.0 > 0.1.0 | 0.1.0",
        ),
        // Here the additional channel does have other entries.
        (
            &[
                "--version 0.2.0 --channels candidate",
                "--version 0.2.0 --channels candidate,stable",
            ],
            "candidate: 0.2.0\nstable: 0.2.0 > 0.1.0 | 0.1.0",
        ),
    ] {
        check_releases(releases, expected, "stable");
    }
    check_releases(
        &[
            "--version 0.2.0 --channels candidate --default-channel candidate",
            "--version 0.3.0",
        ],
        "candidate: 0.2.0\nstable: 0.3.0 > 0.1.0 | 0.1.0",
        "candidate",
    );
}

#[test]
fn invalid_channel_is_not_written() {
    for (releases, release, expected) in [
        (
            &["--version 0.2.0"] as &[&str],
            "--version 0.1.1",
            "channel `stable` of catalog/shop/catalog.yaml has 2 heads: nothing replaces or skips shop.v0.2.0 and shop.v0.1.1\n  = help: release it in a channel of its own, such as `--channels stable-0.1`, or add `shop.v0.1.1` to the `skips` of shop.v0.2.0",
        ),
        (
            &["--version 0.2.0"],
            "--version 0.1.1 --replaces 0.1.0",
            "has 2 heads",
        ),
        (
            &["--version 0.2.0"],
            "--version 0.3.0 --replaces 0.1.0",
            "nothing replaces or skips shop.v0.3.0 and shop.v0.2.0\n  = help: leave out `--replaces`, or pass `--skips 0.2.0` to upgrade from the stranded versions",
        ),
        (
            &[],
            "--version 0.2.0 --replaces 0.0.9",
            "leave out `--replaces`, or pass `--skips 0.1.0`",
        ),
        (
            &[],
            "--version 0.2.0 --replaces 0.2.0",
            "version 0.2.0 cannot replace or skip itself",
        ),
        (
            &["--version 0.2.0"],
            "--version 0.1.0 --replaces 0.2.0",
            "has a cycle: shop.v0.2.0 -> shop.v0.1.0 -> shop.v0.2.0",
        ),
        (
            &["--version 0.2.0", "--version 0.3.0"],
            "--version 0.4.0 --skips 0.3.0 --replaces 0.1.0",
            "has stranded versions, from which no upgrade leads to the head: shop.v0.2.0\n  = help: leave out `--replaces`, or pass `--skips 0.3.0,0.2.0`",
        ),
        // The upgrade would lead to a version that is skipped.
        (
            &["--version 0.2.0", "--version 0.3.0"],
            "--version 0.4.0 --skips 0.2.0",
            "from which no upgrade leads to the head: shop.v0.1.0\n  = help: pass `--skips 0.2.0,0.1.0` to upgrade from the stranded versions",
        ),
        (
            &["--version 0.2.0"],
            "--version 0.3.0 --replaces 0.2.0 --skips 0.2.0",
            "version 0.3.0 cannot both replace and skip 0.2.0\n  = help: leave out `--replaces`",
        ),
        (
            &["--version 0.2.0", "--version 0.2.0 --channels stable-0.2"],
            "--version 0.1.0 --channels stable-0.2",
            "such as `--channels stable-0.1`, or add",
        ),
        (
            &[],
            "--version 0.2.0 --skips 0.1.1,0.2.0",
            "version 0.2.0 cannot replace or skip itself",
        ),
        (
            &[],
            "--version 0.2.0 --default-channel beta",
            "has no channel `beta`, which is the default",
        ),
    ] {
        let folder = project();
        for release in releases {
            folder.run(&format!("bundle {release}")).ok();
        }
        let before = folder.tree();
        let ran = folder.run(&format!("bundle {release}"));
        assert!(
            ran.code == 1 && ran.err.contains(expected),
            "{release}: {}",
            ran.err
        );
        assert_eq!(folder.tree(), before, "{release}");
    }
}

#[test]
fn edited_catalogs_are_validated() {
    let two = "- name: shop.v0.2.0\n  replaces: shop.v0.1.0\n";
    for (from, to, expected) in [
        (two, "- name: shop.v0.2.0\n", "pass `--skips 0.1.0`"),
        (
            two,
            "- name: shop.v0.2.0\n- name: shop.v0.1.0\n",
            "has two entries `shop.v0.1.0`",
        ),
        (
            two,
            "- name: shop.v0.2.0\n  replaces: shop.v0.1.0\n  skipRange: '>=0.1, <0.3'\n",
            "as the `skipRange` of `shop.v0.2.0` in channel `stable`, found `>=0.1, <0.3`",
        ),
        (
            "- name: shop.v0.1.0\nname",
            "- name: shop.v0.1.0\n- name: shop.v0.0.1\nname",
            "has 2 heads",
        ),
        (
            "name: shop.v0.1.0\npackage",
            "name: shop.v0.1.9\npackage",
            "the entry `shop.v0.1.0` of channel `stable` has no bundle",
        ),
        (
            "  replaces: shop.v0.1.0\n- name: shop.v0.1.0\n",
            "",
            "the bundle `shop.v0.1.0` of catalog/shop/catalog.yaml is in no channel",
        ),
        (
            "defaultChannel: stable",
            "defaultChannel: alpha",
            "has no channel `alpha`",
        ),
        (
            "- name: shop.v0.1.0\n",
            "- name: shop.v0.1.0\n  replaces: 5\n",
            "catalog.yaml:10: expected a string for `entries[1].replaces` of channel `stable`, found `5`",
        ),
        (
            "- name: shop.v0.1.0\n",
            "- Name: shop.v0.1.0\n",
            "expected the key `name` for `entries[1]` of channel `stable`, found `Name`",
        ),
        (
            "- name: shop.v0.1.0\n",
            "- name: shop.v0.1.0\n-\n",
            "expected a `name` in `entries[2]` of channel `stable`",
        ),
        (
            "- name: shop.v0.1.0\n",
            "- name: shop.v0.1.0\n  skips: ['']\n",
            "expected names of bundles in the `skips` of `shop.v0.1.0`",
        ),
        (
            "image: registry.example.com/shop-bundle:v0.1.0",
            "image: ''",
            "expected an `image` in bundle `shop.v0.1.0`",
        ),
        (
            "packageName: shop\n    version: 0.1.0",
            "packageName: tea\n    version: 0.1.0",
            "as `packageName` of its property `olm.package`, found `tea`",
        ),
        (
            "packageName: shop\n    version: 0.1.0",
            "packageName: shop\n    version: v1",
            "expected a version such as `1.2.3` in the property `olm.package` of bundle `shop.v0.1.0`, found `v1`",
        ),
        (
            "packageName: shop\n    version: 0.1.0",
            "packageName: shop\n    version: 0.2.0",
            "the bundles `shop.v0.2.0` and `shop.v0.1.0` of catalog/shop/catalog.yaml both have version 0.2.0",
        ),
        (
            "- type: olm.package\n",
            "- type: other\n",
            "expected one property `olm.package`",
        ),
        (
            "---\n",
            "# head\n---\n",
            "catalog.yaml:1: expected a document with a `schema`, found an empty one",
        ),
        (
            "schema: olm.channel",
            "schema: ''",
            "catalog.yaml:10: expected a document with a `schema`",
        ),
        (
            "---\n",
            "--- x\n---\n",
            "expected a mapping as a document of a catalog, found `\"x\"`",
        ),
        (
            "---\n",
            "---\nschema: olm.channel\npackage: shop\nname: stable\n---\n",
            "the `olm.channel` `stable` is also defined in line 2",
        ),
        (
            "---\n",
            "---\nschema: olm.channel\npackage: tea\nname: stable\n---\n",
            "the `olm.channel` `stable` belongs to the package `tea`, which the file does not have",
        ),
        (
            "---\n",
            "---\nschema: olm.channel\npackage: shop\n---\n",
            "catalog.yaml:2: expected a `name` in the channel",
        ),
        (
            "---\n",
            "---\nschema: olm.deprecations\npackage: shop\nentries:\n- reference: {schema: olm.bundle, name: shop.v9}\n  message: old\n---\n",
            "deprecates the `olm.bundle` `shop.v9`, which package `shop` does not have",
        ),
    ] {
        let folder = project();
        folder.run("bundle --version 0.2.0").ok();
        folder.replace(CATALOG, from, to);
        let before = folder.tree();
        let ran = folder.run("bundle --version 0.3.0");
        assert!(ran.code == 1 && ran.err.contains(expected), "{to}: {}", ran.err);
        assert_eq!(folder.tree(), before, "{to}");
    }
}

/// Makes random releases. If one is rejected, every way out that the message suggests must work.
#[test]
fn suggested_flags_make_the_release_succeed() {
    const VERSIONS: [&str; 8] = [
        "0.1.1",
        "0.2.0-rc.1",
        "0.2.0",
        "0.2.1",
        "0.3.0-rc.1",
        "0.3.0",
        "0.4.0",
        "0.5.0",
    ];
    let mut state = 7_u64;
    let mut random = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % limit
    };
    let base = project();
    let mut advised = 0;
    for _ in 0..6 {
        let folder = Folder::new();
        for (path, text) in base.tree() {
            folder.write(&path, &text);
        }
        let mut released = vec!["0.1.0"];
        for version in VERSIONS {
            let channels = ["stable", "stable,candidate", "candidate"][random(3)];
            let command = format!("bundle --manifests=false --version {version} --channels {channels}");
            let mut flag = |name: &str, odds: usize| match random(odds) {
                0 => format!(" {name} {}", released[random(released.len())]),
                _ => String::new(),
            };
            let (skips, replaces) = (flag("--skips", 2), flag("--replaces", 3));
            let ran = folder.run(&format!("{command}{skips}{replaces}"));
            if ran.code == 0 {
                released.push(version);
                continue;
            }
            let (_, help) = ran.err.split_once("= help: ").unwrap_or_default();
            let before = folder.tree();
            let ways = help.trim().split(", or ");
            for way in ways
                .filter(|way| way.starts_with("leave out `--replaces`") || way.starts_with("pass `--skips"))
            {
                advised += 1;
                let replaces = if way.starts_with("leave out") {
                    ""
                } else {
                    &replaces
                };
                let skips = match way.split_once("pass `--skips ") {
                    Some((_, versions)) => {
                        format!(" --skips {}", versions.split('`').next().unwrap_or_default())
                    }
                    None => skips.clone(),
                };
                folder.run(&format!("{command}{skips}{replaces}")).ok();
                for (path, text) in &before {
                    folder.write(path, text);
                }
            }
        }
    }
    assert!(advised > 10, "{advised} ways were tried");
}

#[test]
fn edited_catalogs_accept_a_release() {
    let two = "stable: 0.3.0 > 0.2.0 | 0.2.0 > 0.1.0 | 0.1.0";
    let entry = "- name: shop.v0.2.0\n  replaces: shop.v0.1.0\n";
    for (from, to, release, expected) in [
        // A comment stays with the line below it.
        (
            "entries:\n",
            "entries: # newest first\n# current\n",
            "--version 0.3.0",
            two,
        ),
        (
            entry,
            "",
            "--version 0.3.0 --skips 0.2.0",
            "stable: 0.3.0 > 0.1.0 ~ 0.2.0 | 0.1.0",
        ),
        (
            "- name: shop.v0.2.0\n  replaces: shop.v0.1.0\n- name: shop.v0.1.0\n",
            "  - {name: shop.v0.2.0, replaces: shop.v0.1.0}\n  - name: shop.v0.1.0\n",
            "--version 0.3.0",
            two,
        ),
        (
            "---\nentries:",
            "---\nschema: olm.channel\nname: fast\npackage: shop\nentries: # mine\n  - name: shop.v0.2.0\n---\nentries:",
            "--version 0.3.0 --channels fast,stable",
            "fast: 0.3.0 > 0.2.0 | 0.2.0\nstable: 0.3.0 > 0.2.0 | 0.2.0 > 0.1.0 | 0.1.0",
        ),
        (
            "---\nentries:",
            "---\nschema: olm.channel\nname: fast\npackage: shop\nentries: [{name: shop.v0.2.0}]\n---\nentries:",
            "--version 0.2.0 --channels stable,fast",
            "fast: 0.2.0 > 0.1.0\nstable: 0.2.0 > 0.1.0 | 0.1.0",
        ),
    ] {
        let folder = project();
        folder.run("bundle --version 0.2.0").ok();
        folder.replace(CATALOG, from, to);
        if to.is_empty() {
            // When a release is retired, its bundle is removed as well.
            let text = folder.tree()[CATALOG].clone();
            let mut documents: Vec<&str> = text.split("---\n").collect();
            documents.retain(|document| !document.contains("name: shop.v0.2.0\npackage"));
            folder.write(CATALOG, &documents.join("---\n"));
        }
        let comments = |text: &str| text.matches('#').count();
        let before = comments(&folder.tree()[CATALOG]);
        folder.run(&format!("bundle {release}")).ok();
        assert_eq!(channels(&folder), expected, "{to}");
        assert_eq!(comments(&folder.tree()[CATALOG]), before, "{to}");
        let again = folder.run(&format!("bundle {release} --check")).ok();
        assert!(again.out.starts_with("unchanged"), "{to}: {}", again.out);
    }
}

#[test]
fn crlf_in_catalog_is_kept() {
    let folder = project();
    folder.run("bundle --version 0.2.0").ok();
    let text = folder.tree()[CATALOG].replace('\n', "\r\n");
    folder.write(CATALOG, &text);
    folder.run("bundle --version 0.3.0").ok();
    assert_eq!(channels(&folder), "stable: 0.3.0 > 0.2.0 | 0.2.0 > 0.1.0 | 0.1.0");
    let text = &folder.tree()[CATALOG];
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
}

#[test]
fn releases_survive_a_deleted_catalog() {
    let folder = project();
    folder.run("bundle --version 0.2.0").ok();
    folder.remove(CATALOG);
    let ran = folder.run("bundle --version 0.3.0").ok();
    let help = "to restore the file, run `rbuilder bundle` with the same flags and `--force`";
    assert!(ran.err.contains(help), "{}", ran.err);
    assert_eq!(csv(&folder)["spec"]["replaces"], "shop.v0.2.0");
    folder.run("bundle --version 0.3.0 --force").ok();
    assert_eq!(channels(&folder), "stable: 0.3.0 > 0.2.0 | 0.2.0 > 0.1.0 | 0.1.0");
}

#[test]
fn removed_package_document_is_restored() {
    let folder = project();
    let text = folder.tree()[CATALOG].clone();
    let (_, rest) = text[4..].split_once("---\n").expect("documents");
    folder.write(CATALOG, &format!("---\n{rest}"));
    folder.run("bundle --version 0.2.0").ok();
    assert_eq!(documents(&folder, "olm.package").len(), 1);
}

#[test]
fn rejects_csv_of_another_release() {
    for (from, to, expected) in [
        (
            "name: shop.v0.1.0",
            "name: tea.v0.1.0",
            "expected `shop.v0.1.0` as `metadata.name`",
        ),
        (
            "version: 0.1.0\n",
            "version: 0.2.0\n",
            "expected `0.1.0` as `spec.version`",
        ),
        (
            "maturity: alpha",
            "maturity: 5",
            "expected a string for `spec.maturity` of bundle/",
        ),
        (
            "  description: Shop",
            "  replaces: 5\n  description: Shop",
            "expected a string for `spec.replaces`",
        ),
        (
            "    capabilities: Basic Install",
            "    olm.skipRange: ^1\n    capabilities: Basic Install",
            "as the annotation `olm.skipRange`",
        ),
        (
            "apiVersion: op",
            "---\na: 1\n---\napiVersion: op",
            "expected one YAML document in bundle/",
        ),
    ] {
        let folder = project();
        folder.replace(CSV, from, to);
        let before = folder.tree();
        let ran = folder.run(BUNDLE);
        assert!(ran.code == 1 && ran.err.contains(expected), "{to}: {}", ran.err);
        assert_eq!(folder.tree(), before, "{to}");
    }
    // The error has to name the file with the edited edge.
    let folder = project();
    folder.run("bundle --version 0.2.0").ok();
    folder.replace(CSV, "  replaces: shop.v0.1.0\n", "");
    let ran = folder.run("bundle --version 0.2.0");
    let help = format!("restore `replaces: shop.v0.1.0` in {CSV}, from which the catalog takes it");
    assert!(ran.code == 1 && ran.err.contains(&help), "{}", ran.err);
}

#[test]
fn downgrade_is_a_warning() {
    let folder = Folder::new();
    for command in &COMMANDS[..2] {
        folder.run(command).ok();
    }
    let ran = folder.run("bundle --version 0.2.0 --replaces 0.3.0").ok();
    let expected = "warning: version 0.2.0 replaces or skips 0.3.0, which is higher";
    assert!(ran.err.contains(expected), "{}", ran.err);
}

#[test]
fn documents_of_other_packages_are_kept() {
    let folder = project();
    let other = "---\ndefaultChannel: stable\nname: bar\nschema: olm.package\n---\nentries:\n- name: bar.v1.0.0\nname: stable\npackage: bar\nschema: olm.channel\n---\nimage: bar\nname: bar.v1.0.0\npackage: bar\nproperties:\n- type: olm.package\n  value:\n    packageName: bar\n    version: 1.0.0\nschema: olm.bundle\n";
    let text = folder.tree()[CATALOG].clone();
    folder.write(CATALOG, &format!("{other}{text}"));
    folder.run("bundle --version 0.2.0").ok();
    let text = &folder.tree()[CATALOG];
    assert!(text.starts_with(other), "{text}");
    assert_eq!(
        channels(&folder),
        "stable: bar.v1.0.0\nstable: 0.2.0 > 0.1.0 | 0.1.0"
    );
}

#[test]
fn patch_of_an_older_version_is_listed_below_the_version_that_skips_it() {
    let folder = project();
    folder.run("bundle --version 0.2.0").ok();
    let entry = "- name: shop.v0.2.0\n  replaces: shop.v0.1.0\n";
    folder.replace(CATALOG, entry, &format!("{entry}  skips:\n  - shop.v0.1.1\n"));
    folder.run("bundle --version 0.1.1").ok();
    assert_eq!(
        channels(&folder),
        "stable: 0.1.1 > 0.1.0 | 0.2.0 > 0.1.0 ~ 0.1.1 | 0.1.0"
    );
}

#[test]
fn catalog_includes_user_descriptions() {
    let folder = project();
    describe(&folder);
    folder.replace(CSV, "mediatype: image/svg+xml", "mediatype: image/png");
    folder.run(BUNDLE).ok();
    let package = &documents(&folder, "olm.package")[0];
    assert_eq!(package["description"], "Cups and more.");
    assert_eq!(package["icon"]["mediatype"], "image/png");
    let bundle = documents(&folder, "olm.bundle").remove(0);
    let properties = bundle["properties"].as_array().expect("a list");
    let metadata = &properties.last().expect("metadata")["value"];
    assert_eq!(metadata["description"], "Cups and more.");
    let owned = &metadata["crdDescriptions"]["owned"][0];
    assert_eq!(owned["specDescriptors"][0]["displayName"], "The foo");
    folder.replace(CSV, "description: Cups and more.", "description: [");
    let ran = folder.run(BUNDLE);
    assert!(
        ran.code == 1 && ran.err.contains(&format!("cannot parse {CSV}:")),
        "{}",
        ran.err
    );
}

#[test]
fn unreadable_catalog_is_left_alone() {
    let folder = project();
    folder.write(CATALOG, "a: [\n");
    let ran = folder.run("bundle --version 0.2.0");
    assert_eq!(ran.code, 1);
    assert!(
        ran.err
            .contains("cannot parse catalog/shop/catalog.yaml:1:4: unclosed bracket '['\n  | a: [\n"),
        "{}",
        ran.err
    );
    assert_eq!(folder.tree()[CATALOG], "a: [\n");
}

fn write_marked_kind(folder: &Folder) {
    let path = "src/api/v1/cup.rs";
    folder.replace(path,
        "pub struct CupSpec {",
        r#"#[csv(display_name = "Coffee cup", description = "Cups on shelves.", order = 2)]
#[csv(resource(kind = "Deployment", version = "v1"))]
#[csv(resource(kind = "Shelf", version = "v1", name = "shelves.wood.example.com"))]
#[csv(required(name = "shelves.wood.example.com", version = "v1", kind = "Shelf", description = "Where cups stand."))]
pub struct CupSpec {
    /// Handles of the cup.
    #[csv(x_descriptors = ["urn:alm:descriptor:com.tectonic.ui:text", "urn:alm:descriptor:com.tectonic.ui:advanced"], order = 1)]
    pub handles: Vec<Handle>,
    /// Lid of the cup.
    #[csv(skip)]
    pub lid: bool,"#,
    );
    let text = folder.tree()[path].clone();
    let handle = r#"
/// A handle.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Handle {
    /// Width in millimetres.
    #[csv(display_name = "Width (mm)", order = 0)]
    pub width: i32,
    /// Side of the cup.
    pub side: String,
}
"#;
    folder.write(path, &(text + handle));
}

#[test]
fn markers_describe_kinds_and_fields() {
    let folder = project();
    folder
        .run("create api --group cache --version v1 --kind Plate --controller=false")
        .ok();
    write_marked_kind(&folder);
    folder.run("bundle").ok();
    let written = csv(&folder);
    let crds = &written["spec"]["customresourcedefinitions"];
    assert_eq!(
        crds["required"],
        serde_json::json!([{
            "name": "shelves.wood.example.com",
            "version": "v1",
            "kind": "Shelf",
            "displayName": "Shelf",
            "description": "Where cups stand.",
        }])
    );
    let owned = &crds["owned"];
    assert_eq!(
        (&owned[0]["kind"], &owned[1]["kind"]),
        (&"Cup".into(), &"Plate".into())
    );
    assert_eq!(owned[0]["displayName"], "Coffee cup");
    assert_eq!(owned[0]["description"], "Cups on shelves.");
    assert_eq!(
        owned[0]["resources"],
        serde_json::json!([
            { "kind": "Deployment", "name": "", "version": "v1" },
            { "kind": "Shelf", "name": "shelves.wood.example.com", "version": "v1" },
            { "kind": "Event", "name": "", "version": "v1" },
            { "kind": "Cup", "name": "cups.cache.example.com", "version": "v1" },
        ])
    );
    let ui = "urn:alm:descriptor:com.tectonic.ui";
    assert_eq!(
        owned[0]["specDescriptors"],
        serde_json::json!([
            {
                "path": "handles[0].width",
                "displayName": "Width (mm)",
                "description": "Width in millimetres.",
                "x-descriptors": [format!("{ui}:number")],
            },
            {
                "path": "handles",
                "displayName": "Handles",
                "description": "Handles of the cup.",
                "x-descriptors": [format!("{ui}:text"), format!("{ui}:advanced")],
            },
            {
                "path": "foo",
                "displayName": "Foo",
                "description": "foo is an example field; replace it.",
                "x-descriptors": [format!("{ui}:text")],
            },
        ])
    );
    let bundle = documents(&folder, "olm.bundle").remove(0);
    let required = serde_json::json!({
        "type": "olm.gvk.required",
        "value": { "group": "wood.example.com", "version": "v1", "kind": "Shelf" },
    });
    assert!(
        bundle["properties"]
            .as_array()
            .expect("a list")
            .contains(&required),
        "{bundle:#}"
    );
    // It must not matter whether the manifests are generated again.
    let again = folder.run("bundle --manifests=false --check").ok();
    assert!(again.out.starts_with("unchanged"), "{}", again.out);
}

#[test]
fn markers_determine_order_of_kinds() {
    let folder = project();
    folder
        .run("create api --group cache --version v1 --kind Bowl --controller=false")
        .ok();
    let kinds = |folder: &Folder| {
        folder.run("bundle").ok();
        let owned = csv(folder)["spec"]["customresourcedefinitions"]["owned"].clone();
        let owned = owned.as_array().cloned().unwrap_or_default();
        owned
            .iter()
            .map(|owned| owned["kind"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(&folder), ["Cup", "Bowl"]);
    folder.replace(
        "src/api/v1/bowl.rs",
        "pub struct BowlSpec {",
        "#[csv(order = 1)]\npub struct BowlSpec {",
    );
    assert_eq!(kinds(&folder), ["Bowl", "Cup"]);
}

#[test]
fn broken_source_omits_markers_with_a_warning() {
    let folder = project();
    folder.replace(
        "src/api/v1/cup.rs",
        "pub struct CupSpec {",
        "#[csv(order = 1)]\npub struct CupSpec {\n    pub broken: Gone,",
    );
    assert_eq!(folder.run("bundle").code, 1);
    let ran = folder.run("bundle --manifests=false").ok();
    assert!(
        ran.err
            .contains("the source has errors, so the bundle may lack descriptions from `#[csv(…)]`"),
        "{}",
        ran.err
    );
}

#[test]
fn namespaced_manager_has_namespaced_permissions() {
    let folder = Folder::new();
    folder.run(&format!("{} --namespaced", COMMANDS[0])).ok();
    folder.run(COMMANDS[1]).ok();
    folder.run(BUNDLE).ok();
    let csv = csv(&folder);
    let rules = |key: &str| csv["spec"]["install"]["spec"][key].to_string();
    assert!(rules("permissions").contains("cups/status"), "{csv:#}");
    assert!(!rules("clusterPermissions").contains("cups/status"), "{csv:#}");
    let modes = csv["spec"]["installModes"].to_string();
    assert!(
        modes.contains(r#"{"supported":false,"type":"AllNamespaces"}"#),
        "{modes}"
    );
}

#[test]
fn bundle_has_the_shards_of_the_deployment() {
    let folder = project();
    folder.run("edit --enable sharding").ok();
    folder.run(BUNDLE).ok();
    let install = &csv(&folder)["spec"]["install"]["spec"];
    let spec = &install["deployments"][0]["spec"];
    assert_eq!(spec["replicas"], 2);
    assert_eq!(spec["strategy"], serde_json::json!({ "type": "Recreate" }));
    let pod = &spec["template"]["spec"];
    assert_eq!(pod["containers"][0]["args"][0], "--leader-elect=false");
    assert_eq!(pod["topologySpreadConstraints"].as_array().map(Vec::len), Some(2));
    let verbs = serde_json::json!(["list", "create", "update", "patch", "delete"]);
    let rules = install["permissions"][0]["rules"].as_array().expect("rules");
    let leases: Vec<&Value> = rules
        .iter()
        .filter(|rule| rule["resources"][0] == "leases")
        .map(|rule| &rule["verbs"])
        .collect();
    assert_eq!(leases, [&verbs]);
    let budget = "bundle/manifests/shop-controller-manager_policy_v1_poddisruptionbudget.yaml";
    assert!(folder.tree().contains_key(budget));
    folder.run("edit --disable sharding").ok();
    let before = project().tree();
    folder.run(BUNDLE).ok();
    assert_eq!(folder.tree()[CSV], before[CSV]);
}

#[test]
fn version_and_icon_come_from_the_project() {
    let folder = project();
    folder.replace("Cargo.toml", "version = \"0.1.0\"", "version = \"1.4.2-rc.1\"");
    folder.write("icon.svg", "<svg/>");
    folder.run("bundle --icon icon.svg").ok();
    let csv = csv(&folder);
    assert_eq!(csv["spec"]["version"], "1.4.2-rc.1");
    assert_eq!(csv["spec"]["icon"][0]["base64data"], "PHN2Zy8+");
}

#[test]
fn rejects_invalid_bundles() {
    let folder = Folder::new();
    folder.run(COMMANDS[0]).ok();
    for (command, expected) in [
        ("bundle", "the project has no CRD"),
        ("bundle --version 1.2", "expected a version such as `1.2.3`"),
        ("bundle --replaces v1.2.3", "expected a version such as `1.2.3`"),
        (
            "bundle --skip-range ^1.2",
            "expected a range such as `>=0.1.0 <0.3.0`",
        ),
        ("bundle --image=", "expected an image such as"),
        ("bundle --bundle-image=", "expected an image such as"),
        (
            "bundle --channels a:b",
            "expected letters, digits, `-`, `_` and `.`",
        ),
    ] {
        let ran = folder.run(command);
        assert!(
            ran.code != 0 && ran.err.contains(expected),
            "{command}: {}",
            ran.err
        );
    }
    folder.run(COMMANDS[1]).ok();
    for (command, expected) in [
        ("bundle --icon gone.svg", "gone.svg does not exist"),
        ("bundle --icon Cargo.toml", "expected an SVG image in Cargo.toml"),
    ] {
        let ran = folder.run(command);
        assert!(
            ran.code == 1 && ran.err.contains(expected),
            "{command}: {}",
            ran.err
        );
    }
}

/// The lifecycle manager supports no namespace selector. An object selector has to keep the webhook
/// away from its own manager.
#[test]
fn webhook_for_pods_does_not_block_its_manager() {
    let folder = project();
    folder
        .run("create webhook --group core --version v1 --kind Pod --defaulting")
        .ok();
    folder.run(BUNDLE).ok();
    let tree = folder.tree();
    let csv = tree
        .iter()
        .find(|(path, _)| path.ends_with(".clusterserviceversion.yaml"));
    let (_, csv) = csv.expect("a bundle has a ClusterServiceVersion");
    let definition = csv
        .split("  - admissionReviewVersions:")
        .find(|part| part.contains("mpod-v1.kb.io"));
    let expected = "\
    objectSelector:
      matchExpressions:
      - key: app.kubernetes.io/name
        operator: NotIn
        values:
        - shop
";
    assert!(
        definition.is_some_and(|definition| definition.contains(expected)),
        "{csv}"
    );
}

/// Has bindings to roles that are not in config/, and a second service account.
const BINDINGS: &str = include_str!("bundle/bindings.yaml");

/// Only the lifecycle manager knows the namespace in which it binds rules to service accounts.
#[test]
fn binding_permissions_are_in_the_csv_or_warned_of() {
    let folder = project();
    folder.replace(
        "config/rbac/kustomization.yaml",
        "resources:\n",
        "resources:\n- extra.yaml\n",
    );
    folder.write("config/rbac/extra.yaml", BINDINGS);
    let ran = folder.run(BUNDLE).ok();
    for expected in [
        "ClusterRoleBinding `shop-view` is not part of the bundle: ClusterRole `view` is not in config/",
        "ClusterRoleBinding `shop-all` refers to ClusterRole `shop-all`, which aggregates others",
    ] {
        assert!(ran.err.contains(expected), "{}", ran.err);
    }
    let install = &csv(&folder)["spec"]["install"]["spec"];
    let resources = |account: &str| -> Vec<String> {
        let granted = install["clusterPermissions"].as_array().expect("permissions");
        let of_account = granted
            .iter()
            .filter(|granted| granted["serviceAccountName"] == account);
        let rules = of_account.flat_map(|granted| granted["rules"].as_array().into_iter().flatten());
        rules.map(|rule| rule["resources"][0].to_string()).collect()
    };
    let manager = resources("shop-controller-manager");
    for resource in ["\"tokenreviews\"", "\"subjectaccessreviews\"", "\"nodes\""] {
        assert!(manager.contains(&resource.to_owned()), "{resource}: {manager:?}");
    }
    assert_eq!(resources("shop-helper"), ["\"nodes\""]);
    assert_eq!(install["deployments"][1]["name"], "shop-helper");
    // The service accounts of others stay bound.
    let binding = "bundle/manifests/shop-all_rbac.authorization.k8s.io_v1_clusterrolebinding.yaml";
    let binding = &folder.tree()[binding];
    assert!(
        binding.contains("name: prometheus") && !binding.contains("shop-helper"),
        "{binding}"
    );
    let tree = folder.tree();
    let mut manifests = tree.keys().filter(|path| path.starts_with("bundle/manifests/"));
    assert!(
        !manifests.any(|path| path.contains("serviceaccount")),
        "the lifecycle manager creates them"
    );
}

/// The lifecycle manager only creates roles in the namespace of the manager.
#[test]
fn rules_for_another_namespace_become_cluster_wide_with_a_warning() {
    let folder = project();
    let marker = "#[rbac(groups = \"\", resources = \"secrets\", verbs = \"get\", namespace = \"infra\")]\npub async fn reconcile";
    folder.replace("src/controller/cup.rs", "pub async fn reconcile", marker);
    let ran = folder.run(BUNDLE).ok();
    let expected =
        "grants the rules of Role `shop-manager-role-infra` in all namespaces, not only in `infra`";
    assert!(ran.err.contains(expected), "{}", ran.err);
    let install = &csv(&folder)["spec"]["install"]["spec"];
    let grants_secrets = |key: &str| {
        let all = install[key].as_array().expect("permissions");
        let rules = all
            .iter()
            .flat_map(|granted| granted["rules"].as_array().into_iter().flatten());
        rules
            .filter(|rule| rule["resources"][0] == "secrets" && rule["resourceNames"].is_null())
            .count()
    };
    assert_eq!(grants_secrets("clusterPermissions"), 1);
    assert_eq!(grants_secrets("permissions"), 0);
    let tree = folder.tree();
    let mut manifests = tree.keys().filter(|path| path.starts_with("bundle/manifests/"));
    assert!(
        !manifests.any(|path| path.contains("infra")),
        "a file would be a Role of the manager's namespace"
    );
}

#[test]
fn warns_of_what_a_bundle_cannot_express() {
    let folder = project();
    folder.replace(
        "config/webhook/manifests.yaml",
        "  failurePolicy: Fail\n",
        "  failurePolicy: Fail\n  namespaceSelector: {}\n",
    );
    let list = folder.tree()["config/rbac/kustomization.yaml"].clone();
    folder.write("config/rbac/kustomization.yaml", &format!("{list}- quota.yaml\n"));
    folder.write(
        "config/rbac/quota.yaml",
        "apiVersion: v1\nkind: ResourceQuota\nmetadata:\n  name: quota\n",
    );
    let ran = folder.run(&format!("{BUNDLE} --manifests=false")).ok();
    for expected in [
        "`namespaceSelector` of webhook `mcup-v1.kb.io`",
        "ResourceQuota `shop-quota` is not part",
    ] {
        assert!(ran.err.contains(expected), "{}", ran.err);
    }
}
