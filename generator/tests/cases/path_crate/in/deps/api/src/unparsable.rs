this is ( not Rust
