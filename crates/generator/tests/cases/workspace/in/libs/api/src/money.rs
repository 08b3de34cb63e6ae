#[derive(rbuilder::CrdSchema)]
pub struct Price {
    #[cfg_attr(feature = "limits", kube(validation(minimum = 0)))]
    pub cents: i64,
}
