//! Where a call goes, and the target that this is.

use backout_model::{Key, OperationId, Reach, Target};
use ureq::http::Uri;

use super::error::HttpError;
use super::secrets::is_secret_name;
use crate::secret::{named_variable, variable};

/// A URL, taken apart. What it is made of may have `${env:NAME}` in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// `http` or `https`.
    pub scheme: String,
    /// The host and the port.
    pub host: String,
    /// The path, with a slash first, and the query.
    pub path: String,
}

impl Address {
    /// Takes a URL apart. A variable at its beginning is looked up: it says where the service is.
    pub fn of(url: &str) -> Result<Self, HttpError> {
        let url = &with_base(url)?;
        let bad = |what: &str| HttpError::BadRequest(format!("`{url}` {what}"));
        let (scheme, rest) = url
            .split_once("://")
            .filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
            .ok_or_else(|| bad("is no URL that begins with http:// or https://"))?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(end);
        if host.contains('@') {
            let place = "the user name in the URL".to_owned();
            return Err(HttpError::Secret { place });
        }
        if host.is_empty() || path.contains('#') {
            return Err(bad("has no host, or a fragment"));
        }
        check_query(path)?;
        let plain = format!("{scheme}://{host}/");
        plain.parse::<Uri>().map_err(|_| bad("has no good host"))?;
        let usual = if scheme == "https" { 443 } else { 80 };
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| {
            !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
        });
        let host = host.to_ascii_lowercase();
        let host = if has_port {
            host
        } else {
            format!("{host}:{usual}")
        };
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self {
            scheme: scheme.to_owned(),
            host,
            path: format!("{slash}{path}"),
        })
    }

    /// Gives it as patterns are compared with it: without the usual port.
    pub fn url(&self) -> String {
        let usual = if self.scheme == "https" {
            ":443"
        } else {
            ":80"
        };
        let host = self.host.strip_suffix(usual).unwrap_or(&self.host);
        format!("{}://{host}{}", self.scheme, self.path)
    }

    /// Names the target. What a call makes has no name yet: it gets the operation's.
    pub fn target(&self, new: Option<OperationId>) -> Result<Target, HttpError> {
        let (path, query) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let mut names: Vec<String> = path
            .split('/')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        names.extend(new.map(|id| format!("({})", id.short())));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let bad = |error: backout_model::KeyError| HttpError::BadRequest(error.to_string());
        let mut key = Key::in_space(&format!("http:{}", self.host), &names).map_err(bad)?;
        // What a query picks is a part of what is at the path: who writes the one writes the other.
        if !query.is_empty() && new.is_none() {
            key = key.part(&format!("?{query}")).map_err(bad)?;
        }
        Ok(Target::new(key, Reach::Node))
    }
}

/// Looks up the variable that a URL begins with.
fn with_base(url: &str) -> Result<String, HttpError> {
    let Some((name, rest)) = named_variable(url) else {
        return Ok(url.to_owned());
    };
    let missing = || backout_model::compensation::TemplateError::NoVariable {
        name: name.to_owned(),
    };
    let base = variable(name).ok_or_else(missing)?;
    Ok(format!("{base}{rest}"))
}

/// Refuses a token in the query that is written out.
fn check_query(path: &str) -> Result<(), HttpError> {
    let (_, query) = path.split_once('?').unwrap_or((path, ""));
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if is_secret_name(name) && !value.is_empty() && !value.contains("${env:") {
            let place = format!("`{name}` in the URL");
            return Err(HttpError::Secret { place });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_host_port_and_path() {
        let address = Address::of("https://API.local/v1/users/7").expect("it is one");
        assert_eq!(address.host, "api.local:443");
        assert_eq!(address.url(), "https://api.local/v1/users/7");
        let target = address.target(None).expect("it is a target");
        assert_eq!(target.to_string(), "http:api.local:443/v1/users/7");
        assert_eq!(
            Address::of("http://h:81").expect("it is one").url(),
            "http://h:81/"
        );
    }

    #[test]
    fn what_a_query_picks_is_a_part_of_what_is_at_the_path() {
        let target = |url| Address::of(url).and_then(|it| it.target(None));
        let target = |url| target(url).expect("it is a target");
        let whole = target("http://h/cust/43");
        let (one, other) = (
            target("http://h/cust/43?x=1"),
            target("http://h/cust/43?x=2"),
        );
        assert!(whole.overlap(&one).is_some());
        assert!(one.overlap(&other).is_none());
        assert!(whole.overlap(&target("http://h/cust/44")).is_none());
    }

    #[test]
    fn credentials_and_what_is_no_url_are_refused() {
        for url in [
            "http://u:p@h/",
            "http://h/?token=abc",
            "http://h/?a=1&api_key=x",
        ] {
            let error = Address::of(url).expect_err("it holds a secret");
            assert!(matches!(error, HttpError::Secret { .. }), "{url}");
        }
        Address::of("http://h/?token=${env:TOKEN}").expect("a variable is no secret");
        for url in [
            "",
            "h/x",
            "ftp://h/",
            "http:///x",
            "http://h/#x",
            "http://a b/",
        ] {
            let error = Address::of(url).expect_err("it is no URL");
            assert!(matches!(error, HttpError::BadRequest(_)), "{url}");
        }
    }
}
