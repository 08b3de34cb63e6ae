//! Structs in structs.

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

use super::shared;

/// StructureSpec has structs, some of them among its own fields.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Structure",
    namespaced,
    doc = "Structure has structs in structs."
)]
#[serde(rename_all = "camelCase")]
pub struct StructureSpec {
    #[serde(flatten)]
    pub inlined: Inlined,
    #[serde(flatten)]
    pub outer: Outer,
    #[serde(flatten)]
    pub pointed: Option<Pointed>,
    #[serde(flatten)]
    pub common: shared::Common,
    /// Plain is a struct in a field.
    pub plain: Part,
    pub undescribed: Part,
    /// JustNestedObject points at a type of a type.
    pub just_nested_object: Option<JustNestedObject>,
    /// Deep is three levels down.
    pub deep: Level1,
    /// Foreign comes from another package.
    pub foreign: shared::Part,
    pub foreign_list: Vec<shared::Part>,
    pub foreign_name: shared::Name,
    /// AliasFromPackage is a name of another package, named again.
    pub alias_from_package: shared::NameAlias,
    /// StringAlias is a text with a name.
    pub string_alias: StringAlias,
    /// StringAliasPtr may be absent.
    pub string_alias_ptr: Option<StringAlias>,
    pub undescribed_alias: StringAlias,
    pub number_alias: NumberAlias,
    /// Empty has no fields.
    pub empty: Empty,
}

/// Inlined has fields that stand among those of its parent.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Inlined {
    /// Near is from the inlined struct.
    pub near: String,
    pub near_optional: Option<i32>,
}

/// Outer inlines a struct that inlines a struct.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Outer {
    #[serde(flatten)]
    pub middle: Middle,
    /// OuterField stands one level up.
    pub outer_field: String,
}

/// Middle is between.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Middle {
    /// MiddleField stands two levels up.
    pub middle_field: bool,
}

/// Pointed is inlined through a pointer.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Pointed {
    /// PointedField may stand among the fields.
    pub pointed_field: Option<String>,
}

/// Part is a part.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Part {
    /// Foo is a field.
    pub foo: String,
    pub bar: bool,
}

/// JustNestedObject is a type of a type.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct JustNestedObject(pub NestedObject);

/// NestedObject is what another type is made of.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct NestedObject {
    pub foo: String,
    pub bar: bool,
}

/// Level1 holds Level2.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Level1 {
    pub level2: Level2,
}

/// Level2 holds Level3.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Level2 {
    pub level3: Vec<Level3>,
}

/// Level3 is the bottom.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Level3 {
    pub bottom: String,
}

/// StringAlias is a text with a name of its own.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct StringAlias(pub String);

/// NumberAlias is a number with a name of its own.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct NumberAlias(pub i32);

/// Empty has no fields.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Empty {}
