//! A word of a command, as far as it is known before it runs.
//!
//! A fixed word stands for itself. An open word holds something that the shell fills in: then only the text
//! before that is known, and the question is whether the word could become a flag. A variable outside of quotes
//! can, wherever it stands, for its value may hold blanks: `a$X` may become `a -o b`.

/// What the shell fills in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Open {
    /// A parameter.
    Variable,
    /// The output of a command, or a number that is computed.
    Substitution,
    /// A pattern that becomes names of files.
    Glob,
    /// A list in braces.
    Brace,
    /// Text with escapes, which is not decoded here.
    Escapes,
    /// Words that a program adds from what it reads, as `xargs` does.
    Input,
}

impl Open {
    /// Says what it is, for a sentence.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Variable => "a variable",
            Self::Substitution => "a substitution",
            Self::Glob => "a pattern",
            Self::Brace => "a list in braces",
            Self::Escapes => "escaped text",
            Self::Input => "what is read",
        }
    }
}

/// A word of a command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Word {
    /// As it was written.
    pub(crate) raw: String,
    /// Its text without quotes, up to what the shell fills in.
    pub(crate) lead: String,
    /// What the shell fills in first, if anything.
    pub(crate) open: Option<Open>,
    /// Whether it may become several words.
    pub(crate) splits: bool,
}

impl Word {
    /// Makes a word that stands for itself.
    pub(crate) fn fixed(text: impl Into<String>) -> Self {
        let lead = text.into();
        Self {
            raw: lead.clone(),
            lead,
            open: None,
            splits: false,
        }
    }

    /// Makes the words that a program adds from what it reads.
    pub(crate) fn input() -> Self {
        Self {
            raw: "…".to_owned(),
            lead: String::new(),
            open: Some(Open::Input),
            splits: true,
        }
    }

    /// Gives the text of a fixed word.
    pub(crate) fn text(&self) -> Option<&str> {
        self.open.is_none().then_some(self.lead.as_str())
    }

    /// Tells whether it is this very text.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.text() == Some(text)
    }

    /// Tells what could make it a flag that cannot be seen.
    pub(crate) fn may_become_flag(&self) -> Option<Open> {
        self.open
            .filter(|_| self.splits || self.lead.is_empty() || self.lead.starts_with('-'))
    }
}
