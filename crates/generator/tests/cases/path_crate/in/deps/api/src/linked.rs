#[path = "more/deep.rs"]
mod deep;
pub use self::deep::Linked;
