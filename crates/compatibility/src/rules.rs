//! The rules for classifying changes.

use crate::level::Level::{self, Breaking, Compatible, Risky};
use crate::level::Party::{self, Installer, Operator, Readers, StoredObjects, Writers};

/// Classifies a kind of change.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The name, e.g. `maximum-lowered`.
    pub name: &'static str,
    /// The default level. A change that causes an object to be rejected is always breaking.
    pub level: Level,
    /// The level if the search tried objects without finding a witness.
    pub unproven: Level,
    /// The affected parties, in addition to those affected by the witness.
    pub affects: &'static [Party],
    /// The reason for this level.
    pub reason: &'static str,
}

/// Looks up a rule by name. Panics if there's none, which a test over all rules rules out.
pub(crate) fn rule(name: &str) -> &'static Rule {
    let found = RULES.iter().find(|rule| rule.name == name);
    found.unwrap_or_else(|| panic!("no rule is named `{name}`"))
}

const fn plain(name: &'static str, level: Level, affects: &'static [Party], reason: &'static str) -> Rule {
    Rule {
        name,
        level,
        unproven: level,
        affects,
        reason,
    }
}

const fn searched(
    name: &'static str,
    level: Level,
    unproven: Level,
    affects: &'static [Party],
    reason: &'static str,
) -> Rule {
    Rule {
        name,
        level,
        unproven,
        affects,
        reason,
    }
}

