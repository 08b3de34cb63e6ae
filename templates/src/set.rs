//! A set of templates, parsed when it is first rendered.

use std::borrow::Cow;
use std::fmt::{Debug, Formatter};
use std::sync::{LazyLock, OnceLock};

use tera::{Context, Tera};

use crate::{Rendered, TEMPLATES, Template};

/// The error of a template with invalid syntax, or with a name that its context does not have.
#[derive(Debug, thiserror::Error)]
#[error("cannot render the template `{template}`")]
pub struct TemplateError {
    template: String,
    #[source]
    source: tera::Error,
}

/// The templates of one version of rbuilder.
pub struct TemplateSet {
    templates: Cow<'static, [Template]>,
    /// The parsed templates. An error in the current set is a bug in this crate and makes every test of a command fail.
    engine: OnceLock<Result<Tera, (String, tera::Error)>>,
}

/// The set of this version.
static CURRENT: LazyLock<TemplateSet> = LazyLock::new(|| TemplateSet::new(TEMPLATES));

impl TemplateSet {
    /// Creates a set of these rows.
    pub fn new(templates: impl Into<Cow<'static, [Template]>>) -> TemplateSet {
        TemplateSet {
            templates: templates.into(),
            engine: OnceLock::new(),
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

    /// Renders the templates for which `is_wanted` holds, in the order of the table.
    pub(crate) fn render(
        &self,
        is_wanted: impl Fn(&Template) -> bool,
        context: &Context,
    ) -> Result<Vec<Rendered>, TemplateError> {
        let engine = self.engine.get_or_init(|| parse_templates(&self.templates));
        let engine = engine.as_ref().map_err(|(template, source)| TemplateError {
            template: template.clone(),
            source: tera::Error::message(source.to_string()),
        })?;
        let wanted = self.templates.iter().filter(|template| is_wanted(template));
        let files = wanted.map(|template| {
            let rendered = |name: &str| {
                engine.render(name, context).map_err(|source| TemplateError {
                    template: template.name.to_string(),
                    source,
                })
            };
            Ok(Rendered {
                path: rendered(&destination_name(template))?,
                text: rendered(&template.name)?,
                on_exists: template.on_exists,
            })
        });
        files.collect()
    }
}

impl Clone for TemplateSet {
    fn clone(&self) -> TemplateSet {
        TemplateSet::new(self.templates.clone())
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

fn parse_templates(templates: &[Template]) -> Result<Tera, (String, tera::Error)> {
    let mut engine = Tera::new();
    engine.autoescape_on(Vec::<&str>::new());
    for template in templates {
        let failed = |error| (template.name.to_string(), error);
        engine
            .add_raw_template(&template.name, &template.text)
            .map_err(failed)?;
        engine
            .add_raw_template(&destination_name(template), &template.destination)
            .map_err(failed)?;
    }
    Ok(engine)
}

/// Returns the template name of a destination, which is a template as well; no file has such a name.
fn destination_name(template: &Template) -> String {
    format!("destination of {}", template.name)
}
