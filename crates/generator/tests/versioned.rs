//! stackable-versioned's `#[versioned]` on a module or struct must generate the same CRDs as the
//! code that it expands to.

use rbuilder_generator::{Generated, Options, SourceSet, generate};

const MANIFEST: &str = "[package]\nname = \"cafe\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nkube = \"5\"\nschemars = \"1\"\nserde = \"1\"\nstackable-versioned = \"0.11\"\n";

const DERIVES: &str = "JsonSchema, Clone, Debug, Serialize, Deserialize";

const USES: &str =
    "use kube::CustomResource;\nuse schemars::JsonSchema;\nuse serde::{Deserialize, Serialize};\n";

fn run(lib: &str) -> Generated {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", MANIFEST);
    sources.insert("src/lib.rs", format!("{USES}{lib}"));
    generate(&sources, &Options::default())
}

/// The macro expands the module from `source` to this.
fn expanded() -> String {
    format!(
        "pub struct Unrelated;\n#[derive({DERIVES})]\npub struct Shared {{ pub size: i32 }}\n\
         pub mod v1alpha1 {{\nuse super::*;\n\
         /// A cup of coffee.\n#[kube(group = \"x.io\", version = \"v1alpha1\", kind = \"Cup\", doc = \"A cup.\", plural = \"cuppas\", shortname = \"c\", namespaced, status = \"v1alpha1::CupStatus\", scale(spec_replicas_path = \".spec.count\", status_replicas_path = \".status.count\"))]\n\
         #[derive(CustomResource, {DERIVES})]\n#[serde(rename_all = \"camelCase\")]\n\
         pub struct CupSpec {{ pub count: i32, pub shared: Shared, pub own_lid: Lid }}\n\
         #[derive({DERIVES})]\npub enum Lid {{ Open, Closed }}\n\
         #[derive({DERIVES}, Default)]\npub struct CupStatus {{ pub count: Option<i32> }}\n}}\n"
    )
}

fn source(module: &str, keys: &str) -> String {
    let versioned = expanded()
        .replace(
            "pub mod v1alpha1 {\nuse super::*;\n",
            &format!("{module}\npub mod versioned {{\n"),
        )
        .replace("#[kube(", &format!("#[versioned({keys}("))
        .replace("version = \"v1alpha1\", kind = \"Cup\", ", "")
        .replace("\".status.count\"))]", "\".status.count\")))]");
    assert!(!versioned.contains("kube("), "{versioned}");
    versioned
}

#[test]
fn single_version_expands_to_its_module() {
    let expected = run(&expanded());
    assert_eq!(expected.files.len(), 1, "{:#?}", expected.diagnostics);
    for (module, keys) in [
        ("#[versioned(version(name = \"v1alpha1\"))]", "crd"),
        (
            "#[versioned(version(name = \"v1alpha1\"), crates(kube_core = \"kube::core\"), skip(from))]",
            "crd",
        ),
        (
            "#[stackable_versioned::versioned(version(name = \"v1alpha1\"))]",
            "k8s",
        ),
    ] {
        let found = run(&source(module, keys));
        assert_eq!(found.diagnostics, expected.diagnostics, "{module}");
        assert_eq!(found.files, expected.files, "{module}");
    }
}

#[test]
fn version_types_resolve_from_outside() {
    let user = "#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]\n\
                #[kube(group = \"x.io\", version = \"v1\", kind = \"Pot\")]\npub struct PotSpec { pub lid: v1alpha1::Lid }\n";
    let found = run(&format!(
        "{}{user}",
        source("#[versioned(version(name = \"v1alpha1\"))]", "crd")
    ));
    assert_eq!(found.files.len(), 2, "{:#?}", found.diagnostics);
    let kept = source(
        "#[versioned(version(name = \"v1alpha1\"), options(preserve_module))]",
        "crd",
    )
    .replace("pub mod versioned {", "pub mod versioned {\n")
    .replace("pub shared: Shared", "pub shared: crate::Shared")
    .replace("JsonSchema, Clone", "schemars::JsonSchema, Clone")
    .replace("v1alpha1::CupStatus", "CupStatus");
    let found = run(&format!(
        "{kept}{}",
        user.replace("v1alpha1::Lid", "versioned::v1alpha1::Lid")
    ));
    assert_eq!(found.files.len(), 2, "{:#?}", found.diagnostics);
}

