//! How long ago something was, as `kubectl get` prints it.

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 24;
const YEAR: i128 = 365 * DAY;

/// Prints a number of nanoseconds with two or three significant figures, like Go's
/// `duration.HumanDuration`. Clocks may differ by two seconds.
pub(crate) fn print_duration(nanos: i128) -> String {
    // Go's durations have 64 bits.
    let seconds = nanos.clamp(i64::MIN.into(), i64::MAX.into()) / SECOND;
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let parts = |large: i128, unit: char, small: i128, small_unit: char| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{small_unit}"),
    };
    if seconds < -1 {
        "<invalid>".to_owned()
    } else if seconds < 120 {
        format!("{}s", seconds.max(0))
    } else if minutes < 10 {
        parts(minutes, 'm', seconds % 60, 's')
    } else if minutes < 3 * 60 {
        format!("{minutes}m")
    } else if hours < 8 {
        parts(hours, 'h', minutes % 60, 'm')
    } else if hours < 2 * DAY {
        format!("{hours}h")
    } else if hours < 8 * DAY {
        parts(hours / DAY, 'd', hours % DAY, 'h')
    } else if hours < 2 * YEAR {
        format!("{}d", hours / DAY)
    } else if hours < 8 * YEAR {
        parts(hours / YEAR, 'y', hours / DAY % 365, 'd')
    } else {
        format!("{}y", hours / YEAR)
    }
}
