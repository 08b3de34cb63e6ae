//! Owned objects that are only created once.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::PostParams;
use rbuilder::{Ctx, OwnershipError};

use crate::support::{Place, Server, config_map, memo, on_both_servers};

on_both_servers!(
    owned_object_is_created_once,
    foreign_object_is_neither_adopted_nor_changed,
    cached_object_costs_no_request,
);

async fn owned_object_is_created_once(server: Server) {
    let place = Place::new(server).await;
    let owner = place.create(memo("owner", "1")).await;
    let ctx = Ctx::new(place.env.client(), "memo", ());

    let created = ctx.create_owned(&owner, config_map("once", "1")).await.unwrap();
    assert_eq!(created.owner_references()[0].uid, owner.uid().unwrap());
    assert_eq!(created.owner_references()[0].controller, Some(true));
    let manager = created.managed_fields()[0].manager.as_deref();
    assert_eq!(manager, Some("memo"));

    let found = ctx.create_owned(&owner, config_map("once", "2")).await.unwrap();
    assert_eq!(found, created, "what is there stays as it is");
}

async fn foreign_object_is_neither_adopted_nor_changed(server: Server) {
    let place = Place::new(server).await;
    let owner = place.create(memo("owner", "1")).await;
    let other = place.create(memo("other", "2")).await;
    let ctx = Ctx::new(place.env.client(), "memo", ());
    let maps = place.api::<ConfigMap>();
    let made = maps
        .create(&PostParams::default(), &config_map("orphan", "0"))
        .await;
    let orphan = made.unwrap();
    let owned = ctx.create_owned(&other, config_map("owned", "0")).await.unwrap();

    for present in [orphan, owned] {
        let name = present.name_any();
        let expected = format!(
            "ConfigMap {0}/{name} already exists and is not controlled by Memo {0}/owner; it was not changed. If it has \
             no controller, a single `ctx.apply_owned` makes the owner its controller; otherwise delete it or choose \
             another name",
            place.namespace
        );
        // The conflict shows either in the cache or in the server's response.
        let cached = Ctx::new(place.env.client(), "memo", ()).caching([present.clone()]);
        for ctx in [&ctx, &cached] {
            let error = ctx
                .create_owned(&owner, config_map(&name, "1"))
                .await
                .unwrap_err();
            assert_eq!(error.to_string(), expected);
            assert!(matches!(
                error.downcast_ref(),
                Some(OwnershipError::NotOwned { .. })
            ));
        }
        assert_eq!(maps.get(&name).await.unwrap(), present);
    }
}

async fn cached_object_costs_no_request(server: Server) {
    let place = Place::new(server).await;
    let owner = place.create(memo("owner", "1")).await;
    let ctx = Ctx::new(place.env.client(), "memo", ());
    let created = ctx.create_owned(&owner, config_map("gone", "1")).await.unwrap();
    let ctx = ctx.caching([created.clone()]);
    let maps = place.api::<ConfigMap>();
    maps.delete("gone", &Default::default()).await.unwrap();

    let found = ctx.create_owned(&owner, config_map("gone", "1")).await.unwrap();
    assert_eq!(found.resource_version(), created.resource_version());
    assert_eq!(maps.get_opt("gone").await.unwrap(), None, "nothing was sent");
}
