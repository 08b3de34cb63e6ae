//! The recorded responses of kube-apiserver: one line of JSON for each case, sorted.

use serde_json::{Value, json};

/// The server's response to a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Accepted, and it works as intended.
    Served,
    /// Accepted with a warning.
    Warned(String),
    /// Rejected, with the reason.
    Refused(String),
    /// Accepted, but not served as intended.
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

/// A line of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) slug: String,
    /// `Case::fingerprint` of the recorded case.
    pub(crate) case: String,
    pub(crate) verdict: Verdict,
}

/// Formats the record.
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

/// Parses the output of [`write`].
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
