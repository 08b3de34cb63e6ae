//! The embedded catalogue.

use rbuilder_catalogue::{Catalogue, Minor};

#[test]
fn every_type_of_every_minor_has_a_schema() {
    for minor in Minor::all() {
        let catalogue = Catalogue::new(minor);
        let paths = catalogue.paths();
        assert!(paths.len() > 600, "Kubernetes {minor} has {} types", paths.len());
        for path in paths {
            assert!(catalogue.contains(&path), "{path}");
            assert!(catalogue.schema(&path).is_some(), "{path} of {minor}");
        }
    }
}
