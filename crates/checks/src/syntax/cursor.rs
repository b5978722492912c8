//! A place in a text that moves on, for the readers that are written by hand.

/// Walks over a text by bytes. Everything that readers look for is ASCII, so that it never stops inside a character.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// The byte offset.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// The whole text.
    pub(super) const fn text(&self) -> &'t str {
        self.text
    }

    /// Goes to an offset, which was one of this cursor before.
    pub(super) fn go(&mut self, at: usize) {
        self.at = self.text.floor_char_boundary(at);
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The byte that many places ahead.
    pub(super) fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// The byte before this place.
    pub(super) fn before(&self) -> Option<u8> {
        let index = self.at.checked_sub(1)?;
        self.text.as_bytes().get(index).copied()
    }

    pub(super) fn is_done(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Takes one character.
    pub(super) fn bump(&mut self) -> Option<char> {
        if let Some(byte) = self.peek().filter(u8::is_ascii) {
            self.at += 1;
            return Some(char::from(byte));
        }
        let character = self.rest().chars().next()?;
        self.at += character.len_utf8();
        Some(character)
    }

    /// What is left.
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// What was read since an offset.
    pub(super) fn since(&self, start: usize) -> &'t str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    pub(super) fn sees(&self, wanted: &str) -> bool {
        self.text
            .as_bytes()
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(wanted.as_bytes()))
    }

    /// Takes a text if it stands here.
    pub(super) fn eat(&mut self, wanted: &str) -> bool {
        let sees = self.sees(wanted);
        if sees {
            self.at += wanted.len();
        }
        sees
    }

    /// Takes an ASCII character if it stands here.
    pub(super) fn eat_byte(&mut self, wanted: u8) -> bool {
        let sees = wanted.is_ascii() && self.peek() == Some(wanted);
        self.at += usize::from(sees);
        sees
    }

    /// Skips the bytes that are wanted. Of the bytes of one longer character all are wanted, or none.
    pub(super) fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|byte| !wanted(*byte));
        self.at += length.unwrap_or(rest.len());
        debug_assert!(self.text.is_char_boundary(self.at));
    }

    /// Takes the bytes that are wanted. A byte of a longer character is wanted or not as a whole.
    pub(super) fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'t str {
        let start = self.at;
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(|byte| wanted(*byte)) {
            self.at += 1;
        }
        self.at = self.text.ceil_char_boundary(self.at);
        self.since(start)
    }

    /// Takes blanks, but no line ends.
    pub(super) fn skip_blanks(&mut self) {
        self.take_while(|byte| matches!(byte, b' ' | b'\t'));
    }

    /// Takes blanks and line ends.
    pub(super) fn skip_space(&mut self) {
        self.take_while(|byte| byte.is_ascii_whitespace());
    }

    /// Takes everything up to the end of the line, which stays.
    pub(super) fn skip_line(&mut self) -> &'t str {
        self.take_while(|byte| byte != b'\n')
    }

    /// Takes everything up to and with a text. Without one, takes nothing.
    pub(super) fn skip_behind(&mut self, wanted: &str) -> Option<&'t str> {
        let rest = self.rest();
        let index = rest.find(wanted)?;
        self.at += index + wanted.len();
        rest.get(..index)
    }
}
