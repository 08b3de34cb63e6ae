#[path = "lib.rs"]
mod api;
fn main() {}
