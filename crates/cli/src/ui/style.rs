//! The few colours there are. Each says something that the words say too.

use anstyle::{AnsiColor, Style};

/// Nothing special.
pub(crate) const PLAIN: Style = Style::new();
/// What a line is about.
pub(crate) const BOLD: Style = Style::new().bold();
/// What can be skipped.
pub(crate) const DIM: Style = Style::new().dimmed();
/// What can be typed: ids, commands.
pub(crate) const ACCENT: Style = AnsiColor::Cyan.on_default();
/// In effect, restored, as it should be.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Worth a look.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
/// Wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// Puts a text in a style; the stream takes it out again where there is no colour.
pub(crate) fn paint(style: Style, text: &str) -> String {
    if text.is_empty() || style == PLAIN {
        text.to_owned()
    } else {
        format!("{style}{text}{style:#}")
    }
}
