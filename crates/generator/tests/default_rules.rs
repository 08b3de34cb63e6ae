//! If a default violates a CEL rule, the API server rejects the CRD.

use super::support::{Said, spec};

const LIMITS: &str = "#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)] \
                      #[crd(cel(rule = \"self.daily >= self.last\"))] pub struct Limits { \
                      #[serde(default)] #[kube(default = 3)] pub last: i32, #[serde(default)] #[kube(default = 7)] pub daily: i32 }";

fn errors(fields: &str) -> Vec<Said> {
    spec(fields, LIMITS).err().unwrap_or_default()
}

#[test]
fn checks_defaults_against_rules() {
    let check = |fields: &str, expected: Option<(&str, &str)>| {
        let expected: Vec<Said> = expected
            .into_iter()
            .map(|(message, help)| (message.into(), help.into()))
            .collect();
        assert_eq!(errors(fields), expected, "{fields}");
    };
    let rejected = "change the default or the rule: the API server rejects the definition";
    check(
        "#[crd(default = {})] pub limits: Limits",
        Some((
            "the rule `self.daily >= self.last` fails with \"no such key: daily\" for the default {} of `.spec.limits` (in a rule on \
             `.spec.limits`)",
            "write all fields that the rule reads in the default: the API server adds no defaults inside of a default",
        )),
    );
    check(
        "#[crd(default = { \"last\": 3, \"daily\": 7 })] pub limits: Limits",
        None,
    );
    check(
        "#[crd(default = 5, cel(rule = \"self < 3\"))] pub level: i32",
        Some((
            "the rule `self < 3` is false for the default 5 of `.spec.level` (in a rule on `.spec.level`)",
            rejected,
        )),
    );
    check(
        "#[crd(default = 2, cel(rule = \"self < 3\"))] pub level: i32",
        None,
    );
    // Our evaluator doesn't have the function, so we leave it to the API server.
    check(
        "#[crd(default = \"1\", cel(rule = \"isQuantity(self)\"))] pub size: String",
        None,
    );
}
