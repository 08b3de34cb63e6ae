//! The rows: commands and flags of kubebuilder, controller-gen, setup-envtest and operator-sdk, and
//! their counterparts.
//!
//! Cells are Markdown, exactly as in docs/from-kubebuilder.md. Command lines are looked up in the
//! first column, so every command or flag there is a code span as typed by users. Without a
//! counterpart, the second column starts with `none, because`.

use super::{Row, Table};

/// Commands and their counterparts.
pub const COMMANDS: Table = Table {
    heading: "Commands",
    columns: ("kubebuilder, controller-gen, operator-sdk", "rbuilder"),
    rows: COMMAND_ROWS,
};

/// Flags of these commands.
pub const FLAGS: Table = Table {
    heading: "Flags",
    columns: ("flag of kubebuilder, controller-gen or operator-sdk", "rbuilder"),
    rows: FLAG_ROWS,
};

/// Values of `--plugins`.
pub const PLUGINS: Table = Table {
    heading: "Plugins",
    columns: ("kubebuilder", "rbuilder"),
    rows: PLUGIN_ROWS,
};

#[rustfmt::skip] // one line per row
const COMMAND_ROWS: &[Row] = &[
    Row::new("`kubebuilder init --domain D`", "`rbuilder init --domain D`"),
    Row::new("`kubebuilder create api --group G --version V --kind K`", "the same with `rbuilder`; scaffolds types and controller unless you pass `--resource=false` or `--controller=false`. On a terminal it asks the same two questions as kubebuilder if you pass neither; Enter means yes. A further version is a copy of the newest one"),
    Row::new("`kubebuilder create api … --image I --plugins deploy-image/v1-alpha`", "`rbuilder create api … --image I`, with the same flags for command, port and user. `RELATED_IMAGE_<GROUP>_<KIND>` replaces the image. The Deployment of the manager sets it, so it is in `env` of the chart's values and in `relatedImages` of the bundle. Kinds may be cluster-scoped"),
    Row::new("`kubebuilder create api --group apps --version v1 --kind Deployment --resource=false --controller`", "the same, for every kind of k8s-openapi: [built-in and external kinds](kinds-of-others.md)"),
    Row::new("`kubebuilder create webhook --group G --version V --kind K --defaulting --programmatic-validation --conversion --spoke v2`", "the same with `rbuilder`; the manager issues its own certificate, and `rbuilder edit --enable cert-manager` lets cert-manager do so"),
    Row::new("`kubebuilder edit --namespaced`, `--license`, `--owner`", "`rbuilder edit` with the same flags; also `--kubernetes`. It merges, so your changes are kept"),
    Row::new("`kubebuilder edit --multigroup`", "`rbuilder edit --multigroup`, which [moves the files](several-groups.md) and rewrites paths; with `kubebuilder` you do this by hand"),
    Row::new("uncomment `[METRICS]`, `[PROMETHEUS]`, `[NETWORK POLICY]`, `[CERTMANAGER]` and `[WEBHOOK]` in `config/default`", "`rbuilder edit --enable` and `--disable` with [features](operations.md#features-of-the-deployment): a line each"),
    Row::new("`kubebuilder alpha generate`", "none, because [`rbuilder update`](upgrading.md) rebuilds the scaffold in memory and merges it, without deleting anything"),
    Row::new("`kubebuilder alpha update`", "[`rbuilder update`](upgrading.md): a merge without branches, downloads and older commands; deleted files stay deleted. As with `--force`, conflicts are written as markers; `--no-conflicts` fails instead"),
    Row::new("`kubebuilder completion`, `kubebuilder version`, `kubebuilder help`", "`rbuilder completion`, `rbuilder version`, `--help` of each command; `rbuilder man` prints manual pages"),
    Row::new("`controller-gen crd rbac:roleName=manager-role webhook paths=./...`", "`rbuilder manifests`"),
    Row::new("`controller-gen object` (`zz_generated.deepcopy.go`)", "none, because `#[derive(Clone)]` is compiled with your types"),
    Row::new("`controller-gen applyconfiguration`, `create api --ssa`", "none, because `ctx.apply` is a server-side apply of your types; `Option` fields are left out"),
    Row::new("`controller-gen schemapatch`", "none, because `rbuilder manifests` writes whole CRDs; patch them with kustomize"),
    Row::new("`setup-envtest use`, `setup-envtest list`, `setup-envtest cleanup`, `setup-envtest sideload`", "`rbuilder envtest install`, `rbuilder envtest list`, `rbuilder envtest remove`, `rbuilder envtest install VERSION --from FILE`, with the same store"),
    Row::new("none", "`rbuilder delete api`, `rbuilder delete controller`, `rbuilder delete webhook`: [deleting](deleting.md)"),
    Row::new("none", "`rbuilder init --in-package` adopts an existing kube-rs package: [adopting](adopting.md)"),
    Row::new("none", "`rbuilder dev`: [the operator against a local control plane](development.md), with webhooks, restarted on each change"),
    Row::new("none", "[`rbuilder import DIR`](import-from-go.md): a Rust project from a kubebuilder project, with a list of what is left to port"),
    Row::new("none", "[`rbuilder create api --from-crd`](types-from-crds.md#with-a-controller): a kind in all the versions of its CRD"),
    Row::new("none", "[`rbuilder types`](types-from-crds.md): Rust types from the CRDs of a project in Go, from which `rbuilder manifests` generates the same CRDs"),
    Row::new("none", "`rbuilder explain`: what an error or warning means, with [a wrong and a right example](codes.md)"),
    Row::new("none", "`rbuilder doctor`: checks tools, versions, manifests and scaffolded files"),
    Row::new("`kubectl-validate`, `kubeconform`", "[`rbuilder validate`](testing.md#objects-without-a-server), with the verdicts and messages of the API server"),
    Row::new("`crdify`", "[`rbuilder diff`](compatibility.md), with an object that shows each change"),
    Row::new("`kube-storage-version-migrator`", "[`rbuilder migrate-storage`](several-versions.md#6-migrate-stored-objects), which needs no deployment and trims `status.storedVersions`"),
    Row::new("`crd-ref-docs`", "[`rbuilder docs`](api-reference.md)"),
    Row::new("`operator-sdk generate bundle`, `operator-sdk generate kustomize manifests`", "[`rbuilder bundle`](olm.md), with `#[csv(…)]` for `+operator-sdk:csv:`; it reads the [base](olm.md#a-base) in `config/manifests/bases/`"),
    Row::new("`operator-sdk bundle validate`", "none, because `operator-sdk bundle validate ./bundle` [works on the bundle](olm.md#a-release) as it is; `rbuilder bundle` checks the catalog as `opm validate` does"),
    Row::new("`operator-sdk run bundle`, `operator-sdk run bundle-upgrade`, `operator-sdk cleanup`", "none, because the commands of operator-sdk [work on every bundle](olm.md#try-it), also on those of `rbuilder bundle`"),
    Row::new("`operator-sdk olm install`, `operator-sdk olm status`, `operator-sdk olm uninstall`", "none, because these commands of operator-sdk [install OLM](olm.md#try-it) for every operator, and need no project"),
    Row::new("`operator-sdk scorecard`", "none, because `operator-sdk scorecard ./bundle` [runs the tests](olm.md#try-it) that `rbuilder bundle` configures"),
    Row::new("`operator-sdk generate packagemanifests`, `operator-sdk run packagemanifests`, `operator-sdk pkgman-to-bundle`", "none, because OLM installs operators from [bundles](olm.md), which replaced package manifests"),
    Row::new("`operator-sdk init --plugins=helm`, `operator-sdk init --plugins=ansible`", "none, because an operator of rbuilder is a program in Rust"),
    Row::new("none", "[`rbuilder adopt`](existing-projects.md#start-here-rbuilder-adopt), which examines a kube-rs repository and compares its CRDs"),
    Row::new("none", "[`rbuilder simulate`](simulation.md#longer-runs): runs the operator under thousands of faults in its own tests, and writes a page about what fails"),
    Row::new("none", "`rbuilder manifests --check`; `--dry-run` and `--output json` of every command that changes files"),
    Row::new("none", "`rbuilder install`, `rbuilder uninstall`, `rbuilder deploy --image IMAGE`, `rbuilder undeploy`, `rbuilder run`: the make targets without make and a shell"),
];

