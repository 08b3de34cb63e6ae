use super::*;

/// `expected` has an entry `Kind: code` for each change.
fn check(body: &str, expected: &[&str]) {
    let found: Vec<String> = find_patches(body)
        .into_iter()
        .map(|(kind, span)| format!("{}: {}", kind.join("::"), &body[span.range()]))
        .collect();
    assert_eq!(found, expected, "{body}");
}

#[test]
fn detects_assignments() {
    check(
        "let mut crd = Cup::crd(); crd.spec.versions[0].served = false; crd.spec.scope = s;",
        &["Cup: crd.spec.versions[0].served"],
    );
    check(
        "let mut crd = <m::Cup as kube::CustomResourceExt>::crd();\ncrd.metadata.annotations = Some(a());",
        &["m::Cup: crd.metadata.annotations"],
    );
    check(
        "let mut v = serde_json::to_value(m::Cup::crd()).expect(\"x\"); v[\"spec\"][\"x\"] = json!(1);",
        &["m::Cup: v[\"spec\"][\"x\"]"],
    );
    check(
        "let crd = Cup::crd(); let mut copy: CustomResourceDefinition = crd.clone(); copy.spec.scope += \"x\";",
        &["Cup: copy.spec.scope"],
    );
    check("let mut crd = Cup::crd(); crd = changed(crd);", &["Cup: crd"]);
    check(
        "let mut crd = merge_crds(vec![v1::Cup::crd(), v2::Cup::crd()], \"v1\")?; if a { crd.spec.conversion = None; }",
        &["v1::Cup: crd.spec.conversion", "v2::Cup: crd.spec.conversion"],
    );
}

#[test]
fn detects_mutating_methods() {
    check(
        "let mut crd = Cup::crd(); crd.spec.versions.iter_mut().for_each(|v| v.schema = None);",
        &["Cup: crd.spec.versions.iter_mut()"],
    );
    check(
        "let mut crd = Cup::crd(); if let Some(a) = crd.metadata.annotations.as_mut() { a.insert(k, v); }",
        &["Cup: crd.metadata.annotations.as_mut()"],
    );
    check(
        "let mut crd = Cup::crd(); crd.annotations_mut().insert(k, v);",
        &["Cup: crd.annotations_mut()"],
    );
    check(
        "let mut crd = Cup::crd(); crd.spec.versions.push(other);",
        &["Cup: crd.spec.versions.push(other)"],
    );
    check(
        "let mut crd = Cup::crd(); crd.metadata.annotations.get_or_insert_with(Default::default).insert(k, v);",
        &["Cup: crd.metadata.annotations.get_or_insert_with(Default::default)"],
    );
    check(
        "let mut crd = Cup::crd(); crd.metadata.labels.take();",
        &["Cup: crd.metadata.labels.take()"],
    );
}

#[test]
fn detects_mutable_borrows() {
    check(
        "let mut crd = Cup::crd(); normalize(&mut crd); other(&mut crd);",
        &["Cup: &mut crd"],
    );
    check(
        "let mut crd = Self::crd(); for v in &mut crd.spec.versions { v.served = true }",
        &["Self: &mut crd.spec.versions"],
    );
    check("show(&normalize(&mut Cup::crd()))", &["Cup: &mut Cup::crd()"]);
    check(
        "let crd = CustomResourceDefinition { metadata: m(), ..Cup::crd() };",
        &["Cup: Cup::crd()"],
    );
}

#[test]
fn detects_changes_through_lists() {
    check(
        "let mut all = vec![Cup::crd(), Pot::crd()]; for crd in all.iter_mut() { label(crd) }",
        &["Cup: all.iter_mut()", "Pot: all.iter_mut()"],
    );
    check(
        "for mut crd in [Cup::crd(), Pot::crd()] { crd.spec.scope = s; }",
        &["Cup: crd.spec.scope", "Pot: crd.spec.scope"],
    );
    check(
        "let mut all = Vec::new(); all.push(Cup::crd()); for crd in &mut all { label(crd) }",
        &["Cup: &mut all"],
    );
}

#[test]
fn ignores_unmodified_crds() {
    for body in [
        "print!(\"{}\", serde_yaml::to_string(&Cup::crd()).unwrap())",
        "let crd = Cup::crd(); api.create(&PostParams::default(), &crd).await?;",
        "let mut text = serde_yaml::to_string(&Cup::crd())?; text.push_str(\"---\\n\");",
        "let mut all = vec![Cup::crd()]; all.push(Pot::crd()); all.extend(more()); all.sort_by_key(name);",
        "let mut all = Vec::new(); all.push(Cup::crd()); let first = all.pop();",
        "let mut crd = Cup::crd(); crd.metadata.resource_version = old.resource_version();",
        "let mut crd = Cup::crd(); crd.status = None; crd.finalizers_mut().clear();",
        "let mut crd = Cup::crd(); let schema = crd.spec.versions.remove(0).schema.take().unwrap();",
        "let mut crd = Cup::crd(); crd = Pot::crd(); assert_eq!(crd.spec.scope, x); if crd.spec.group == g {}",
        "let crd = Cup::crd(); let mut names = crd.spec.names.clone(); names.kind = k; names.list.push(1);",
        "let crd = Cup::crd(); let mut crd = other(); crd.spec.scope = s;",
        "let mut crd = api.get(\"x\").await?; crd.spec.scope = s; Cup::crd();",
        "let mut crd = Cup::crd(); crd = api.create(&p, &crd).await?; crd.spec.scope = s;",
        "let name = Cup::crd().metadata.name.unwrap(); out.crd.spec = 1;",
        "let Some(crd) = Cup::crd().spec else { return }; let (mut a, b) = (Cup::crd(), 1);",
    ] {
        check(body, &[]);
    }
}

#[test]
fn handles_long_bodies() {
    let mut body = String::new();
    for at in 0..8000 {
        body.push_str(&format!("all.push(K{at}::crd());"));
    }
    body.push_str(&"f(&mut all);let b = all;f(&mut b);".repeat(3000));
    assert_eq!(find_patches(&body).len(), 8000);
}
