//! Compares the permissions that the code needs with the markers.

use std::path::Path;

use rbuilder_generator::{Diagnostic, Options, Severity, SourceSet, generate};

use crate::support::{CARGO_TOML, PRELUDE};

/// All cases start with this kind and these imports.
const START: &str = "use k8s_openapi::api::apps::v1::Deployment; \
                     use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret, Service}; \
                     use kube::{Api, Client}; use kube::api::*; \
                     use rbuilder::{Action, ApplySet, Controller, Ctx, Manager, Result, Watch, rbac};\n\
                     #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
                     #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Cup\", namespaced, status = \"CupStatus\")]\n\
                     pub struct CupSpec { size: i32 }\n\
                     #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
                     pub struct CupStatus { size: i32 }\n";

fn said_of(source: &str) -> Vec<Diagnostic> {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", CARGO_TOML);
    sources.insert("src/lib.rs", format!("{PRELUDE}{START}{source}"));
    let options = Options {
        products: vec![rbuilder_generator::Product::Roles],
        ..Options::default()
    };
    generate(&sources, &options).diagnostics
}

fn show(said: &[Diagnostic]) -> Vec<String> {
    said.iter()
        .map(|said| {
            let help = said.help.as_ref().map(|help| format!("; {help}"));
            format!(
                "{:?}: {}{}",
                said.severity,
                said.message,
                help.unwrap_or_default()
            )
        })
        .collect()
}

/// Missing permissions have the form `verbs resource`. Notes are expected as well.
fn check(source: &str, expected: &[&str]) {
    // Add a rule that only `register` needs, because without any rule nothing is compared.
    let source = format!(
        "#[rbac(groups = \"events.k8s.io\", resources = \"events\", verbs = [\"create\", \"patch\"])]\n\
         pub fn register(manager: Manager, cups: Controller<Cup, ()>) -> Manager {{ manager.controller(cups) }}\n{source}"
    );
    let said = said_of(&source);
    let mut found: Vec<String> = said
        .iter()
        .map(|said| match said.message.split_once(", which") {
            Some((missing, _)) => missing
                .replace("the role does not allow ", "missing ")
                .replace('`', ""),
            None => said.message.replace('`', ""),
        })
        .collect();
    found.sort();
    assert_eq!(found, expected, "{source}\n{:#?}", show(&said));
    // If the user writes the markers from the warnings, they must be accepted, and nothing else may
    // be missing.
    let markers: Vec<&str> = said
        .iter()
        .filter(|said| said.severity == Severity::Warning)
        .map(|said| {
            let help = said.help.as_deref().expect("help");
            help.split('`').nth(1).expect("a marker")
        })
        .collect();
    if !markers.is_empty() {
        let cured = said_of(&format!("{}\n{source}", markers.join("\n")));
        assert!(
            cured.iter().all(|said| said.severity == Severity::Note),
            "{:#?}",
            show(&cured)
        );
    }
}

#[test]
fn missing_permission_is_a_warning_with_a_marker() {
    let said = said_of(
        "#[rbac(groups = \"g.example.com\", resources = \"cups\", verbs = [\"list\", \"watch\"])]\n\
         pub fn cups() -> Controller<Cup, ()> { Controller::new(reconcile, ()).owns::<Deployment>() }\n\
         async fn reconcile(cup: Arc<Cup>, ctx: Ctx<()>) -> Result { Ok(Action::await_change()) }",
    );
    assert_eq!(
        show(&said),
        [
            "Warning: the role does not allow `list`, `watch` on `deployments.apps`, which `owns` needs; \
             add `#[rbac(groups = \"apps\", resources = \"deployments\", verbs = [\"list\", \"watch\"])]` to the function"
        ]
    );
}

