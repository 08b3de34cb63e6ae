//! Names and namespaces within strings, e.g. in alert queries or CEL expressions.

use super::template::{Node, escape, quote};

/// Precedes the project name in alert queries, to match any release name.
const ANY_RELEASE: &str = "(.+-)?";

#[derive(Clone, Debug)]
pub(super) struct Literal {
    text: String,
    /// Action that replaces the text in the template.
    action: String,
    /// Whether the text may be an ordinary word, which only matches between quotes, dots, colons or
    /// slashes.
    is_word: bool,
}

impl Literal {
    pub(super) fn new(text: String, action: String) -> Literal {
        Literal {
            text,
            action,
            is_word: false,
        }
    }

    pub(super) fn word(text: String, action: String) -> Literal {
        Literal {
            is_word: true,
            ..Literal::new(text, action)
        }
    }

    /// Whether `text` contains the literal at `at`, and not as part of a longer word.
    fn is_at(&self, text: &str, at: usize) -> bool {
        let before = text[..at].chars().next_back();
        let after = &text[at + self.text.len()..];
        if self.is_word {
            let is_end = |end: Option<char>| end.is_some_and(|end| "'\"`.:/".contains(end));
            return is_end(before) && is_end(after.chars().next());
        }
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        let begins = self.text.starts_with(':') || !before.is_some_and(is_name);
        // Pod names start with the Deployment's name, as in `shop-controller-manager-.*`.
        let after = after.strip_prefix('-').unwrap_or(after);
        begins && !after.starts_with(is_name)
    }
}

/// Replaces the literals in a text with expressions. Returns a YAML string, or `None` if nothing
/// matches.
pub(super) fn rewrite(text: &str, literals: &[Literal]) -> Option<Node> {
    let is_one_line = !text.contains('\n');
    // Escapes text within YAML quotes.
    let plain = |text: &str| match is_one_line {
        true => escape(text).replace('\'', "''"),
        false => {
            let quoted = quote(text);
            escape(&quoted[1..quoted.len() - 1])
        }
    };
    let action = |action: &str| match is_one_line {
        true => action.replace('\'', "''"),
        // Within double quotes, strings in an action must be Go raw strings.
        false => action.replace('"', "`"),
    };
    let (mut quoted, mut from) = (String::new(), 0);
    while let Some((at, literal)) = find_first(text, from, literals) {
        let before = &text[from..at];
        // The name now follows the release, so a preceding `(.+-)?` would only match other
        // releases.
        quoted += &plain(before.strip_suffix(ANY_RELEASE).unwrap_or(before));
        quoted += &action(&literal.action);
        from = at + literal.text.len();
    }
    if from == 0 {
        return None;
    }
    quoted += &plain(&text[from..]);
    Some(Node::Text(match is_one_line {
        true => format!("'{quoted}'"),
        false => format!("\"{quoted}\""),
    }))
}

/// The first literal at or after `from`. Prefers the longest of several matches.
fn find_first<'l>(text: &str, from: usize, literals: &'l [Literal]) -> Option<(usize, &'l Literal)> {
    let found = literals.iter().filter_map(|literal| {
        let mut places = text[from..].match_indices(&literal.text);
        let (at, _) = places.find(|(at, _)| literal.is_at(text, from + at))?;
        Some((from + at, literal))
    });
    found.min_by_key(|(at, literal)| (*at, std::cmp::Reverse(literal.text.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let literals = [
            Literal::new(":shop-manager".into(), ":{{ account }}".into()),
            Literal::new("shop-manager".into(), "{{ full }}-manager".into()),
            Literal::new("shop-metrics".into(), "{{ full }}-metrics".into()),
            Literal::new("shop-metrics-service".into(), "{{ full }}-metrics-service".into()),
            Literal::new("shop-system".into(), "{{ ns }}".into()),
            Literal::word("team".into(), "{{ ns }}".into()),
        ];
        let expected = expected.map(|text| Node::Text(text.to_owned()));
        assert_eq!(rewrite(text, &literals), expected, "{text}");
    }

    #[test]
    fn names_follow_the_release() {
        check("a=\"shop-metrics\"", Some("'a=\"{{ full }}-metrics\"'"));
        check(
            "job=~\"(.+-)?shop-metrics-service\"",
            Some("'job=~\"{{ full }}-metrics-service\"'"),
        );
        check("a='shop-manager-.*'", Some("'a=''{{ full }}-manager-.*'''"));
        check("workshop-metrics", None);
        check("my-shop-metrics", None);
        check("shop-metrics-other", None);
        check("shop", None);
    }

    #[test]
    fn namespaces_follow_the_release() {
        check(
            "system:serviceaccount:shop-system:shop-manager",
            Some("'system:serviceaccount:{{ ns }}:{{ account }}'"),
        );
        check("shop-metrics.team.svc", Some("'{{ full }}-metrics.{{ ns }}.svc'"));
        check("['team', \"team\"]", Some("'[''{{ ns }}'', \"{{ ns }}\"]'"));
        check("Call the team.", None);
        check("a\n'team'\n", Some("\"a\\n'{{ ns }}'\\n\""));
    }
}