#[test]
fn reports_errors_in_versioned_items() {
    let lib = source("#[versioned(version(name = \"v1alpha1\"))]", "crd")
        .replace("own_lid: Lid", "own_lid: Unknown");
    let found = run(&lib);
    assert_eq!(found.files, []);
    assert_eq!(found.diagnostics.len(), 1, "{:#?}", found.diagnostics);
    assert_eq!(found.diagnostics[0].message, "cannot find type `Unknown`");
    let unknown =
        source("#[versioned(version(name = \"v1alpha1\"))]", "crd").replace("shortname = ", "shortnme = ");
    let found = run(&unknown);
    assert!(
        found.diagnostics[0].message.contains("unknown key `shortnme`"),
        "{:#?}",
        found.diagnostics
    );
}

/// The API has three versions, and uses all actions.
const VERSIONS: &str = r##"
#[versioned(
    version(name = "v1alpha1"),
    version(name = "v1beta1", deprecated = "use v1", skip(from), doc = r#"
        The second version.
        It has two lines.
    "#),
    version(name = "v1"),
    crates(kube_core = "kube::core", versioned = "x::versioned"),
    options(k8s(enable_tracing)),
)]
pub mod versioned {
    mod v1alpha1 {
        pub use lids::v1alpha1::*;
    }
    mod v1 {
        pub use lids::v1::*;
    }

    /// A cup of coffee.
    #[versioned(crd(group = "x.io", doc = "A cup.", plural = "cuppas", namespaced, status = v1alpha1::CupStatus), skip(object_from))]
    #[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub struct CupSpec {
        /// All versions have it.
        pub count: i32,
        #[versioned(added(since = "v1beta1", default = default_beans))]
        pub beans_of_cup: Option<String>,
        /// Its name and type have changed.
        #[serde(default)]
        #[schemars(range(max = MAX))]
        #[versioned(changed(since = "v1beta1", from_name = "milk_ml"))]
        #[versioned(changed(since = "v1", from_name = "milk", from_type = "u16", upgrade_with = u16_to_u32, downgrade_with = back))]
        pub milk_amount: u32,
        /// Nobody uses it.
        #[versioned(deprecated(since = "v1beta1", note = "use milk_amount"), changed(since = "v1beta1", from_type = Old))]
        pub not_this_one: bool,
        #[versioned(added(since = "v1beta1"), deprecated(since = "v1", note = "use beans_of_cup"))]
        pub deprecated_roast: Option<String>,
        #[versioned(hint(option))]
        pub handle: Option<Handle>,
        pub lid: Lid,
        pub forms: Vec<Form>,
    }

    #[derive(JsonSchema, Clone, Debug, Serialize, Deserialize)]
    pub struct Handle {
        #[versioned(added(since = "v1"))]
        pub length: Option<i32>,
    }

    #[derive(JsonSchema, Clone, Debug, Default, Serialize, Deserialize)]
    pub struct CupStatus {
        pub ready: Option<bool>,
    }

    #[derive(JsonSchema, Clone, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub enum Form {
        Round,
        /// With corners.
        #[versioned(changed(since = "v1beta1", from_name = "ExperimentalSquare"))]
        SquareForm,
        #[versioned(added(since = "v1"))]
        Oval,
        #[versioned(deprecated(since = "v1"))]
        DeprecatedMug,
    }
}
"##;

