//! Items of an included file are items of the module that includes it; what a build script writes is not read.
pub mod api {
    include!("parts/kinds.rs");
}
mod built {
    include!(concat!(env!("OUT_DIR"), "/built.rs"));
}
#[cfg(windows)]
include!("no_such_file.rs");

pub struct Reconciler;
impl Reconciler {
    include!("parts/methods.rs");
}
