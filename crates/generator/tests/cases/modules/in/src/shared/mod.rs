mod deep;
pub use deep::Leaf;
