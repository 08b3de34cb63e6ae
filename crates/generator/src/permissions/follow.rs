//! Follows the calls in a function body.
//!
//! A single pass over the tokens works out the type of each expression as far as it matters, tracks
//! the variables in scope, and records the permissions that calls need. Control flow is ignored, so
//! every call in the source counts.

use rbuilder_reader::TypeRef;
use rbuilder_reader::token::{Cursor, Delimiter, Ident, Kind, LiteralKind, text_value};

use super::functions::Functions;
use super::ty::{Scope, Ty, read_path, read_type};
use super::{Need, Unseen};
use crate::package::{FunctionId, FunctionItem};
use crate::resolve::{FunctionTarget, Owner, find_function};

/// Bounds the recursion where there are no delimiters, e.g. in closures in closures. The depth of
/// delimiters is limited by the lexer.
const MAX_DEPTH: usize = 200;

/// Maximum number of dereferences to find a field or a method.
const MAX_DEREFERENCES: usize = 8;

pub(super) struct Follower<'f, 'a> {
    pub(super) functions: &'f mut Functions<'a>,
    pub(super) item: &'a FunctionItem,
    pub(super) scope: Scope<'f>,
    /// Innermost variable last.
    pub(super) variables: Vec<(String, Ty)>,
    /// The type that the context expects of the current expression.
    pub(super) expected: Ty,
    /// The type of a closure's first parameter if it has no annotation.
    pub(super) hint: Ty,
    depth: usize,
    pub(super) known: Vec<Need>,
    pub(super) unseen: Vec<Unseen>,
}

impl<'f, 'a: 'f> Follower<'f, 'a> {
    pub(super) fn new(
        functions: &'f mut Functions<'a>,
        item: &'a FunctionItem,
        scope: Scope<'f>,
        variables: Vec<(String, Ty)>,
        expected: Ty,
    ) -> Self {
        Follower {
            functions,
            item,
            scope,
            variables,
            expected,
            hint: Ty::Unknown,
            depth: 0,
            known: Vec::new(),
            unseen: Vec::new(),
        }
    }

    pub(super) fn finish(self) -> (Vec<Need>, Vec<Unseen>) {
        (self.known, self.unseen)
    }
}

impl Follower<'_, '_> {
    pub(super) fn body(&mut self, mut cursor: Cursor<'_>) -> Ty {
        let outer = self.variables.len();
        let mut value = Ty::Unknown;
        while !cursor.is_end() {
            value = self.statement(&mut cursor);
            // Macro bodies contain commas, too.
            if (cursor.eat(b';') || cursor.eat(b',')) && !cursor.is_end() {
                value = Ty::Unknown;
            }
        }
        self.variables.truncate(outer);
        value
    }

    fn statement(&mut self, cursor: &mut Cursor<'_>) -> Ty {
        // Skip the attributes of the statement.
        while cursor.eat(b'#') {
            cursor.any_group();
        }
        // Items in a body aren't followed.
        if is_item(*cursor) {
            while !cursor.is_end() {
                let is_last = cursor.is_punct(b';') || cursor.is_group(Delimiter::Brace);
                cursor.skip();
                if is_last {
                    break;
                }
            }
            return Ty::Unknown;
        }
        if cursor.eat_word("let") {
            self.binding(cursor);
            return Ty::Unknown;
        }
        self.expression(cursor, true)
    }

    /// Parses `pattern: Type = value else { … }`.
    fn binding(&mut self, cursor: &mut Cursor<'_>) {
        let pattern = *cursor;
        let declared = self.annotation(cursor, [b'=', b';']).unwrap_or_default();
        let mut value = Ty::Unknown;
        if cursor.eat(b'=') {
            let outer = std::mem::replace(&mut self.expected, declared.clone());
            value = self.expression(cursor, true);
            self.expected = outer;
        }
        if cursor.eat_word("else")
            && let Some(inner) = cursor.group(Delimiter::Brace)
        {
            self.body(inner);
        }
        let ty = declared.or(|| value);
        // Bind the variables last: the value cannot use them.
        self.bind_pattern(&mut pattern.clone(), &ty, is_end_of_let);
    }

