//! Redirections: which of them write, and what a command finds on its standard input.

use brush_parser::ast::{IoFileRedirectKind, IoFileRedirectTarget, IoHereDocument, IoRedirect};

use crate::scan;
use crate::source::{Source, ends_early, is_plain_delimiter};
use crate::verdict::Finding;
use crate::walk::Walk;
use crate::word::Word;

/// Places where what is written leaves no trace.
const SINKS: [&str; 4] = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"];

/// What a command finds on its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stdin {
    /// What its parent has.
    Inherited,
    /// The output of another command, or a file: not known here.
    Piped,
    /// A text that stands in the line.
    Text(String),
}

/// What a redirection comes to.
#[derive(Debug)]
pub(crate) struct Redirected {
    pub(crate) finding: Option<Finding>,
    pub(crate) stdin: Option<Stdin>,
}

/// Tells whether writing to this place leaves no trace.
pub(crate) fn is_sink(word: &Word) -> bool {
    word.text().is_some_and(|text| SINKS.contains(&text))
}

impl Walk {
    /// Judges a redirection and the commands inside it.
    pub(crate) fn redirect(&mut self, redirect: &IoRedirect, source: &Source) -> Redirected {
        let raw = redirect.to_string();
        let (finding, stdin) = match redirect {
            IoRedirect::File(_, kind, target) => self.file(kind, target, &raw, source),
            IoRedirect::OutputAndError(target, _) => {
                (self.written(&source.word(target), &raw), None)
            }
            IoRedirect::HereString(_, word) => match self.word(word, source) {
                Ok(word) => (None, Some(text_or_piped(word.text()))),
                Err(finding) => (Some(finding), Some(Stdin::Piped)),
            },
            IoRedirect::HereDocument(_, document) => self.document(document),
        };
        // Only what arrives at descriptor 0 is read as standard input.
        let is_elsewhere = matches!(
            redirect,
            IoRedirect::File(Some(1..), ..)
                | IoRedirect::HereDocument(Some(1..), _)
                | IoRedirect::HereString(Some(1..), _)
        );
        Redirected {
            finding,
            stdin: stdin.filter(|_| !is_elsewhere),
        }
    }

    fn document(&mut self, document: &IoHereDocument) -> (Option<Finding>, Option<Stdin>) {
        let (text, delimiter) = (&document.doc.value, &document.here_end.value);
        if !is_plain_delimiter(delimiter)
            || (document.requires_expansion && ends_early(text, delimiter))
        {
            let why = "the end of a here-document is not understood";
            return (Some(Finding::unknown(why, delimiter)), Some(Stdin::Piped));
        }
        if !document.requires_expansion {
            return (None, Some(text_or_piped(Some(text))));
        }
        self.inside(text, scan::body);
        // If the scan failed, that is a finding already.
        let text = scan::body(text).ok().map(|scanned| scanned.word);
        (
            None,
            Some(text_or_piped(text.as_ref().and_then(Word::text))),
        )
    }

    fn file(
        &mut self,
        kind: &IoFileRedirectKind,
        target: &IoFileRedirectTarget,
        raw: &str,
        source: &Source,
    ) -> (Option<Finding>, Option<Stdin>) {
        let word = match target {
            IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => {
                &source.word(word)
            }
            IoFileRedirectTarget::Fd(_) => return (None, None),
            IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                self.list(&subshell.list, source);
                return (None, Some(Stdin::Piped));
            }
        };
        match kind {
            IoFileRedirectKind::Read => (self.read_from(word), Some(Stdin::Piped)),
            IoFileRedirectKind::DuplicateInput => (self.duplicated(word, raw), Some(Stdin::Piped)),
            IoFileRedirectKind::DuplicateOutput => (self.duplicated(word, raw), None),
            IoFileRedirectKind::Write
            | IoFileRedirectKind::Append
            | IoFileRedirectKind::ReadAndWrite
            | IoFileRedirectKind::Clobber => (self.written(word, raw), None),
        }
    }

    fn read_from(&mut self, raw: &str) -> Option<Finding> {
        match self.raw_word(raw) {
            Ok(word)
                if word.lead.starts_with("/dev/tcp/") || word.lead.starts_with("/dev/udp/") =>
            {
                Some(Finding::unknown("it talks to the network", raw))
            }
            Ok(_) => None,
            Err(finding) => Some(finding),
        }
    }

    fn written(&mut self, target: &str, raw: &str) -> Option<Finding> {
        match self.raw_word(target) {
            Ok(word) if is_sink(&word) => None,
            Ok(_) => Some(Finding::writes(format!("`{raw}` writes a file"), raw)),
            Err(finding) => {
                Some(Finding::writes(format!("`{raw}` writes a file"), raw).or_worse(finding))
            }
        }
    }

    fn duplicated(&mut self, target: &str, raw: &str) -> Option<Finding> {
        match self.raw_word(target) {
            Ok(word) => match word.text() {
                Some(text) if is_descriptor(text) => None,
                Some(_) if is_sink(&word) => None,
                Some(_) => Some(Finding::writes(format!("`{raw}` writes a file"), raw)),
                None => {
                    let why = format!("`{raw}` may name a file");
                    Some(Finding::unknown(why, raw))
                }
            },
            Err(finding) => Some(finding),
        }
    }
}

fn is_descriptor(text: &str) -> bool {
    let digits = text.strip_suffix('-').unwrap_or(text);
    text == "-" || (!digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit()))
}

fn text_or_piped(text: Option<&str>) -> Stdin {
    text.map_or(Stdin::Piped, |text| Stdin::Text(text.to_owned()))
}