/// These items are outside of the versioned module.
const AROUND: &str = "
const MAX: u32 = 1 << 12;
type Old = i32;
mod lids {
    use super::*;
    pub mod v1alpha1 { use super::*; #[derive(JsonSchema, Clone, Debug, Serialize, Deserialize)] pub struct Lid { pub tight: bool } }
    pub mod v1 { use super::*; #[derive(JsonSchema, Clone, Debug, Serialize, Deserialize)] pub struct Lid { pub tight: String } }
}
use lids::v1::Lid;
";

/// The macro generates this from [`VERSIONS`].
fn all_expanded() -> String {
    let derive = "#[derive(JsonSchema, Clone, Debug, Serialize, Deserialize)]";
    let version = |name: &str, imports: &str, docs: &str, fields: [&str; 3], forms: &str, length: &str| {
        let [first, milk, last] = fields;
        format!(
            "pub mod {name} {{ use super::*; {imports}
            {docs}
            /// A cup of coffee.
            #[kube(group = \"x.io\", version = \"{name}\", kind = \"Cup\", doc = \"A cup.\", plural = \"cuppas\", namespaced, status = v1alpha1::CupStatus)]
            #[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
            #[serde(rename_all = \"camelCase\")]
            pub struct CupSpec {{
                /// All versions have it.
                pub count: i32,
                {first}
                /// Its name and type have changed.
                #[serde(default)]
                #[schemars(range(max = MAX))]
                pub {milk},
                {last}
                pub handle: Option<Handle>,
                pub lid: Lid,
                pub forms: Vec<Form>,
            }}
            {docs}
            {derive}
            pub struct Handle {{ {length} }}
            {docs}
            #[derive(JsonSchema, Clone, Debug, Default, Serialize, Deserialize)]
            pub struct CupStatus {{ pub ready: Option<bool> }}
            {docs}
            {derive}
            #[serde(rename_all = \"camelCase\")]
            pub enum Form {{
                Round,
                /// With corners.
                {forms}
            }}
        }}\n"
        )
    };
    let docs = "#[doc = \"The second version.\"] #[doc = \"It has two lines.\"]";
    let beans = "pub beans_of_cup: Option<String>,";
    let unused = "/// Nobody uses it.\n";
    let gone = "#[deprecated(note = \"use milk_amount\")] pub";
    [
        version(
            "v1alpha1",
            "pub use lids::v1alpha1::*;",
            "",
            ["", "milk_ml: u16", &format!("{unused} pub not_this_one: Old,")],
            "ExperimentalSquare, Mug",
            "",
        ),
        version(
            "v1beta1",
            "",
            docs,
            [beans, "milk: u16", &format!("{unused} {gone} deprecated_not_this_one: bool, pub roast: Option<String>,")],
            "SquareForm, Mug",
            "",
        ),
        version(
            "v1",
            "pub use lids::v1::*;",
            "",
            [
                beans,
                "milk_amount: u32",
                &format!(
                    "{unused} {gone} deprecated_not_this_one: bool, #[deprecated(note = \"use beans_of_cup\")] pub deprecated_roast: Option<String>,"
                ),
            ],
            "SquareForm, Oval, #[deprecated] DeprecatedMug",
            "pub length: Option<i32>",
        ),
    ]
    .concat()
}

/// Leaves out the places of the diagnostics.
fn messages(found: &Generated) -> Vec<String> {
    let mut messages: Vec<String> = found
        .diagnostics
        .iter()
        .map(|said| said.message.clone())
        .collect();
    messages.sort();
    messages.dedup();
    messages
}

#[test]
fn several_versions_expand_to_their_modules() {
    let source = VERSIONS
        .replace("pub not_this_one", "pub deprecated_not_this_one")
        .replace(", changed(since = \"v1beta1\", from_type = Old)", "");
    let expanded = all_expanded().replace("not_this_one: Old", "not_this_one: bool");
    for stored in ["v1alpha1", "v1beta1", "v1"] {
        let variant = stored.replace('a', "A").replace('b', "B").replace("v1", "V1");
        let merged = format!("fn crds() {{ Cup::merged_crd(CupVersion::{variant}); }}");
        let found = run(&format!("{AROUND}{source}{merged}"));
        let merged = format!("fn crds() {{ merge_crds(vec![v1::Cup::crd()], \"{stored}\"); }}");
        let expected = run(&format!("{AROUND}{expanded}{merged}"));
        assert_eq!(expected.files.len(), 1, "{:#?}", expected.diagnostics);
        assert_eq!(found.files.len(), 1, "{:#?}", found.diagnostics);
        assert_eq!(messages(&found), messages(&expected), "{stored}");
        let [found, expected] = [found, expected].map(|generated| generated.files[0].text.clone());
        assert!(
            found.contains("deprecatedRoast") && found.contains("experimentalSquare"),
            "{found}"
        );
        assert_same_lines(&found, &expected);
    }
}

