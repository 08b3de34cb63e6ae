mod here;
mod gone;
#[path = "x/y.rs"]
mod nowhere;
