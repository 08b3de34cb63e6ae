//! Reads `#[rbac]` and `#[webhook]` attributes, and reports attribute macros that may change the
//! marked items.

use rbuilder_reader::grammar::{Function, Implementation};
use rbuilder_reader::token::Tokens;
use rbuilder_reader::{Attribute, Span};
use rbuilder_syntax::{
    Commented, Diagnostic, RbacRule, SchemaSource, misplaced_webhook, parse_rbac_attribute,
    parse_webhook_attribute, rbac_attributes, warn_of_go_marker, webhook_attributes,
};

use super::file::FileReader;
use super::gaps::{generated_kinds, makes_kinds};
use super::{attributes, handler};
use crate::package::{ModuleId, PlacedRule};

impl FileReader<'_, '_> {
    /// Warns about comments that look like kubebuilder markers, such as `// +kubebuilder:rbac`.
    pub(super) fn go_markers(&mut self, tokens: &Tokens<'_>) {
        // It's too early to know which item a comment belongs to, so guess the derive from the
        // whole file. Few files use both.
        let source = if tokens.text().contains("CrdSchema") {
            SchemaSource::CrdSchema
        } else {
            SchemaSource::Schemars
        };
        for span in tokens.marked_comments() {
            let range = span.range();
            let commented = Commented::by(&tokens.text()[range.end..]);
            let said = warn_of_go_marker(&tokens.text()[range], *span, source, commented);
            said.into_iter().for_each(|said| self.session.report(said));
        }
    }

    pub(super) fn rules(&mut self, attrs: &[Attribute<'_>]) {
        if self.is_foreign {
            return;
        }
        let mut rules = rbac_attributes(attrs).peekable();
        if rules.peek().is_some() {
            self.refuse_rewritten_module();
            self.report_pending();
        }
        for attr in rules {
            let errors = self.session.diagnostics.error_count();
            let rule: Option<RbacRule> = parse_rbac_attribute(attr, &mut self.session);
            self.collector.package.has_unread_rules |= self.session.diagnostics.error_count() > errors;
            let file = self.id;
            let placed = rule.map(|rule| PlacedRule { file, rule });
            self.collector.package.rules.extend(placed);
        }
    }

    pub(super) fn webhooks(
        &mut self,
        attrs: &[Attribute<'_>],
        function: &Function<'_>,
        around: Option<&Implementation<'_>>,
        module: ModuleId,
    ) -> Result<(), Diagnostic> {
        if self.is_foreign {
            return Ok(());
        }
        for attr in webhook_attributes(attrs) {
            self.refuse_rewritten_module();
            self.report_pending();
            if let Some(webhook) = parse_webhook_attribute(attr, &mut self.session) {
                let handler = handler::read_handler(webhook, function, around, (self.id, module))?;
                self.collector.package.handlers.push(handler);
            }
        }
        Ok(())
    }

    pub(super) fn misplaced_webhooks(&mut self, attrs: &[Attribute<'_>]) {
        for attr in webhook_attributes(attrs) {
            // The attribute macro reports errors in its arguments even here, so parse them as well.
            parse_webhook_attribute(attr, &mut self.session);
            misplaced_webhook(attr.span(), &mut self.session);
        }
    }

    /// Reports attribute macros, above the derive or on enclosing modules, that may change what the
    /// derive sees.
    pub(super) fn refuse_attribute_macros(&mut self, attrs: &[Attribute<'_>], text: &str) -> bool {
        if self.rewritten.is_some() {
            self.refuse_rewritten_module();
            return true;
        }
        let above = attrs.iter().take_while(|attr| !attr.is("derive"));
        let mut is_rewritten = false;
        let is_read = |attr: &Attribute<'_>| self.version.is_some() && attr.is("versioned");
        for attr in above.filter(|attr| !attributes::is_harmless(attr) && !is_read(attr)) {
            is_rewritten = true;
            let reason = if makes_kinds(attr, text) {
                generated_kinds(attr.span())
            } else {
                rewritten_type(attr.span())
            };
            self.session.report(reason);
        }
        is_rewritten
    }

    pub(super) fn refuse_rewritten_module(&mut self) {
        if let Some(reason) = self.rewritten.clone() {
            self.session.report(reason);
        }
    }
}

fn rewritten_type(span: Span) -> Diagnostic {
    let message = "this attribute macro may change the type; rbuilder does not run macros";
    let help = "move it below the derives if it configures one of them; otherwise write out the type that it generates";
    Diagnostic::error(span, message).help(help)
}
