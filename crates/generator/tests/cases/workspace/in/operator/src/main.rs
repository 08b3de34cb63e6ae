use kube::CustomResource;
use rbuilder::{CrdSchema, rbac};
use shop_types::{Address, money::Price};

/// A shop.
#[derive(CustomResource, CrdSchema)]
#[kube(group = "shop.example.com", version = "v1", kind = "Shop", status = "shop_types::ShopStatus")]
pub struct ShopSpec {
    /// Where it is.
    pub address: Address,
    pub opening: Price,
    #[kube(optional)]
    #[serde(default)]
    pub hours: Vec<shop_types::Hours>,
}

#[rbac(groups = "shop.example.com", resources = "shops", verbs = "get;list;watch")]
fn main() {}
