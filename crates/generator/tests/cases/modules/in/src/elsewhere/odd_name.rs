#[derive(rbuilder::CrdSchema)]
pub struct Odd {
    pub odd: bool,
}
