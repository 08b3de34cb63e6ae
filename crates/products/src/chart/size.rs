//! Size limits. Helm stores a release in a single Secret, and the Operator Lifecycle Manager stores
//! a bundle in a single ConfigMap. Neither can be larger than 1 MiB.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

/// The API server's limit for the data of a Secret or ConfigMap, in bytes.
const LIMIT: usize = 1024 * 1024;
const NAMED: usize = 3;

/// Warns if a release of the chart would be too large for Helm, as message and help.
pub(crate) fn check_release(files: &BTreeMap<String, String>) -> Option<(String, String)> {
    // Helm stores the chart's files as well as the rendered manifests, compressed and then
    // base64-encoded.
    let stored: Vec<_> = files
        .iter()
        .map(|(path, text)| json!({ "name": path, "data": BASE64_STANDARD.encode(text.as_bytes()) }))
        .collect();
    let rendered = files.iter().filter(|(path, _)| path.starts_with("templates/"));
    let rendered: String = rendered.map(|(_, text)| text.as_str()).collect();
    let release = json!({ "chart": { "templates": stored }, "manifest": rendered });
    let size = stored_size(&release.to_string());
    (size > LIMIT).then(|| {
        (
            format!(
                "a release of the chart needs {} KiB, and Helm can store 1024 KiB: {}",
                kibibytes(size),
                name_largest(files)
            ),
            format!("set `crds.enabled` to false in values.yaml and install the CRDs with `make install`, or {SHORTEN}"),
        )
    })
}

/// Warns if a bundle is too large for the lifecycle manager, which compresses each file separately,
/// as message and help.
pub(crate) fn check_bundle(files: &BTreeMap<String, String>) -> Option<(String, String)> {
    let size: usize = files.values().map(|text| stored_size(text)).sum();
    (size > LIMIT).then(|| {
        (
            format!(
                "the bundle needs {} KiB, and the Operator Lifecycle Manager can unpack 1024 KiB: {}",
                kibibytes(size),
                name_largest(files)
            ),
            SHORTEN.to_owned(),
        )
    })
}

const SHORTEN: &str = "shorten the descriptions in CRDs with `#[crd(max_description_length = …)]` or `rbuilder manifests --max-description-length`";

fn stored_size(text: &str) -> usize {
    // Helm uses the best compression as well.
    let compressed = miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 9);
    compressed.len().div_ceil(3) * 4
}

fn kibibytes(bytes: usize) -> usize {
    bytes.div_ceil(1024)
}

fn name_largest(files: &BTreeMap<String, String>) -> String {
    let mut files: Vec<(&String, &String)> = files.iter().collect();
    files.sort_by_key(|(_, text)| std::cmp::Reverse(text.len()));
    let named = files.iter().take(NAMED);
    let named = named.map(|(path, text)| format!("{path} has {} KiB", kibibytes(text.len())));
    named.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_text(length: usize) -> String {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap_or_default())
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn warns_above_size_limit_only() {
        let files = |length: usize| {
            BTreeMap::from([
                ("templates/crd/cups.yaml".to_owned(), random_text(length)),
                ("values.yaml".to_owned(), "a: 1\n".to_owned()),
            ])
        };
        assert_eq!(check_release(&files(100_000)), None);
        assert_eq!(check_bundle(&files(100_000)), None);
        let (release, _) = check_release(&files(2_000_000)).expect("a warning");
        assert!(
            release.contains(": templates/crd/cups.yaml has 1954 KiB, values.yaml has 1 KiB"),
            "{release}"
        );
        assert!(check_bundle(&files(2_000_000)).is_some());
        // Repetitive text compresses well, so this fits.
        let repeated = BTreeMap::from([("templates/a.yaml".to_owned(), "a: b\n".repeat(1_000_000))]);
        assert_eq!(check_release(&repeated), None);
    }
}
