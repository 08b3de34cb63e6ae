//! Parses query strings.

/// Parameters in their original order.
#[derive(Debug, PartialEq)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses `name=value&name=value`. Fails if a percent-encoding is invalid, or if the result
    /// isn't UTF-8.
    pub(super) fn parse(query: &str) -> Result<Self, String> {
        let parts = query.split('&').filter(|part| !part.is_empty());
        let parameters = parts.map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Some((decode(name)?, decode(value)?))
        });
        let parameters: Option<Vec<_>> = parameters.collect();
        let invalid = || format!("invalid query `{query}`: expected percent-encoded UTF-8");
        parameters.map(Self).ok_or_else(invalid)
    }

    /// Returns the first parameter with this name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(given, _)| given == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Decodes percent-encoding, where `+` stands for a space.
fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let [high, low] = [bytes.next()?, bytes.next()?].map(|digit| (digit as char).to_digit(16));
                u8::try_from(high? * 16 + low?).ok()?
            }
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = Query::parse("a=1&b=info%2Ckube%3ddebug&c&&d=x=y+z&a=2").unwrap();
        let found = ["a", "b", "c", "d", "e"].map(|name| query.get(name));
        assert_eq!(
            found,
            [Some("1"), Some("info,kube=debug"), Some(""), Some("x=y z"), None]
        );
    }

    #[test]
    fn invalid_escapes_are_errors() {
        for query in ["a=%", "a=%2", "a=%zz", "a=%+1", "a=%ff"] {
            let error = Query::parse(query).unwrap_err();
            assert_eq!(
                error,
                format!("invalid query `{query}`: expected percent-encoded UTF-8")
            );
        }
    }
}
