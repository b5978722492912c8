//! Where a `$ref` leads that leads nowhere, so that the finding names the right one of several.

use jsonschema::{ReferencingError, uri};

/// Where a reference leads, and nothing is.
#[derive(Debug)]
pub(super) enum Leads {
    /// To a whole schema, by its address.
    To(String),
    /// Into a schema that is there, by what stands behind the `#`.
    Into(String),
    /// It is no address at all.
    Nowhere,
}

impl Leads {
    pub(super) fn of(error: &ReferencingError) -> Self {
        match error {
            ReferencingError::Unretrievable { uri, .. }
            | ReferencingError::CircularMetaschema { uri } => Self::To(uri.clone()),
            ReferencingError::UnknownSpecification { specification } => {
                Self::To(specification.clone())
            }
            ReferencingError::InvalidUri(_) => Self::Nowhere,
            ReferencingError::PointerToNowhere { pointer }
            | ReferencingError::InvalidPercentEncoding { pointer, .. }
            | ReferencingError::InvalidArrayIndex { pointer, .. } => Self::Into(pointer.clone()),
            ReferencingError::NoSuchAnchor { anchor }
            | ReferencingError::InvalidAnchor { anchor } => Self::Into(anchor.clone()),
        }
    }

    /// Tells whether a `$ref` leads there. An address may be told as a whole of which the `$ref` has only the end, and with what
    /// stands behind the `#` or without it.
    pub(super) fn is_meant_by(&self, reference: &str) -> bool {
        let (address, inside) = reference.split_once('#').unwrap_or((reference, ""));
        match self {
            Self::To(uri) => {
                let (whole, _) = uri.split_once('#').unwrap_or((uri, ""));
                !address.is_empty() && whole.ends_with(address)
            }
            Self::Into(place) => inside == place,
            Self::Nowhere => uri::from_str(address).is_err(),
        }
    }
}
