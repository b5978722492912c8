//! Expressions: whether they could be evaluated, not to what.

use super::Reader;
use crate::syntax::fault::Fault;

/// Operators between two values, the longer ones first.
const OPERATORS: [&str; 13] = [
    "==", "!=", "<=", ">=", "&&", "||", "+", "-", "*", "/", "%", "<", ">",
];

impl Reader<'_> {
    /// Reads an expression. Inside of brackets it may go over lines.
    pub(super) fn expression(&mut self, over_lines: bool) -> Result<(), Fault> {
        self.enter()?;
        loop {
            self.skip(over_lines)?;
            while matches!(self.cursor.peek(), Some(b'!' | b'-')) {
                self.cursor.bump();
                self.skip(over_lines)?;
            }
            self.term(over_lines)?;
            self.skip(over_lines)?;
            if OPERATORS.iter().any(|operator| self.cursor.eat(operator)) {
                continue;
            }
            if self.cursor.eat("?") {
                self.expression(over_lines)?;
                self.skip(over_lines)?;
                if !self.cursor.eat(":") {
                    return Err(self
                        .needs("`:`")
                        .mended_by("write `condition ? one : other`"));
                }
                continue;
            }
            self.depth -= 1;
            return Ok(());
        }
    }

    fn term(&mut self, over_lines: bool) -> Result<(), Fault> {
        let at = self.cursor.at();
        match self.cursor.peek() {
            Some(b'"') => self.string()?,
            Some(b'<') if self.cursor.sees("<<") => self.heredoc()?,
            Some(b'0'..=b'9') => self.number()?,
            Some(b'(') => {
                self.cursor.bump();
                self.expression(true)?;
                self.close(at, "(", ")")?;
            }
            Some(b'[') => self.tuple()?,
            Some(b'{') => self.object()?,
            _ if self.identifier().is_some() => {
                while self.cursor.eat("::") {
                    self.identifier().ok_or_else(|| self.needs("a name"))?;
                }
                if self.cursor.peek() == Some(b'(') {
                    self.call()?;
                }
            }
            _ => return Err(self.needs("a value")),
        }
        self.access(over_lines)
    }

    fn number(&mut self) -> Result<(), Fault> {
        let at = self.cursor.at();
        let raw = self
            .cursor
            .take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
        let raw = match self.cursor.peek() {
            Some(b'+' | b'-') if raw.ends_with(['e', 'E']) => {
                self.cursor.bump();
                self.cursor.take_while(|byte| byte.is_ascii_digit());
                self.cursor.since(at)
            }
            _ => raw,
        };
        let is_number = raw.parse::<f64>().is_ok() && !raw.ends_with('.');
        if is_number {
            return Ok(());
        }
        Err(Fault::new(
            at,
            format!("{} is no number", crate::syntax::fault::quote(raw)),
        )
        .mended_by("put a text in double quotes"))
    }

    /// Reads `.name`, `.0`, `.*`, `[…]` behind a value.
    fn access(&mut self, over_lines: bool) -> Result<(), Fault> {
        loop {
            let here = self.cursor.clone();
            if over_lines {
                self.skip(true)?;
            }
            match self.cursor.peek() {
                Some(b'.') if !self.cursor.sees("...") => {
                    self.cursor.bump();
                    let is_index = self.cursor.eat("*")
                        || !self
                            .cursor
                            .take_while(|byte| byte.is_ascii_digit())
                            .is_empty();
                    if !is_index && self.identifier().is_none() {
                        return Err(self.needs("the name of an attribute"));
                    }
                }
                Some(b'[') => {
                    let at = self.cursor.at();
                    self.cursor.bump();
                    self.skip(true)?;
                    if self.cursor.sees("*") {
                        self.cursor.bump();
                    } else {
                        self.expression(true)?;
                    }
                    self.close(at, "[", "]")?;
                }
                _ => {
                    self.cursor = here;
                    return Ok(());
                }
            }
        }
    }

    fn call(&mut self) -> Result<(), Fault> {
        let at = self.cursor.at();
        self.cursor.bump();
        loop {
            self.skip(true)?;
            if self.cursor.eat(")") {
                return Ok(());
            }
            self.expression(true)?;
            self.skip(true)?;
            self.cursor.eat("...");
            self.skip(true)?;
            if !self.cursor.eat(",") {
                return self.close(at, "(", ")");
            }
        }
    }

    fn tuple(&mut self) -> Result<(), Fault> {
        let at = self.cursor.at();
        self.cursor.bump();
        if self.is_for()? {
            self.for_clause()?;
            self.expression(true)?;
            self.condition()?;
            return self.close(at, "[", "]");
        }
        loop {
            self.skip(true)?;
            if self.cursor.eat("]") {
                return Ok(());
            }
            self.expression(true)?;
            self.skip(true)?;
            if !self.cursor.eat(",") {
                return self.close(at, "[", "]");
            }
        }
    }

    fn object(&mut self) -> Result<(), Fault> {
        let at = self.cursor.at();
        self.cursor.bump();
        if self.is_for()? {
            self.for_clause()?;
            self.expression(true)?;
            self.skip(true)?;
            if !self.cursor.eat("=>") {
                return Err(self.needs("`=>`"));
            }
            self.expression(true)?;
            self.skip(true)?;
            self.cursor.eat("...");
            self.condition()?;
            return self.close(at, "{", "}");
        }
        loop {
            self.skip(true)?;
            if self.cursor.eat("}") {
                return Ok(());
            }
            if self.cursor.is_done() {
                return Err(Fault::unclosed(self.cursor.text(), at, "`{`", "}"));
            }
            self.expression(false)?;
            self.skip(false)?;
            let has_sign =
                self.cursor.eat(":") || (!self.cursor.sees("==") && self.cursor.eat("="));
            if !has_sign {
                return Err(self.needs("`=`").mended_by("write `key = value`"));
            }
            self.skip(false)?;
            self.expression(false)?;
            self.skip(false)?;
            match self.cursor.peek() {
                Some(b',') => {
                    self.cursor.bump();
                }
                Some(b'\n' | b'\r' | b'}') => {}
                None => return Err(Fault::unclosed(self.cursor.text(), at, "`{`", "}")),
                Some(_) => return Err(self.needs("`,`, a new line or `}`")),
            }
        }
    }

    /// Whether `for` begins what stands in the bracket.
    fn is_for(&mut self) -> Result<bool, Fault> {
        self.skip(true)?;
        let here = self.cursor.clone();
        let is_for = self.identifier() == Some("for")
            && self
                .cursor
                .peek()
                .is_some_and(|byte| byte.is_ascii_whitespace());
        if is_for {
            self.skip(true)?;
            // `for` may also be a key.
            let names_something = self.identifier().is_some();
            self.cursor = here;
            return Ok(names_something);
        }
        self.cursor = here;
        Ok(false)
    }

    /// Reads `for name, name in value :`.
    fn for_clause(&mut self) -> Result<(), Fault> {
        self.identifier();
        loop {
            self.skip(true)?;
            self.identifier().ok_or_else(|| self.needs("a name"))?;
            self.skip(true)?;
            if !self.cursor.eat(",") {
                break;
            }
        }
        if self.identifier() != Some("in") {
            return Err(self
                .needs("`in`")
                .mended_by("write `for name in values : …`"));
        }
        self.expression(true)?;
        self.skip(true)?;
        if !self.cursor.eat(":") {
            return Err(self
                .needs("`:`")
                .mended_by("write `for name in values : …`"));
        }
        Ok(())
    }

    fn condition(&mut self) -> Result<(), Fault> {
        self.skip(true)?;
        let here = self.cursor.clone();
        if self.identifier() == Some("if") {
            return self.expression(true);
        }
        self.cursor = here;
        Ok(())
    }

    fn close(&mut self, at: usize, opener: &str, closer: &str) -> Result<(), Fault> {
        self.skip(true)?;
        if self.cursor.eat(closer) {
            return Ok(());
        }
        if self.cursor.is_done() {
            let what = format!("`{opener}`");
            return Err(Fault::unclosed(self.cursor.text(), at, &what, closer));
        }
        let place = crate::Place::of(self.cursor.text(), at);
        Err(self.needs(&format!("`{closer}` for the `{opener}` of {place}")))
    }
}
