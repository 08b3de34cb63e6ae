use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
pub struct Pair(i32, String);

fn main() {}
