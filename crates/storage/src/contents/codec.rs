//! How one content is written down: as it is, compressed, or as the difference from a newer version.
//!
//! - Pure: bytes in, bytes out. Nothing here knows the database or a file.
//! - Whatever is decoded is compared with its digest, so wrong bytes never leave this module, and garbage is an
//!   error. The recorded size bounds the output before the first byte of it is made.
//! - A whole content is an ordinary zstd frame. A delta is a frame that refers to the newer version, without
//!   the four magic bytes and the size, which the row knows: fifty edits of a small file are fifty small frames.
//!   (`28 b5 2f fd` in front makes it readable for `zstd -d --patch-from`.) No frame carries zstd's own
//!   checksum, since the digest is the stronger one.

use backout_model::Digest;
use zstd::zstd_safe::{
    CCtx, CParameter, DCtx, DParameter, FrameFormat, compress_bound, get_error_name,
};

/// The largest content that one row may hold: what SQLite takes as one value.
pub(crate) const ROW_BYTES_MAX: u64 = 1_000_000_000;

/// Below this size nothing is gained by compressing.
const COMPRESSED_BYTES_MIN: usize = 32;

/// Up to this size a delta is made with the most patience, which then costs half a millisecond.
const PATIENT_BYTES_MAX: usize = 256 * 1024;

/// Up to this size compaction compresses a whole content again.
const POLISHED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How the bytes of a row are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they are.
    Raw,
    /// A zstd frame.
    Zstd,
    /// A zstd frame that refers to another content, a newer version.
    Delta,
    /// A list of chunks.
    Chunks,
    /// Pieces of another content, a newer version, which may be outside of the store.
    Reverse,
}

impl Form {
    /// Gives the number that the database knows.
    pub(crate) const fn to_sql(self) -> i64 {
        match self {
            Self::Raw => 0,
            Self::Zstd => 1,
            Self::Delta => 2,
            Self::Chunks => 3,
            Self::Reverse => 4,
        }
    }

    /// Reads the number that the database knows.
    pub(crate) fn from_sql(number: i64) -> Option<Self> {
        [
            Self::Raw,
            Self::Zstd,
            Self::Delta,
            Self::Chunks,
            Self::Reverse,
        ]
        .into_iter()
        .find(|form| form.to_sql() == number)
    }
}

/// How much time a smaller result is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Chunks of large contents, while somebody waits.
    Quick,
    /// Small contents, while somebody waits.
    Normal,
    /// Compaction.
    Best,
}

impl Effort {
    const fn level(self, size: usize) -> i32 {
        match self {
            Self::Quick => 1,
            Self::Best if size <= PATIENT_BYTES_MAX => 19,
            Self::Best if size <= POLISHED_BYTES_MAX => 9,
            Self::Normal | Self::Best => 3,
        }
    }
}

/// A content as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Encoded {
    pub(crate) form: Form,
    pub(crate) bytes: Vec<u8>,
}

/// Says why stored bytes are not the content they are meant to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Flaw {
    #[error("it is recorded with the impossible size of {size} bytes")]
    Size { size: u64 },
    #[error("there is not enough memory for {size} bytes")]
    Memory { size: u64 },
    #[error("it is {found} bytes long in place of {expected}")]
    Length { expected: u64, found: u64 },
    #[error("it cannot be decompressed ({reason})")]
    Frame { reason: &'static str },
    #[error("its bytes have another digest")]
    Digest,
    #[error("its form cannot stand alone")]
    Form,
}

/// Encodes a whole content, compressed if that makes it smaller.
pub(crate) fn encode(bytes: &[u8], effort: Effort) -> Encoded {
    encode_with(&mut Compressor::default(), bytes, effort)
}

