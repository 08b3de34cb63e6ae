use rbuilder_derive::webhook;

struct Memcached;

#[webhook(operations = "create")]
fn default(_: &mut Memcached) {}

fn main() {}
