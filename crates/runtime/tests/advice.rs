//! Compiles the types that the generator suggests in place of schemars' derive.

#[path = "../../generator/tests/advice/after.rs"]
mod after;
#[rustfmt::skip] // the generator compares its text
#[path = "../../generator/tests/advice/corrected.rs"]
mod corrected;
#[path = "../../generator/tests/advice/go_markers.rs"]
mod go_markers;

#[test]
fn suggested_types_compile_and_have_a_schema() {
    let schema = schemars::schema_for!(after::same_form::Root);
    assert_eq!(schema.as_value()["required"], serde_json::json!(["a"]));
}

#[test]
fn corrected_sources_compile_and_have_a_schema() {
    use kube::CustomResourceExt as _;

    // This is `minimun = 1` with the typo fixed.
    let crd = serde_json::to_value(corrected::field_40::Widget::crd()).expect("JSON");
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(schema["properties"]["spec"]["properties"]["size"]["minimum"], 1.0);
}

/// Compiles a function with the library that this test is linked to. Returns the messages.
fn compile(function: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("operator.rs");
    let imports = "use std::sync::Arc;\n\
                   use rbuilder::k8s_openapi::api::core::v1::ConfigMap;\n\
                   use rbuilder::kube::api::DynamicObject;\n\
                   use rbuilder::{Action, ApplySet, Controller, Ctx, Result};\n";
    std::fs::write(&source, format!("#![allow(unused)]\n{imports}{function}\n")).unwrap();
    let program = std::env::current_exe().unwrap();
    let dependencies = program.parent().unwrap();
    let is_library = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("librbuilder-") && name.ends_with(".rlib")
    };
    let files = std::fs::read_dir(dependencies).unwrap();
    let libraries = files.map(|file| file.unwrap().path()).filter(is_library);
    // Builds with other features may have left others.
    let library = libraries.max_by_key(|path| path.metadata().unwrap().modified().unwrap());
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = std::process::Command::new(rustc)
        .args([
            "--edition=2024",
            "--crate-type=lib",
            "--emit=metadata",
            "--extern",
        ])
        .arg(format!("rbuilder={}", library.unwrap().display()))
        .arg(format!("-Ldependency={}", dependencies.display()))
        .arg("--out-dir")
        .arg(folder.path())
        .arg(&source)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn compiler_names_the_remedy() {
    let check = |function: &str, expected: &[&str]| {
        let messages = compile(function);
        for part in expected {
            assert!(messages.contains(part), "{part}\n{messages}");
        }
        assert_eq!(messages.is_empty(), expected.is_empty(), "{messages}");
        let lines = messages.lines().count();
        assert!(lines <= 18, "{lines} lines\n{messages}");
    };
    let apply = |owner: &str| {
        format!(
            "async fn reconcile(map: Arc<ConfigMap>, ctx: Ctx<()>) -> Result {{
                ctx.apply_owned({owner}, ConfigMap::default()).await?;
                Ok(Action::await_change())
            }}"
        )
    };
    let missing = "`Arc<ConfigMap>` is not a Kubernetes object";
    check(&apply("&map"), &[missing, "pass the object: `&*object`"]);
    check(&apply("&*map"), &[]);
    let control =
        "async fn reconcile(map: Arc<DynamicObject>, ctx: Ctx<()>) -> Result { Ok(Action::await_change()) }
                   fn control() { let _ = Controller::new(reconcile, ()); }";
    let missing = "`DynamicObject` is not a Kubernetes object of a kind that is known at compile time";
    check(control, &[missing, "`Controller::dynamic`"]);
    let api = "fn api(map: Arc<ConfigMap>, ctx: Ctx<()>) { ctx.api::<ConfigMap>(&map); }";
    check(
        api,
        &[
            "`Arc<ConfigMap>` is not a Kubernetes object",
            "pass the object: `&*object`",
        ],
    );
    let status = "async fn status(map: &ConfigMap, ctx: Ctx<()>) -> Result<ConfigMap> {
                      ctx.apply_status(map, ()).await
                  }";
    check(status, &["`ConfigMap` is not a Kubernetes object with a status"]);
    let optional = "fn set(map: Option<ConfigMap>) -> ApplySet { ApplySet::new().add(map) }";
    check(
        optional,
        &[
            "Option<ConfigMap>` is not a Kubernetes object",
            "`ApplySet::extend`",
        ],
    );
}