    /// Skips a pattern up to one of two tokens, and returns the type after it.
    fn annotation(&self, cursor: &mut Cursor<'_>, ends: [u8; 2]) -> Option<Ty> {
        let mut ty = None;
        while !cursor.is_end() && !ends.iter().any(|end| cursor.is_punct(*end)) {
            if cursor.is_punct(b':') && !cursor.is_pair(b':', b':') {
                cursor.skip();
                if let Ok(written) = TypeRef::read(cursor) {
                    ty = Some(self.read_type(&written));
                }
            } else if !cursor.eat_pair(b':', b':') {
                cursor.skip();
            }
        }
        ty
    }

    /// Returns the type of an expression, which ends at a comma, a semicolon, an arrow or the end
    /// of the text.
    fn expression(&mut self, cursor: &mut Cursor<'_>, admits_struct: bool) -> Ty {
        let start = cursor.span();
        self.depth += 1;
        let mut value = self.operand(cursor, admits_struct);
        loop {
            if cursor.eat_word("as") {
                if TypeRef::read(cursor).is_err() {
                    break;
                }
                value = Ty::Unknown;
                continue;
            }
            let Kind::Punct(sign) = cursor.kind() else { break };
            if matches!(sign, b',' | b';' | b':' | b'?' | b'#' | b'.') && !cursor.is_pair(b'.', b'.')
                || cursor.is_pair(b'=', b'>')
            {
                break;
            }
            // Skip operators of any length. Precedence doesn't matter: the type of the result is
            // unknown anyway.
            while matches!(
                cursor.kind(),
                Kind::Punct(
                    b'=' | b'+'
                        | b'-'
                        | b'*'
                        | b'/'
                        | b'%'
                        | b'^'
                        | b'!'
                        | b'&'
                        | b'|'
                        | b'<'
                        | b'>'
                        | b'.'
                        | b'@'
                        | b'~'
                        | b'$'
                )
            ) && !cursor.is_pair(b'=', b'>')
            {
                cursor.skip();
            }
            if cursor.is_end() || cursor.is_punct(b',') || cursor.is_punct(b';') {
                break;
            }
            // As in Rust, a brace after a condition starts the body, not a struct.
            if !admits_struct && cursor.is_group(Delimiter::Brace) {
                break;
            }
            self.operand(cursor, admits_struct);
            value = Ty::Unknown;
        }
        self.depth -= 1;
        // Never stop at an unknown token: the calls after it count as well.
        let is_end = cursor.is_end() || cursor.is_punct(b';') || cursor.is_punct(b',');
        if !is_end && cursor.span() == start {
            match cursor.any_group() {
                Some(inner) => self.arguments(inner).into_iter().for_each(drop),
                None => cursor.skip(),
            }
        }
        value
    }

    fn operand(&mut self, cursor: &mut Cursor<'_>, admits_struct: bool) -> Ty {
        if self.depth > MAX_DEPTH {
            cursor.skip();
            return Ty::Unknown;
        }
        loop {
            // Skip labels, and prefixes that don't change the type as far as it matters.
            let is_prefix = matches!(cursor.kind(), Kind::Punct(b'&' | b'*' | b'!' | b'-'))
                || cursor.is_pair(b'.', b'.')
                || [
                    "move", "async", "unsafe", "return", "break", "mut", "const", "static",
                ]
                .iter()
                .any(|word| cursor.is_word(word));
            if is_prefix {
                cursor.skip();
            } else if cursor.lifetime().is_some() {
                cursor.eat(b':');
            } else {
                break;
            }
        }
        let value = self.atom(cursor, admits_struct);
        self.postfix(cursor, value)
    }