/// What many contents are compressed with, one after the other, without making it anew for each.
pub(crate) struct Compressor(CCtx<'static>);

impl Default for Compressor {
    fn default() -> Self {
        Self(CCtx::create())
    }
}

/// Encodes one of many contents.
pub(crate) fn encode_with(compressor: &mut Compressor, bytes: &[u8], effort: Effort) -> Encoded {
    let compressed = if bytes.len() < COMPRESSED_BYTES_MIN {
        None
    } else {
        compress(&mut compressor.0, bytes, effort.level(bytes.len()))
    };
    match compressed.filter(|compressed| compressed.len() < bytes.len()) {
        Some(bytes) => Encoded {
            form: Form::Zstd,
            bytes,
        },
        None => Encoded {
            form: Form::Raw,
            bytes: bytes.to_vec(),
        },
    }
}

/// Tells whether compaction could still make a whole content of this size smaller.
pub(crate) const fn can_be_polished(size: u64) -> bool {
    size <= POLISHED_BYTES_MAX as u64
}

fn compress(context: &mut CCtx<'_>, bytes: &[u8], level: i32) -> Option<Vec<u8>> {
    context
        .set_parameter(CParameter::CompressionLevel(level))
        .ok()?;
    let mut out = Vec::with_capacity(compress_bound(bytes.len()));
    context.compress2(&mut out, bytes).ok()?;
    Some(out)
}

/// Encodes a content as its difference from `newer`; none if zstd cannot.
pub(crate) fn encode_delta(bytes: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
    let reach = bytes.len().checked_add(newer.len())?;
    let window = (usize::BITS - reach.leading_zeros()).clamp(10, 31);
    let mut context = CCtx::create();
    for parameter in [
        CParameter::Format(FrameFormat::Magicless),
        CParameter::ContentSizeFlag(false),
        CParameter::ChecksumFlag(false),
        CParameter::DictIdFlag(false),
        // With a smaller window, or without long-distance matching where the match finder's own tables do not
        // span both versions, the result is silently no delta at all.
        CParameter::WindowLog(window),
        CParameter::EnableLongDistanceMatching(reach > 2 * PATIENT_BYTES_MAX),
    ] {
        context.set_parameter(parameter).ok()?;
    }
    let level = if bytes.len() <= PATIENT_BYTES_MAX {
        15
    } else {
        3
    };
    context.ref_prefix(newer).ok()?;
    compress(&mut context, bytes, level)
}

/// Decodes a whole content and checks it.
pub(crate) fn decode(
    form: Form,
    stored: &[u8],
    size: u64,
    digest: &Digest,
) -> Result<Vec<u8>, Flaw> {
    let bytes = match form {
        Form::Raw => {
            check_length(size, stored.len())?;
            stored.to_vec()
        }
        Form::Zstd => decompress(&mut DCtx::create(), stored, size)?,
        Form::Delta | Form::Chunks | Form::Reverse => return Err(Flaw::Form),
    };
    checked(bytes, size, digest)
}

/// Decodes a delta against the newer version and checks the result.
pub(crate) fn decode_delta(
    stored: &[u8],
    newer: &[u8],
    size: u64,
    digest: &Digest,
) -> Result<Vec<u8>, Flaw> {
    let mut context = DCtx::create();
    context
        .set_parameter(DParameter::Format(FrameFormat::Magicless))
        .and_then(|_| context.ref_prefix(newer))
        .map_err(frame)?;
    checked(decompress(&mut context, stored, size)?, size, digest)
}

/// Decompresses what has no digest of its own, if it is no longer than `size_max`.
pub(crate) fn decompress_up_to(stored: &[u8], size_max: u64) -> Result<Vec<u8>, Flaw> {
    decompress(&mut DCtx::create(), stored, size_max.min(ROW_BYTES_MAX))
}

/// Decompresses into a buffer of exactly the recorded size; what does not fit in it is an error.
fn decompress(context: &mut DCtx<'_>, stored: &[u8], size: u64) -> Result<Vec<u8>, Flaw> {
    if size > ROW_BYTES_MAX {
        return Err(Flaw::Size { size });
    }
    let capacity = usize::try_from(size).map_err(|_| Flaw::Size { size })?;
    let mut out = Vec::new();
    out.try_reserve_exact(capacity)
        .map_err(|_| Flaw::Memory { size })?;
    context.decompress(&mut out, stored).map_err(frame)?;
    Ok(out)
}

fn checked(bytes: Vec<u8>, size: u64, digest: &Digest) -> Result<Vec<u8>, Flaw> {
    check_length(size, bytes.len())?;
    if Digest::of(&bytes) == *digest {
        Ok(bytes)
    } else {
        Err(Flaw::Digest)
    }
}

fn check_length(expected: u64, found: usize) -> Result<(), Flaw> {
    let found = found as u64;
    if expected == found {
        Ok(())
    } else {
        Err(Flaw::Length { expected, found })
    }
}

fn frame(code: usize) -> Flaw {
    Flaw::Frame {
        reason: get_error_name(code),
    }
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
