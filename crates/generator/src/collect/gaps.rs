//! Gaps are parts of the source whose items aren't known: macros, and kinds that failed to parse.

use rbuilder_diagnostic::Severity;
use rbuilder_reader::token::Tokens;
use rbuilder_reader::{Attribute, Span};
use rbuilder_syntax::{Diagnostic, MarkKind};

use super::file::FileReader;
use super::kind_macros::Definition;
use super::macro_call::MacroCall;
use super::seen_marks::report_unseen;
use super::wrapped::Call;
use crate::gap::{Gap, GapId, GapSort};
use crate::package::ModuleId;

impl FileReader<'_, '_> {
    /// Reports unseen marker tokens, once per macro, and records a gap for each macro that may
    /// expand to items.
    pub(super) fn add_macros(&mut self, tokens: &Tokens<'_>) {
        let mut macros = std::mem::take(&mut self.macros);
        let (mut unread, mut defining) = (Vec::new(), Vec::new());
        macros.retain(|call| match self.note_wrapper(call) {
            Call::Read => false,
            Call::Unread => {
                unread.push(call.span);
                true
            }
            Call::DefinesKinds => {
                defining.push(call.span);
                true
            }
            Call::Other => true,
        });
        let spans: Vec<Span> = macros.iter().map(|call| call.span).collect();
        let modules: Vec<ModuleId> = macros.iter().map(|call| call.module).collect();
        let unseen: Vec<_> = self.seen_marks.unseen().collect();
        let hides_kind_unmarked = |span: Span| {
            unread.contains(&span)
                || defining.contains(&span)
                || self.renamed.hide_kind_in(&tokens.text()[span.range()])
        };
        let hides_kind = |span: Span| {
            let mut within = unseen.iter().filter(|mark| span.contains(mark.at));
            within.any(|mark| MarkKind::of(mark) == MarkKind::Kind) || hides_kind_unmarked(span)
        };
        let mut said = report_unseen(unseen.iter().copied(), &spans);
        for (at, span) in spans
            .iter()
            .enumerate()
            .filter(|(_, span)| hides_kind_unmarked(**span))
        {
            if said.iter().all(|(_, within)| *within != Some(at)) {
                let defines = defining.contains(span);
                said.push((kind_in_macro(*span, defines), Some(at)));
            }
        }
        for (at, MacroCall { module, span, .. }) in macros.into_iter().enumerate() {
            let of_macro = said.iter().find(|(_, within)| *within == Some(at));
            let reason = of_macro.map_or_else(|| unread_macro(span), |(said, _)| said.clone());
            let gap = Gap {
                file: self.id,
                sort: GapSort::Macro,
                text: tokens.text()[span.range()].into(),
                hides_kind: hides_kind(span),
                reason,
            };
            self.collector.add_gap(module, gap);
        }
        let held = |span: &Span| {
            let mut within = unseen.iter().filter(|mark| span.contains(mark.at));
            within.all(|mark| MarkKind::of(mark) == MarkKind::Kind)
        };
        // If all tokens in a definition are kinds, the calls may be the better place to report.
        for (said, within) in said {
            let definition = within
                .map(|at| (modules[at], spans[at]))
                .filter(|(_, span)| held(span));
            match definition
                .and_then(|(module, span)| Some((module, definition_name(&tokens.text()[span.range()])?)))
            {
                Some((module, name)) => self.hold_definition(module, name, said),
                None => self.session.report(said),
            }
        }
    }

    fn hold_definition(&mut self, module: ModuleId, name: &str, error: Diagnostic) {
        let folder = self.collector.package.member(module).folder.clone();
        self.collector.kind_errors.add_definition(Definition {
            folder,
            name: name.to_owned(),
            file: self.id,
            error,
        });
    }

    fn note_wrapper(&mut self, call: &MacroCall) -> Call {
        let text = &self.text[call.span.range()];
        if !text.starts_with("macro_rules") {
            return self.read_wrapped(call);
        }
        // The markers in a wrapper's definition are read along with each call.
        if Self::is_wrapper(text) {
            self.seen_marks.note(call.span);
        }
        Call::Other
    }

