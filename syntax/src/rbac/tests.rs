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
fn rules() {
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
fn mistakes() {
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
        Err("the rule has no verbs, so it allows nothing\nhelp: add `verbs = \"get;list;watch\"`"),
    );
    check(
        r#"resources = "pods", verbs = "get""#,
        Err(
            "the rule names no API group\nhelp: add `groups = \"…\"`; the core group (pods, services, events) is `groups = \"\"`",
        ),
    );
    check(
        r#"urls = "/metrics", verbs = "get", namespace = "n""#,
        Err(
            "`urls` in a Role of one namespace have no effect\nhelp: remove `namespace`: only a ClusterRole can allow URLs",
        ),
    );
    check(
        r#"groups = "", resources = "pods", verbs = "get", verbs = "list""#,
        Err("`verbs` is written twice"),
    );
    check(
        r#"groups = "apps;", resources = "deployments", verbs = "get""#,
        Err("`groups` holds an empty word\nhelp: write `core` for the core group, or remove the `;`"),
    );
    check(
        r#"groups = "apps", resources = "deployments", verbs = "get;""#,
        Err("`verbs` holds an empty word\nhelp: remove it"),
    );
    check(
        r#"groups = "apps/v1", resources = "deployments", verbs = "get""#,
        Err("`apps/v1` is not an API group\nhelp: write `apps`: a role is about every version"),
    );
    check(
        r#"groups = "Apps", resources = "deployments", verbs = "get""#,
        Err(
            "`Apps` is not an API group\nhelp: a group is a domain in lower case, such as `apps` or `batch.example.com`",
        ),
    );
    check(
        r#"groups = "apps", resources = "deployments.apps", verbs = "get""#,
        Err(
            "`deployments.apps` is not the name of a resource\nhelp: write `groups = \"apps\", resources = \"deployments\"`",
        ),
    );
    check(
        r#"groups = "", resources = "pods/*", verbs = "get""#,
        Err(
            "`pods/*` allows nothing\nhelp: name the subresources, as in `pods/log`; `*` stands for every resource with all of its subresources",
        ),
    );
    check(
        r#"groups = "", resources = "pods", resource_names = "*", verbs = "get""#,
        Err(
            "`*` is not the name of an object\nhelp: remove `resource_names`: without it the rule is about every object",
        ),
    );
    check(
        r#"groups = "", resources = "pods", resource_names = "a", verbs = "get;deletecollection""#,
        Err(
            "`deletecollection` cannot be limited by name: the request has none\nhelp: put this verb into a rule of its own without `resource_names`",
        ),
    );
    // Least privilege for server-side apply of one object.
    check(
        r#"groups = "", resources = "pods", resource_names = "a", verbs = "create;patch""#,
        Ok("create,patch"),
    );
    check(
        r#"groups = "", resources = "pods", verbs = "levitate""#,
        Err(
            "unknown verb `levitate`\nhelp: write `custom_verbs = \"levitate\"` if an API of your own knows it",
        ),
    );
    check(
        r#"groups = "a", resources = "b", urls = "/c", verbs = "get""#,
        Err(
            "the API server refuses a rule with both resources and URLs\nhelp: write two `#[rbac(…)]`, one for the resources and one for the URLs",
        ),
    );
    check(
        r#"urls = "/a/*/b", verbs = "get""#,
        Err(
            "`/a/*/b` allows nothing\nhelp: `*` stands for the rest of a path, at its end only: `/healthz/*`",
        ),
    );
    check(
        r#"urls = "", verbs = "get""#,
        Err("`urls` holds an empty word\nhelp: remove it"),
    );
    check(
        r#"urls = "metrics", verbs = "get""#,
        Err("`metrics` is not a URL path\nhelp: write `/metrics`"),
    );
    check(
        r#"groups = "", resources = "pods", verbs = "get", namespace = "A""#,
        Err("`A` cannot be the name of a namespace\nhelp: write lower-case letters, digits and `-`"),
    );
    check(
        r#"groups = "", resources = "pods", verbs = "get", role_name = "a/b""#,
        Err("`a/b` cannot be the name of a role\nhelp: write letters, digits, `-`, `.` and `:`"),
    );
}