    fn atom(&mut self, cursor: &mut Cursor<'_>, admits_struct: bool) -> Ty {
        match cursor.kind() {
            Kind::Punct(b'|') => self.closure(cursor),
            Kind::Open(Delimiter::Paren) => {
                let Some(inner) = cursor.group(Delimiter::Paren) else {
                    return Ty::Unknown;
                };
                let is_tuple = has_comma(inner);
                let mut values = self.arguments(inner);
                match values.pop() {
                    Some(only) if !is_tuple => only,
                    last => {
                        values.extend(last);
                        Ty::Tuple(values)
                    }
                }
            }
            Kind::Open(Delimiter::Bracket) => {
                let inner = cursor.group(Delimiter::Bracket);
                let values = inner.map(|inner| self.arguments(inner)).unwrap_or_default();
                // All items of an array have the same type.
                values.into_iter().next().unwrap_or_default()
            }
            Kind::Open(Delimiter::Brace) => {
                let inner = cursor.group(Delimiter::Brace);
                inner.map_or(Ty::Unknown, |inner| self.body(inner))
            }
            Kind::Literal(LiteralKind::Text) => {
                let text = text_value(cursor.text()).map(std::borrow::Cow::into_owned);
                cursor.skip();
                text.map_or(Ty::Unknown, Ty::Text)
            }
            Kind::Punct(b'<') => self.qualified(cursor),
            Kind::Ident => match cursor.text() {
                "if" => self.condition(cursor),
                "match" => self.choice(cursor),
                "while" | "loop" | "for" => self.repetition(cursor),
                "let" => self.condition_binding(cursor),
                _ => self.path(cursor, admits_struct),
            },
            Kind::RawIdent | Kind::Punct(b':') => self.path(cursor, admits_struct),
            Kind::Literal(_) => {
                cursor.skip();
                Ty::Unknown
            }
            _ => Ty::Unknown,
        }
    }

    fn closure(&mut self, cursor: &mut Cursor<'_>) -> Ty {
        let outer = self.variables.len();
        let mut hint = std::mem::take(&mut self.hint);
        let mut parameters = Vec::new();
        if !cursor.eat_pair(b'|', b'|') {
            cursor.eat(b'|');
            while !cursor.is_end() && !cursor.eat(b'|') {
                let mut pattern = *cursor;
                // Only the first parameter gets the hint.
                let hint = std::mem::take(&mut hint);
                let ty = self.annotation(cursor, [b',', b'|']).unwrap_or(hint);
                self.bind_pattern(&mut pattern, &ty, is_end_of_parameter);
                parameters.push(ty);
                cursor.eat(b',');
            }
        }
        if cursor.eat_pair(b'-', b'>') && TypeRef::read(cursor).is_err() {
            cursor.skip();
        }
        let result = self.expression(cursor, true);
        self.variables.truncate(outer);
        Ty::Closure(parameters, Box::new(result))
    }

    /// Parses `if condition { … } else { … }`.
    fn condition(&mut self, cursor: &mut Cursor<'_>) -> Ty {
        let mut value = Ty::Unknown;
        while cursor.eat_word("if") {
            let outer = self.variables.len();
            self.expression(cursor, false);
            if let Some(inner) = cursor.group(Delimiter::Brace) {
                let found = self.body(inner);
                value = value.or(|| found);
            }
            self.variables.truncate(outer);
            if !cursor.eat_word("else") {
                return value;
            }
        }
        match cursor.group(Delimiter::Brace) {
            Some(inner) => {
                let found = self.body(inner);
                value.or(|| found)
            }
            None => value,
        }
    }

    /// Parses `let pattern = value` in a condition.
    fn condition_binding(&mut self, cursor: &mut Cursor<'_>) -> Ty {
        cursor.eat_word("let");
        let pattern = *cursor;
        while !cursor.is_end() && !cursor.is_punct(b'=') {
            cursor.skip();
        }
        cursor.eat(b'=');
        let value = self.operand(cursor, false);
        self.bind_pattern(&mut pattern.clone(), &value, |cursor| cursor.is_punct(b'='));
        Ty::Unknown
    }

