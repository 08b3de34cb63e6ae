//! Compares the plurals that a program uses, as derived by kube, with those in the manifests.
//!
//! kube's rule looks at the last two letters of the singular, so the kinds cover every last letter
//! and every pair of letters that the rule distinguishes.

use std::collections::BTreeMap;

use kube::{CustomResource, CustomResourceExt};
use rbuilder_generator::SourceSet;
use serde::{Deserialize, Serialize};

use super::{CARGO_TOML, generated_from};

/// Defines kinds whose `#[kube(…)]` is compiled, and also passed to the generator as text.
macro_rules! kinds {
    ($($module:ident: $kind:literal $(, $key:ident = $value:literal)*;)*) => {
        $(mod $module {
            use super::*;

            #[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
            #[kube(group = "plurals.example.com", version = "v1", kind = $kind, root = "Root", schema = "disabled" $(, $key = $value)*)]
            pub struct Spec {}
        })*

        /// Returns the plural and the singular of each compiled kind.
        fn compiled() -> BTreeMap<String, (String, String)> {
            let crds = [$($module::Root::crd()),*];
            let names = crds.into_iter().map(|crd| crd.spec.names);
            names.map(|names| (names.kind, (names.plural, names.singular.unwrap_or_default()))).collect()
        }

        const SOURCES: &[(&str, &str)] = &[
            $((stringify!($module), concat!(
                "use kube::CustomResource;\nuse rbuilder::CrdSchema;\nuse serde::{Deserialize, Serialize};\n\n",
                "#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n",
                "#[kube(group = \"plurals.example.com\", version = \"v1\", kind = ", stringify!($kind), ", root = \"Root\"",
                $(", ", stringify!($key), " = ", stringify!($value),)*
                ")]\npub struct Spec {}\n",
            ))),*
        ];
    };
}

kinds! {
    ends_in_a: "Lava"; ends_in_b: "Club"; ends_in_c: "Disc"; ends_in_d: "Memcached"; ends_in_e: "Cache";
    ends_in_f: "Shelf"; ends_in_g: "Config"; ends_in_h: "Graph"; ends_in_i: "Wifi"; ends_in_j: "Hajj";
    ends_in_k: "Disk"; ends_in_l: "Pool"; ends_in_m: "Realm"; ends_in_n: "Domain"; ends_in_o: "Tomato";
    ends_in_p: "Backup"; ends_in_q: "Mq"; ends_in_r: "Cluster"; ends_in_s: "Redis"; ends_in_t: "Tenant";
    ends_in_u: "Menu"; ends_in_v: "Env"; ends_in_w: "Window"; ends_in_x: "Mailbox"; ends_in_z: "Quiz";
    ends_in_ch: "Batch"; ends_in_sh: "Mesh"; ends_in_th: "Path"; ends_in_gh: "Bough"; ends_in_ss: "Ingress";
    ends_in_ay: "Gateway"; ends_in_ey: "Key"; ends_in_iy: "Kiy"; ends_in_oy: "Deploy"; ends_in_uy: "Buy";
    ends_in_cy: "Policy"; ends_in_ry: "Registry"; ends_in_yy: "Jayy"; ends_in_wy: "Wy"; ends_in_digit: "Db2";
    of_a_plural: "Proxies"; of_letters: "HTTPRoute"; of_no_plural: "Sheep";
    singular: "Datum", singular = "measure"; singular_in_y: "Bus", singular = "city";
    singular_in_x: "Wolf", singular = "fox"; singular_with_dash: "Cow", singular = "my-ox-y";
    both: "Goose", singular = "goose", plural = "geese"; plural_alone: "Mouse", plural = "mice";
}

#[test]
fn plurals_in_manifests_match_the_program() {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", CARGO_TOML);
    let modules: String = SOURCES
        .iter()
        .map(|(module, _)| format!("mod {module};\n"))
        .collect();
    sources.insert("src/lib.rs", modules.as_str());
    for (module, text) in SOURCES {
        sources.insert(format!("src/{module}.rs"), *text);
    }
    let written: BTreeMap<String, (String, String)> = generated_from(&sources)
        .values()
        .map(|manifest| {
            let crd: serde_json::Value = serde_saphyr::from_str(manifest).expect("YAML");
            let name = |key: &str| crd["spec"]["names"][key].as_str().unwrap_or_default().to_owned();
            assert_eq!(
                crd["metadata"]["name"],
                format!("{}.plurals.example.com", name("plural"))
            );
            (name("kind"), (name("plural"), name("singular")))
        })
        .collect();
    assert_eq!(written, compiled());
}
