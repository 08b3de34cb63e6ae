//! The image deployed by a kind's controller, as recorded by `create api --image`.

use std::num::{NonZeroU16, NonZeroU32};

use rbuilder_templates::ImageContext;
use serde::Deserialize;
use serde_json::{Value, json};

use super::names::FlagDiagnostic;

/// Maximum length of an image reference with host and digest. Registries and container runtimes
/// reject longer ones.
const LONGEST_NAME: usize = 512;

/// An image, and how to start its containers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// E.g. `memcached:1.6.26-alpine3.19`.
    pub name: String,
    /// Command and arguments of the container. Defaults to those of the image.
    #[serde(default)]
    pub command: Vec<String>,
    /// Port that the container listens on.
    #[serde(default)]
    pub port: Option<NonZeroU16>,
    /// User ID that the container runs as. Defaults to the image's user. Never root, which the Pod
    /// Security Standard "restricted" forbids.
    #[serde(default)]
    pub run_as_user: Option<NonZeroU32>,
}

impl Image {
    /// Checks the values that are written into generated source.
    ///
    /// # Errors
    /// Fails with the flag of an invalid value.
    pub fn check(&self) -> Result<(), FlagDiagnostic> {
        let is_reference_char = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
        let starts_well = self.name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !starts_well || !self.name.chars().all(is_reference_char) || self.name.len() > LONGEST_NAME {
            return Err(FlagDiagnostic::error(
                "--image",
                format!(
                    "expected an image such as `memcached:1.6.26` or `registry:5000/team/app@sha256:…`, found `{}`",
                    self.name.escape_debug()
                ),
            ));
        }
        let is_word = |word: &String| !word.is_empty() && !word.contains(char::is_control);
        match self.command.iter().find(|word| !is_word(word)) {
            Some(word) => Err(FlagDiagnostic::error(
                "--image-container-command",
                format!(
                    "expected arguments separated by commas, such as `memcached,-m,64`, found `{}`",
                    word.escape_debug()
                ),
            )),
            None => Ok(()),
        }
    }

    /// What templates need to know about a kind. `group` is the API group without the domain.
    pub fn context(&self, group: &str, singular: &str) -> ImageContext {
        ImageContext {
            name: self.name.clone(),
            variable: variable_name(group, singular),
            command: self.command.iter().map(|word| escape(word)).collect(),
            port: self.port.map(NonZeroU16::get),
            run_as_user: self.run_as_user.map(NonZeroU32::get),
        }
    }

    pub(super) fn print(&self) -> Value {
        let mut all = serde_json::Map::new();
        super::set(&mut all, "name", json!(self.name));
        super::set(&mut all, "command", json!(self.command));
        if let Some(port) = self.port {
            super::set(&mut all, "port", json!(port));
        }
        if let Some(user) = self.run_as_user {
            super::set(&mut all, "runAsUser", json!(user));
        }
        Value::Object(all)
    }
}

/// Environment variable that overrides the image of a kind. Includes the group, because kinds in
/// different groups may share a name.
fn variable_name(group: &str, singular: &str) -> String {
    let parts = ["RELATED_IMAGE", group, singular];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("_").replace(['.', '-'], "_").to_uppercase()
}

fn escape(word: &str) -> String {
    word.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(name: &str, command: &[&str]) -> Image {
        Image {
            name: name.into(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            port: None,
            run_as_user: None,
        }
    }

    #[test]
    fn checks_image_references() {
        for good in [
            "memcached",
            "memcached:1.6",
            "registry:5000/app",
            "ghcr.io/a/b:1@sha256:0123",
        ] {
            assert!(image(good, &[]).check().is_ok(), "{good}");
        }
        for bad in ["", "a b", "a\"b", "a\nb", "-a", "$(date)", "a{{b}}"] {
            assert!(image(bad, &[]).check().is_err(), "{bad:?}");
        }
        assert!(image(&"a".repeat(513), &[]).check().is_err());
    }

    #[test]
    fn checks_and_escapes_commands() {
        assert!(image("a", &["sh", ""]).check().is_err());
        assert!(image("a", &["sh", "a\nb"]).check().is_err());
        let quoted = image("a", &["sh", "-c", r#"echo "\""#]);
        assert!(quoted.check().is_ok());
        assert_eq!(quoted.context("cache", "memcached").command[2], r#"echo \"\\\""#);
    }

    #[test]
    fn image_variables_are_named_after_kinds() {
        let check = |group: &str, singular: &str, expected: &str| {
            assert_eq!(variable_name(group, singular), expected);
        };
        check("cache", "memcached", "RELATED_IMAGE_CACHE_MEMCACHED");
        check(
            "my-team.cache",
            "memcached",
            "RELATED_IMAGE_MY_TEAM_CACHE_MEMCACHED",
        );
        check("", "memcached", "RELATED_IMAGE_MEMCACHED");
    }
}