/// Goes line by line, so that a failure shows the first difference.
fn assert_same_lines(found: &str, expected: &str) {
    for (at, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {}", at + 1);
    }
    assert_eq!(found, expected);
}

#[test]
fn kind_is_not_a_type_of_the_outer_module() {
    let user = "pub mod others { #[derive(schemars::JsonSchema)] pub struct Cup { pub a: i32 } }\nuse others::*;\n\
                #[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]\n\
                #[kube(group = \"x.io\", version = \"v1\", kind = \"Pot\")]\npub struct PotSpec { pub cup: Cup }\n";
    let module = source("#[versioned(version(name = \"v1alpha1\"))]", "crd");
    let found = run(&format!("{module}{user}"));
    let errors = found.diagnostics.iter().filter(|said| said.is_error());
    assert_eq!(
        errors.map(|said| &*said.message).collect::<Vec<_>>(),
        ["`Cup` does not derive a schema"],
    );
}

#[test]
fn unsorted_versions_are_read_in_their_order() {
    let sorted = "version(name = \"v1beta1\"), version(name = \"v1\")";
    let unsorted = "version(name = \"v1\"), version(name = \"v1beta1\"), options(allow_unsorted)";
    let lib = |versions: &str| {
        format!(
            "#[versioned({versions})]\nmod versioned {{\n#[versioned(crd(group = \"x.io\", doc = \"\"))]\n\
             #[derive(CustomResource, {DERIVES})]\npub struct CupSpec {{ #[versioned(added(since = \"v1\"))] pub a: Option<i32> }}\n}}\n"
        )
    };
    let [sorted, unsorted] = [sorted, unsorted].map(|versions| run(&lib(versions)));
    assert_eq!(sorted.files.len(), 1, "{:#?}", sorted.diagnostics);
    assert_eq!(sorted.files, unsorted.files);
}

/// The kind has a single versioned field or variant.
fn said_about(item: &str) -> Vec<String> {
    let found = run(&format!(
        "#[versioned(version(name = \"v1alpha1\"), version(name = \"v1\"))]\nmod versioned {{\n\
         #[versioned(crd(group = \"x.io\", doc = \"A cup.\"))]\n#[derive(CustomResource, {DERIVES})]\n\
         pub struct CupSpec {{ {item} }}\n}}\n"
    ));
    let is_written = found.diagnostics.iter().any(|said| said.is_error()) == found.files.is_empty();
    assert!(is_written, "{item}: {:#?}", found.diagnostics);
    let errors = found.diagnostics.into_iter().filter(|said| said.is_error());
    errors.map(|said| said.message).collect()
}

#[test]
fn reports_actions_that_the_macro_refuses() {
    for (item, expected) in [
        ("#[versioned(added(since = \"v1\"))] a: Option<i32>", ""),
        (
            "#[versioned(added(since = \"v2\"))] a: i32",
            "the module has no version `v2`",
        ),
        (
            "#[versioned(added)] a: i32",
            "expected arguments in parentheses for `added`",
        ),
        (
            "#[versioned(added(default = \"x\"))] a: i32",
            "missing argument `since` of `added`",
        ),
        (
            "#[versioned(added(since = \"v1\", by = \"x\"))] a: i32",
            "unknown argument `by` of `added`",
        ),
        (
            "#[versioned(removed(since = \"v1\"))] a: i32",
            "unknown argument `removed` of `versioned`",
        ),
        (
            "#[versioned(added(since = \"v1\"), added(since = \"v1alpha1\"))] a: i32",
            "duplicate argument `added`",
        ),
        (
            "#[versioned(changed(since = \"v1\"))] a: i32",
            "`changed` has neither `from_name` nor `from_type`",
        ),
        (
            "#[versioned(changed(since = \"v1\", from_name = \"\"))] a: i32",
            "expected the earlier name",
        ),
        (
            "#[versioned(changed(since = \"v1\", from_type = \"Vec<\"))] a: i32",
            "expected the earlier type",
        ),
        (
            "#[versioned(changed(since = \"v1\", from_name = \"deprecated_b\"))] a: i32",
            "an earlier name must not begin with `deprecated_`, found `deprecated_b`",
        ),
        (
            "#[versioned(deprecated(since = \"v1\"))] a: i32",
            "`a` is deprecated, and its name does not begin with `deprecated_`",
        ),
        (
            "#[versioned(added(since = \"v1\"))] deprecated_a: i32",
            "the name of `deprecated_a` begins with `deprecated_`, but nothing deprecates it",
        ),
        (
            "#[versioned(added(since = \"v1\"), changed(since = \"v1\", from_name = \"b\"))] a: i32",
            "the actions are not in the order of versions",
        ),
        (
            "#[versioned(added(since = \"v1\"), deprecated(since = \"v1alpha1\"))] deprecated_a: i32",
            "the actions are not in the order of versions",
        ),
    ] {
        let expected: Vec<&str> = Some(expected)
            .filter(|text| !text.is_empty())
            .into_iter()
            .collect();
        assert_eq!(said_about(item), expected, "{item}");
    }
}