#[rustfmt::skip] // one line per row
const FLAG_ROWS: &[Row] = &[
    Row::new("`init --domain`, `--project-name`, `--owner`, `--multigroup`, `--namespaced`", "the same; `--domain` is checked at once"),
    Row::new("`init --license apache2`, `none`", "`--license`, which also has `mit`, and is that of the file LICENSE by default"),
    Row::new("`init --license-file`", "none, because the header is an SPDX line: `--license` and `--owner` write it"),
    Row::new("`init --repo`", "none, because Cargo has no module path: the name of the package is `--project-name`"),
    Row::new("`init --fetch-deps`, `--skip-go-version-check`", "none, because Cargo fetches what Cargo.toml names when it builds, and `rust-version` there says which Rust is needed"),
    Row::new("`--plugins`, `--project-version`", "none, because there are no plugins; see [below](#plugins) for their replacements"),
    Row::new("`--group`, `--version`, `--kind`, `--plural`, `--resource`, `--controller`, `--namespaced`, `--force`", "the same. `--group` can be omitted: the group is the domain"),
    Row::new("`--controller-name`, `--defaulting-path`, `--validation-path`, `--spoke`", "the same"),
    Row::new("`--make=false`", "the same; also `--manifests=false`"),
    Row::new("`--ssa`", "none, because every write of `Ctx` is a server-side apply already"),
    Row::new("`--external-api-path`, `--external-api-module`, `--external-api-domain`", "`--external-path crate::gateway_api::…::Gateway`, `--external-crate` for a type of a crate, `--external-domain`; the old names work as well"),
    Row::new("`--image`, `--image-container-command`, `--image-container-port`, `--run-as-user`", "the same"),
    Row::new("`edit --force`", "none, because `rbuilder edit` merges its changes with yours"),
    Row::new("`edit --plugins=helm/v2-alpha --output-dir`", "none, because [`rbuilder helm`](helm.md) merges with the chart that is in `charts/<project>`"),
    Row::new("`alpha update --from-version`, `--to-version`, `--from-branch`, `--output-branch`, `--push`, `--show-commits`, `--open-gh-issue`", "none, because `rbuilder update` finds the version of the scaffold in PROJECT, updates to its own version, and leaves branches and commits to you"),
    Row::new("`alpha update --restore-path`", "`rbuilder update --restore`, for a scaffolded file that you have deleted"),
    Row::new("`generate bundle --version`, `--channels`, `--default-channel`", "the same of [`rbuilder bundle`](olm.md#channels)"),
    Row::new("`generate bundle --use-image-digests`", "`rbuilder bundle --image IMAGE@sha256:…`: the digest that `docker push` prints, which is also in `relatedImages`. No registry is asked"),
    Row::new("`generate bundle --package`, `--kustomize-dir`, `--input-dir`, `--deploy-dir`, `--crds-dir`", "none, because the package is the project in PROJECT, and its manifests are in `config/`"),
    Row::new("`controller-gen paths=`", "`--package`, `--example`; all members of a workspace by default"),
    Row::new("`crd:maxDescLen`, `crd:generateEmbeddedObjectMeta`", "`--max-description-length`, `--embedded-object-meta`; per type and field with markers of these names"),
    Row::new("`crd:allowDangerousTypes`, `crd:ignoreUnexportedFields`, `crd:crdVersions`, `deprecatedV1beta1CompatibilityPreserveUnknownFields`", "none, because floats are allowed, serde decides which fields there are, and only `apiextensions.k8s.io/v1` exists"),
    Row::new("`rbac:roleName`, `rbac:fileName`", "`--role-name`; the file is `role.yaml`"),
    Row::new("`headerFile`, `year`", "none, because generated manifests name their generator only; nothing depends on the year"),
    Row::new("`output:crd:dir`, `output:rbac:dir`, `output:webhook:dir`, `output:dir`, `output:stdout`", "`--crd-dir`, `--rbac-dir`, `--webhook-dir`, `--config-dir`, `--stdout`; stale CRDs are removed, unless `--no-prune`"),
    Row::new("`--load-build-tags`", "`--features`, `--all-features`, `--no-default-features`: code behind an inactive `cfg` is not read"),
];

#[rustfmt::skip] // one line per row
const PLUGIN_ROWS: &[Row] = &[
    Row::new("`go/v4`, `kustomize/v2`", "`rbuilder init` and `rbuilder create`"),
    Row::new("`deploy-image/v1-alpha`", "`rbuilder create api --image`"),
    Row::new("`helm/v2-alpha`, `helm/v1-alpha`", "[`rbuilder helm`](helm.md), which merges with your changes; `charts/<project>`, not `dist/chart`"),
    Row::new("`grafana/v1-alpha`", "[`rbuilder grafana`](metrics.md), with alerts; it merges with your changes. The metrics have the same names, so dashboards of yours work too"),
    Row::new("`autoupdate/v1-alpha`", "none, because `rbuilder update` needs no branches: run it in your own workflow"),
    Row::new("external plugins", "none, because your own program can read the output of `rbuilder create api --output json` and write additional files"),
];
