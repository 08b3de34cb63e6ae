#[derive(rbuilder::CrdSchema)]
pub struct Part {
    pub name: String,
}