#[test]
fn create_limited_by_name() {
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
            "`create` limited by name allows server-side apply only, which needs `patch` too\nhelp: add `patch` to the verbs, or put `create` into a rule of its own without `resource_names`"
        ]
    );
}

#[test]
fn words_are_separated_by_semicolons() {
    check(
        r#"groups = "", resources = "pods", verbs = "get,list""#,
        Err("`get,list` is taken for one word\nhelp: separate words by `;`: `verbs = \"get;list\"`"),
    );
    check(
        r#"groups = "apps", resources = "deployments, statefulsets", verbs = "get""#,
        Err(
            "`deployments, statefulsets` is taken for one word\nhelp: separate words by `;`: `resources = \"deployments;statefulsets\"`",
        ),
    );
    check(
        r#"groups = ["apps batch"], resources = "jobs", verbs = "get""#,
        Err("`apps batch` is taken for one word\nhelp: separate words by `;`: `groups = \"apps;batch\"`"),
    );
    check(
        r#"groups = "example.com", resources = "cups", custom_verbs = "fill,break""#,
        Err(
            "`fill,break` is taken for one word\nhelp: separate words by `;`: `custom_verbs = \"fill;break\"`",
        ),
    );
    // Commas may stand in paths.
    check(r#"urls = "/a,b", verbs = "get""#, Ok("get"));
}

#[test]
fn paths_of_resources() {
    for (resource, help) in [
        ("pods/", "write `pods`"),
        ("/pods", "write `pods`"),
        ("pods//log", "write `pods/log`"),
        ("pods/log/tail", "write `pods/log`"),
        ("/", "name a resource by its plural, as in `deployments`"),
    ] {
        check(
            &format!(r#"groups = "", resources = "{resource}", verbs = "get""#),
            Err(&format!(
                "`{resource}` is not the name of a resource\nhelp: {help}"
            )),
        );
    }
    check(
        r#"groups = "authentication.k8s.io", resources = "userextras/example.com/team", verbs = "impersonate""#,
        Ok("impersonate"),
    );
}

#[test]
fn rules_that_a_role_of_a_namespace_cannot_hold() {
    check(
        r#"groups = "", resources = "pods;nodes", verbs = "get", namespace = "n""#,
        Err(
            "`nodes` are in no namespace, so a Role allows nothing of them\nhelp: remove `namespace`: only a ClusterRole can allow them",
        ),
    );
    check(
        r#"groups = "storage.k8s.io", resources = "storageclasses", verbs = "get", namespace = "n""#,
        Err(
            "`storageclasses` are in no namespace, so a Role allows nothing of them\nhelp: remove `namespace`: only a ClusterRole can allow them",
        ),
    );
    // The Role's own namespace.
    check(
        r#"groups = "", resources = "namespaces", verbs = "get", namespace = "n""#,
        Ok("get"),
    );
    // Of the one group or of the other.
    check(
        r#"groups = ["", "example.com"], resources = "nodes", verbs = "get", namespace = "n""#,
        Ok("get"),
    );
}

#[test]
fn verbs_of_urls() {
    check(
        r#"urls = "/metrics", verbs = "list;watch""#,
        Err(
            "no request to a URL has the verb `list`\nhelp: the verbs of URLs are `get`, `post`, `put`, `patch`, `delete`, `head`, `options`",
        ),
    );
    check(
        r#"urls = "/metrics?all", verbs = "get""#,
        Err(
            "`/metrics?all` allows nothing\nhelp: write the path alone: the query of a request is not looked at",
        ),
    );
    check(r#"urls = "/metrics", verbs = "*""#, Ok("*"));
    check(
        r#"urls = "/metrics", verbs = "get;post;put;patch;delete;head;options""#,
        Ok("get,post,put,patch,delete,head,options"),
    );
}

#[test]
fn doubts() {
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
            "`pods/exec` knows none of these verbs, so nothing of it is allowed\nhelp: it knows `create`, `get`",
        ),
        (
            r#"urls = "/metrics", verbs = "get;list""#,
            "no request to a URL has the verb `list`\nhelp: the verbs of URLs are `get`, `post`, `put`, `patch`, `delete`, `head`, `options`",
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
