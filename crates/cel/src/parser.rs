//! Parses tokens into a tree and expands CEL's macros (see `macros`).

use std::ops::Range;

use super::Diagnostic;
use super::ast::{Expr, Kind, Literal};
use super::check::path;
use super::lexer::{self, Token};
use super::macros;
use super::nodes::{Nodes, too_large};

/// Nesting limit for brackets. The API server allows 250, but we need more stack per level.
const MAX_NESTING: usize = 100;

pub(crate) struct Parsed {
    pub(crate) root: Expr,
    pub(crate) nodes: usize,
    /// Warnings about syntax that older API servers don't accept.
    pub(crate) warnings: Vec<Diagnostic>,
}

pub(crate) fn parse_expression(text: &str) -> Result<Parsed> {
    let mut parser = Parser {
        tokens: lexer::read_tokens(text)?,
        end: text.len(),
        position: 0,
        depth: 0,
        nodes: Nodes::default(),
        warnings: Vec::new(),
    };
    let root = parser.expr()?;
    match parser.peek() {
        None => Ok(Parsed {
            root,
            nodes: parser.nodes.count(),
            warnings: parser.warnings,
        }),
        Some(_) => parser.unexpected("an operator or the end"),
    }
}

struct Parser {
    tokens: Vec<(Token, Range<usize>)>,
    end: usize,
    position: usize,
    depth: usize,
    nodes: Nodes,
    warnings: Vec<Diagnostic>,
}

type Result<T> = std::result::Result<T, Diagnostic>;

