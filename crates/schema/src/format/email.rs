//! `email`: whatever Go's `mail.ParseAddress` accepts.

use std::net::IpAddr;

/// A single address: bare, with a name (`Jane <jane@example.com>`), or in a group of one
/// (`staff: jane@example.com;`). Returns `None` for encoded words, which aren't implemented.
pub(super) fn is_email(text: &str) -> Option<bool> {
    if text.contains("=?") {
        return None;
    }
    let mut reader = Reader(text);
    let count = reader.read_address_or_group();
    Some(count == Some(1) && reader.skip_comments().is_some() && reader.0.is_empty())
}

/// The rest of the string. Each method consumes the part that it recognizes.
struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn take(&mut self, expected: char) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    /// Returns the number of addresses.
    fn read_address_or_group(&mut self) -> Option<usize> {
        let start = self.0;
        if self.read_address().is_some() {
            return Some(1);
        }
        self.0 = start;
        self.skip_space();
        self.read_phrase()?;
        self.skip_space();
        self.take(':')?;
        self.skip_space();
        let mut count = 0;
        if self.take(';').is_some() {
            return Some(count);
        }
        loop {
            self.read_address()?;
            count += 1;
            self.skip_comments()?;
            if self.take(';').is_some() {
                return Some(count);
            }
            self.take(',')?;
        }
    }

    fn read_address(&mut self) -> Option<()> {
        self.skip_space();
        let start = self.0;
        if self.read_bare_address().is_some() {
            return Some(());
        }
        self.0 = start;
        if !self.0.starts_with('<') {
            self.read_phrase()?;
        }
        self.skip_space();
        self.take('<')?;
        self.read_bare_address()?;
        self.take('>')
    }

    fn read_bare_address(&mut self) -> Option<()> {
        self.skip_space();
        if self.0.starts_with('"') {
            // The local part can't be an empty pair of quotes.
            if self.read_quoted()? == 0 {
                return None;
            }
        } else {
            self.read_dotted_atom()?;
        }
        self.take('@')?;
        self.skip_space();
        match self.take('[') {
            Some(()) => self.read_domain_literal(),
            None => self.read_dotted_atom(),
        }
    }

    /// Reads an IP address after its opening bracket.
    fn read_domain_literal(&mut self) -> Option<()> {
        let (address, rest) = self.0.split_once(']')?;
        self.0 = rest;
        address.parse::<IpAddr>().ok().map(drop)
    }

    fn read_dotted_atom(&mut self) -> Option<()> {
        let atom = self.read_atom()?;
        let is_dotted = !atom.starts_with('.') && !atom.ends_with('.') && !atom.contains("..");
        is_dotted.then_some(())
    }

    fn read_atom(&mut self) -> Option<&str> {
        let end = self.0.find(|c| !is_atom(c)).unwrap_or(self.0.len());
        let (atom, rest) = self.0.split_at(end);
        self.0 = rest;
        (!atom.is_empty()).then_some(atom)
    }

    fn read_quoted(&mut self) -> Option<usize> {
        let mut rest = self.0.strip_prefix('"')?.chars();
        let mut count = 0;
        loop {
            let c = match rest.next()? {
                '"' => break,
                '\\' => rest.next()?,
                c => c,
            };
            if !is_visible(c) && c != ' ' && c != '\t' {
                return None;
            }
            count += 1;
        }
        self.0 = rest.as_str();
        Some(count)
    }

    fn read_phrase(&mut self) -> Option<()> {
        let mut words = 0;
        loop {
            if words > 0 {
                self.skip_comments()?;
            }
            self.skip_space();
            let word = match self.0.starts_with('"') {
                true => self.read_quoted().map(drop),
                false => self.read_atom().map(drop),
            };
            if word.is_none() {
                return (words > 0).then_some(());
            }
            words += 1;
        }
    }

    fn skip_comments(&mut self) -> Option<()> {
        self.skip_space();
        while self.take('(').is_some() {
            let mut depth = 1;
            while depth > 0 {
                let mut rest = self.0.chars();
                match rest.next()? {
                    '\\' => drop(rest.next()),
                    '(' => depth += 1,
                    ')' => depth -= 1,
                    _ => {}
                }
                self.0 = rest.as_str();
            }
            self.skip_space();
        }
        Some(())
    }
}

fn is_visible(c: char) -> bool {
    ('!'..='~').contains(&c) || !c.is_ascii()
}

fn is_atom(c: char) -> bool {
    is_visible(c) && !"()<>[]:;@\\,\"".contains(c)
}
