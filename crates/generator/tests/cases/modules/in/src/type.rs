#[derive(rbuilder::CrdSchema)]
pub struct Type(pub super::odd::Odd);
