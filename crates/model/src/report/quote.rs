//! Words as one would type them into a shell.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// Says a word as one would type it.
pub fn quoted(word: &OsStr) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./=:@%+,~".contains(letter);
    match word.to_str() {
        Some(text) if text.chars().all(is_plain) => text.to_owned(),
        Some(_) | None => literal(word),
    }
}

/// Says a word in quotes. What is no text, or would act on a terminal, is told byte by byte, as shells read it.
pub fn literal(word: &OsStr) -> String {
    let text = word.to_str();
    if let Some(text) = text.filter(|text| !text.chars().any(char::is_control)) {
        return format!("'{}'", text.replace('\'', "'\\''"));
    }
    format!("$'{}'", word.as_bytes().escape_ascii())
}
