mod cup;
pub use cup::Cup;
