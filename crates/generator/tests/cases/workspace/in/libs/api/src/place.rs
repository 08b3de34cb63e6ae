/// A postal address.
#[derive(rbuilder::CrdSchema)]
pub struct Address {
    pub city: String,
    pub street: crate::money::Price,
}
