//! What contents are made of, for the stores in memory: as they are, or as a change of others.

use std::io::Read;

use backout_model::Digest;
use backout_model::ports::{ContentsError, ReadContents};
use backout_model::reversal::{Form, Made, Pieces, follow};

/// Finds out what a content is made of, by what each content is.
pub(crate) fn made<E: ToString>(
    digest: &Digest,
    outside: Option<&Digest>,
    form: impl Fn(&Digest) -> Result<Form, E>,
) -> Result<Made, ContentsError> {
    let damaged = |detail: String| ContentsError::Damaged {
        digest: *digest,
        detail,
    };
    let form = |at: &Digest| form(at).map_err(|error| error.to_string());
    let made = follow(digest, outside, form).map_err(damaged)?;
    made.map_err(|error| damaged(error.to_string()))
}

/// Lists the contents that would do, of which none is in the store.
pub(crate) fn outside(digest: &Digest, made: Made) -> Result<Vec<Digest>, ContentsError> {
    match made {
        Made::Outside(any) => Ok(std::iter::once(*digest).chain(any).collect()),
        Made::Missing => Err(ContentsError::Missing { digest: *digest }),
        Made::Whole | Made::Of { .. } => Ok(Vec::new()),
    }
}

/// Opens a content that is made from one that is read elsewhere.
pub(crate) fn open_over(
    contents: &dyn ReadContents,
    digest: &Digest,
    made: Made,
    from: Box<dyn Read + Send>,
) -> Result<Box<dyn Read + Send>, ContentsError> {
    match made {
        Made::Of {
            pieces,
            is_outside: true,
            ..
        } => Ok(Box::new(pieces.reader(from, *digest))),
        Made::Whole | Made::Of { .. } | Made::Outside(_) | Made::Missing => contents.open(digest),
    }
}

/// Makes a content from what it is a change of.
pub(crate) fn older(
    digest: &Digest,
    pieces: Pieces,
    newer: &[u8],
) -> Result<Vec<u8>, ContentsError> {
    let mut older = Vec::new();
    let read = pieces.reader(newer, *digest).read_to_end(&mut older);
    read.map(|_| older).map_err(|error| ContentsError::Damaged {
        digest: *digest,
        detail: error.to_string(),
    })
}
