//! A request of any driver as it travels: of this process, or written down by another.

use backout_model::ports::Request;
use backout_model::{DriverName, JsonText};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Engine, EngineError};

/// What is to be written, for the driver that it names.
#[derive(Debug)]
pub enum WriteRequest {
    /// As the type that the driver knows.
    Typed(Box<dyn Request>),
    /// As text, which the driver has to read first.
    Text(RequestText),
}

/// A request in the words of its driver, which reads them again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RequestText {
    /// Who understands it.
    pub driver: DriverName,
    /// What is asked, in the driver's own words.
    pub request: JsonText,
}

impl<R: Request> From<R> for WriteRequest {
    fn from(request: R) -> Self {
        Self::Typed(Box::new(request))
    }
}

impl WriteRequest {
    /// Names the driver that it is for.
    pub fn driver(&self) -> DriverName {
        match self {
            Self::Typed(request) => request.driver(),
            Self::Text(text) => text.driver.clone(),
        }
    }
}

impl Serialize for WriteRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            Self::Typed(request) => RequestText {
                driver: request.driver(),
                request: request.as_text().map_err(S::Error::custom)?,
            }
            .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for WriteRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RequestText::deserialize(deserializer).map(Self::Text)
    }
}

impl Engine {
    /// Gives a request as the type that its driver knows.
    pub(crate) fn typed(&self, request: WriteRequest) -> Result<Box<dyn Request>, EngineError> {
        match request {
            WriteRequest::Typed(request) => Ok(request),
            WriteRequest::Text(text) => {
                Ok(self.driver(&text.driver)?.read_request(&text.request)?)
            }
        }
    }
}
