//! The variable of the manager's container that limits it to its namespace.
//!
//! `edit --namespaced` sets it, so it isn't an edit to merge: an imported project, or a user, often
//! has other variables in the same place. It is added to and removed from the project's own list.

use super::Followed;
use super::written::carry;
use crate::project::MANAGER_FILE;

const VARIABLE: &str = "- name: WATCH_NAMESPACE";

/// Indentation of a container's keys in the scaffold.
const KEYS: &str = "        ";
const ENV: &str = "        env:\n";

/// Sets or removes the variable in `ours`, if that is a change from `base` to `theirs`. Returns
/// `None` if there is no such change, or if the container has another form than the scaffold's.
pub(super) fn follow(container: &str, (base, ours, theirs): (&str, &str, &str)) -> Option<Followed> {
    let (before, after) = (find_entry(base), find_entry(theirs));
    if before.is_some() == after.is_some() || ours.contains('\r') {
        return None;
    }
    match (before, after) {
        (Some(entry), _) => Some(Followed {
            base: remove(base, entry),
            // A user may have set other namespaces.
            ours: remove(ours, entry),
        }),
        (None, Some(entry)) => {
            let base = carry(MANAGER_FILE, base, (&remove(theirs, entry), theirs))?;
            let ours = match find_entry(ours) {
                Some(_) => ours.to_owned(),
                None => add(ours, container, entry)?,
            };
            Some(Followed { base, ours })
        }
        (None, None) => None,
    }
}

/// The entry of the variable, with the comment above it.
fn find_entry(text: &str) -> Option<&str> {
    let at = text.find(&format!("\n{KEYS}{VARIABLE}\n"))? + 1;
    let mut start = at;
    while let Some(above) = text[..start].lines().next_back()
        && above.trim_start().starts_with('#')
    {
        start -= above.len() + 1;
    }
    let entry = at + text[at..].find('\n')? + 1;
    let is_inside = |line: &&str| line.strip_prefix(KEYS).is_some_and(|rest| rest.starts_with(' '));
    let rest = text[entry..].split_inclusive('\n').take_while(is_inside);
    Some(&text[start..entry + rest.map(str::len).sum::<usize>()])
}

fn remove(text: &str, entry: &str) -> String {
    let Some((before, after)) = text.split_once(entry) else {
        return text.to_owned();
    };
    let is_in_list = |rest: &str| rest.starts_with(['-', '#']);
    let has_others = after.strip_prefix(KEYS).is_some_and(is_in_list);
    match before.strip_suffix(ENV) {
        Some(before) if !has_others => format!("{before}{after}"),
        _ => format!("{before}{after}"),
    }
}

/// Adds an entry to the variables of a container. A missing list is added below the arguments, as in
/// the scaffold.
fn add(text: &str, container: &str, entry: &str) -> Option<String> {
    let head = format!("\n      - name: {container}\n");
    let start = text.find(&head)? + head.len();
    let is_inside = |line: &&str| line.starts_with(KEYS) || line.trim().is_empty();
    let keys = text[start..].split_inclusive('\n').take_while(is_inside);
    let keys = &text[start..start + keys.map(str::len).sum::<usize>()];
    if let Some(at) = find_line(keys, ENV) {
        let at = start + at + ENV.len();
        return Some(format!("{}{entry}{}", &text[..at], &text[at..]));
    }
    let above = ["args:", "command:", "image:"];
    let end = above.iter().find_map(|key| {
        let at = find_line(keys, &format!("{KEYS}{key}"))?;
        let is_value = |line: &&str| {
            let rest = line.strip_prefix(KEYS);
            rest.is_some_and(|rest| rest.starts_with([' ', '-']))
        };
        let mut lines = keys[at..].split_inclusive('\n');
        let first = lines.next()?.len();
        Some(at + first + lines.take_while(is_value).map(str::len).sum::<usize>())
    })?;
    let at = start + end;
    Some(format!("{}{ENV}{entry}{}", &text[..at], &text[at..]))
}

/// Offset of the first line with this beginning.
fn find_line(text: &str, beginning: &str) -> Option<usize> {
    match text.starts_with(beginning) {
        true => Some(0),
        false => Some(text.find(&format!("\n{beginning}"))? + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "        # Namespaces.\n        - name: WATCH_NAMESPACE\n          valueFrom:\n            fieldRef:\n              fieldPath: metadata.namespace\n";

    fn manifest(name: &str, lines: &str) -> String {
        format!(
            "    spec:\n      containers:\n      - name: {name}\n        image: a\n{lines}        ports: []\n      - name: proxy\n        env:\n        - name: A\n      serviceAccountName: a\n"
        )
    }

    #[track_caller]
    fn check((name, ours): (&str, &str), expected: &str) {
        let (without, with) = (
            manifest("manager", "        args:\n        - a\n"),
            manifest("manager", &format!("        args:\n        - a\n{ENV}{ENTRY}")),
        );
        let ours = manifest(name, ours);
        let expected = manifest(name, expected);
        let set = follow(name, (&without, &ours, &with)).expect("the entry is set");
        assert_eq!((set.base, set.ours), (with.clone(), expected.clone()));
        let unset = follow(name, (&with, &expected, &without)).expect("the entry is removed");
        assert_eq!((unset.base, unset.ours), (without, ours));
    }

    #[test]
    fn variable_is_set_and_removed_beside_others() {
        let args = "        args:\n        - b\n";
        check(("manager", args), &format!("{args}{ENV}{ENTRY}"));
        let others = "        - name: B\n          value: b\n        imagePullPolicy: Never\n";
        check(
            ("manager", &format!("{args}{ENV}{others}")),
            &format!("{args}{ENV}{ENTRY}{others}"),
        );
        check(("redis", ""), &format!("{ENV}{ENTRY}"));
        check(
            ("redis", "        args: [b]\n"),
            &format!("        args: [b]\n{ENV}{ENTRY}"),
        );
    }

    #[test]
    fn value_of_the_user_is_kept() {
        let (without, with) = (
            manifest("manager", ""),
            manifest("manager", &format!("{ENV}{ENTRY}")),
        );
        let own = manifest(
            "manager",
            &format!("{ENV}        - name: WATCH_NAMESPACE\n          value: a,b\n"),
        );
        assert_eq!(
            follow("manager", (&without, &own, &with))
                .expect("it changes")
                .ours,
            own
        );
        assert_eq!(
            follow("manager", (&with, &own, &without))
                .expect("it changes")
                .ours,
            own
        );
        assert!(follow("manager", (&with, &own, &with)).is_none());
        assert!(follow("manager", (&without, &without.replace('\n', "\r\n"), &with)).is_none());
        assert!(follow("other", (&without, &without, &with)).is_none());
    }
}
