//! Checks whether there is enough memory to record a profile.

use http::StatusCode;

use super::super::Answer;

/// Memory that rpprof needs for samples and symbols, plus a safety margin. Most of it isn't freed
/// until the process exits.
const NEEDED_BYTES: u64 = 96 * 1024 * 1024;

/// Refuses to record a profile if that could exceed the memory limit, rather than get OOM-killed.
pub(super) fn check(limit: Option<u64>, resident: Option<u64>) -> Result<(), Answer> {
    let (Some(limit), Some(resident)) = (limit, resident) else {
        return Ok(());
    };
    let free = limit.saturating_sub(resident);
    if free >= NEEDED_BYTES {
        return Ok(());
    }
    let [needed, free] = [NEEDED_BYTES, free].map(|bytes| bytes / 1024 / 1024);
    Err(Answer::error(
        StatusCode::INSUFFICIENT_STORAGE,
        format!(
            "a profile needs {needed} MiB of memory and {free} MiB are free: raise the memory limit of the container"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profile_that_could_exceed_the_memory_limit_is_refused() {
        const MIB: u64 = 1024 * 1024;
        for (limit, resident) in [
            (None, Some(1)),
            (Some(1), None),
            (Some(128 * MIB), Some(32 * MIB)),
        ] {
            assert!(check(limit, resident).is_ok(), "{limit:?} {resident:?}");
        }
        let refused = check(Some(128 * MIB), Some(33 * MIB)).unwrap_err();
        assert_eq!(refused.status, StatusCode::INSUFFICIENT_STORAGE);
        assert_eq!(
            refused.text,
            "a profile needs 96 MiB of memory and 95 MiB are free: raise the memory limit of the container\n"
        );
    }
}