#[test]
fn reports_modules_that_cannot_be_read() {
    for (module, expected) in [
        (
            "#[versioned(version(name = \"v1\"), version(name = \"v1alpha1\"))]",
            "version `v1alpha1` comes after the newer version `v1`",
        ),
        (
            "#[other] #[versioned(version(name = \"v1alpha1\"))]",
            "this attribute macro may change the module; rbuilder does not run macros",
        ),
    ] {
        let found = run(&source(module, "crd"));
        assert_eq!(found.files, [], "{module}");
        let errors: Vec<&str> = found
            .diagnostics
            .iter()
            .filter(|said| said.is_error())
            .map(|said| &*said.message)
            .collect();
        assert_eq!(errors, [expected], "{module}");
    }
}

#[test]
fn reports_submodules_that_are_not_imports_of_a_version() {
    let module = "#[versioned(version(name = \"v1alpha1\"))]";
    for (inner, expected) in [
        (
            "mod v2 { use x::*; }",
            "a module inside of a `versioned` module has the name of a version, and only imports",
        ),
        (
            "mod v1alpha1;",
            "a module inside of a `versioned` module has the name of a version, and only imports",
        ),
        (
            "mod v1alpha1 { pub struct A; }",
            "a module inside of a `versioned` module has only imports",
        ),
    ] {
        let lib =
            source(module, "crd").replace("pub mod versioned {", &format!("pub mod versioned {{ {inner}"));
        let found = run(&lib);
        let errors = found.diagnostics.iter().filter(|said| said.is_error());
        assert_eq!(
            errors.map(|said| &*said.message).collect::<Vec<_>>(),
            [expected],
            "{inner}"
        );
    }
}

#[test]
fn large_modules_are_an_error() {
    let versions: Vec<String> = (1..100).map(|at| format!("version(name = \"v{at}\")")).collect();
    let fields: String = (0..10_000)
        .map(|at| format!("/// A field.\npub f{at}: i32,"))
        .collect();
    let lib = format!(
        "#[versioned({})]\nmod versioned {{\n#[versioned(crd(group = \"x.io\", doc = \"\"))]\n\
         #[derive(CustomResource, {DERIVES})]\npub struct CupSpec {{ {fields} }}\n}}\n",
        versions.join(", ")
    );
    let found = run(&lib);
    assert_eq!(
        messages(&found),
        ["the module is too large: all of its versions have more than 16 MiB"]
    );
}

/// The kind has two versions, and the macro is on the struct itself.
fn bare(arguments: &str) -> String {
    format!(
        "#[derive({DERIVES})]\npub struct Lid {{ pub tight: bool }}\n\
         /// A cup of coffee.\n#[versioned(version(name = \"v1alpha1\"), version(name = \"v1\"), \
         k8s(group = \"x.io\", namespaced, plural = \"cuppas\"){arguments})]\n\
         #[derive(CustomResource, {DERIVES})]\n#[serde(rename_all = \"camelCase\")]\n\
         pub struct CupSpec {{\n#[versioned(changed(since = \"v1\", from_name = \"size\", from_type = \"u16\"))]\n\
         pub max_size: u32,\n#[versioned(added(since = \"v1\"))]\npub lid: Option<Lid>,\n}}\n"
    )
}

