//! Schedules of CronJobs, as read by `github.com/robfig/cron/v3`.

/// Fields with their ranges and names.
const FIELDS: [(i64, i64, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (
        1,
        12,
        &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    ),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

const DESCRIPTORS: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

/// Returns the library's error for a schedule, if any. `None` as well for durations after `@every`,
/// which are rarely wrong.
pub(super) fn explain_schedule(schedule: &str) -> Option<String> {
    if schedule.contains("TZ") {
        return Some("cannot use TZ or CRON_TZ in schedule, use timeZone field instead".to_owned());
    }
    if schedule.starts_with("@every ") || DESCRIPTORS.contains(&schedule) {
        return None;
    }
    if schedule.starts_with('@') {
        return Some(format!("unrecognized descriptor: {schedule}"));
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let list = fields.join(" ");
        return Some(format!(
            "expected exactly 5 fields, found {}: [{list}]",
            fields.len()
        ));
    }
    let ranges = fields.iter().zip(FIELDS).flat_map(|(field, known)| {
        let parts = field.split(',').filter(|part| !part.is_empty());
        parts.map(move |part| (part, known))
    });
    let mut errors =
        ranges.filter_map(|(part, (least, most, names))| check_range(part, least, most, names).err());
    errors.next()
}

fn check_range(text: &str, least: i64, most: i64, names: &[&str]) -> Result<(), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let is_star = matches!(ends[0], "*" | "?");
    let (start, mut end) = match (is_star, ends.as_slice()) {
        (true, _) => (least, most),
        (false, [start]) => {
            let start = read_number(start, least, names)?;
            (start, start)
        }
        (false, [start, end]) => (read_number(start, least, names)?, read_number(end, least, names)?),
        _ => return Err(format!("too many hyphens: {text}")),
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = parse_integer(step)?;
            // `N/step` means `N-max/step`.
            if ends.len() == 1 {
                end = most;
            }
            step
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < least {
        return Err(format!(
            "beginning of range ({start}) below minimum ({least}): {text}"
        ));
    }
    if end > most {
        return Err(format!("end of range ({end}) above maximum ({most}): {text}"));
    }
    if start > end {
        return Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {text}"
        ));
    }
    match step {
        0 => Err(format!("step of range should be a positive number: {text}")),
        _ => Ok(()),
    }
}

/// Reads a number or a name. The first name stands for `least`.
fn read_number(text: &str, least: i64, names: &[&str]) -> Result<i64, String> {
    let lower = text.to_lowercase();
    match (least..).zip(names).find(|(_, name)| **name == lower) {
        Some((number, _)) => Ok(number),
        None => parse_integer(text),
    }
}

fn parse_integer(text: &str) -> Result<i64, String> {
    match text.parse::<i64>() {
        Ok(number) if number >= 0 => Ok(number),
        Ok(number) => Err(format!("negative number ({number}) not allowed: {text}")),
        Err(_) => Err(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {}: invalid syntax",
            crate::go::quote(text)
        )),
    }
}