    /// Records that an attribute macro may change items. Reported right away if the macro is known
    /// to generate kinds.
    pub(super) fn add_rewritten(
        &mut self,
        attr: &Attribute<'_>,
        text: &str,
        reason: &Diagnostic,
        modules: &[ModuleId],
    ) {
        let hides_kind = makes_kinds(attr, text);
        if hides_kind && !self.is_foreign {
            self.session.report(reason.clone());
        }
        for module in modules {
            let gap = Gap {
                file: self.id,
                sort: GapSort::Macro,
                text: text.into(),
                hides_kind,
                reason: reason.clone(),
            };
            self.collector.add_gap(*module, gap);
        }
    }

    /// Records names imported under a condition that can't be evaluated. Returns `None` if all
    /// conditions can be.
    pub(super) fn add_undecided(&mut self, names: String, module: ModuleId) -> Option<GapId> {
        let reason = self.pending.iter().find(|pending| pending.is_error())?;
        let gap = Gap {
            file: self.id,
            sort: GapSort::Undecided,
            text: names.into(),
            hides_kind: false,
            reason: reason.clone(),
        };
        Some(self.collector.add_gap(module, gap))
    }

    /// Records a kind that failed to parse: without it, other kinds may miss a version.
    pub(super) fn add_unreadable_kind(
        &mut self,
        attrs: &[Attribute<'_>],
        said: &[Diagnostic],
        module: ModuleId,
    ) {
        let Some(reason) = said.iter().find(|said| said.severity == Severity::Error) else {
            return;
        };
        let text: Vec<&str> = attrs.iter().map(Attribute::text).collect();
        let gap = Gap {
            file: self.id,
            sort: GapSort::Kind,
            text: text.join(" ").into(),
            hides_kind: true,
            reason: reason.clone(),
        };
        self.collector.add_gap(module, gap);
    }
}

fn kind_in_macro(span: Span, defines: bool) -> Diagnostic {
    let message = match defines {
        true => "this kind is inside a macro, which rbuilder does not expand",
        false => "this macro may hide a kind; rbuilder does not expand macros",
    };
    let help = "write the struct outside of the macro, with the `#[derive(…)]` and `#[kube(…)]` that the macro emits";
    Diagnostic::error(span, message).help(help)
}

/// Returns e.g. `make` for `macro_rules! make { … }`.
fn definition_name(item: &str) -> Option<&str> {
    let name = item.strip_prefix("macro_rules!")?.trim_start();
    let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
    Some(&name[..end])
}

fn unread_macro(span: Span) -> Diagnostic {
    let message = "this macro may define types that a kind needs; rbuilder does not expand macros";
    Diagnostic::error(span, message).help("write the types outside of the macro")
}

pub(super) fn describe_rewritten(attr: &Attribute<'_>, text: &str) -> Diagnostic {
    if makes_kinds(attr, text) {
        generated_kinds(attr.span())
    } else {
        rewritten_module(attr.span())
    }
}

pub(super) fn generated_kinds(span: Span) -> Diagnostic {
    let message = "this macro generates kinds, which rbuilder does not read; it does not expand macros";
    let help = "write a struct with `#[derive(CustomResource)]` for each version, or keep the CRDs that the program prints";
    Diagnostic::error(span, message).help(help)
}

fn rewritten_module(span: Span) -> Diagnostic {
    let message = "this attribute macro may change the module; rbuilder does not run macros";
    let help = "move API types and markers to a module without the macro";
    Diagnostic::error(span, message).help(help)
}

/// Returns true for stackable-versioned's `#[versioned]`, if it generates kinds from the item.
pub(super) fn makes_kinds(attr: &Attribute<'_>, text: &str) -> bool {
    attr.last_segment() == "versioned" && ["crd(", "k8s("].iter().any(|argument| text.contains(argument))
}
