//! The API server, etcd and kubectl limit the size of a CRD, and the total cost of its rules.

use rbuilder_generator::{Options, SourceSet, generate};

/// Returns the messages and the number of generated files.
fn said(fields: impl Iterator<Item = String>, options: &Options) -> (Vec<String>, usize) {
    let manifest = "[package]\nname = \"limits\"\nedition = \"2024\"\n\n[dependencies]\nkube = \"5\"\nrbuilder = \"0.1\"\n";
    let fields: String = fields.collect();
    let source = format!(
        "#[derive(kube::CustomResource, rbuilder::CrdSchema)]\n\
         #[kube(group = \"example.com\", version = \"v1\", kind = \"Large\")]\npub struct LargeSpec {{\n{fields}}}\n"
    );
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", manifest);
    sources.insert("src/lib.rs", source.as_str());
    let generated = generate(&sources, options);
    let said = generated.diagnostics.iter().map(|said| {
        let help = said.help.as_deref().unwrap_or_default();
        format!("{}; {help}", said.message)
    });
    (said.collect(), generated.files.len())
}

fn described(count: usize, length: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |number| {
        format!(
            "    /// {}\n    pub field{number}: String,\n",
            "word ".repeat(length / 5)
        )
    })
}

#[test]
fn reports_large_crd_with_its_largest_fields() {
    let options = Options::default();
    assert_eq!(said(described(100, 1000), &options), (vec![], 1));
    let (warnings, files) = said(described(300, 1000), &options);
    assert_eq!(files, 1);
    let [warning] = &warnings[..] else {
        panic!("{warnings:?}")
    };
    assert!(
        warning.contains("`kubectl apply` rejects more than 256"),
        "{warning}"
    );
    assert!(warning.contains("`kubectl apply --server-side`"), "{warning}");
    assert!(warning.contains("`.spec.field"), "{warning}");
    let (warnings, _) = said(described(1200, 1000), &options);
    assert!(warnings[0].contains("etcd may reject"), "{warnings:?}");
    let short = Options {
        max_description_length: Some(0),
        ..Options::default()
    };
    assert_eq!(said(described(300, 1000), &short), (vec![], 1));
}

#[test]
fn limits_total_cost_of_rules() {
    // Each rule costs one million, which is 0.1 for each of 2500 × 4 bytes, squared.
    let rule = |number: usize| {
        format!(
            "    #[kube(validation(max_length = 2500), cel(rule = \"self.contains(self)\"))]\n    pub f{number}: String,\n"
        )
    };
    assert_eq!(said((0..99).map(rule), &Options::default()), (vec![], 1));
    let (errors, files) = said((0..101).map(rule), &Options::default());
    assert_eq!((errors.len(), files), (1, 0));
    assert!(
        errors[0].starts_with(
            "the estimated cost of all rules of this kind exceeds the API server's limit by a factor of 1.0"
        ),
        "{errors:?}"
    );
}
