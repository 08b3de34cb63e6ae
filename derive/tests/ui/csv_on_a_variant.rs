use rbuilder_derive::CrdSchema;

#[derive(CrdSchema)]
enum Mode {
    #[csv(display_name = "On")]
    On,
    Off,
}

fn main() {}
