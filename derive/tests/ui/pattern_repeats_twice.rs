use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
struct Foo {
    #[kube(validation(pattern = "a**"))]
    twice: String,
    #[kube(validation(pattern = "^(a{100}){100}$"))]
    often: String,
    #[kube(validation(pattern = r"^\p{Alphabetic}+$"))]
    letters: String,
}

fn main() {}
