//! `cargo xtask docs`: the reference pages of the guide, made from the tables that the parsers read.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use rbuilder_syntax::marker::{CONSTRAINTS, Place, Subject, markers};
use rbuilder_syntax::{CRD_KEYS, ContainerKey, KUBE_KEYS, RBAC_ARGS, WEBHOOK_ARGS};

use crate::repo;

const MARKERS_PAGE: &str = "docs/markers.md";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail when a page is stale
    #[arg(long)]
    check: bool,
}

/// Makes the pages again; writes or compares them.
pub(crate) fn update_pages(args: &Args) -> Result<()> {
    let path = repo::root().join(MARKERS_PAGE);
    let page = markers_page()?;
    if fs_err::read_to_string(&path).is_ok_and(|old| old == page) {
        println!("{MARKERS_PAGE} is up to date");
    } else if args.check {
        bail!("{MARKERS_PAGE} is stale; run `cargo xtask docs`");
    } else {
        fs_err::write(&path, page)?;
        println!("{MARKERS_PAGE} was brought up to date");
    }
    Ok(())
}

fn markers_page() -> Result<String> {
    let mut page = String::from(INTRODUCTION);
    page.push_str("\n## On fields, variants and types\n\n");
    page.push_str(
        "`#[kube(…)]` and `#[crd(…)]` mean the same here; on a type that derives `CustomResource` use\n",
    );
    page.push_str("`#[crd(…)]`, since kube refuses container keys that are not its own.\n\n");
    page.push_str("| marker | where | what it says |\n|---|---|---|\n");
    for marker in markers() {
        let places: Vec<&str> = marker.places.iter().map(|place| place_name(*place)).collect();
        let again = if marker.repeatable { " Repeatable." } else { "" };
        row(
            &mut page,
            &[
                &code(marker.form),
                &places.join(", "),
                &format!("{}{again}", marker.doc),
            ],
        )?;
    }
    page.push_str("\n## Inside `validation(…)`\n\n| key | of | what it says |\n|---|---|---|\n");
    for constraint in CONSTRAINTS {
        row(
            &mut page,
            &[
                &code(constraint.name),
                subject_name(constraint.subject),
                constraint.doc,
            ],
        )?;
    }
    page.push_str("\n## kube's container keys\n\nIn `#[kube(…)]` beside `derive(CustomResource)`, read as kube 5 reads them.\n\n");
    keys(&mut page, KUBE_KEYS)?;
    page.push_str("\n## Container keys of our own\n\nIn `#[crd(…)]` on a type.\n\n");
    keys(&mut page, CRD_KEYS)?;
    page.push_str(RBAC_INTRODUCTION);
    page.push_str("| argument | what it says |\n|---|---|\n");
    for arg in RBAC_ARGS {
        row(&mut page, &[&code(arg.name), arg.doc])?;
    }
    page.push_str(WEBHOOK_INTRODUCTION);
    page.push_str("| argument | what it says |\n|---|---|\n");
    for arg in WEBHOOK_ARGS {
        let again = if arg.repeatable { " Repeatable." } else { "" };
        row(&mut page, &[&code(arg.name), &format!("{}{again}", arg.doc)])?;
    }
    Ok(page)
}

const INTRODUCTION: &str = "\
<!-- Made by `cargo xtask docs` from the tables in syntax/; edit those. -->
# Markers

Markers are attributes that `rbuilder manifests` reads in source text and that `derive(CrdSchema)`, `#[rbac]` and
`#[webhook]` check when the crate compiles. An unknown or misplaced marker is an error in both, in the same words.

```rust
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = \"camelCase\")]
pub struct Endpoint {
    /// Where to connect.
    #[kube(validation(min_length = 1, max_length = 253))]
    pub host: String,
    /// One port for each protocol.
    #[kube(list_type = \"map\", list_map_keys = [\"protocol\"], validation(max_items = 8))]
    pub ports: Vec<Port>,
    /// Extra settings; keys are lower case.
    #[kube(keys(validation(pattern = \"^[a-z]+$\")), values(validation(max_length = 63)))]
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}
```
";

const RBAC_INTRODUCTION: &str = "
## `#[rbac(…)]`

On a function, an `impl`, a module or a type; repeatable. Lists are arrays, or one string with `;` between the words. All
rules of a role are joined; no permission is lost.

";

const WEBHOOK_INTRODUCTION: &str = "
## `#[webhook(…)]`

On the function that handles the request: a free function, a method, async or not. Repeatable, for one handler with
several rules. `mutating` or `validating` is all it needs:

```rust
#[webhook(mutating)]
pub fn default(memcached: &mut Memcached, request: &AdmissionRequest) { … }

#[webhook(validating, operations = \"create;update;delete\")]
pub fn validate(new: &Memcached, old: Option<&Memcached>) -> Result<(), Invalid> { … }
```

What the marker leaves open follows from the first parameter that is a kind, behind references, `Arc`, `Box` or `Option`
or in an `AdmissionRequest<…>`: the struct that kube makes of a spec of this package, or a kind of Kubernetes' own from
`k8s_openapi`. For `Memcached` of `cache.example.com/v1alpha1` the first webhook above is called
`mmemcached-v1alpha1.kb.io` and is served at `/mutate-cache-example-com-v1alpha1-memcached`; a `Pod`'s is at
`/mutate--v1-pod`. A handler about anything else names `groups`, `versions`, `resources`, `name` and `path` itself.

Words of the API are the same in upper and lower case; lists are arrays, or one string with `;` between the words.

";

fn keys(page: &mut String, keys: &[ContainerKey]) -> Result<()> {
    page.push_str("| key | what it says |\n|---|---|\n");
    for key in keys {
        let again = if key.repeatable { " Repeatable." } else { "" };
        row(page, &[&code(key.name), &format!("{}{again}", key.doc)])?;
    }
    Ok(())
}

fn row(page: &mut String, cells: &[&str]) -> Result<()> {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    writeln!(page, "| {} |", cells.join(" | "))?;
    Ok(())
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn place_name(place: Place) -> &'static str {
    match place {
        Place::Type => "type",
        Place::Field => "field",
        Place::Newtype => "newtype",
        Place::Variant => "variant",
        Place::Value => "items, keys, values",
    }
}

fn subject_name(subject: Subject) -> &'static str {
    match subject {
        Subject::Number => "numbers",
        Subject::Text => "strings",
        Subject::List => "lists",
        Subject::Object => "structs and maps",
        Subject::Any => "any value",
    }
}
