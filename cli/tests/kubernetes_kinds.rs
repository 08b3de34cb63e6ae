//! Commands about Kubernetes' own kinds say what to write by hand, and what they say is complete.

#[path = "support/mod.rs"]
mod support;

use support::Folder;

fn project(flags: &str) -> Folder {
    let folder = Folder::new();
    folder
        .run(&format!("init --domain example.com --project-name shop {flags}"))
        .ok();
    folder
}

/// Returns the error of a command that writes nothing.
fn refusal(folder: &Folder, command: &str) -> String {
    let before = folder.tree();
    let ran = folder.run(command);
    assert_eq!(ran.code, 1, "{command}");
    assert_eq!(folder.tree(), before);
    ran.err
}

/// The indented lines below the line that names a file to write.
fn file<'a>(said: &'a str, path: &str) -> String {
    let (_, rest) = said.split_once(&format!("create {path}:\n\n")).expect(said);
    let is_code = |line: &&'a str| line.is_empty() || line.starts_with("    ");
    let lines = rest.lines().take_while(is_code);
    let lines = lines.map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line)));
    lines.collect()
}

fn change(folder: &Folder, path: &str, from: &str, to: &str) {
    let text = folder.tree()[path].clone();
    assert!(text.contains(from), "{path}:\n{text}");
    folder.write(path, &text.replacen(from, to, 1));
}

#[test]
fn a_controller_is_written_by_hand() {
    for flags in ["", "--namespaced", "--multigroup"] {
        let folder = project(flags);
        let said = refusal(
            &folder,
            "create api --group apps --version v1 --kind Deployment --resource=false",
        );
        assert!(
            said.contains("`Deployment` in apps/v1, which is a built-in kind of Kubernetes"),
            "{said}"
        );
        let code = file(&said, "src/controller/deployment.rs");
        assert!(
            code.contains("use k8s_openapi::api::apps::v1::Deployment;\n"),
            "{code}"
        );
        folder.write("src/controller/deployment.rs", &code);
        for line in [
            "pub mod deployment;",
            "manager.controller(deployment::controller())",
        ] {
            assert!(said.contains(&format!("    {line}\n")), "{said}");
        }
        let list = "src/controller/mod.rs";
        change(
            &folder,
            list,
            "use rbuilder",
            "pub mod deployment;\n\nuse rbuilder",
        );
        change(
            &folder,
            list,
            "    manager\n",
            "    manager.controller(deployment::controller())\n",
        );
        folder.run("manifests").ok();
        let role = &folder.tree()["config/rbac/role.yaml"];
        assert!(role.contains("- deployments\n"), "{role}");
        assert_eq!(
            role.matches("kind: Role\n").count(),
            usize::from(flags == "--namespaced"),
            "{role}"
        );
        assert_eq!(
            role.contains("kind: ClusterRole\n"),
            flags != "--namespaced",
            "{role}"
        );
    }
}

#[test]
fn groups_are_known_as_people_write_them() {
    let folder = project("");
    for (group, version, kind, known) in [
        ("core", "v1", "Pod", true),
        ("networking", "v1", "Ingress", true),
        ("networking.k8s.io", "v1", "Ingress", true),
        ("apps", "v2", "Deployment", false),
        ("apps", "v1", "Cup", false),
        ("cache", "v1", "Pod", false),
    ] {
        for command in ["api --resource=false", "webhook --validation"] {
            let said = refusal(
                &folder,
                &format!("create {command} --group {group} --version {version} --kind {kind}"),
            );
            assert_eq!(said.contains("is a built-in kind of Kubernetes"), known, "{said}");
        }
    }
}

#[test]
fn a_webhook_is_written_by_hand() {
    // A project that serves webhooks needs its handlers only.
    let folder = project("");
    folder.run("create api --group any --version v1 --kind Any").ok();
    folder
        .run("create webhook --group any --version v1 --kind Any --defaulting --validation")
        .ok();
    let said = refusal(
        &folder,
        "create webhook --group core --version v1 --kind Pod --validation",
    );
    assert!(!said.contains("has no webhook server yet"), "{said}");
    let code = file(&said, "src/webhook/pod.rs");
    folder.write("src/webhook/pod.rs", &code);
    let list = "src/webhook/mod.rs";
    change(&folder, list, "pub mod v1;", "pub mod pod;\npub mod v1;");
    folder.run("manifests").ok();
    let manifests = folder.tree()["config/webhook/manifests.yaml"].clone();
    for path in ["path: /mutate--v1-pod\n", "path: /validate--v1-pod\n"] {
        assert!(manifests.contains(path), "{manifests}");
    }

    // Another takes the server from the first, as the words say.
    let other = project("");
    let said = refusal(
        &other,
        "create webhook --group core --version v1 --kind Pod --validation",
    );
    for line in [
        "pub mod webhook;",
        "let manager = webhook::register(manager);",
        "- ../webhook",
    ] {
        assert!(said.contains(&format!("    {line}\n")), "{said}");
    }
    for (path, text) in folder.tree() {
        let copied = ["config/webhook/", "config/certmanager/", "config/network-policy/"];
        if copied.iter().any(|copied| path.starts_with(copied)) {
            other.write(&path, &text);
        }
    }
    other.write("src/webhook/pod.rs", &file(&said, "src/webhook/pod.rs"));
    other.write("src/webhook/mod.rs", &file(&said, "src/webhook/mod.rs"));
    change(&other, list, "use rbuilder", "pub mod pod;\n\nuse rbuilder");
    change(
        &other,
        "src/lib.rs",
        "pub mod controller;",
        "pub mod controller;\npub mod webhook;",
    );
    other.run("manifests").ok();
    let manifests = &other.tree()["config/webhook/manifests.yaml"];
    assert!(
        manifests.contains("path: /validate--v1-pod\n") && !manifests.contains("any"),
        "{manifests}"
    );
}
