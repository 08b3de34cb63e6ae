//! A set of templates that are parsed lazily.

use std::borrow::Cow;
use std::fmt::{Debug, Formatter};
use std::sync::{LazyLock, OnceLock};

use tera::{Context, Tera};

use crate::{Rendered, TEMPLATES, Template};

/// The error of a template with invalid syntax or with a name that is not in its context.
#[derive(Debug, thiserror::Error)]
#[error("cannot render the template `{template}`")]
pub struct TemplateError {
    template: String,
    #[source]
    source: tera::Error,
}

/// The templates of a version of rbuilder.
pub struct TemplateSet {
    templates: Cow<'static, [Template]>,
    /// Parsed on first use, because a command only renders a few templates. A syntax error in the
    /// current set is a bug in this crate, and makes the tests of all commands fail.
    engines: Vec<OnceLock<Result<Tera, tera::Error>>>,
    skips_failures: bool,
}

static CURRENT: LazyLock<TemplateSet> = LazyLock::new(|| TemplateSet::new(TEMPLATES));

impl TemplateSet {
    /// Creates a set from the rows of a table.
    pub fn new(templates: impl Into<Cow<'static, [Template]>>) -> TemplateSet {
        let templates = templates.into();
        let engines = templates.iter().map(|_| OnceLock::new()).collect();
        TemplateSet {
            templates,
            engines,
            skips_failures: false,
        }
    }

    /// Templates of older releases may use names that are no longer in the contexts.
    #[must_use]
    pub(crate) fn skipping_failures(self) -> TemplateSet {
        TemplateSet {
            skips_failures: true,
            ..self
        }
    }

    /// Returns the templates of this version.
    pub fn current() -> &'static TemplateSet {
        &CURRENT
    }

    /// Returns the rows of the set.
    pub fn rows(&self) -> &[Template] {
        &self.templates
    }

    /// The files are in the order of the table.
    pub(crate) fn render(
        &self,
        is_wanted: impl Fn(&Template) -> bool,
        context: &Context,
    ) -> Result<Vec<Rendered>, TemplateError> {
        let all = self.templates.iter().zip(&self.engines);
        all.filter(|(template, _)| is_wanted(template))
            .map(|(template, engine)| {
                let engine = engine.get_or_init(|| parse_template(template));
                render_template(template, engine.as_ref(), context).map_err(|source| TemplateError {
                    template: template.name.to_string(),
                    source,
                })
            })
            .filter(|rendered| rendered.is_ok() || !self.skips_failures)
            .collect()
    }
}

impl Clone for TemplateSet {
    fn clone(&self) -> TemplateSet {
        TemplateSet {
            skips_failures: self.skips_failures,
            ..TemplateSet::new(self.templates.clone())
        }
    }
}

impl PartialEq for TemplateSet {
    fn eq(&self, other: &TemplateSet) -> bool {
        self.templates == other.templates
    }
}

impl Eq for TemplateSet {}

impl Debug for TemplateSet {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "TemplateSet of {} templates", self.templates.len())
    }
}

const TEXT: &str = "text";

/// The destination is a template, too.
const DESTINATION: &str = "destination";

/// Each template gets its own engine. Templates do not include each other, and adding one to a
/// shared engine would process all others again.
fn parse_template(template: &Template) -> Result<Tera, tera::Error> {
    let mut engine = Tera::new();
    // We don't render HTML, so nothing has to be escaped.
    engine.autoescape_on(Vec::<&str>::new());
    engine.add_raw_templates([(TEXT, &template.text), (DESTINATION, &template.destination)])?;
    Ok(engine)
}

fn render_template(
    template: &Template,
    engine: Result<&Tera, &tera::Error>,
    context: &Context,
) -> Result<Rendered, tera::Error> {
    let engine = engine.map_err(|error| tera::Error::message(error.to_string()))?;
    Ok(Rendered {
        path: engine.render(DESTINATION, context)?,
        text: engine.render(TEXT, context)?,
        on_exists: template.on_exists,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TEMPLATES;

    #[test]
    fn error_names_broken_template() {
        let mut templates: Vec<Template> = TEMPLATES.iter().take(3).cloned().collect();
        templates[1].text = "{{ project".into();
        let wrong = templates[1].name.to_string();
        let set = TemplateSet::new(templates);
        let Err(error) = set.render(|template| template.name == wrong, &Context::new()) else {
            panic!("`{wrong}` was rendered");
        };
        assert_eq!(error.to_string(), format!("cannot render the template `{wrong}`"));
    }
}
