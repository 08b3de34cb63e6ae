use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
#[kube(group = "example.com", version = "v1", kind = "Foo")]
#[crd(root_schema = { "properties": { "metadata": { "type": "object", "required": ["name"] } } })]
struct FooSpec {
    a: Option<String>,
}

#[derive(CrdSchema)]
#[kube(group = "example.com", version = "v1", kind = "Bar", status = "BarStatus")]
#[crd(root_schema = { "not": { "required": ["status"] } })]
struct BarSpec {
    a: Option<String>,
}

#[derive(CrdSchema)]
struct BarStatus {
    a: Option<String>,
}

#[derive(CrdSchema)]
#[kube(group = "example.com", version = "v1", kind = "Baz", status = "BarStatus", no_spec)]
#[crd(validation(one_of = [{ "required": ["a"] }]))]
struct BazSpec {
    a: Option<String>,
}

#[derive(CrdSchema)]
#[kube(group = "example.com", version = "v1", kind = "Qux", no_spec)]
#[crd(schema = { "type": "object", "nullable": true })]
struct QuxSpec {
    a: Option<String>,
}

#[derive(CrdSchema)]
#[kube(group = "example.com", version = "v1", kind = "Quux", no_spec)]
struct QuuxSpec {
    status: Option<String>,
}

#[derive(CrdSchema)]
#[kube(group = "example.com", version = "v1", kind = "Corge", no_spec)]
struct CorgeSpec(BarStatus);

fn main() {}
