//! Every way to make a field optional, and how serde treats it.

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// Presence.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "twin.example.com", version = "v1", kind = "Absence", namespaced)]
#[serde(rename_all = "camelCase")]
pub struct AbsenceSpec {
    pub plain: Plain,
    pub optional: Optional,
    pub functions: Functions,
    pub relaxed: Relaxed,
    pub flattened: Flattened,
    pub flattened_choices: FlattenedChoices,
    pub relaxed_flattened: RelaxedFlattened,
    pub variants: Variants,
}

fn one() -> i32 {
    1
}

fn maybe_one() -> Option<i32> {
    Some(1)
}

fn is_one(number: &i32) -> bool {
    *number == 1
}

/// Of a type that is not an `Option`.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Plain {
    pub bare: i32,
    #[serde(default)]
    pub default: i32,
    #[serde(default = "one")]
    pub default_path: i32,
    #[serde(skip_serializing_if = "is_one")]
    pub skipped_if: i32,
    #[serde(default, skip_serializing_if = "is_one")]
    pub default_skipped_if: i32,
    #[serde(default, skip_serializing)]
    pub input_only: i32,
    #[serde(skip_deserializing)]
    pub output_only: i32,
    #[kube(optional)]
    #[serde(default)]
    pub marked_optional: i32,
    #[kube(optional, default = 4)]
    pub marked_and_filled_in: i32,
    #[schemars(required)]
    #[serde(default)]
    pub required_elsewhere: i32,
    #[kube(required)]
    #[serde(default)]
    pub required_here: i32,
    #[schemars(default = "one")]
    #[serde(default)]
    pub default_for_both: i32,
    #[schemars(default = "one")]
    #[kube(default = 1)]
    pub default_in_the_schema: i32,
}

/// Of an `Option`.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Optional {
    pub bare: Option<i32>,
    #[serde(default)]
    pub default: Option<i32>,
    #[serde(default = "maybe_one")]
    pub default_path: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped_if: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_skipped_if: Option<i32>,
    #[serde(skip_serializing)]
    pub input_only: Option<i32>,
    #[serde(skip_deserializing)]
    pub output_only: Option<i32>,
    #[schemars(required)]
    pub required_elsewhere: Option<i32>,
    #[schemars(required)]
    #[serde(default)]
    pub required_without_effect: Option<i32>,
    pub boxed: Box<Option<i32>>,
}

/// Read or written by a function.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Functions {
    #[serde(with = "as_it_is")]
    #[kube(schema_type = "i32")]
    pub with: i32,
    #[serde(default, with = "as_it_is")]
    #[kube(schema_type = "i32")]
    pub with_default: i32,
    #[serde(with = "as_it_is")]
    #[kube(schema_type = "Option<i32>")]
    pub with_option: Option<i32>,
    #[serde(default, with = "as_it_is")]
    #[kube(schema_type = "Option<i32>")]
    pub with_option_default: Option<i32>,
    #[serde(deserialize_with = "as_it_is::deserialize")]
    #[kube(schema_type = "Option<i32>")]
    pub read_by_function: Option<i32>,
    #[serde(serialize_with = "as_it_is::serialize")]
    #[kube(schema_type = "Option<i32>")]
    pub written_by_function: Option<i32>,
}

mod as_it_is {
    use super::{Deserialize, Serialize};

    pub(super) fn serialize<T: Serialize, S: serde::Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
        from: D,
    ) -> Result<T, D::Error> {
        T::deserialize(from)
    }
}

/// With a default of the whole.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default)]
#[serde(default, rename_all = "camelCase")]
pub struct Relaxed {
    pub plain: i32,
    pub option: Option<i32>,
    #[serde(with = "as_it_is")]
    #[kube(schema_type = "i32")]
    pub with: i32,
    #[serde(skip_serializing_if = "is_one")]
    pub skipped_if: i32,
}

/// Structs among the fields of another.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Flattened {
    #[serde(flatten)]
    pub bare: FlatA,
    #[serde(default, flatten)]
    pub default: FlatB,
    #[serde(flatten)]
    pub option: Option<FlatC>,
    #[serde(default, flatten)]
    pub option_default: Option<FlatD>,
    #[serde(default = "flat_e", flatten)]
    pub default_path: FlatE,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub option_skipped_if: Option<FlatF>,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default)]
pub struct FlatA {
    pub a_required: i32,
    pub a_optional: Option<String>,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default)]
pub struct FlatB {
    pub b_required: i32,
    pub b_optional: Option<String>,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default)]
pub struct FlatC {
    pub c_required: i32,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default)]
pub struct FlatD {
    pub d_required: i32,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default)]
pub struct FlatE {
    pub e_required: i32,
}

fn flat_e() -> FlatE {
    FlatE::default()
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default)]
pub struct FlatF {
    pub f_required: i32,
}

/// Enums among the fields of a struct: serde wants one of their variants, whatever `default` says.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct FlattenedChoices {
    #[serde(default, flatten)]
    pub external: External,
    #[serde(default, flatten)]
    pub internal: Internal,
    #[serde(default, flatten)]
    pub untagged: Untagged,
    #[serde(default, flatten)]
    pub maybe: Option<Maybe>,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "lowercase")]
pub enum External {
    Left { x: i32 },
    Right { y: i32 },
}

impl Default for External {
    fn default() -> Self {
        External::Left { x: 1 }
    }
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default)]
#[serde(tag = "sort")]
pub enum Internal {
    #[default]
    None,
    Some {
        amount: i32,
    },
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(untagged)]
pub enum Untagged {
    Wide { width: i32 },
    High { height: i32 },
}

impl Default for Untagged {
    fn default() -> Self {
        Untagged::Wide { width: 1 }
    }
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "maybe")]
pub enum Maybe {
    One { one: i32 },
    Two { two: i32 },
}

/// A default of the whole is not a default of what is flattened into it.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct RelaxedFlattened {
    pub plain: i32,
    #[serde(flatten)]
    pub inner: FlatA,
    #[serde(flatten)]
    pub maybe: Option<FlatB>,
}

/// Variants that are not read, or not written.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum Variants {
    Both,
    #[serde(skip_serializing)]
    Read,
    #[serde(skip_deserializing)]
    Written,
    #[serde(skip)]
    Neither,
}
