//! The recorded responses of kube-apiserver. There is one line of JSON for each case, and the lines
//! are sorted.

use serde_json::{Value, json};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Accepted, and it does what was intended.
    Served,
    /// Accepted with a warning.
    Warned(String),
    /// Rejected, with the reason.
    Refused(String),
    /// Accepted, but it doesn't do what was intended.
    Idle(String),
}

impl Verdict {
    fn word(&self) -> (&'static str, &str) {
        match self {
            Verdict::Served => ("served", ""),
            Verdict::Warned(why) => ("warned", why),
            Verdict::Refused(why) => ("refused", why),
            Verdict::Idle(why) => ("idle", why),
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.word() {
            (word, "") => formatter.write_str(word),
            (word, why) => write!(formatter, "{word}: {why}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) slug: String,
    /// The `Case::fingerprint` when the case was recorded.
    pub(crate) case: String,
    pub(crate) verdict: Verdict,
}

pub(crate) fn write(recorded: &[Recorded]) -> String {
    let line = |line: &Recorded| {
        let (word, why) = line.verdict.word();
        let mut value = json!({ "slug": line.slug, "case": line.case, "verdict": word });
        if !why.is_empty() {
            value["why"] = why.into();
        }
        format!("{value}\n")
    };
    recorded.iter().map(line).collect()
}

/// Reads what [`write`] has written.
pub(crate) fn read(text: &str) -> Vec<Recorded> {
    let line = |line: &str| {
        let value: Value = serde_json::from_str(line).expect("a line of the record");
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let verdict = match value["verdict"].as_str() {
            Some("served") => Verdict::Served,
            Some("warned") => Verdict::Warned(text("why")),
            Some("refused") => Verdict::Refused(text("why")),
            Some("idle") => Verdict::Idle(text("why")),
            other => panic!("{other:?} is not a verdict"),
        };
        Recorded {
            slug: text("slug"),
            case: text("case"),
            verdict,
        }
    };
    text.lines().map(line).collect()
}
