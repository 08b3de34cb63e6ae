//! The differences from controller-gen that we want, with reasons.

/// All rows have the same reason.
#[derive(Debug)]
pub(crate) struct Difference {
    #[allow(dead_code)] // for readers of the table and for error messages
    pub(crate) reason: &'static str,
    pub(crate) rows: &'static [Row],
}

/// A path as `compare` prints it, in which `*` matches any text. Then the values of rbuilder and of
/// controller-gen, as JSON, [`ABSENT`] or [`ANY`].
pub(crate) type Row = (&'static str, &'static str, &'static str);

/// There is no value.
pub(crate) const ABSENT: &str = "absent";
/// There is some value.
pub(crate) const ANY: &str = "any";

#[rustfmt::skip] // one row per line
pub(crate) const DIFFERENCES: &[Difference] = &[
    // Signatures.
    Difference {
        reason: "each program signs its own",
        rows: &[
            ("*/metadata/annotations/controller-gen.kubebuilder.io/version", ABSENT, r#""v0.23.0""#),
            ("*/metadata/annotations/rbuilder.dev/version", r#""(test)""#, ABSENT),
            ("crd_*/metadata/annotations", ABSENT, r#"{"controller-gen.kubebuilder.io/version": "v0.23.0"}"#),
        ],
    },
    // Defaults.
    Difference {
        reason: "a function that serde is told gives a default as the marker does; Go has no such function",
        rows: &[("crd:presences/v1.spec.explicitlyOptionalKubernetes/default", r#""word""#, ABSENT)],
    },
    // Numbers.
    Difference {
        reason: "a number of fewer bits is read into 32",
        rows: &[
            ("crd:scalars/v1.spec.int8/format", r#""int32""#, ABSENT),
            ("crd:scalars/v1.spec.int16/format", r#""int32""#, ABSENT),
            ("crd:scalars/v1.spec.uint8/format", r#""int32""#, ABSENT),
            ("crd:scalars/v1.spec.uint16/format", r#""int32""#, ABSENT),
            ("crd:scalars/v1.spec.maybeUint16/format", r#""int32""#, ABSENT),
            ("crd:collections/v1.spec.narrow[]/format", r#""int32""#, ABSENT),
        ],
    },
    Difference {
        reason: "the API server holds an object to what the Rust type can hold, so that nothing it accepts fails to be read",
        rows: &[
            ("crd:scalars/v1.spec.int8/minimum", "-128", ABSENT),
            ("crd:scalars/v1.spec.int8/maximum", "127", ABSENT),
            ("crd:scalars/v1.spec.int16/minimum", "-32768", ABSENT),
            ("crd:scalars/v1.spec.int16/maximum", "32767", ABSENT),
            ("crd:scalars/v1.spec.uint8/minimum", "0", ABSENT),
            ("crd:scalars/v1.spec.uint8/maximum", "255", ABSENT),
            ("crd:scalars/v1.spec.uint16/minimum", "0", ABSENT),
            ("crd:scalars/v1.spec.uint16/maximum", "65535", ABSENT),
            ("crd:scalars/v1.spec.maybeUint16/minimum", "0", ABSENT),
            ("crd:scalars/v1.spec.maybeUint16/maximum", "65535", ABSENT),
            ("crd:collections/v1.spec.narrow[]/minimum", "-32768", ABSENT),
            ("crd:collections/v1.spec.narrow[]/maximum", "32767", ABSENT),
            ("crd:scalars/v1.spec.uint32/minimum", "0", ABSENT),
            ("crd:scalars/v1.spec.uint32/maximum", "4294967295", ABSENT),
            ("crd:scalars/v1.spec.uint64/minimum", "0", ABSENT),
            ("crd:scalars/v1.spec.uintSize/minimum", "0", ABSENT),
            ("crd*:kubernetes/v1.spec.duration/pattern", ANY, ABSENT),
            ("crd*:kubernetes/v1.spec.maybeDuration/pattern", ANY, ABSENT),
        ],
    },
    Difference {
        reason: "half of the numbers of 32 bits without a sign do not fit into 32 bits with one",
        rows: &[
            ("crd:scalars/v1.spec.uint32/format", r#""int64""#, r#""int32""#),
        ],
    },
    Difference {
        reason: "a `usize` has 64 bits where operators run",
        rows: &[
            ("crd:scalars/v1.spec.uintSize/format", r#""int64""#, ABSENT),
        ],
    },
    Difference {
        reason: "an `isize` has 64 bits where operators run",
        rows: &[
            ("crd:scalars/v1.spec.intSize/format", r#""int64""#, ABSENT),
            ("crd:bounds/v1.spec.intWithValidations/format", r#""int64""#, ABSENT),
        ],
    },
    Difference {
        reason: "the API server knows the format, and readers learn how much of a number is kept",
        rows: &[
            ("crd:*/format", r#""double""#, ABSENT),
            ("crd:*/format", r#""float""#, ABSENT),
        ],
    },
    // Characters and lists.
    Difference {
        reason: "a `char` is written as a text of one character, a Go rune as a number",
        rows: &[
            ("crd:scalars/v1.spec.letter/type", r#""string""#, r#""integer""#),
            ("crd:scalars/v1.spec.letter/format", ABSENT, r#""int32""#),
            ("crd:scalars/v1.spec.letter/minLength", "1", ABSENT),
            ("crd:scalars/v1.spec.letter/maxLength", "1", ABSENT),
        ],
    },
    Difference {
        reason: "an array has as many items as its type says; Go fills up and cuts off, serde refuses",
        rows: &[
            ("crd:collections/v1.spec.array/minItems", "3", ABSENT),
            ("crd:collections/v1.spec.array/maxItems", "3", ABSENT),
            ("crd:collections/v1.spec.arrayOfObjects/minItems", "2", ABSENT),
            ("crd:collections/v1.spec.arrayOfObjects/maxItems", "2", ABSENT),
        ],
    },
    Difference {
        reason: "the API server refuses every CRD with `uniqueItems`; a list of type `set` is what it has instead",
        rows: &[
            ("crd:collections/v1.spec.set/uniqueItems", ABSENT, "true"),
            ("crd:collections/v1.spec.set/x-kubernetes-list-type", r#""set""#, ABSENT),
        ],
    },
    // If there are two bounds on one value, rbuilder keeps the tighter one. controller-gen puts
    // both in an `allOf`.
    Difference {
        reason: "one bound is easier to read than two, and the server's cost estimate sees it",
        rows: &[
            ("crd:bounds/v1.spec.fieldLevelAliasOverride/allOf", ABSENT, r#"[{"maximum":100,"minimum":0},{"maximum":1000,"minimum":-10}]"#),
            ("crd:bounds/v1.spec.fieldLevelAliasOverride/maximum", "100", ABSENT),
            ("crd:bounds/v1.spec.fieldLevelAliasOverride/minimum", "0", ABSENT),
            ("crd:bounds/v1.spec.fieldLevelLocalDeclarationOverride/allOf", ABSENT, r#"[{"maxLength":9,"minLength":2},{"maxLength":5,"minLength":1}]"#),
            ("crd:bounds/v1.spec.fieldLevelLocalDeclarationOverride/maxLength", "5", ABSENT),
            ("crd:bounds/v1.spec.fieldLevelLocalDeclarationOverride/minLength", "2", ABSENT),
            ("crd:bounds/v1.spec.locallyBoundedInteger/allOf", ABSENT, r#"[{"maximum":100},{"maximum":50}]"#),
            ("crd:bounds/v1.spec.locallyBoundedInteger/maximum", "50", ABSENT),
            ("crd:bounds/v1.spec.sameBound/allOf", ABSENT, r#"[{"minLength":4},{"minLength":4}]"#),
            ("crd:bounds/v1.spec.sameBound/minLength", "4", ABSENT),
            ("crd:bounds/v1.spec.twoOfAKindPart1/allOf", ABSENT, r#"[{"minLength":4},{"minLength":10}]"#),
            ("crd:bounds/v1.spec.twoOfAKindPart1/minLength", "10", ABSENT),
        ],
    },
    Difference {
        reason: "both hold, and the type's stands where it stands without the field's",
        rows: &[
            ("crd:bounds/v1.spec.twoFactors/allOf", r#"[{"multipleOf":3}]"#, r#"[{"multipleOf":2},{"multipleOf":3}]"#),
            ("crd:bounds/v1.spec.twoFactors/multipleOf", "2", ABSENT),
            ("crd:bounds/v1.spec.twoPatterns/allOf", r#"[{"pattern":"z$"}]"#, r#"[{"pattern":"^[a-z]+$"},{"pattern":"z$"}]"#),
            ("crd:bounds/v1.spec.twoPatterns/pattern", r#""^[a-z]+$""#, ABSENT),
        ],
    },
    Difference {
        reason: "controller-gen drops the values of a field whose type has some; both hold",
        rows: &[
            ("crd:enums/v1.spec.narrowed/enum", r#"["Allow","Forbid"]"#, r#"["Allow","Forbid","Replace"]"#),
        ],
    },
    // Presence and descriptions.
    Difference {
        reason: "the doc comments of variants are a list in the description; Go's constants are no part of their type",
        rows: &[(
            "crd:enums/v1.spec.k8sConcurrencyPolicy/description",
            r#""K8sConcurrencyPolicy has its values from constants.\n\n- Allow: K8sAllow lets them overlap.\n- Forbid: K8sForbid skips the next.\n- Replace: K8sReplace stops the last.""#,
            r#""K8sConcurrencyPolicy has its values from constants.""#,
        )],
    },
    Difference {
        reason: "the words of the type are kept where its form is overridden",
        rows: &[
            ("crd:items/v1.spec.retyped[]/description", r#""Raw is read and written by hand.""#, ABSENT),
            ("crd:opens/v1.spec.retyped/description", r#""TotallyABool is a bool in a word.""#, ABSENT),
        ],
    },
    // Kinds.
    Difference {
        reason: "a status that is not a subresource is overwritten with every change of the spec; kube turns it on",
        rows: &[
            ("crd*:docs/v1/subresources", r#"{"status":{}}"#, ABSENT),
        ],
    },
    // Webhooks.
    Difference {
        reason: "this version of controller-gen cannot choose objects",
        rows: &[
            ("webhook:*/webhooks/*/objectSelector", ANY, ABSENT),
            ("webhook:*/webhooks/*/namespaceSelector", ANY, ABSENT),
            ("webhook:*/webhooks/*/matchConditions", ANY, ABSENT),
            ("webhook:*/webhooks/*/rules/0/scope", r#""Cluster""#, ABSENT),
        ],
    },
    // Kubernetes' own types.
    Difference {
        reason: "kube-apiserver merges these in its own objects; only the struct that is embedded in them is atomic",
        rows: &[
            ("crd:workloads/v1.spec.*envFrom[].configMapRef/x-kubernetes-map-type", ABSENT, r#""atomic""#),
            ("crd:workloads/v1.spec.*envFrom[].secretRef/x-kubernetes-map-type", ABSENT, r#""atomic""#),
            ("crd:workloads/v1.spec.*volumes*.configMap/x-kubernetes-map-type", ABSENT, r#""atomic""#),
            ("crd:workloads/v1.spec.*volumes*.secret/x-kubernetes-map-type", ABSENT, r#""atomic""#),
        ],
    },
    Difference {
        reason: "the default is the value of a constant (`+default=ref(…)`), which controller-gen does not follow and kube-apiserver does",
        rows: &[
            ("crd:workloads/v1.spec.*azureDisk.cachingMode/default", r#""ReadWrite""#, ABSENT),
            ("crd:workloads/v1.spec.*azureDisk.kind/default", r#""Shared""#, ABSENT),
        ],
    },
    Difference {
        reason: "Kubernetes' OpenAPI documents do not contain the constraints of its declarative validation, and a template in a kind of ours is no object that they apply to: an immutable field of a Job must stay mutable in a CronJob's template",
        rows: &[
            ("crd:workloads/v1.spec.claims[].status.healthStatus.healthConditions[].reason/minLength", ABSENT, "1"),
            ("crd:workloads/v1.spec.claims[].status.healthStatus.healthConditions[].status/enum", ABSENT, r#"["DataLoss","Degraded","Inaccessible"]"#),
            ("crd:workloads/v1.spec.claims[].status.healthStatus.healthConditions[].status/minLength", ABSENT, "1"),
            ("crd:workloads/v1.spec.claims[].status.healthStatus.healthConditions/maxItems", ABSENT, "16"),
            ("crd:workloads/v1.spec.jobTemplate.spec.scheduling*/x-kubernetes-validations", ABSENT, ANY),
            ("crd:workloads/v1.spec.jobTemplate.spec.scheduling.resourceClaims[].name/minLength", ABSENT, "1"),
            ("crd:workloads/v1.spec.jobTemplate.spec.scheduling.resourceClaims/maxItems", ABSENT, "4"),
            ("crd:workloads/v1.spec.jobTemplate.spec.scheduling.schedulingConstraints.topology[].key/minLength", ABSENT, "1"),
            ("crd:workloads/v1.spec.jobTemplate.spec.scheduling.schedulingConstraints.topology/maxItems", ABSENT, "1"),
            ("crd:workloads/v1.spec.jobTemplate.spec.scheduling.schedulingPolicy.gang.minCount/minimum", ABSENT, "1"),
            ("crd:workloads/v1.spec.*evictionResponders[].name/minLength", ABSENT, "1"),
            ("crd:workloads/v1.spec.*evictionResponders[].priority/maximum", ABSENT, "100000"),
            ("crd:workloads/v1.spec.*evictionResponders[].priority/minimum", ABSENT, "0"),
            ("crd:workloads/v1.spec.*evictionResponders/maxItems", ABSENT, "10"),
        ],
    },
    Difference {
        reason: "a description that ends with an empty line ends without it in Kubernetes' OpenAPI documents",
        rows: &[("crd:workloads/v1.spec.jobTemplate.spec.scheduling.resourceClaims[]/description", ANY, ANY)],
    },
];
