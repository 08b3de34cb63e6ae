#[versions::versions(version(name = "v1"), version(name = "v2"))]
mod versions {
    #[derive(rbuilder::CrdSchema)]
    pub struct Moved {
        pub a: i32,
    }
    pub mod deeper {
        #[rbuilder::rbac(groups = "", resources = "pods", verbs = "get")]
        fn f() {}
    }
}

#[mockall::automock]
mod nothing_of_ours {
    fn f() {}
}

#[allow(unused)]
#[rustfmt::skip]
#[macro_use]
mod harmless {
    #[derive(rbuilder::CrdSchema)]
    pub struct Stays {
        pub a: i32,
    }
}

#[wrapped]
mod elsewhere;
