#[path = "lib.rs"]
mod circle;
