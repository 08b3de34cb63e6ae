//! Parses kubectl's message about server-side apply conflicts.

const START: &str = "Apply failed with ";
const ADVICE: &str = "Please review the fields above";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Conflict {
    pub(super) manager: String,
    pub(super) field: String,
}

pub(super) fn find_conflicts(stderr: &str) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    for message in stderr.split(START).skip(1) {
        let message = message.split(ADVICE).next().unwrap_or_default();
        conflicts.extend(parse_message(message));
    }
    conflicts
}

/// Parses a message without its start. It has one of two forms:
///
/// ```text
/// 1 conflict: conflict with "helm" using apps/v1: .spec.replicas
/// 2 conflicts: conflicts with "helm" using apps/v1:
/// - .spec.replicas
/// - .spec.paused
/// ```
fn parse_message(message: &str) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    let mut manager = String::new();
    for line in message.lines() {
        if let Some(field) = line.strip_prefix("- ") {
            conflicts.push(Conflict {
                manager: manager.clone(),
                field: field.trim_end().to_owned(),
            });
            continue;
        }
        let Some((_, named)) = line.split_once(" with ") else {
            continue;
        };
        let (description, field) = match named.split_once(": ") {
            Some((description, field)) => (description, Some(field)),
            None => (named.trim_end_matches(':'), None),
        };
        manager = name_manager(description);
        conflicts.extend(field.map(|field| Conflict {
            manager: manager.clone(),
            field: field.trim_end().to_owned(),
        }));
    }
    conflicts
}

/// Strips the version and time off a manager, e.g. `"helm" using apps/v1 at 2026-11-26T10:00:00Z`.
fn name_manager(description: &str) -> String {
    let name = description.split(" using ").next().unwrap_or_default();
    name.replace('"', "`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stderr: &str, expected: &[(&str, &str)]) {
        let expected: Vec<Conflict> = expected
            .iter()
            .map(|(manager, field)| Conflict {
                manager: (*manager).to_owned(),
                field: (*field).to_owned(),
            })
            .collect();
        assert_eq!(find_conflicts(stderr), expected, "{stderr}");
    }

    #[test]
    fn conflicts_are_found_in_both_forms() {
        check(
            "error: Apply failed with 1 conflict: conflict with \"kubectl-scale\" with subresource \"scale\" using \
             apps/v1: .spec.replicas\nPlease review the fields above--they currently have other managers. Here\n",
            &[("`kubectl-scale` with subresource `scale`", ".spec.replicas")],
        );
        check(
            "error: Apply failed with 3 conflicts: conflicts with \"a\":\n- .spec.a\n\
             - .spec.containers[name=\"b: c\"].image\nconflicts with \"helm\" using apps/v1 at 2026-11-26T10:00:00Z:\n\
             - .data.a\nPlease review the fields above--they currently have other managers.\n",
            &[
                ("`a`", ".spec.a"),
                ("`a`", ".spec.containers[name=\"b: c\"].image"),
                ("`helm`", ".data.a"),
            ],
        );
    }

    #[test]
    fn conflicts_of_several_objects_are_found() {
        check(
            "Apply failed with 1 conflict: conflict with \"a\": .data.a\nPlease review the fields above\n\
             error: Apply failed with 1 conflict: conflict with \"b\": .data.b\nPlease review the fields above\n",
            &[("`a`", ".data.a"), ("`b`", ".data.b")],
        );
    }

    #[test]
    fn other_errors_have_no_conflicts() {
        check(
            "Error from server (Conflict): Operation cannot be fulfilled on cups.g.example.com \"a\"",
            &[],
        );
        check("", &[]);
    }
}
