use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    pair: Vec<(i32, String)>,
    nothing: (),
    large: Option<u128>,
    took: std::time::Duration,
    children: Vec<Foo>,
}

fn main() {}
