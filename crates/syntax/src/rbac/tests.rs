use super::*;

fn check(tokens: &str, expected: Result<&str, &str>) {
    let mut session = Session::default();
    let source = rbuilder_reader::token::lex(tokens).expect("tokens");
    let rule = parse_rbac(source.cursor(), &mut session);
    let complaints: Vec<_> = session
        .diagnostics
        .into_vec()
        .iter()
        .map(crate::Diagnostic::text)
        .collect();
    match expected {
        Ok(verbs) => assert_eq!(
            rule.map(|rule| rule.verbs.join(",")).as_deref(),
            Some(verbs),
            "{complaints:?}"
        ),
        Err(text) => {
            assert_eq!(complaints, [text], "{tokens}");
            assert_eq!(rule, None);
        }
    }
}

#[test]
fn accepts_valid_rules() {
    check(
        r#"groups = "apps", resources = "deployments", verbs = "get;list""#,
        Ok("get,list"),
    );
    check(
        r#"groups = ["apps", "batch"], resources = ["jobs"], verbs = ["get", "*"]"#,
        Ok("get,*"),
    );
    check(
        r#"groups = "", resources = "events", verbs = "create;patch", namespace = "n""#,
        Ok("create,patch"),
    );
    check(r#"urls = "/metrics", verbs = "get""#, Ok("get"));
    check(r#"urls = "/healthz/*;*", verbs = "get""#, Ok("get"));
    check(
        r#"groups = "core;apps", resources = "*;*/scale", verbs = "get", custom_verbs = "levitate;hover""#,
        Ok("get,levitate,hover"),
    );
    check(
        r#"groups = "example.com", resources = "cups", custom_verbs = "fill", role_name = "a:b""#,
        Ok("fill"),
    );
    check(
        r#"groups = "", resources = "pods/exec", resource_names = "a", verbs = "create""#,
        Ok("create"),
    );
}

#[test]
fn reports_invalid_rules() {
    check(
        r#"groups = "apps", resources = "deployments", verb = "get""#,
        Err("unknown argument `verb` of `rbac`\nhelp: did you mean `verbs`?"),
    );
    check(
        r#"groups = "apps", resources = "deployments", verbs = "get;wacth""#,
        Err("unknown verb `wacth`\nhelp: did you mean `watch`?"),
    );
    check(
        r#"groups = "apps", resources = "deployments""#,
        Err("the rule has no verbs\nhelp: add `verbs = \"get;list;watch\"`"),
    );
    check(
        r#"resources = "pods", verbs = "get""#,
        Err(
            "the rule has no API groups\nhelp: add `groups = \"…\"`; the core group (pods, services, events) is `groups = \"\"`",
        ),
    );
    check(
        r#"urls = "/metrics", verbs = "get", namespace = "n""#,
        Err(
            "`urls` have no effect in a Role\nhelp: remove `namespace`: only a ClusterRole can grant access to URLs",
        ),
    );
    check(
        r#"groups = "", resources = "pods", verbs = "get", verbs = "list""#,
        Err("duplicate argument `verbs`"),
    );
    check(
        r#"groups = "apps;", resources = "deployments", verbs = "get""#,
        Err("empty item in `groups`\nhelp: write `core` for the core group, or remove the `;`"),
    );
    check(
        r#"groups = "apps", resources = "deployments", verbs = "get;""#,
        Err("empty item in `verbs`\nhelp: remove it"),
    );
    check(
        r#"groups = "apps/v1", resources = "deployments", verbs = "get""#,
        Err("invalid API group `apps/v1`\nhelp: write `apps`: roles apply to all versions"),
    );
    check(
        r#"groups = "Apps", resources = "deployments", verbs = "get""#,
        Err("invalid API group `Apps`\nhelp: use a lower-case domain, such as `apps` or `batch.example.com`"),
    );
    check(
        r#"groups = "apps", resources = "deployments.apps", verbs = "get""#,
        Err(
            "invalid resource `deployments.apps`\nhelp: write `groups = \"apps\", resources = \"deployments\"`",
        ),
    );
    check(
        r#"groups = "", resources = "pods/*", verbs = "get""#,
        Err(
            "`pods/*` matches nothing\nhelp: write the subresource, as in `pods/log`; `*` stands for all resources and their subresources",
        ),
    );
    check(
        r#"groups = "", resources = "pods", resource_names = "*", verbs = "get""#,
        Err("invalid object name `*`\nhelp: remove `resource_names` to match every object"),
    );
    check(
        r#"groups = "", resources = "pods", resource_names = "a", verbs = "get;deletecollection""#,
        Err(
            "`deletecollection` cannot be limited by name\nhelp: move this verb to a separate rule without `resource_names`",
        ),
    );
    // Least privilege for server-side apply of a single object.
    check(
        r#"groups = "", resources = "pods", resource_names = "a", verbs = "create;patch""#,
        Ok("create,patch"),
    );
    check(
        r#"groups = "", resources = "pods", verbs = "levitate""#,
        Err(
            "unknown verb `levitate`\nhelp: write `custom_verbs = \"levitate\"` if an API of your own defines it",
        ),
    );
    check(
        r#"groups = "a", resources = "b", urls = "/c", verbs = "get""#,
        Err(
            "a rule cannot have both resources and URLs\nhelp: write two `#[rbac(…)]`, one for the resources and one for the URLs",
        ),
    );
    check(
        r#"urls = "/a/*/b", verbs = "get""#,
        Err("`/a/*/b` matches nothing\nhelp: use `*` only at the end of a path, as in `/healthz/*`"),
    );
    check(
        r#"urls = "", verbs = "get""#,
        Err("empty item in `urls`\nhelp: remove it"),
    );
    check(
        r#"urls = "metrics", verbs = "get""#,
        Err("invalid URL path `metrics`\nhelp: write `/metrics`"),
    );
    check(
        r#"groups = "", resources = "pods", verbs = "get", namespace = "A""#,
        Err("invalid namespace name `A`\nhelp: use lower-case letters, digits and `-`"),
    );
    check(
        r#"groups = "", resources = "pods", verbs = "get", role_name = "a/b""#,
        Err("invalid role name `a/b`\nhelp: use letters, digits, `-`, `.` and `:`"),
    );
}

#[test]
fn create_limited_by_name_requires_patch() {
    let warnings = |verbs: &str| {
        let mut session = Session::default();
        let tokens = format!(r#"groups = "", resources = "pods", resource_names = "a", verbs = "{verbs}""#);
        let source = rbuilder_reader::token::lex(&tokens).expect("tokens");
        let rule = parse_rbac(source.cursor(), &mut session);
        assert!(rule.is_some(), "{verbs}");
        let texts = session.diagnostics.into_vec();
        texts.iter().map(crate::Diagnostic::text).collect::<Vec<_>>()
    };
    assert!(warnings("create;patch").is_empty());
    assert!(warnings("get;update").is_empty());
    assert_eq!(
        warnings("get;create"),
        [
            "`create` limited by name allows only server-side apply, which requires `patch` as well\nhelp: add `patch` to the verbs, or move `create` to a separate rule without `resource_names`"
        ]
    );
}

#[test]
fn reports_other_separators_than_semicolons() {
    check(
        r#"groups = "", resources = "pods", verbs = "get,list""#,
        Err("`get,list` is read as a single word\nhelp: separate words by `;`: `verbs = \"get;list\"`"),
    );
    check(
        r#"groups = "apps", resources = "deployments, statefulsets", verbs = "get""#,
        Err(
            "`deployments, statefulsets` is read as a single word\nhelp: separate words by `;`: `resources = \"deployments;statefulsets\"`",
        ),
    );
    check(
        r#"groups = ["apps batch"], resources = "jobs", verbs = "get""#,
        Err("`apps batch` is read as a single word\nhelp: separate words by `;`: `groups = \"apps;batch\"`"),
    );
    check(
        r#"groups = "example.com", resources = "cups", custom_verbs = "fill,break""#,
        Err(
            "`fill,break` is read as a single word\nhelp: separate words by `;`: `custom_verbs = \"fill;break\"`",
        ),
    );
    // URL paths may contain commas.
    check(r#"urls = "/a,b", verbs = "get""#, Ok("get"));
}

#[test]
fn reports_invalid_resource_paths() {
    for (resource, help) in [
        ("pods/", "write `pods`"),
        ("/pods", "write `pods`"),
        ("pods//log", "write `pods/log`"),
        ("pods/log/tail", "write `pods/log`"),
        ("/", "write a resource by its plural, as in `deployments`"),
    ] {
        check(
            &format!(r#"groups = "", resources = "{resource}", verbs = "get""#),
            Err(&format!("invalid resource `{resource}`\nhelp: {help}")),
        );
    }
    check(
        r#"groups = "authentication.k8s.io", resources = "userextras/example.com/team", verbs = "impersonate""#,
        Ok("impersonate"),
    );
}

#[test]
fn reports_cluster_scoped_resources_in_a_role() {
    check(
        r#"groups = "", resources = "pods;nodes", verbs = "get", namespace = "n""#,
        Err(
            "`nodes` are cluster-scoped, so a Role has no effect on them\nhelp: remove `namespace`: only a ClusterRole can grant access to them",
        ),
    );
    check(
        r#"groups = "storage.k8s.io", resources = "storageclasses", verbs = "get", namespace = "n""#,
        Err(
            "`storageclasses` are cluster-scoped, so a Role has no effect on them\nhelp: remove `namespace`: only a ClusterRole can grant access to them",
        ),
    );
    // The API server authorizes `bind` in the namespace of the RoleBinding.
    check(
        r#"groups = "rbac.authorization.k8s.io", resources = "clusterroles", resource_names = "view", verbs = "bind", namespace = "n""#,
        Ok("bind"),
    );
    check(
        r#"groups = "rbac.authorization.k8s.io", resources = "clusterroles", verbs = "escalate", namespace = "n""#,
        Err(
            "`clusterroles` are cluster-scoped, so a Role has no effect on them\nhelp: remove `namespace`: only a ClusterRole can grant access to them",
        ),
    );
    check(
        r#"groups = "rbac.authorization.k8s.io", resources = "clusterroles", verbs = "*", namespace = "n""#,
        Ok("*"),
    );
    check(
        r#"groups = "rbac.authorization.k8s.io", resources = "roles", verbs = "bind;escalate", namespace = "n""#,
        Ok("bind,escalate"),
    );
    // A Role may apply to its own namespace.
    check(
        r#"groups = "", resources = "namespaces", verbs = "get", namespace = "n""#,
        Ok("get"),
    );
    // The second group may have a resource `nodes` as well.
    check(
        r#"groups = ["", "example.com"], resources = "nodes", verbs = "get", namespace = "n""#,
        Ok("get"),
    );
}

#[test]
fn reports_verbs_that_do_not_apply_to_urls() {
    check(
        r#"urls = "/metrics", verbs = "list;watch""#,
        Err(
            "verb `list` does not apply to URLs\nhelp: use one of `get`, `post`, `put`, `patch`, `delete`, `head`, `options`",
        ),
    );
    check(
        r#"urls = "/metrics?all", verbs = "get""#,
        Err("`/metrics?all` matches nothing\nhelp: remove the query: rules match the path only"),
    );
    check(r#"urls = "/metrics", verbs = "*""#, Ok("*"));
    check(
        r#"urls = "/metrics", verbs = "get;post;put;patch;delete;head;options""#,
        Ok("get,post,put,patch,delete,head,options"),
    );
}

#[test]
fn warns_about_likely_mistakes() {
    let said = |tokens: &str| {
        let mut session = Session::default();
        let source = rbuilder_reader::token::lex(tokens).expect("tokens");
        let rule = parse_rbac(source.cursor(), &mut session);
        assert!(rule.is_some(), "{tokens}");
        let said: Vec<_> = session
            .diagnostics
            .into_vec()
            .iter()
            .map(crate::Diagnostic::text)
            .collect();
        said.join("; ")
    };
    for (tokens, expected) in [
        (
            r#"groups = "app", resources = "deployments", verbs = "get""#,
            "Kubernetes has no API group `app`\nhelp: did you mean `apps`?",
        ),
        (
            r#"groups = "", resources = "pods/logs", verbs = "get""#,
            "`pods` has no subresource `logs`\nhelp: did you mean `log`?",
        ),
        (
            r#"groups = "", resources = "pods/exec", verbs = "list;watch""#,
            "`pods/exec` supports none of these verbs\nhelp: use one of `create`, `get`",
        ),
        (
            r#"urls = "/metrics", verbs = "get;list""#,
            "verb `list` does not apply to URLs\nhelp: use one of `get`, `post`, `put`, `patch`, `delete`, `head`, `options`",
        ),
        (
            r#"groups = "apps", resources = "deployments/finalizers", verbs = "update""#,
            "",
        ),
        (r#"groups = "", resources = "nodes/metrics", verbs = "get""#, ""),
        (r#"groups = "*", resources = "*/scale", verbs = "get;update""#, ""),
    ] {
        assert_eq!(said(tokens), expected, "{tokens}");
    }
}
