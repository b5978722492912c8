//! What a client sends over a pipe, line by line, none longer than a limit.
//!
//! A line that is too long is not kept, and the client is told: in its place comes a request of the same id that the server refuses.
//! Without that the client would wait for ever.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

/// A longer line is not read.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 20;

/// The method that stands for a request that was too large.
pub(crate) const TOO_LARGE: &str = "backout/too-large";

/// How much of both ends of a line is looked through for its id.
const ENDS_BYTES: usize = 512;

/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// Passes a stream on, without lines that are too long.
pub(crate) fn bounded(mut from: impl AsyncRead + Unpin + Send + 'static) -> DuplexStream {
    let (mut to, reads) = duplex(PIECE);
    tokio::spawn(async move {
        let mut line = Line::default();
        let mut piece = vec![0; PIECE];
        while let Ok(count @ 1..) = from.read(&mut piece).await {
            let passed = line.pass(piece.get(..count).unwrap_or_default());
            if to.write_all(&passed).await.is_err() {
                return;
            }
        }
    });
    reads
}

/// The line that is being read.
#[derive(Debug, Default)]
struct Line {
    /// What there is of it so far.
    kept: Vec<u8>,
    /// Its last bytes, once it is too long.
    end: Option<Vec<u8>>,
}

impl Line {
    /// Takes some bytes and gives the lines that are whole.
    fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut passed = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.add(part);
            if part.ends_with(b"\n") {
                passed.extend(self.take());
            }
        }
        passed
    }

    fn add(&mut self, part: &[u8]) {
        if self.end.is_none() && self.kept.len() + part.len() > LINE_BYTES_MAX {
            let tail = self.kept.len().saturating_sub(ENDS_BYTES);
            self.end = Some(self.kept.split_off(tail));
            self.kept.truncate(ENDS_BYTES);
            self.kept.shrink_to_fit();
        }
        match &mut self.end {
            None => self.kept.extend(part),
            Some(end) => {
                end.extend(part);
                let over = end.len().saturating_sub(ENDS_BYTES);
                end.drain(..over);
            }
        }
    }

    fn take(&mut self) -> Vec<u8> {
        let kept = std::mem::take(&mut self.kept);
        let Some(end) = self.end.take() else {
            return kept;
        };
        let id = id_in(&end).or_else(|| id_in(&kept));
        let id = id
            .map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{TOO_LARGE}\"}}\n"));
        id.unwrap_or_default().into_bytes()
    }
}

/// Finds the id of a request in a piece of it: a number, or a text without anything odd in it.
fn id_in(piece: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(piece);
    let at = text.rfind("\"id\"")?;
    let rest = text
        .get(at + 4..)?
        .trim_start()
        .strip_prefix(':')?
        .trim_start();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    if !digits.is_empty() {
        return Some(digits);
    }
    let word = rest.strip_prefix('"')?;
    let word: String = word
        .chars()
        .take_while(|it| it.is_ascii_alphanumeric() || "-_".contains(*it))
        .collect();
    let is_whole = rest.get(word.len() + 1..)?.starts_with('"');
    (is_whole && !word.is_empty()).then(|| format!("\"{word}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_pass_whatever_the_pieces() {
        let mut line = Line::default();
        let mut passed = Vec::new();
        for byte in b"{\"a\":1}\n\n{}\nrest" {
            passed.extend(line.pass(&[*byte]));
        }
        assert_eq!(passed, b"{\"a\":1}\n\n{}\n");
        assert_eq!(line.pass(b"\nx\n"), b"rest\nx\n");
    }

    #[test]
    fn in_place_of_a_line_that_is_too_long_comes_a_request_that_is_refused() {
        let mut line = Line::default();
        let mut passed = line.pass(b"{\"params\":\"");
        for _ in 0..65 {
            passed.extend(line.pass(&vec![b'x'; 1 << 20]));
        }
        assert!(line.kept.len() <= ENDS_BYTES);
        passed.extend(line.pass(b"\",\"jsonrpc\":\"2.0\",\"id\": 7}\nnext\n"));
        let passed = String::from_utf8(passed).unwrap();
        assert_eq!(
            passed,
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"backout/too-large\"}\nnext\n"
        );
    }

    #[test]
    fn ids_are_numbers_or_plain_words() {
        assert_eq!(id_in(b"{\"id\":\"a-1\",").as_deref(), Some("\"a-1\""));
        assert_eq!(id_in(b"{\"id\" : 12}").as_deref(), Some("12"));
        assert_eq!(id_in(b"{\"id\":\"a\\\"b\"}"), None);
        assert_eq!(id_in(b"{}"), None);
    }
}
