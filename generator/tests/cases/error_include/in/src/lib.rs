include!("no_such_file.rs");
std::include!(concat!("a", ".rs"));
include!("lib.rs");