/// Binary operators by ascending precedence. All are left-associative.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["==", "!=", "<", "<=", ">", ">=", "in"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.position).map(|(token, _)| token)
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.peek(), Some(Token::Symbol(found)) if *found == symbol)
    }

    fn accept(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        self.position += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.accept(symbol) {
            return Ok(());
        }
        self.unexpected(&format!("`{symbol}`"))
    }

    fn here(&self) -> Range<usize> {
        self.tokens
            .get(self.position)
            .map_or(self.end..self.end, |(_, at)| at.clone())
    }

    fn since(&self, start: usize) -> Range<usize> {
        let end = self
            .position
            .checked_sub(1)
            .and_then(|last| self.tokens.get(last));
        start..end.map_or(start, |(_, at)| at.end.max(start))
    }

    fn unexpected<T>(&self, expected: &str) -> Result<T> {
        Err(Diagnostic::error(self.here(), format!("expected {expected}")))
    }

    fn expr(&mut self) -> Result<Expr> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(too_large(self.here()));
        }
        let start = self.here().start;
        let mut expr = self.binary(0)?;
        if self.accept("?") {
            let yes = self.binary(0)?;
            self.expect(":")?;
            let no = self.expr()?;
            expr = self.nodes.call(&self.since(start), "_?_:_", vec![expr, yes, no]);
        }
        self.depth -= 1;
        Ok(expr)
    }

    fn binary(&mut self, level: usize) -> Result<Expr> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let start = self.here().start;
        let mut left = self.binary(level + 1)?;
        while let Some(Token::Symbol(symbol)) = self.peek().cloned()
            && operators.contains(&symbol)
        {
            self.position += 1;
            let right = self.binary(level + 1)?;
            let function = match symbol {
                "in" => "@in".to_owned(),
                symbol => format!("_{symbol}_"),
            };
            let at = self.since(start);
            self.nodes.check_size(&at)?;
            left = self.nodes.call(&at, &function, vec![left, right]);
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr> {
        let start = self.here().start;
        for (symbol, function) in [("!", "!_"), ("-", "-_")] {
            let mut times = 0;
            while self.accept(symbol) {
                times += 1;
            }
            if times == 0 {
                continue;
            }
            // A sign belongs to the literal that follows, unless that's in parentheses.
            let is_literal = matches!(self.peek(), Some(Token::Literal(_)));
            let mut operand = self.member()?;
            if symbol == "-" && times == 1 && is_literal && self.negated(&mut operand) {
                return Ok(operand);
            }
            // Pairs of operators cancel out, as in cel-go.
            if times % 2 == 1 {
                operand = self.nodes.call(&self.since(start), function, vec![operand]);
            }
            return Ok(operand);
        }
        let expr = self.member()?;
        match expr.kind {
            Kind::Literal(Literal::Int(i64::MIN)) => Err(Diagnostic::error(
                expr.at,
                "number out of range: it has more than 64 bits",
            )),
            _ => Ok(expr),
        }
    }

    fn negated(&mut self, operand: &mut Expr) -> bool {
        match &mut operand.kind {
            Kind::Literal(Literal::Int(number)) => {
                *number = number.wrapping_neg();
                true
            }
            Kind::Literal(Literal::Double(number)) => {
                *number = -*number;
                true
            }
            _ => false,
        }
    }

    fn member(&mut self) -> Result<Expr> {
        let start = self.here().start;
        let mut expr = self.primary()?;
        loop {
            self.nodes.check_size(&self.since(start))?;
            if self.accept(".") {
                expr = self.after_dot(expr, start)?;
            } else if self.accept("[") {
                let function = if self.accept("?") { "_[?_]" } else { "_[_]" };
                let index = self.expr()?;
                self.expect("]")?;
                expr = self.nodes.call(&self.since(start), function, vec![expr, index]);
            } else if self.is("{")
                && let Some(name) = path(&expr)
            {
                self.position += 1;
                expr = self.message(name, start)?;
            } else {
                return Ok(expr);
            }
        }
    }

    fn after_dot(&mut self, operand: Expr, start: usize) -> Result<Expr> {
        let optional = self.accept("?");
        let at = self.here();
        let (field, is_quoted) = match self.peek().cloned() {
            Some(Token::Ident(name)) => (name, false),
            Some(Token::Escaped(name)) => {
                let help = rbuilder_schema::cel_name(&name).map(|name| format!("write `{name}`"));
                let warning =
                    Diagnostic::warning(at.clone(), "older API servers accept no names in backquotes");
                self.warnings.push(warning.maybe_help(help));
                (name, true)
            }
            Some(Token::Symbol("in")) | Some(Token::Literal(Literal::Bool(_) | Literal::Null)) => {
                return self.unexpected("a field name; write a reserved word between `__`, as in `__in__`");
            }
            _ => return self.unexpected("the name of a field or function"),
        };
        self.position += 1;
        if optional {
            let name = self.nodes.make(&at, Kind::Literal(Literal::String(field)));
            return Ok(self.nodes.call(&self.since(start), "_?._", vec![operand, name]));
        }
        // cel-go's grammar allows backquotes for fields, but not for functions.
        if !is_quoted && self.accept("(") {
            let args = self.exprs(")")?;
            let at = self.since(start);
            return macros::expand_method(operand, &field, args, &at, &mut self.nodes);
        }
        let kind = Kind::Select {
            operand: Box::new(operand),
            field,
            test: false,
        };
        Ok(self.nodes.make(&self.since(start), kind))
    }

    fn primary(&mut self) -> Result<Expr> {
        let at = self.here();
        let Some(token) = self.peek().cloned() else {
            return self.unexpected("an expression");
        };
        match token {
            Token::Literal(literal) => {
                self.position += 1;
                Ok(self.nodes.make(&at, Kind::Literal(literal)))
            }
            Token::Symbol("(") => {
                self.position += 1;
                let expr = self.expr()?;
                self.expect(")")?;
                Ok(expr)
            }
            Token::Symbol("[") => {
                self.position += 1;
                self.list(at.start)
            }
            Token::Symbol("{") => {
                self.position += 1;
                self.map(at.start)
            }
            Token::Symbol(".") => {
                self.position += 1;
                self.name(at.start)
            }
            Token::Ident(_) => self.name(at.start),
            _ => self.unexpected("an expression"),
        }
    }

    fn name(&mut self, start: usize) -> Result<Expr> {
        let at = self.here();
        let Some(Token::Ident(name)) = self.peek().cloned() else {
            return self.unexpected("a name");
        };
        self.position += 1;
        if rbuilder_schema::is_cel_word(&name) {
            let message = format!("`{name}` is a reserved word");
            return Err(Diagnostic::error(at, message));
        }
        if self.accept("(") {
            let args = self.exprs(")")?;
            return macros::expand_function(&name, args, &self.since(start), &mut self.nodes);
        }
        Ok(self.nodes.make(&at, Kind::Ident(name)))
    }

    /// Skips to the closing brace. The opening one was already consumed.
    fn message(&mut self, name: String, start: usize) -> Result<Expr> {
        let mut open = 1;
        while open > 0 {
            match self.peek() {
                None => return self.unexpected("`}`"),
                Some(Token::Symbol("{")) => open += 1,
                Some(Token::Symbol("}")) => open -= 1,
                Some(_) => {}
            }
            self.position += 1;
        }
        Ok(self.nodes.make(&self.since(start), Kind::Message(name)))
    }

    fn exprs(&mut self, close: &'static str) -> Result<Vec<Expr>> {
        let mut exprs = Vec::new();
        while !self.accept(close) {
            exprs.push(self.expr()?);
            if !self.is(close) {
                self.expect(",")?;
                if self.is(close) {
                    return self.unexpected("an expression");
                }
            }
        }
        Ok(exprs)
    }

    fn list(&mut self, start: usize) -> Result<Expr> {
        let mut items = Vec::new();
        while !self.accept("]") {
            let optional = self.accept("?");
            items.push((self.expr()?, optional));
            if !self.is("]") {
                self.expect(",")?;
            }
        }
        Ok(self.nodes.make(&self.since(start), Kind::List(items)))
    }

    fn map(&mut self, start: usize) -> Result<Expr> {
        let mut entries = Vec::new();
        while !self.accept("}") {
            let optional = self.accept("?");
            let key = self.expr()?;
            self.expect(":")?;
            entries.push((key, self.expr()?, optional));
            if !self.is("}") {
                self.expect(",")?;
            }
        }
        Ok(self.nodes.make(&self.since(start), Kind::Map(entries)))
    }
}