#[test]
fn bare_structs_expand_to_a_module_per_version() {
    let version = |name: &str, storage: &str, fields: &str| {
        format!(
            "pub mod {name} {{\nuse super::*;\n/// A cup of coffee.\n\
             #[derive(CustomResource, {DERIVES})]\n#[serde(rename_all = \"camelCase\")]\n\
             #[kube(group = \"x.io\", version = \"{name}\", kind = \"Cup\", namespaced, plural = \"cuppas\"{storage})]\n\
             pub struct CupSpec {{ {fields} }}\n}}\n"
        )
    };
    let expanded = format!(
        "#[derive({DERIVES})]\npub struct Lid {{ pub tight: bool }}\n{}{}",
        version("v1alpha1", ", storage = false", "pub size: u16"),
        version("v1", "", "pub max_size: u32, pub lid: Option<Lid>"),
    );
    let expected = run(&expanded);
    assert_eq!(expected.files.len(), 1, "{:#?}", expected.diagnostics);
    for arguments in [
        "",
        ", options(allow_unsorted), skip(from)",
        ", crates(kube_core = \"x\")",
    ] {
        let found = run(&bare(arguments));
        assert_eq!(
            found.files, expected.files,
            "{arguments}: {:#?}",
            found.diagnostics
        );
    }
    let user = "#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]\n\
                #[kube(group = \"x.io\", version = \"v1\", kind = \"Pot\")]\npub struct PotSpec { pub cup: v1::CupSpec }\n";
    let found = run(&format!("{}{user}", bare("")));
    assert_eq!(found.files.len(), 2, "{:#?}", found.diagnostics);
}

#[test]
fn bare_enums_and_structs_without_a_kind_are_versioned() {
    let lid = "#[versioned(version(name = \"v1alpha1\"), version(name = \"v1\"))]\n\
               #[derive(JsonSchema, Clone, Debug, Serialize, Deserialize)]\n\
               pub enum Lid { Open, #[versioned(added(since = \"v1\"))] Closed }\n";
    let user = |path: &str| {
        format!(
            "{lid}#[derive(CustomResource, {DERIVES})]\n\
             #[kube(group = \"x.io\", version = \"v1\", kind = \"Pot\")]\npub struct PotSpec {{ pub lid: {path} }}\n"
        )
    };
    let found = run(&user("v1::Lid"));
    assert!(
        found.files[0].text.contains("- Closed"),
        "{:#?}",
        found.diagnostics
    );
    let found = run(&user("v1alpha1::Lid"));
    assert!(
        !found.files[0].text.contains("- Closed"),
        "{:#?}",
        found.diagnostics
    );
    assert_eq!(messages(&run(&user("Lid"))), ["cannot find type `Lid`"]);
}

#[test]
fn reports_bare_structs_that_cannot_be_read() {
    for (arguments, expected) in [
        (
            ", version(name = \"v1beta1\")",
            "version `v1beta1` comes after the newer version `v1`",
        ),
        (", surprise(yes)", "unknown argument `surprise` of `versioned`"),
    ] {
        let found = run(&bare(arguments));
        assert_eq!(messages(&found), [expected], "{arguments}");
        assert_eq!(found.files, [], "{arguments}");
    }
}

const CHANGED_VALUES: &str = "
/// Contains changed values during upgrades and downgrades of CRDs.
#[derive(JsonSchema, Clone, Debug, Serialize, Deserialize)]
pub struct ChangedValues {
    /// List of values needed when downgrading to a particular version.
    pub downgrades: std::collections::BTreeMap<String, Vec<ChangedValue>>,
    /// List of values needed when upgrading to a particular version.
    pub upgrades: std::collections::BTreeMap<String, Vec<ChangedValue>>,
}
/// Contains a changed value for a single field of the CRD.
#[derive(JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = \"camelCase\")]
pub struct ChangedValue {
    /// The name of the field of the custom resource this value is for.
    pub json_path: String,
    /// The value to be used when upgrading or downgrading the custom resource.
    #[schemars(schema_with = \"any_object\")]
    pub value: serde_json::Value,
}
fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ \"type\": \"object\", \"x-kubernetes-preserve-unknown-fields\": true })
}
";

