//! Codes for changes of released CRDs.

use super::{Code, ExamplePlace};
use crate::Severity;

pub(super) const CODES: &[Code] = &[
    Code {
        id: "RB0801",
        title: "Stored objects may not be decoded any more",
        level: Severity::Warning,
        place: ExamplePlace::Change,
        wrong: "pub size: Option<i32>,\n// becomes\npub size: i32,",
        right: "pub size: Option<i32>,\n// becomes\n#[serde(default)]\npub size: i32,",
        reason: "The API server validates objects when they are written, not when they are read. An object that was stored before the \
                 change is served as it is, and the operator cannot decode it.",
        server: "",
        messages: &[
            "`{}` becomes required in version `{}` of `{}` and has no default: objects stored without it cannot be decoded",
            "`{}` loses the value `{}` in version `{}` of `{}`: objects stored with it cannot be decoded",
            "`{}` accepts only `{}` in version `{}` of `{}`: objects stored with another value cannot be decoded",
            "`{}` changes from {} to {} in version `{}` of `{}`: objects stored with it cannot be decoded",
        ],
    },
    Code {
        id: "RB0802",
        title: "Stored objects lose a field",
        level: Severity::Warning,
        place: ExamplePlace::Change,
        wrong: "pub size: i32,\npub class: Option<String>,\n// becomes\npub size: i32,",
        right: "pub size: i32,\npub class: Option<String>,\n// becomes\npub size: i32,\npub class: Option<String>,\npub tier: Option<String>,",
        reason: "The API server prunes fields that the schema does not have when it reads an object. The next write loses their values.",
        server: "",
        messages: &[
            "`{}` loses the field `{}` in version `{}` of `{}`: the API server drops its value from stored objects",
            "`{}` loses the fields `{}` in version `{}` of `{}`: the API server drops their values from stored objects",
        ],
    },
    Code {
        id: "RB0803",
        title: "A change of a released CRD breaks what clients write, or what is stored",
        level: Severity::Warning,
        place: ExamplePlace::Change,
        wrong: "#[kube(validation(maximum = 9))]\npub size: i32,\n// becomes\n#[kube(validation(maximum = 5))]\npub size: i32,",
        right: "#[kube(validation(maximum = 5))]\npub size: i32,\n// becomes\n#[kube(validation(maximum = 9))]\npub size: i32,",
        reason: "Manifests of users that were valid before are refused, or mean something else. `rbuilder diff` shows an object for \
                 which this is so, and the guide has the rule of each change (docs/compatibility.md).",
        server: "",
        messages: &[
            "`{}` changes in version `{}` of `{}`: {}",
            "the object changes in version `{}` of `{}`: {}",
        ],
    },
    Code {
        id: "RB0804",
        title: "A cluster that has the CRD rejects the new one",
        level: Severity::Warning,
        place: ExamplePlace::KindChange,
        wrong: "#[kube(group = \"example.com\", version = \"v1\", kind = \"Widget\", namespaced)]\n// becomes\n\
                #[kube(group = \"example.com\", version = \"v1\", kind = \"Widget\")]",
        right: "#[kube(group = \"example.com\", version = \"v1\", kind = \"Widget\", namespaced)]\n// becomes\n\
                #[kube(group = \"example.com\", version = \"v1\", kind = \"Widget\", namespaced, shortname = \"wi\")]",
        reason: "The kind and the scope of an installed CRD cannot change, and neither can a version be removed in which objects may be \
                 stored.",
        server: "The CustomResourceDefinition \"widgets.example.com\" is invalid: spec.scope: Invalid value: \"Cluster\": field is immutable",
        messages: &[
            "the CRD of `{}` loses its storage version `{}`: a cluster that stores objects in this version rejects the CRD",
            "the kind of the CRD `{}` changes from `{}` to `{}`: the API server rejects this for an installed CRD",
            "the scope of the CRD `{}` changes from `{}` to `{}`: the API server rejects this for an installed CRD",
        ],
    },
    Code {
        id: "RB0805",
        title: "A CRD is removed with its kind",
        level: Severity::Error,
        place: ExamplePlace::KindChange,
        wrong: "#[kube(group = \"example.com\", version = \"v1\", kind = \"Widget\")]\n// becomes\n\
                #[kube(group = \"example.com\", version = \"v1\", kind = \"Gadget\")]",
        right: "#[kube(group = \"example.com\", version = \"v1\", kind = \"Widget\")]\n// becomes\n\
                #[kube(group = \"example.com\", version = \"v1\", kind = \"Widget\", shortname = \"wi\")]",
        reason: "When a CRD is deleted from a cluster, as a GitOps tool that prunes does, all objects of its kind are deleted with it. A \
                 CRD in git is therefore removed only with `--prune`.",
        server: "",
        messages: &[
            "{} would be deleted, because the source no longer defines the kind: {}",
            "{} is deleted, because the source no longer defines the kind: {}",
        ],
    },
];
