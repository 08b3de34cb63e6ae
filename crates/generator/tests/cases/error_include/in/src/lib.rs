include!("no_such_file.rs");
std::include!(env!("PARTS"));
include!("lib.rs");
