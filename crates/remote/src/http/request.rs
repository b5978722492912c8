//! What somebody asks for: one call.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use backout_model::compensation::{Compensation, Reversibility, Template, WRITES};
use backout_model::ports::{DriverError, Request};
use backout_model::{DriverName, JsonText, Verb};
use serde::{Deserialize, Serialize};

use super::address::Address;
use super::client::Answer;
use super::error::HttpError;
use super::recipe::HTTP;
use super::secrets::{check_body, check_header};

/// How long one try of a call may take unless somebody says otherwise.
pub const TIMEOUT_MS: u64 = 30_000;

/// Where the answer of a call is put for whoever asked.
#[derive(Debug, Clone, Default)]
pub struct Heard(Arc<Mutex<Option<Answer>>>);

impl Heard {
    pub(super) fn put(&self, answer: &Answer) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer.clone());
    }

    /// Takes it, if there was one.
    pub fn take(&self) -> Option<Answer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Asks for a call. The URL, the headers and the body may have `${env:NAME}` in them, which is replaced when it is sent.
#[derive(Clone, Serialize, Deserialize)]
pub struct HttpRequest {
    /// Such as `DELETE`.
    pub method: String,
    /// Where to.
    pub url: String,
    /// Names and values.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// What is sent.
    #[serde(default)]
    pub body: Option<String>,
    /// How long one try may take.
    pub timeout_ms: u64,
    /// Whether it may be sent although nothing takes it back.
    #[serde(default)]
    pub irreversible: bool,
    /// What takes it back.
    #[serde(default)]
    pub compensation: Option<Compensation>,
    /// Where the answer is put.
    #[serde(skip)]
    pub heard: Heard,
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpRequest({} {})", self.method, self.url)
    }
}

impl HttpRequest {
    /// Says it in short.
    pub fn call(&self) -> String {
        format!("{} {}", self.method, self.url)
    }

    /// Refuses what makes no sense, and secrets that would be kept.
    pub fn check(&self) -> Result<Address, HttpError> {
        let address = Address::of(&self.url)?;
        let method = &self.method;
        if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            let what = format!("`{method}` is no method; one is like POST");
            return Err(HttpError::BadRequest(what));
        }
        Template::with_variables(&self.url)?;
        for (name, value) in &self.headers {
            check_header(name, value)?;
            Template::with_variables(value)?;
        }
        if let Some(body) = &self.body {
            check_body(body)?;
            Template::with_variables(body)?;
        }
        Ok(address)
    }

    /// Sends it, if it only looks. Nothing is recorded.
    pub fn look(&self) -> Result<Answer, HttpError> {
        self.check()?;
        super::send::look(self)
    }

    /// Tells whether it only looks.
    pub fn only_looks(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS")
    }

    /// Gives the rule that takes it back.
    pub(super) fn way_back(&self) -> Option<&Compensation> {
        let rule = self.compensation.as_ref()?;
        let is_way = rule.reversibility == Reversibility::Compensable
            && (rule.inverse.is_some() || rule.capture)
            && WRITES.contains(&self.method.as_str());
        is_way.then_some(rule)
    }
}

impl Request for HttpRequest {
    fn driver(&self) -> DriverName {
        HTTP
    }

    fn verb(&self) -> Verb {
        Verb::Write
    }

    fn summary(&self) -> String {
        self.call()
    }

    fn as_text(&self) -> Result<JsonText, DriverError> {
        Ok(JsonText::of(self)?)
    }
}
