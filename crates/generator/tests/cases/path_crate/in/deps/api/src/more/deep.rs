use super::super::Used;

#[derive(rbuilder::CrdSchema)]
pub struct Linked {
    pub used: Vec<Used>,
}
