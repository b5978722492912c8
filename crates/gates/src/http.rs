//! Just enough HTTP to ask a service whether it is well, and to tell a webhook: one request on one connection, plain text.
//!
//! Answers are cut at a size, and the whole exchange at a time. For TLS a command such as curl does it.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

/// More of an answer is not read.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    /// Host and port, as they stand in the URL.
    pub(crate) authority: String,
    host: String,
    port: u16,
    /// Path and query.
    pub(crate) path: String,
}

impl Url {
    /// Reads a URL. The error says what is wrong with it.
    pub(crate) fn read(written: &str) -> Result<Self, String> {
        if written.starts_with("https://") {
            return Err("https is not spoken here: use a `command` with curl".to_owned());
        }
        let wrong = || format!("`{written}` is no URL like \"http://127.0.0.1:8080/health\"");
        let rest = written.strip_prefix("http://").ok_or_else(wrong)?;
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        if authority.contains('@') {
            return Err("a URL here has no user and no password".to_owned());
        }
        let is_odd = |c: char| c.is_whitespace() || c.is_control();
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong())?)
            }
            _ => (authority, 80),
        };
        if host.is_empty() || written.contains(is_odd) {
            return Err(wrong());
        }
        Ok(Self {
            authority: authority.to_owned(),
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
            path: path.to_owned(),
        })
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    /// As the server said it, such as 200.
    pub(crate) status: u16,
    /// The body, cut at a size.
    pub(crate) body: String,
}

/// Asks for what is at a URL.
pub(crate) fn get(url: &Url, time_max: Duration) -> io::Result<Answer> {
    let head = format!(
        "GET {} HTTP/1.0\r\nHost: {}\r\nUser-Agent: backout\r\nConnection: close\r\n\r\n",
        url.path, url.authority
    );
    exchange(url, head.as_bytes(), time_max)
}

/// Sends a JSON text, with more lines for the head.
pub(crate) fn post(url: &Url, body: &str, lines: &str, time_max: Duration) -> io::Result<Answer> {
    let head = format!(
        "POST {} HTTP/1.0\r\nHost: {}\r\nUser-Agent: backout\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{lines}Connection: close\r\n\r\n{body}",
        url.path,
        url.authority,
        body.len()
    );
    exchange(url, head.as_bytes(), time_max)
}

fn exchange(url: &Url, request: &[u8], time_max: Duration) -> io::Result<Answer> {
    let deadline = Instant::now() + time_max;
    let left = || {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        Ok(left)
    };
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in (url.host.as_str(), url.port).to_socket_addrs()? {
        let mut stream = match TcpStream::connect_timeout(&address, left()?) {
            Ok(stream) => stream,
            Err(error) => {
                last = error;
                continue;
            }
        };
        stream.set_write_timeout(Some(left()?))?;
        stream.write_all(request)?;
        let mut answer = Vec::new();
        let mut piece = [0; 8192];
        loop {
            stream.set_read_timeout(Some(left()?))?;
            let count = match stream.read(&mut piece) {
                Ok(count) => count,
                // The system's word for it is that it would block.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(error) => return Err(error),
            };
            answer.extend(piece.get(..count).unwrap_or_default());
            if count == 0 || answer.len() as u64 >= ANSWER_BYTES_MAX {
                return parsed(&answer);
            }
        }
    }
    Err(last)
}

fn parsed(answer: &[u8]) -> io::Result<Answer> {
    let text = String::from_utf8_lossy(answer);
    let no_http = || io::Error::new(io::ErrorKind::InvalidData, "the answer is no HTTP");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let line = head.lines().next().unwrap_or_default();
    let status = line.strip_prefix("HTTP/").ok_or_else(no_http)?;
    let status = status.split(' ').nth(1).ok_or_else(no_http)?;
    Ok(Answer {
        status: status.parse().map_err(|_| no_http())?,
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn urls_are_read_or_refused_with_the_reason() {
        let url = Url::read("http://127.0.0.1:8080/health?x=1").unwrap();
        assert_eq!((url.host.as_str(), url.port), ("127.0.0.1", 8080));
        assert_eq!(url.path, "/health?x=1");
        let url = Url::read("http://[::1]:81").unwrap();
        assert_eq!((url.host.as_str(), url.port), ("::1", 81));
        assert_eq!(Url::read("http://localhost/").unwrap().port, 80);
        for (written, what) in [
            ("https://a/", "curl"),
            ("ftp://a/", "no URL"),
            ("http:///x", "no URL"),
            ("http://a:b/", "no URL"),
            ("http://u:p@a/", "no user"),
            ("http://a/\r\nX: y", "no URL"),
        ] {
            let error = Url::read(written).unwrap_err();
            assert!(error.contains(what), "{written}: {error}");
        }
    }

    /// Answers one connection with these bytes and gives what was asked.
    fn serve(answer: &'static [u8], stays: bool) -> (Url, std::thread::JoinHandle<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = vec![0; 4096];
            let count = stream.read(&mut asked).unwrap();
            asked.truncate(count);
            stream.write_all(answer).unwrap();
            if stays {
                // Until the other side gives up.
                let _gone = stream.read(&mut [0; 16]);
            }
            asked
        });
        (
            Url::read(&format!("http://127.0.0.1:{port}/h")).unwrap(),
            asked,
        )
    }

    #[test]
    fn an_answer_has_a_status_and_a_body() {
        let (url, asked) = serve(b"HTTP/1.1 503 No\r\nX: y\r\n\r\nnot now", false);
        let answer = get(&url, Duration::from_secs(10)).unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (503, "not now"));
        let asked = String::from_utf8(asked.join().unwrap()).unwrap();
        assert!(
            asked.starts_with("GET /h HTTP/1.0\r\nHost: 127.0.0.1:"),
            "{asked}"
        );
    }

    #[test]
    fn what_is_no_http_is_an_error_and_so_is_silence() {
        let (url, _asked) = serve(b"hello", false);
        let error = get(&url, Duration::from_secs(10)).unwrap_err();
        assert_eq!(error.to_string(), "the answer is no HTTP");
        let (url, _asked) = serve(b"", true);
        let error = get(&url, Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_json_text_is_sent_with_its_length() {
        let (url, asked) = serve(b"HTTP/1.0 204 Ok\r\n\r\n", false);
        let answer = post(&url, "{\"a\":1}", "X-Sign: s\r\n", Duration::from_secs(10)).unwrap();
        assert_eq!(answer.status, 204);
        let asked = String::from_utf8(asked.join().unwrap()).unwrap();
        assert!(
            asked.contains("Content-Length: 7\r\nX-Sign: s\r\n"),
            "{asked}"
        );
        assert!(asked.ends_with("\r\n\r\n{\"a\":1}"), "{asked}");
    }
}