    /// Parses `match value { pattern if guard => value, … }`.
    fn choice(&mut self, cursor: &mut Cursor<'_>) -> Ty {
        cursor.eat_word("match");
        let matched = self.expression(cursor, false);
        let mut value = Ty::Unknown;
        let Some(mut arms) = cursor.group(Delimiter::Brace) else {
            return value;
        };
        while !arms.is_end() {
            let outer = self.variables.len();
            self.bind_pattern(&mut arms, &matched, |cursor| {
                cursor.is_word("if") || cursor.is_pair(b'=', b'>')
            });
            if arms.eat_word("if") {
                while !arms.is_end() && !arms.is_pair(b'=', b'>') {
                    self.part(&mut arms);
                }
            }
            arms.eat_pair(b'=', b'>');
            if !arms.is_end() {
                let found = match arms.is_group(Delimiter::Brace) {
                    // A block ends its arm, even without a comma.
                    true => {
                        let block = self.atom(&mut arms, true);
                        self.postfix(&mut arms, block)
                    }
                    false => self.expression(&mut arms, true),
                };
                value = value.or(|| found);
            }
            arms.eat(b',');
            self.variables.truncate(outer);
        }
        value
    }

    /// Parses `while`, `loop` and `for`.
    fn repetition(&mut self, cursor: &mut Cursor<'_>) -> Ty {
        let outer = self.variables.len();
        let mut value = Ty::Unknown;
        if cursor.eat_word("for") {
            let pattern = *cursor;
            while !cursor.is_end() && !cursor.is_word("in") {
                cursor.skip();
            }
            cursor.eat_word("in");
            let items = self.expression(cursor, false);
            self.bind_pattern(&mut pattern.clone(), &items, |cursor| cursor.is_word("in"));
        } else if cursor.eat_word("while") {
            self.expression(cursor, false);
        } else {
            cursor.eat_word("loop");
        }
        if let Some(inner) = cursor.group(Delimiter::Brace) {
            value = self.body(inner);
        }
        self.variables.truncate(outer);
        value
    }

    /// In a macro or a guard, the next token need not start an expression.
    fn part(&mut self, cursor: &mut Cursor<'_>) {
        let is_sign = cursor.eat(b';') || cursor.eat(b',') || cursor.eat_pair(b'=', b'>');
        if !is_sign {
            self.expression(cursor, true);
        }
    }

    pub(super) fn arguments(&mut self, mut inner: Cursor<'_>) -> Vec<Ty> {
        let mut values = Vec::new();
        while !inner.is_end() {
            let hint = self.hint.clone();
            let outer = std::mem::take(&mut self.expected);
            values.push(self.expression(&mut inner, true));
            self.expected = outer;
            self.hint = hint;
            while !inner.is_end() && !inner.eat(b',') {
                self.part(&mut inner);
            }
        }
        values
    }

    fn postfix(&mut self, cursor: &mut Cursor<'_>, mut value: Ty) -> Ty {
        loop {
            if cursor.eat(b'?') {
                continue;
            }
            if let Some(inner) = cursor.group(Delimiter::Bracket) {
                self.arguments(inner);
                continue;
            }
            if let Some(inner) = cursor.group(Delimiter::Paren) {
                let args = self.arguments(inner);
                self.note_passed(&args, cursor.previous_span(), "a closure");
                value = match value {
                    Ty::Closure(_, result) => *result,
                    Ty::Function(id) => self.functions.call(id, &[], &args),
                    _ => Ty::Unknown,
                };
                continue;
            }
            if cursor.is_pair(b'.', b'.') || !cursor.eat(b'.') {
                return value;
            }
            if cursor.eat_word("await") {
                continue;
            }
            let Some(name) = cursor.any_ident() else {
                // `.0` of a tuple.
                value = match (value, cursor.literal()) {
                    (Ty::Tuple(parts), Some((_, position))) => {
                        let position = position.parse::<usize>().ok();
                        position.and_then(|at| parts.get(at).cloned()).unwrap_or_default()
                    }
                    _ => Ty::Unknown,
                };
                continue;
            };
            let generic = self.turbofish(cursor);
            value = match cursor.group(Delimiter::Paren) {
                Some(inner) => self.method(&value, name, &generic, inner),
                None => self.field_type(&value, name.text),
            };
        }
    }

    fn turbofish(&mut self, cursor: &mut Cursor<'_>) -> Vec<Ty> {
        let types = read_turbofish(cursor);
        types.iter().map(|ty| self.read_type(ty)).collect()
    }

    pub(super) fn read_type(&self, ty: &TypeRef) -> Ty {
        read_type(self.functions.package, ty, self.scope)
    }

