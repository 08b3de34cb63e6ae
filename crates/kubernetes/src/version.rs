//! The order of API versions.

use std::cmp::Ordering;

/// Orders versions like `CompareKubeAwareVersionStrings` in `k8s.io/apimachinery/pkg/version`. From
/// the highest down: `v2`, `v1`, `v2beta1`, `v1beta1`, `v1alpha1`. Other names are lower, and the
/// alphabetically first of them is the highest.
#[must_use]
pub fn compare(one: &str, other: &str) -> Ordering {
    let parsed = |version| parse(version).unwrap_or_default();
    // Equal ones, such as `v01` and `v1`, are ordered by name as well.
    parsed(one).cmp(&parsed(other)).then_with(|| other.cmp(one))
}

/// Returns the stability, the major and the minor version.
fn parse(version: &str) -> Option<(u8, i64, i64)> {
    let number = |text: &str| -> Option<i64> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().ok()).flatten()
    };
    let rest = version.strip_prefix('v')?;
    let (major, rest) = rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count());
    let major = number(major)?;
    Some(match (rest.strip_prefix("alpha"), rest.strip_prefix("beta")) {
        (Some(minor), _) => (1, major, number(minor)?),
        (_, Some(minor)) => (2, major, number(minor)?),
        (None, None) if rest.is_empty() => (3, major, 0),
        (None, None) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_in_kubernetes_order() {
        let sorted = [
            "vfoo",
            "v99999999999999999999",
            "v1beta",
            "v1.2",
            "v1+1",
            "v",
            "foo10",
            "foo1",
            "1",
            "v1alpha1",
            "v11alpha2",
            "v1beta1",
            "v1beta2",
            "v1beta10",
            "v3beta1",
            "v1",
            "v2",
            "v10",
            "v4294967296",
        ];
        for pair in sorted.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
        }
    }
}
