/// From and to.
#[derive(rbuilder::CrdSchema)]
pub struct Range<T> {
    pub from: T,
    pub to: T,
}
