//! What a person or a program gets to see: the only module that prints.

#![allow(clippy::disallowed_methods)] // this is the module that prints

use std::io::{IsTerminal, Write};

/// Where output goes, and how it looks.
pub struct Shell {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    color: bool,
    interactive: bool,
    /// Whether standard output is for messages, and all else goes to standard error.
    for_messages: bool,
}

impl Shell {
    /// Standard output and standard error; colour only on a terminal, and not when `NO_COLOR` is set.
    pub fn standard() -> Shell {
        // Pipelines set this, and some give their steps a terminal at which nobody sits.
        let in_pipeline = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
        let asked_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Shell {
            color: !asked_plain && std::io::stdout().is_terminal() && std::io::stderr().is_terminal(),
            interactive: !in_pipeline && std::io::stdin().is_terminal() && std::io::stdout().is_terminal(),
            out: Box::new(std::io::stdout()),
            err: Box::new(std::io::stderr()),
            for_messages: false,
        }
    }

    /// A shell that writes elsewhere, plain and without questions: for tests.
    pub fn to(out: Box<dyn Write + Send>, err: Box<dyn Write + Send>) -> Shell {
        Shell {
            out,
            err,
            color: false,
            interactive: false,
            for_messages: false,
        }
    }

    /// Whether colour is wanted.
    pub fn color(&self) -> bool {
        self.color
    }

    /// Keeps standard output for messages to programs: from now on the product goes to standard error.
    pub fn keep_for_messages(&mut self) {
        self.for_messages = true;
    }

    /// What is said about the source.
    pub fn message(&mut self, text: &str) {
        let out = if self.for_messages {
            &mut self.out
        } else {
            &mut self.err
        };
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// The command's product.
    pub fn out(&mut self, text: &str) {
        if self.for_messages {
            return self.note(text);
        }
        // Nobody is left to tell when output is closed early, as by `head`.
        let _ = self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush());
    }

    /// What is said beside the product.
    pub fn note(&mut self, text: &str) {
        let _ = self
            .err
            .write_all(text.as_bytes())
            .and_then(|()| self.err.flush());
    }

    /// An error and its causes.
    pub fn error(&mut self, error: &anyhow::Error) {
        let word = self.paint("1;31", "error");
        self.note(&format!("{word}: {error:#}\n"));
    }

    /// A unified diff, coloured where there is colour.
    pub fn diff(&mut self, diff: &str) {
        if !self.color {
            return self.out(diff);
        }
        let painted: String = diff
            .split_inclusive('\n')
            .map(|line| {
                let code = match line.as_bytes() {
                    [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => "1",
                    [b'+', ..] => "32",
                    [b'-', ..] => "31",
                    [b'@', ..] => "36",
                    _ => return line.to_owned(),
                };
                let (content, end) = line
                    .strip_suffix('\n')
                    .map_or((line, ""), |content| (content, "\n"));
                format!("{}{end}", self.paint(code, content))
            })
            .collect();
        self.out(&painted);
    }

    /// Asks a yes-or-no question where somebody can answer; otherwise, and at the end of input, `default`.
    pub fn confirm(&mut self, question: &str, default: bool) -> bool {
        if !self.interactive {
            return default;
        }
        loop {
            self.note(&format!("{question} [{}] ", if default { "Y/n" } else { "y/N" }));
            let mut answer = String::new();
            if !matches!(std::io::stdin().read_line(&mut answer), Ok(1..)) {
                return default;
            }
            match answer.trim().to_lowercase().as_str() {
                "" => return default,
                "y" | "yes" => return true,
                "n" | "no" => return false,
                _ => self.note("please answer yes or no\n"),
            }
        }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.color {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
