//! Prints field types as rustfmt formats them.

use super::WIDTH;

#[derive(Clone, Debug)]
pub(crate) struct TypeText {
    name: String,
    arguments: Vec<TypeText>,
}

impl TypeText {
    pub(crate) fn of(name: &str, arguments: Vec<TypeText>) -> TypeText {
        TypeText {
            name: name.to_owned(),
            arguments,
        }
    }

    fn one_line(&self) -> String {
        if self.arguments.is_empty() {
            return self.name.clone();
        }
        let arguments: Vec<_> = self.arguments.iter().map(TypeText::one_line).collect();
        format!("{}<{}>", self.name, arguments.join(", "))
    }

    /// Prints the type on as many lines as needed. The first one continues a line that ends at
    /// `column`.
    fn lines(&self, indent: usize, column: usize) -> String {
        let line = self.one_line();
        if column + line.len() < WIDTH || self.arguments.is_empty() {
            return line;
        }
        let margin = " ".repeat(indent + 4);
        let arguments = self.arguments.iter();
        let arguments: String = arguments
            .map(|argument| format!("{margin}{},\n", argument.lines(indent + 4, indent + 4)))
            .collect();
        format!("{}<\n{arguments}{}>", self.name, " ".repeat(indent))
    }
}

pub(crate) fn print_typed(name: &str, ty: &TypeText) -> String {
    const INDENT: usize = 4;
    let start = format!("{}{name}:", " ".repeat(INDENT));
    let line = ty.one_line();
    if start.len() + line.len() + 2 <= WIDTH {
        format!("{start} {line},\n")
    } else if INDENT + 4 + line.len() < WIDTH {
        format!("{start}\n{}{line},\n", " ".repeat(INDENT + 4))
    } else {
        format!("{start} {},\n", ty.lines(INDENT, start.len() + 1))
    }
}
