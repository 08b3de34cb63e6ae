//! Finds conflict markers.

/// Returns the first line with a conflict marker, counted from 1. The marker may come from
/// [`merge_scaffold`](crate::edit::merge::merge_scaffold) or from git.
pub fn find_conflict(text: &str) -> Option<usize> {
    const ALL_MARKERS: [&str; 3] = ["<<<<<<< ", "||||||| ", ">>>>>>> "];
    let is_marked = |line: &str| ALL_MARKERS.iter().any(|marker| line.starts_with(marker));
    text.lines().position(is_marked).map(|index| index + 1)
}
