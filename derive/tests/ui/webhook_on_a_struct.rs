use rbuilder_derive::webhook;

#[webhook(validating)]
pub struct Memcached;

fn main() {}