    /// Falls back to the dereferenced value if the value itself lacks the field.
    pub(super) fn field_type(&self, value: &Ty, name: &str) -> Ty {
        let owner = match value {
            Ty::Own(owner) => owner,
            Ty::Known("Ctx", known) => return self.field_type(&known.state, name),
            Ty::Object(_) | Ty::Dynamic if name == "items" => return value.clone(),
            _ => return Ty::Unknown,
        };
        let mut owner = owner.clone();
        for _ in 0..MAX_DEREFERENCES {
            if let Some(found) = self.own_field(&owner, name) {
                return found;
            }
            match self.dereferenced(&owner) {
                Some(Ty::Own(inner)) => owner = inner,
                _ => break,
            }
        }
        Ty::Unknown
    }

    fn own_field(&self, owner: &Owner, name: &str) -> Option<Ty> {
        let package = self.functions.package;
        let (module, of) = match owner {
            Owner::Type(id) => {
                let item = package.item(*id);
                (item.module, item.model.as_ref()?.ident.clone())
            }
            Owner::Opaque(module, of) => (*module, of.clone()),
            Owner::Root(_) => return None,
        };
        let mut fields = package.fields.get(&(module, of))?.iter();
        let (_, ty) = fields.find(|(field, _)| field == name)?;
        let bindings = super::ty::Bindings::new();
        let scope = Scope {
            module,
            self_type: None,
            bindings: &bindings,
        };
        Some(read_type(package, ty, scope))
    }

    fn dereferenced(&self, owner: &Owner) -> Option<Ty> {
        // Only supports a `deref` that returns one of the fields.
        let id = self.functions.of_type(owner, "deref")?;
        let body = self.functions.item(id).body.trim();
        let field = body.strip_prefix('&')?.trim_start().strip_prefix("self.")?;
        self.own_field(owner, field)
    }

    /// Returns the function and its receiver, which may be a dereferenced `receiver`.
    pub(super) fn find_method(&self, receiver: &Ty, name: &str) -> (Ty, Option<FunctionId>) {
        let mut found = receiver.clone();
        for _ in 0..MAX_DEREFERENCES {
            let Ty::Own(owner) = &found else { break };
            if let Some(id) = self.functions.of_type(owner, name) {
                return (found, Some(id));
            }
            match self.dereferenced(owner) {
                Some(inner) => found = inner,
                None => break,
            }
        }
        (found, None)
    }

    /// Follows a path, along with the call, macro or struct that it starts.
    fn path(&mut self, cursor: &mut Cursor<'_>, admits_struct: bool) -> Ty {
        let mut names: Vec<Ident<'_>> = Vec::new();
        let mut generic = Vec::new();
        let mut of_type = Vec::new();
        let mut segments = Vec::new();
        if cursor.eat_pair(b':', b':') {
            segments.push(String::new());
        }
        loop {
            let Some(name) = cursor.any_ident() else {
                if names.is_empty() {
                    return Ty::Unknown;
                }
                break;
            };
            names.push(name);
            segments.push(name.text.to_owned());
            let read = read_turbofish(cursor);
            if !cursor.eat_pair(b':', b':') {
                generic = read;
                break;
            }
            of_type = read;
        }
        let Some(name) = names.last().copied() else {
            return Ty::Unknown;
        };
        if cursor.is_punct(b'!') && !cursor.is_pair(b'!', b'=') {
            cursor.skip();
            let values = cursor.any_group().map(|inner| self.arguments(inner));
            // For our purposes, these macros return their argument.
            let is_value = matches!(name.text, "vec" | "pin" | "ready" | "dbg");
            let first = values.unwrap_or_default().into_iter().next();
            return first.filter(|_| is_value).unwrap_or_default();
        }
        let variable = (segments.len() == 1).then(|| self.variable(name.text)).flatten();
        if let Some(inner) = cursor.group(Delimiter::Paren) {
            if let Some(called) = variable {
                let args = self.arguments(inner);
                return match called {
                    Ty::Closure(_, result) => *result,
                    Ty::Function(id) => self.functions.call(id, &[], &args),
                    _ => {
                        self.note_passed(&args, name.span, name.text);
                        Ty::Unknown
                    }
                };
            }
            let generic: Vec<Ty> = generic.iter().map(|ty| self.read_type(ty)).collect();
            return self.function_call(&segments, &of_type, &generic, name, inner);
        }
        if let Some(value) = variable {
            return value;
        }
        // By convention, only types start with an upper-case letter.
        let is_type = name.text.starts_with(char::is_uppercase);
        if is_type && admits_struct && cursor.is_group(Delimiter::Brace) {
            if let Some(inner) = cursor.group(Delimiter::Brace) {
                self.struct_fields(inner);
            }
            return read_path(self.functions.package, &segments, &generic, self.scope, 0);
        }
        match find_function(self.functions.package, self.scope.module, &segments) {
            Some(FunctionTarget::Function(id)) => Ty::Function(id),
            Some(FunctionTarget::Of(owner, name)) => self
                .functions
                .of_type(&owner, &name)
                .map_or(Ty::Unknown, Ty::Function),
            _ => Ty::Unknown,
        }
    }