/// The kind has two versions, in a module with conversion tracking.
fn tracked(status: &str, module_skip: &str, kind_skip: &str) -> String {
    format!(
        "#[derive({DERIVES}, Default)]\npub struct CupStatus {{ pub ready_cups: Option<i32> }}\n\
         #[versioned(version(name = \"v1alpha1\"), version(name = \"v1\"), \
         options(k8s(experimental_conversion_tracking)){module_skip})]\npub mod versioned {{\n\
         #[versioned(crd(group = \"x.io\", doc = \"A cup.\"{status}){kind_skip})]\n\
         #[derive(CustomResource, {DERIVES})]\npub struct CupSpec {{\n\
         #[versioned(added(since = \"v1\"))]\npub size: i32,\n#[versioned(nested)]\npub lid: Lid,\n}}\n\
         #[derive({DERIVES})]\npub struct Lid {{ pub tight: bool }}\n}}\n"
    )
}

/// The macro expands [`tracked`] to this.
fn expanded_tracked(status: &str, generated: &str) -> String {
    let version = |name: &str, storage: &str, fields: &str| {
        format!(
            "pub mod {name} {{\nuse super::*;\n#[derive(CustomResource, {DERIVES})]\n\
             #[kube(group = \"x.io\", version = \"{name}\", kind = \"Cup\", doc = \"A cup.\"{status}{storage})]\n\
             pub struct CupSpec {{ {fields} pub lid: Lid }}\n\
             #[derive({DERIVES})]\npub struct Lid {{ pub tight: bool }}\n}}\n"
        )
    };
    format!(
        "#[derive({DERIVES}, Default)]\npub struct CupStatus {{ pub ready_cups: Option<i32> }}\n{CHANGED_VALUES}{}{}\n\
         #[derive({DERIVES})]\n#[serde(rename_all = \"camelCase\")]\n\
         pub struct CupStatusWithChangedValues {{ pub changed_values: ChangedValues, {generated} }}\n",
        version("v1alpha1", ", storage = false", ""),
        version("v1", "", "pub size: i32,"),
    )
}

#[test]
fn tracked_conversions_add_their_values_to_the_status() {
    let status = ", status = CupStatus";
    let flat = "#[serde(flatten)] pub status: CupStatus,";
    let generated = ", status = \"CupStatusWithChangedValues\"";
    for (source, expanded) in [
        (tracked(status, "", ""), expanded_tracked(generated, flat)),
        (tracked("", "", ""), expanded_tracked(generated, "")),
        (
            tracked(status, ", skip(merged_crd)", ""),
            expanded_tracked(generated, flat),
        ),
        (
            tracked(status, ", skip(merged_crd, try_convert)", ""),
            expanded_tracked(status, flat),
        ),
        (
            tracked(status, ", skip(try_convert)", ", skip(merged_crd)"),
            expanded_tracked(status, flat),
        ),
    ] {
        let expected = run(&expanded);
        assert_eq!(expected.files.len(), 1, "{expanded}: {:#?}", expected.diagnostics);
        let found = run(&source);
        assert_eq!(found.files, expected.files, "{source}: {:#?}", found.diagnostics);
    }
}

#[test]
fn the_original_status_resolves_outside_of_the_versions() {
    let module = tracked(", status = CupStatus", "", "");
    let unknown = module.replacen("pub struct CupStatus", "pub struct PotStatus", 1);
    let found = run(&unknown);
    assert_eq!(messages(&found)[0], "cannot find type `CupStatus`");
    let place = &found.diagnostics[0].place;
    assert_eq!(&format!("{USES}{unknown}")[place.range.clone()], "CupStatus");
    // The macro doesn't generate the struct either.
    let skipped = tracked(", status = CupStatus", ", skip(try_convert)", "");
    assert_eq!(
        messages(&run(&skipped))[0],
        "cannot find type `CupStatusWithChangedValues`"
    );
}
