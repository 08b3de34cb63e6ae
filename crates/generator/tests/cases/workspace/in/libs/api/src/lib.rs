//! The types of the shop.

pub mod money;
mod place;

pub use place::*;

pub type Hours = common::Range<u8>;

/// What was seen of the shop.
#[derive(rbuilder::CrdSchema)]
pub struct ShopStatus {
    pub visitors: Option<u32>,
    #[cfg(feature = "off")]
    pub never: common::NoSuchType,
}

#[rbuilder::rbac(groups = "", resources = "configmaps", verbs = "get")]
pub fn helper() {}