/// All rules.
#[rustfmt::skip]
pub const RULES: &[Rule] = &[
    // CRDs.
    plain("crd-added", Compatible, &[], "nothing used it before"),
    plain("crd-removed", Breaking, &[StoredObjects, Writers, Readers, Operator], "deleting a CRD deletes its objects"),
    plain("scope-changed", Breaking, &[StoredObjects, Writers, Readers, Installer], "the API server rejects it for an installed CRD, and all URLs change"),
    plain("kind-changed", Breaking, &[StoredObjects, Writers, Readers, Installer], "the API server rejects it for an installed CRD"),
    plain("list-kind-changed", Risky, &[Readers], "clients that check the kind of a list fail"),
    plain("name-removed", Risky, &[Readers, Writers], "scripts may use the singular, a short name or a category"),
    plain("name-added", Compatible, &[], "all other names remain"),
    // Versions.
    plain("version-added", Compatible, &[], "the other versions remain"),
    plain("version-removed", Breaking, &[Writers, Readers], "clients of the version get 404"),
    plain("stored-version-removed", Breaking, &[StoredObjects, Installer], "the API server rejects a CRD without a version in `status.storedVersions`"),
    plain("unserved-version-removed", Risky, &[Installer], "the API server rejects the CRD if the version is in `status.storedVersions`"),
    plain("version-not-served", Breaking, &[Writers, Readers], "clients of the version get 404"),
    plain("version-served", Compatible, &[], "the other versions remain"),
    plain("version-deprecated", Compatible, &[], "clients get a warning"),
    plain("storage-version-changed", Risky, &[StoredObjects, Installer], "objects are converted when they are written next, and the former CRD cannot be installed again"),
    // Conversion.
    plain("conversion-removed", Breaking, &[StoredObjects, Readers, Writers], "fields that only one version has are pruned"),
    plain("conversion-added", Risky, &[Operator, Installer], "requests for other versions fail while the webhook is not reachable"),
    plain("conversion-changed", Risky, &[Operator, Installer], "requests for other versions fail while the webhook is not reachable"),
    searched("conversion-missing", Breaking, Risky, &[Writers, Readers], "without a conversion webhook, the API server only changes `apiVersion`, and prunes what the other version does not have"),
    searched("conversion-loses-field", Breaking, Risky, &[Writers, Readers], "without a conversion webhook, the API server only changes `apiVersion`, and prunes what the other version does not have"),
    // Subresources and fields in versions.
    searched("status-subresource-added", Breaking, Risky, &[Operator], "the API server ignores `status` in writes of the object"),
    plain("status-subresource-removed", Breaking, &[Operator, Writers], "writes of the subresource get 404"),
    plain("scale-subresource-added", Compatible, &[], "nothing used it before"),
    plain("scale-subresource-removed", Breaking, &[Writers, Readers], "autoscalers and `kubectl scale` get 404"),
    plain("scale-subresource-changed", Risky, &[Writers, Readers], "autoscalers read and write other fields"),
    plain("selectable-field-added", Compatible, &[], "nothing used it before"),
    plain("selectable-field-removed", Breaking, &[Readers], "requests with the field selector are refused"),
    plain("printer-column-added", Compatible, &[], "scripts that cut columns by position should not"),
    plain("printer-column-removed", Risky, &[Readers], "people and scripts may read the column of `kubectl get`"),
    plain("printer-column-changed", Risky, &[Readers], "people and scripts may read the column of `kubectl get`"),
    // Fields.
    plain("field-added", Compatible, &[], "objects without it remain valid"),
    searched("field-removed", Breaking, Breaking, &[Writers, Readers], "the API server prunes it from objects, and refuses it with strict field validation"),
    searched("required-added", Breaking, Breaking, &[], "objects without the field are refused"),
    plain("required-with-default", Compatible, &[], "the API server fills in the default before it validates"),
    plain("required-removed", Risky, &[Readers], "clients may expect the field in each object"),
    searched("type-changed", Breaking, Breaking, &[Readers], "values of the old type are refused"),
    plain("type-widened", Risky, &[Readers], "clients may not decode the new values"),
    searched("nullable-removed", Breaking, Risky, &[], "`null` is refused, or replaced by the default"),
    searched("null-dropped", Breaking, Risky, &[], "clients read no field instead of `null`"),
    plain("nullable-added", Risky, &[Readers], "clients may not decode `null`"),
    plain("description-changed", Compatible, &[], "the API server ignores it"),
    // Constraints.
    searched("enum-added", Breaking, Breaking, &[], "all other values are refused"),
    searched("enum-value-removed", Breaking, Breaking, &[], "the value is refused"),
    plain("enum-value-added", Risky, &[Readers], "clients with a closed enumeration cannot decode the new value"),
    plain("enum-removed", Risky, &[Readers], "clients with a closed enumeration cannot decode other values"),
    searched("maximum-added", Breaking, Breaking, &[], "larger values are refused"),
    searched("maximum-lowered", Breaking, Breaking, &[], "larger values are refused"),
    plain("maximum-raised", Compatible, &[], "all old values remain valid"),
    plain("maximum-removed", Compatible, &[], "all old values remain valid"),
    searched("minimum-added", Breaking, Breaking, &[], "smaller values are refused"),
    searched("minimum-raised", Breaking, Breaking, &[], "smaller values are refused"),
    plain("minimum-lowered", Compatible, &[], "all old values remain valid"),
    plain("minimum-removed", Compatible, &[], "all old values remain valid"),
    searched("multiple-of-added", Breaking, Risky, &[], "other numbers are refused"),
    searched("multiple-of-changed", Breaking, Risky, &[], "other numbers are refused"),
    plain("multiple-of-removed", Compatible, &[], "all old values remain valid"),
    searched("pattern-added", Breaking, Risky, &[], "other strings are refused"),
    searched("pattern-changed", Breaking, Risky, &[], "whether all old strings match the new pattern is decided by examples only"),
    plain("pattern-removed", Compatible, &[], "all old values remain valid; the operator sees new ones only if clients write them"),
    searched("format-added", Breaking, Risky, &[], "other values are refused"),
    searched("format-changed", Breaking, Risky, &[Readers], "other values are refused, and clients may not decode the new ones"),
    plain("format-removed", Compatible, &[], "all old values remain valid"),
    plain("format-ignored", Compatible, &[], "the API server does not know the format"),
    plain("key-ignored", Compatible, &[], "the API server applies the key to values of other types"),
    searched("alternatives-added", Breaking, Risky, &[], "objects that fit no alternative are refused"),
    searched("alternatives-changed", Breaking, Risky, &[], "whether all old objects fit is decided by examples only"),
    plain("alternatives-removed", Compatible, &[], "all old values remain valid"),
    // Defaults.
    searched("default-added", Risky, Risky, &[Operator], "stored objects without the field are read with the default, without a write"),
    searched("default-changed", Risky, Risky, &[Operator], "the same manifest means something else"),
    searched("default-removed", Risky, Risky, &[Readers, Operator], "clients may expect the field in each object"),
    // Pruning, maps and embedded objects.
    searched("preserve-unknown-fields-removed", Breaking, Breaking, &[], "the API server prunes unknown fields"),
    plain("preserve-unknown-fields-added", Compatible, &[], "all old values remain valid"),
    searched("map-closed", Breaking, Breaking, &[Writers, Readers], "the API server prunes other keys"),
    plain("map-opened", Compatible, &[], "all old values remain valid"),
    searched("embedded-resource-added", Breaking, Risky, &[], "values without `apiVersion` and `kind` are refused"),
    searched("embedded-resource-removed", Breaking, Risky, &[], "the API server prunes fields of the embedded object"),
    // Topology.
    searched("list-type-changed", Breaking, Risky, &[Writers, Operator], "server-side apply merges or replaces where it did the other, so that one applier overwrites the items of another"),
    searched("list-map-keys-changed", Breaking, Risky, &[Writers, Operator], "server-side apply takes other items for the same"),
    plain("map-type-changed", Risky, &[Writers, Operator], "server-side apply merges or replaces where it did the other, so that one applier overwrites the fields of another"),
    // CEL rules.
    searched("rule-added", Breaking, Risky, &[], "objects that violate it are refused"),
    searched("rule-changed", Breaking, Risky, &[], "objects that violate it are refused"),
    plain("rule-removed", Compatible, &[], "all old objects remain valid; the operator sees new ones only if clients write them"),
    plain("rule-message-changed", Compatible, &[], "the verdict is the same"),
    // Roles.
    plain("role-added", Risky, &[Installer], "who installs it needs all of its permissions"),
    plain("role-removed", Risky, &[Operator], "those bound to it lose its permissions"),
    plain("permission-added", Risky, &[Installer], "who installs it needs the permission, and a stolen token can do more"),
    plain("permission-removed", Risky, &[Operator], "those bound to the role get 403"),
    // Webhook configurations.
    plain("webhook-added", Risky, &[Writers], "writes that were accepted may be refused or changed"),
    plain("webhook-removed", Risky, &[Operator], "objects are stored that the webhook would have refused or changed"),
    plain("failure-policy-changed", Risky, &[Writers, Operator], "with `Fail`, writes fail while the webhook is not reachable; with `Ignore`, they are not checked"),
    plain("webhook-rules-widened", Risky, &[Writers], "writes that were accepted may be refused or changed"),
    plain("webhook-rules-narrowed", Risky, &[Operator], "objects are stored that the webhook would have refused or changed"),
    plain("webhook-target-changed", Risky, &[Writers, Installer], "until the new target serves it, writes fail, or are not checked with the failure policy `Ignore`"),
    plain("webhook-selector-changed", Risky, &[Writers, Operator], "the webhook is called for other objects"),
    plain("match-conditions-changed", Risky, &[Writers, Operator], "the webhook is called for other requests"),
    plain("match-policy-changed", Risky, &[Operator], "with `Exact`, the webhook does not see writes of other versions"),
    plain("side-effects-changed", Compatible, &[], "a dry run calls the webhook in both cases"),
    plain("side-effects-refused", Breaking, &[Installer, Writers], "the API server accepts only `None` and `NoneOnDryRun`"),
    plain("reinvocation-policy-changed", Risky, &[Operator], "the webhook may be called again after others"),
    plain("webhook-timeout-changed", Compatible, &[], "the webhook is called as before"),
    plain("review-version-removed", Risky, &[Operator, Installer], "an API server that only knows the version does not call the webhook"),
];