    fn variable(&self, name: &str) -> Option<Ty> {
        let mut variables = self.variables.iter().rev();
        variables
            .find(|(known, _)| known == name)
            .map(|(_, ty)| ty.clone())
    }

    fn struct_fields(&mut self, mut inner: Cursor<'_>) {
        while !inner.is_end() {
            inner.eat_pair(b'.', b'.');
            let mut ahead = inner;
            if ahead.any_ident().is_some() && ahead.is_punct(b':') && !ahead.is_pair(b':', b':') {
                ahead.eat(b':');
                inner = ahead;
            }
            self.expression(&mut inner, true);
            while !inner.is_end() && !inner.eat(b',') {
                self.part(&mut inner);
            }
        }
    }

    /// Parses `<T as Trait>::name(…)`.
    fn qualified(&mut self, cursor: &mut Cursor<'_>) -> Ty {
        cursor.eat(b'<');
        let Ok(ty) = TypeRef::read(cursor) else {
            return Ty::Unknown;
        };
        let owner = self.read_type(&ty);
        if cursor.eat_word("as") {
            drop(TypeRef::read(cursor));
        }
        cursor.eat(b'>');
        cursor.eat_pair(b':', b':');
        let Some(name) = cursor.any_ident() else {
            return Ty::Unknown;
        };
        let generic = self.turbofish(cursor);
        match cursor.group(Delimiter::Paren) {
            Some(inner) => {
                let args = self.arguments(inner);
                self.associated(&owner, name, &generic, &args)
            }
            None => Ty::Unknown,
        }
    }
}

fn has_comma(mut cursor: Cursor<'_>) -> bool {
    while !cursor.is_end() {
        if cursor.is_punct(b',') {
            return true;
        }
        cursor.skip();
    }
    false
}

fn is_item(cursor: Cursor<'_>) -> bool {
    ["use", "fn", "struct", "enum", "impl", "trait", "type", "mod"]
        .iter()
        .any(|word| cursor.is_word(word))
}

fn is_end_of_let(cursor: Cursor<'_>) -> bool {
    cursor.is_punct(b'=') || cursor.is_punct(b';') || cursor.is_punct(b':') && !cursor.is_pair(b':', b':')
}

fn is_end_of_parameter(cursor: Cursor<'_>) -> bool {
    cursor.is_punct(b',') || cursor.is_punct(b'|') || cursor.is_punct(b':') && !cursor.is_pair(b':', b':')
}

/// Reads `::<A, B>` if it comes next, without lifetimes and `_`.
fn read_turbofish(cursor: &mut Cursor<'_>) -> Vec<TypeRef> {
    let mut ahead = *cursor;
    if !(ahead.eat_pair(b':', b':') && ahead.eat(b'<')) {
        return Vec::new();
    }
    let mut types = Vec::new();
    while !ahead.is_end() && !ahead.eat(b'>') {
        match TypeRef::read(&mut ahead) {
            Ok(ty) => types.push(ty),
            Err(_) => ahead.skip(),
        }
        ahead.eat(b',');
    }
    *cursor = ahead;
    types
}
