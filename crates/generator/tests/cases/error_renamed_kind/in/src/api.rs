mod cup;
pub use cup::Mug;
