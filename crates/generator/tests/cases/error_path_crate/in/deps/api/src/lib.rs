// Of a path crate only what a kind needs is read: neither of the files below, and no complaint about the
// rest of this one.
mod unparsable;
mod missing;
pub mod linked;

#[cfg(what_is_this)]
pub struct Odd;

#[derive(rbuilder::CrdSchema)]
#[kube(no_such_marker)]
pub struct Unused(u8, u8);

#[derive(rbuilder::CrdSchema)]
pub struct Used {
    #[cfg(feature = "off")]
    pub off: NoSuchType,
    #[cfg(feature = "on")]
    pub on: bool,
    pub name: String,
}

/// Another kind, of that package.
#[derive(kube::CustomResource, rbuilder::CrdSchema)]
#[kube(group = "y.example.com", version = "v1", kind = "Other")]
pub struct OtherSpec {}