/// Leaves out the tests of the project.
#[expect(clippy::disallowed_methods, reason = "the test reads the examples")]
fn read_project(folder: &Path, name: &str, sources: &mut SourceSet) {
    for entry in std::fs::read_dir(folder).expect("a directory") {
        let path = entry.expect("an entry").path();
        let file = path.file_name().expect("a name").to_str().expect("UTF-8");
        let name = if name.is_empty() {
            file.to_owned()
        } else {
            format!("{name}/{file}")
        };
        if path.is_dir() {
            if !matches!(file, "target" | "tests") {
                read_project(&path, &name, sources);
            }
        } else if name.ends_with(".rs") || file == "Cargo.toml" {
            sources.insert(name, std::fs::read_to_string(&path).expect("UTF-8"));
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test reads the examples")]
fn roles_of_examples_fit_their_code() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for entry in std::fs::read_dir(examples).expect("the examples") {
        let folder = entry.expect("an entry").path();
        if !folder.join("Cargo.toml").exists() {
            continue;
        }
        let mut sources = SourceSet::default();
        read_project(&folder, "", &mut sources);
        let said = needs_in(&sources);
        assert!(said.is_empty(), "{}: {said:#?}", folder.display());
        for (path, text, marker) in markers_of(&sources) {
            let is_optional = ["finalizers", "events"].iter().any(|word| marker.contains(word));
            let mut fewer = sources.clone();
            fewer.insert(path, text.replace(&marker, ""));
            let said = needs_in(&fewer);
            assert_eq!(
                said.is_empty(),
                is_optional && !said.iter().any(|said| said.contains("events")),
                "{marker} {said:#?}"
            );
        }
    }
}

fn needs_in(sources: &SourceSet) -> Vec<String> {
    let said = show(&generate(sources, &Options::default()).diagnostics);
    said.into_iter().filter(|said| said.contains("need")).collect()
}

/// Returns the markers of the controllers with their files.
fn markers_of(sources: &SourceSet) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for path in sources.paths().filter(|path| path.ends_with(".rs")) {
        let text = sources.get(path).expect("a file").to_owned();
        for (at, _) in text.match_indices("#[rbac(") {
            let end = at + text[at..].find(")]").expect("the end of a marker") + 2;
            found.push((path.to_owned(), text.clone(), text[at..end].to_owned()));
        }
    }
    found
}

/// The permissions of these functions follow from their bodies.
#[test]
fn permissions_are_read_from_types() {
    let reconcile = "async fn f(cup: Arc<Cup>, ctx: Ctx<()>) -> Result<()> ";
    let pods = "missing list on pods";
    for (source, expected) in [
        // Parameters, variables, results of functions, and struct expressions.
        (format!("{reconcile} {{ ctx.apply_status(&*cup, CupStatus {{ size: 1 }}).await?; Ok(()) }}"), &["missing patch on cups.g.example.com/status"][..]),
        (format!("{reconcile} {{ let secret = make(&cup)?; ctx.apply_owned(&*cup, secret).await?; Ok(()) }} fn make(cup: &Cup) -> Result<Secret> {{ todo!() }}"), &["missing get, create, patch on secrets"]),
        (format!("{reconcile} {{ ctx.create_owned(&*cup, Service {{ metadata: m(), ..Default::default() }}).await?; Ok(()) }}"), &["missing get, create on services"]),
        (format!("{reconcile} {{ let map: ConfigMap = serde_json::from_value(json!({{\"a\": [1, 2]}}))?; ctx.create_or_update(map, |map| map.data = None).await?; Ok(()) }}"), &["missing get, create, patch on configmaps"]),
        (format!("{reconcile} {{ for node in ctx.cached::<Node>()?.list() {{ ctx.delete(&*node).await?; }} Ok(()) }}"), &["missing delete on nodes"]),
        (format!("{reconcile} {{ if let Some(pod) = ctx.cached::<Pod>()?.named(\"a\", \"b\") {{ ctx.patch(&*pod, &p).await?; }} Ok(()) }}"), &["missing patch on pods"]),
        (format!("{reconcile} {{ match found() {{ Ok(Some(pod)) if x => ctx.delete(&pod).await?, _ => return Ok(()) }}; Ok(()) }} fn found() -> Result<Option<Pod>> {{ todo!() }}"), &["missing delete on pods"]),
        (format!("{reconcile} {{ ctx.apply_set(&*cup, ApplySet::new().add(make()).add(Service::default())).await?; Ok(()) }} fn make() -> Deployment {{ todo!() }}"), &["missing get, create, patch, delete on deployments.apps", "missing get, create, patch, delete on services", "missing patch on cups.g.example.com"]),
        // Clients of kube.
        (format!("{reconcile} {{ ctx.api::<Pod>(&*cup).list(&p).await?; Ok(()) }}"), &[pods]),
        (format!("{reconcile} {{ let api: Api<Pod> = Api::namespaced(ctx.client(), \"a\"); api.list(&p).await?; Ok(()) }}"), &[pods]),
        (format!("{reconcile} {{ let api = Api::<Pod>::all(ctx.client()); read(&api).await }} async fn read(api: &Api<Pod>) -> Result<()> {{ api.list(&p).await?; Ok(()) }}"), &[pods]),
        ("struct Reader { pods: Api<Pod> } impl Reader { async fn read(&self) { self.pods.list(&p).await; } }".into(), &[pods]),
        // Fields and methods of the type that a type dereferences to.
        ("struct Inner { pods: Api<Pod> } struct Outer { inner: Inner } impl std::ops::Deref for Outer { type Target = Inner; fn deref(&self) -> &Self::Target { &self.inner } } async fn f(outer: Outer) { outer.pods.list(&p).await; }".into(), &[pods]),
        ("struct Pods { api: Api<Pod> } impl std::ops::Deref for Pods { type Target = Api<Pod>; fn deref(&self) -> &Api<Pod> { &self.api } } async fn f(of: Pods) { of.list(&p).await; }".into(), &[pods]),
        ("struct A { b: B } struct B { a: Box<A> } impl std::ops::Deref for A { type Target = B; fn deref(&self) -> &B { &self.b } } impl std::ops::Deref for B { type Target = A; fn deref(&self) -> &A { &self.a } } async fn f(a: A) { a.pods.list(&p).await; a.read().await; }".into(), &[]),
        ("async fn evict(pods: Api<Pod>) { pods.evict(\"a\", &p).await; pods.get_subresource(\"resize\", \"a\").await; }".into(), &["missing create on pods/eviction", "missing get on pods/resize"]),
        // Generic functions count once for each type with which they are called.
        ("async fn read<K: Resource>(api: &Api<K>) { api.list(&p).await; } async fn f(pods: Api<Pod>, nodes: Api<Node>) { read(&pods).await; read(&nodes).await; }".into(), &["missing list on nodes", pods]),
        // Controllers need permissions for functions, closures and watches.
        ("fn c(cups: Controller<Cup, ()>) -> Controller<Cup, ()> { cups.watches(|pod: &Pod, _| vec![]).watch(Watch::<Secret>::owned()).watch(Watch::mapped(map)).finalizer(\"a\", f) } fn map(node: &Node, ctx: &Ctx<()>) -> Vec<Cup> { vec![] }".into(), &["missing list, watch on nodes", "missing list, watch on pods", "missing list, watch on secrets", "missing patch on cups.g.example.com"]),
        ("fn c() -> Controller<Cup, ()> { Controller::new(|cup, ctx| async move { Ok(Action::await_change()) }, ()) }".into(), &["missing list, watch on cups.g.example.com"]),
        // Other clusters don't matter.
        ("async fn f(ctx: Ctx<State>, pod: Pod) { ctx.in_cluster(&ctx.edge).delete(&pod).await; } struct State { edge: rbuilder::Cluster }".into(), &[]),
        ("async fn f(edge: rbuilder::Cluster) { Api::<Pod>::all(edge.client()).list(&p).await; }".into(), &[]),
        // If we can't tell a permission, we say so.
        ("async fn f(ctx: Ctx<()>) { ctx.delete(&*unknown()).await; }".into(), &["cannot tell the kind for which delete needs delete, so this is not compared with the role"]),
        ("async fn f(api: Api<DynamicObject>) { api.list(&p).await; }".into(), &["the kind for which list needs list is known only at run time, so this is not compared with the role"]),
        // Tests aren't part of the program.
        ("#[cfg(test)] mod tests { async fn f(pods: Api<Pod>) { pods.list(&p).await; } }".into(), &[]),
    ] {
        check(&source, expected);
    }
}

#[test]
fn permission_that_nothing_needs_is_a_note() {
    let pods = "#[rbac(groups = \"\", resources = \"pods\", verbs = [\"get\", \"list\", \"delete\"])]";
    for (source, expected) in [
        (
            "pods.list(&p).await;",
            &["nothing in the source needs delete on pods"][..],
        ),
        ("pods.list(&p).await; pods.delete(\"a\", &p).await;", &[]),
        // Elsewhere, anything can be done with the client.
        ("pods.list(&p).await; elsewhere::sweep(pods).await;", &[]),
        ("pods.list(&p).await; elsewhere::sweep(ctx.client()).await;", &[]),
    ] {
        check(
            &format!("{pods} async fn f(pods: Api<Pod>, ctx: Ctx<()>) {{ {source} }}"),
            expected,
        );
    }
}

#[test]
fn wildcards_that_grant_more_than_needed_are_notes() {
    let marker = |resources: &str, verbs: &str| {
        format!("#[rbac(groups = \"\", resources = \"{resources}\", verbs = \"{verbs}\")]")
    };
    let all = "pods.get(\"a\").await; pods.list(&p).await; pods.watch(&p, \"0\").await; \
               pods.create(&p, &pod).await; pods.replace(\"a\", &p, &pod).await; \
               pods.patch(\"a\", &p, &Patch::Merge(&pod)).await; pods.delete(\"a\", &p).await; \
               pods.delete_collection(&p, &l).await;";
    let secrets = "secrets.list(&p).await;";
    for (marker, source, expected) in [
        (
            marker("pods", "*"),
            "pods.list(&p).await;",
            &["the source only needs get, list on pods, not *"][..],
        ),
        (marker("pods", "*"), all, &[]),
        (
            marker("pods;secrets", "*"),
            all,
            &["nothing in the source needs * on secrets"],
        ),
        (
            marker("*", "get;list"),
            "pods.list(&p).await;",
            &["nothing in the source needs get, list on secrets"],
        ),
        (marker("*", "get;list"), secrets, &[]),
        // Elsewhere, anything can be done with the client.
        (
            marker("*", "*"),
            "elsewhere::sweep(pods.into_client()).await;",
            &[],
        ),
    ] {
        check(
            &format!(
                "{marker} async fn f(pods: Api<Pod>, secrets: Api<Secret>, ctx: Ctx<()>) {{ {source} }}"
            ),
            expected,
        );
    }
}

#[test]
fn derived_marker_grants_what_the_code_needs() {
    let run = |marker: &str, code: &str| {
        let mut sources = SourceSet::default();
        sources.insert("Cargo.toml", CARGO_TOML);
        sources.insert("src/lib.rs", format!("{PRELUDE}{START}{marker} {code}"));
        let generated = generate(&sources, &Options::default());
        let role = generated.files.iter().find(|file| file.path == "rbac/role.yaml");
        (
            role.map(|role| role.text.clone()).unwrap_or_default(),
            show(&generated.diagnostics),
        )
    };
    let code = "fn c() -> Controller<Cup, ()> { Controller::new(reconcile, ()).owns::<Deployment>() }\n\
                async fn reconcile(cup: Arc<Cup>, ctx: Ctx<()>) -> Result { \
                let made = ctx.apply_owned(&*cup, Deployment::default()).await?; Ok(Action::await_change()) }\n\
                async fn nodes(api: Api<Node>) { api.list(&p).await; }";
    let rules = |text: &str| {
        let rules = text
            .lines()
            .filter(|line| line.starts_with("  - ") || line.starts_with("kind"));
        rules
            .map(|line| line.trim_start_matches("  - ").to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let (role, said) = run("#[rbac(derived)]", code);
    assert_eq!(said, [""; 0]);
    assert_eq!(
        rules(&role),
        "kind: ClusterRole \"\" nodes list apps deployments create get list patch watch \
         g.example.com cups list watch g.example.com cups/finalizers update"
    );
    let (role, said) = run("#[rbac(derived, namespace = \"own\")]", code);
    assert_eq!(said, [""; 0]);
    assert_eq!(
        rules(&role),
        "kind: ClusterRole \"\" nodes list kind: Role apps deployments create get list patch watch \
         g.example.com cups list watch g.example.com cups/finalizers update"
    );
    let (_, said) = run(
        "#[rbac(derived)]",
        "async fn f(ctx: Ctx<()>) { ctx.delete(&*unknown()).await; elsewhere::sweep(ctx.client()); }",
    );
    assert_eq!(
        said,
        [
            "Warning: cannot tell the kind for which `delete` needs `delete`, so the derived rules do not allow it; \
             write a marker with the permissions that it needs",
            "Warning: `sweep` receives a client and is not followed, so the derived rules do not allow it; \
             write a marker with the permissions that it needs",
        ]
    );
    let (_, said) = run("#[rbac(derived)]", "fn f() {}");
    assert!(
        said[0].starts_with("Warning: no call in the source needs a permission"),
        "{said:?}"
    );
    let (_, said) = run("#[rbac(derived, verbs = \"get\")]", code);
    assert!(
        said[0].starts_with("Error: `derived` and `verbs` exclude each other"),
        "{said:?}"
    );
}

/// This project only uses kube, not our library.
const KUBE_PROJECT: &str = "use std::sync::Arc;\n\
use k8s_openapi::api::apps::v1::Deployment;\n\
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};\n\
use kube::api::{Patch, PatchParams};\n\
use kube::runtime::events::{Recorder, Reporter};\n\
use kube::runtime::{Controller, watcher};\n\
use kube::{Api, Client};\n\
#[derive(kube::CustomResource, schemars::JsonSchema, serde::Serialize, serde::Deserialize, Clone, Debug)]\n\
#[kube(group = \"shop.example.com\", version = \"v1\", kind = \"Cup\", namespaced, status = \"CupStatus\")]\n\
pub struct CupSpec { pub size: i32 }\n\
#[derive(schemars::JsonSchema, serde::Serialize, serde::Deserialize, Clone, Debug)]\n\
pub struct CupStatus { pub size: i32 }\n";

fn draft(source: &str) -> rbuilder_generator::rbac::DraftedRole {
    let mut sources = SourceSet::default();
    sources.insert(
        "Cargo.toml",
        "[package]\nname = \"cafe\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nkube = \"3\"\nk8s-openapi = \"0.27\"\nschemars = \"1\"\nserde = \"1\"\nelsewhere = \"1\"\n",
    );
    sources.insert("src/main.rs", format!("{KUBE_PROJECT}{source}"));
    rbuilder_generator::rbac::draft_role(&sources, &Options::default())
}

#[track_caller]
fn check_draft(source: &str, markers: &[&str], unfollowed: &[&str]) {
    let drafted = draft(source);
    let found: Vec<String> = drafted
        .markers
        .iter()
        .map(|marker| format!("{} {}/{}", marker.verbs.join(","), marker.group, marker.resource))
        .collect();
    assert_eq!(found, markers, "{source}");
    let messages: Vec<&str> = drafted
        .unfollowed
        .iter()
        .map(|unfollowed| unfollowed.message.as_str())
        .collect();
    assert_eq!(messages, unfollowed, "{source}");
}

#[test]
fn role_is_drafted_without_the_library() {
    check_draft(
        "struct Data { client: Client }\n\
         async fn reconcile(cup: Arc<Cup>, data: Arc<Data>) -> Result<(), kube::Error> {\n\
             let deployments: Api<Deployment> = Api::namespaced(data.client.clone(), \"a\");\n\
             deployments.patch(\"a\", &p, &Patch::Apply(make(&cup))).await?;\n\
             let secrets = Api::<Secret>::namespaced(data.client.clone(), \"a\");\n\
             secrets.get_opt(\"a\").await?;\n\
             let nodes: Api<Node> = Api::all(data.client.clone());\n\
             nodes.patch(\"a\", &p, &Patch::Merge(make(&cup))).await?;\n\
             let cups: Api<Cup> = Api::namespaced(data.client.clone(), \"a\");\n\
             cups.patch_status(\"a\", &p, &Patch::Merge(status)).await?;\n\
             Ok(())\n\
         }\n\
         #[tokio::main]\n\
         async fn main() {\n\
             let client = Client::try_default().await.unwrap();\n\
             Controller::new(Api::<Cup>::all(client.clone()), watcher::Config::default())\n\
                 .owns(Api::<Deployment>::all(client.clone()), watcher::Config::default())\n\
                 .run(reconcile, error_policy, Arc::new(Data { client }));\n\
         }\n",
        &[
            "patch /nodes",
            "get /secrets",
            "list,watch,create,patch apps/deployments",
            "list,watch shop.example.com/cups",
            "patch shop.example.com/cups/status",
        ],
        &[],
    );
}

#[test]
fn draft_says_what_is_not_followed() {
    check_draft(
        "async fn f(client: Client, api: Api<kube::api::DynamicObject>, secrets: Api<Secret>) {\n\
             api.delete(\"a\", &p).await;\n\
             elsewhere::sweep(client.clone()).await;\n\
             elsewhere::rotate(&secrets).await;\n\
             unknown_to_us(client).list(&p).await;\n\
             Api::<elsewhere::Saucer>::all(client).list(&p).await;\n\
         }\n",
        &[],
        &[
            "the kind for which `delete` needs `delete` is known only at run time",
            "`sweep` receives a client and is not followed",
            "`rotate` receives an `Api` of `secrets` and is not followed",
            "`unknown_to_us` receives a client and is not followed",
            "`list` needs `list` on the resource of `elsewhere::Saucer`, which another crate declares",
        ],
    );
    check_draft(
        "mod broken { fn f( }\n",
        &[],
        &["syntax error: mismatched closing delimiter `}` for `(`"],
    );
}

#[test]
fn draft_has_only_what_no_marker_grants() {
    let source = "async fn f(secrets: Api<Secret>, maps: Api<ConfigMap>) { secrets.get(\"a\").await; maps.get(\"a\").await; maps.list(&p).await; }\n";
    check_draft(
        &format!(
            "#[rbuilder::rbac(groups = \"\", resources = \"secrets;configmaps\", verbs = \"get\")]\n{source}"
        ),
        &["list /configmaps"],
        &[],
    );
    let drafted = draft(source);
    let [maps, secrets] = drafted.markers.as_slice() else {
        panic!("two markers: {drafted:?}");
    };
    assert_eq!(
        secrets.text,
        "#[rbac(groups = \"\", resources = \"secrets\", verbs = [\"get\"])]"
    );
    let calls: Vec<&str> = maps.calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(calls, ["get", "list"]);
}
