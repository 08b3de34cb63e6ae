//! Tests for finding and replacing CRDs in files.

use std::collections::BTreeMap;

use super::*;

fn crd(plural: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: {plural}.x.io\nspec:\n  group: x.io\n  names:\n    plural: {plural}\n"
    )
}

fn generated(plural: &str) -> String {
    let annotated = "metadata:\n  annotations:\n    rbuilder.dev/version: 0.1.0\n";
    format!(
        "---\n{}  scope: Cluster\n",
        crd(plural).replace("metadata:\n", annotated)
    )
}

#[track_caller]
fn check_found(text: &str, expected: &[(&str, Option<&str>)]) {
    let found = CrdFile::parse(text, false).list_crds();
    let found: Vec<(&str, Option<&str>)> = found
        .iter()
        .map(|crd| (crd.name.as_str(), crd.obstacle.as_deref()))
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn finds_crds_among_other_content() {
    let (cups, pots) = (crd("cups"), crd("pots"));
    check_found(&format!("# Made.\n---\n{cups}"), &[("cups.x.io", None)]);
    check_found("kind: Role\n", &[]);
    check_found(
        &format!("{cups}---\n{pots}---\nkind: Role\n"),
        &[("cups.x.io", None), ("pots.x.io", None)],
    );
    check_found(
        &format!("{cups}---\n{cups}"),
        &[
            ("cups.x.io", Some("it is in the file more than once")),
            ("cups.x.io", Some("it is in the file more than once")),
        ],
    );
    let items = format!("kind: List\nitems:\n- {}", cups.trim_end().replace('\n', "\n  "));
    check_found(&items, &[("cups.x.io", Some("it is in a list"))]);
    check_found(
        &format!("{{{{- if .Values.crds }}}}\n{cups}{{{{- end }}}}\n"),
        &[("cups.x.io", None)],
    );
    check_found(
        &cups.replace("group: x.io\n", "group: x.io\n  scope: {{ .Values.scope }}\n"),
        &[("cups.x.io", Some("its `spec` contains template expressions"))],
    );
    check_found(
        &format!("{{{{- if .Values.crds }}}}\n{cups}{{{{- end }}}}\n")
            .replace("k8s.io/v1\n", "k8s.io/v1beta1\n"),
        &[(
            "cups.x.io",
            Some("its `apiVersion` is not `apiextensions.k8s.io/v1`"),
        )],
    );
    check_found(
        &format!("{cups}  broken: [\n---\n{pots}"),
        &[("pots.x.io", None), ("cups.x.io", Some("it is not valid YAML"))],
    );
}

/// Writes the generated CRDs with these plurals twice; the second time must be a no-op.
#[track_caller]
fn write(text: &str, is_rendered: bool, plurals: &[&str], removes: bool) -> Result<String, String> {
    let crds: BTreeMap<String, String> = plurals
        .iter()
        .map(|plural| (format!("{plural}.x.io"), generated(plural)))
        .collect();
    let written = CrdFile::parse(text, is_rendered).write(&crds, &|_| removes)?;
    let again = CrdFile::parse(&written, is_rendered).write(&crds, &|_| removes);
    assert_eq!(again.as_deref(), Ok(written.as_str()), "the second run");
    Ok(written)
}

#[test]
fn generated_crds_replace_crds_of_the_same_name() {
    let check = |text: &str, plurals: &[&str], expected: &str| {
        assert_eq!(
            write(text, false, plurals, false).as_deref(),
            Ok(expected),
            "{text}"
        );
    };
    let (cups, pots) = (generated("cups"), generated("pots"));
    let body = |text: &str| text.trim_start_matches("---\n").to_owned();
    check("", &["pots", "cups"], &format!("{cups}{pots}"));
    check(&format!("# Ours.\n{}", crd("cups")), &["cups"], &cups);
    check(
        &format!("# Ours.\n{}---\n{}", crd("pots"), crd("cups")),
        &["cups", "pots"],
        &format!("# Ours.\n{}{cups}", body(&pots)),
    );
    check(
        &format!(
            "kind: Role\n--- # the CRD\n\n{}\n# next\n---\nkind: B",
            crd("cups")
        ),
        &["cups", "pots"],
        &format!(
            "kind: Role\n--- # the CRD\n\n{}\n# next\n---\nkind: B\n{pots}",
            body(&cups)
        ),
    );
    check(
        &format!("--- {{kind: A}}\n---\n{}", crd("cups")),
        &["cups"],
        &format!("--- {{kind: A}}\n{cups}"),
    );
    check(
        &format!("{}---\r\nkind: A\r\n", crd("cups").replace('\n', "\r\n")),
        &["cups"],
        &format!("{}---\nkind: A\n", body(&cups)),
    );
}

#[test]
fn crds_that_are_no_longer_generated_are_removed_from_files() {
    let foreign = crd("cans");
    let text = format!("{}{}---\n{foreign}", generated("cups"), generated("pots"));
    let expected = format!("{}---\n{foreign}", generated("cups"));
    assert_eq!(
        write(&text, false, &["cups"], true).as_deref(),
        Ok(expected.as_str())
    );
    assert_eq!(
        write(&text, false, &["cups"], false).as_deref(),
        Ok(text.as_str())
    );
    assert_eq!(write(&generated("cups"), false, &[], true).as_deref(), Ok(""));
}

#[test]
fn only_the_spec_of_a_template_is_written() {
    let head = "{{- if .Values.crds }}\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: cups.x.io\n  labels:\n    {{- include \"labels\" . | nindent 4 }}\n";
    let spec = "spec:\n  group: x.io\n  names:\n    plural: cups\n";
    let tail = "{{- end }}\n---\nkind: Role\n";
    let text = format!("{head}{spec}{tail}");
    let expected = format!("{head}{spec}  scope: Cluster\n{tail}");
    for is_rendered in [true, false] {
        assert_eq!(
            write(&text, is_rendered, &["cups"], true).as_deref(),
            Ok(expected.as_str())
        );
    }
    let error = write(&text, true, &["cups", "pots"], true).expect_err("it has no CRD of pots");
    assert!(
        error.contains("has no CRD `pots.x.io`: add a document"),
        "{error}"
    );
    let filled = format!("{head}spec: {{}}\n{tail}");
    assert_eq!(
        write(&filled, true, &["cups"], true).as_deref(),
        Ok(expected.as_str())
    );
}

#[test]
fn metadata_that_a_template_lacks_is_an_error() {
    let text = format!("{{{{ if .a }}}}\n{}{{{{ end }}}}\n", crd("cups"));
    let labelled =
        generated("cups").replace("  annotations:\n", "  labels:\n    tier: gold\n  annotations:\n");
    let crds = BTreeMap::from([("cups.x.io".to_owned(), labelled)]);
    let error = CrdFile::parse(&text, true)
        .write(&crds, &|_| false)
        .expect_err("no label");
    assert!(
        error.contains("`metadata.labels` of the CRD: add `tier: \"gold\"`"),
        "{error}"
    );
    let with_label = text.replace("metadata:\n", "metadata:\n  labels:\n    tier: gold\n");
    assert!(CrdFile::parse(&with_label, true).write(&crds, &|_| false).is_ok());
}

/// Helm renders every file in `templates`, with or without expressions.
#[test]
fn braces_of_descriptions_are_escaped_where_helm_renders_them() {
    let with_braces = generated("cups").replace("scope: Cluster", "scope: 'as {{ .name }}'");
    let crds = BTreeMap::from([("cups.x.io".to_owned(), with_braces.clone())]);
    let plain = CrdFile::parse(&crd("cups"), false).write(&crds, &|_| false);
    assert_eq!(plain.as_deref(), Ok(with_braces.as_str()));
    let rendered = CrdFile::parse(&crd("cups"), true)
        .write(&crds, &|_| false)
        .expect("a CRD");
    assert_eq!(
        rendered,
        with_braces.replace("{{ .name }}", "{{ \"{{\" }} .name }}")
    );
    let again = CrdFile::parse(&rendered, true);
    assert_eq!(again.write(&crds, &|_| false).as_deref(), Ok(rendered.as_str()));
    assert!(!again.is_template());
    assert_eq!(
        again.read_crd("cups.x.io").expect("a CRD")["spec"]["scope"],
        "as {{ .name }}"
    );
}
