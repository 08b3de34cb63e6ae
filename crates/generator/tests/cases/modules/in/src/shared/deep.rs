/// The leaf.
#[derive(rbuilder::CrdSchema)]
pub struct Leaf {
    pub r#type: String,
}
