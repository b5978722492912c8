//! Edits single keys of config texts, and takes exactly those keys back.
//!
//! Text in, text out: no I/O, no clock. An edit replaces one range of bytes; every other byte stays, comments and line ends included. The new text is
//! read again before anybody sees it (`check`). What an edit did is plain data (`KeyChange`), which `apply` and `revert` carry into a text that others
//! have edited meanwhile. Design: `docs/design/config.md`.
//!
//! ```
//! use backout_config::{Applied, Document, Format, NewValue, revert};
//!
//! let text = "# web\nport: 80 # public\nhost: a\n";
//! let key = "port".parse()?;
//! let edited = Document::parse(Format::Yaml, text)?.set(&key, &NewValue::Plain("8080".into()))?;
//! assert_eq!(edited.text, "# web\nport: 8080 # public\nhost: a\n");
//!
//! let since = edited.text.replace("host: a", "host: b");
//! let reverted = revert(Format::Yaml, &since, &edited.changes[0])?;
//! assert_eq!(reverted, Applied::Done("# web\nport: 80 # public\nhost: b\n".into()));
//! # Ok::<(), backout_config::ConfigError>(())
//! ```

mod apply;
mod change;
mod check;
mod dialect;
mod diff;
mod document;
mod edit;
mod env;
mod error;
mod flow;
mod format;
mod ini;
mod json;
mod key;
mod lines;
mod merge;
mod remarks;
mod sections;
mod slip;
mod toml;
mod tree;
mod value;
mod view;
mod weave;
mod yaml;

pub use apply::{Applied, apply, revert, revert_all};
pub use change::{Anchor, KeyChange, Patch, Piece, Witness};
pub use diff::diff;
pub use document::{Document, Edited, Found};
pub use error::ConfigError;
pub use format::Format;
pub use key::{KeyPath, Segment};
pub use lines::Position;
pub use merge::MERGE_READ_MAX;
pub use slip::Slip;
pub use tree::{DEPTH_MAX, SIZE_MAX, TOML_SIZE_MAX, VALUES_MAX};
pub use value::{NewValue, Value};
pub use view::{Shape, View, yaml_scalar};

/// Reads a text as one value. A key that stands twice is refused.
pub fn read(format: Format, text: &str) -> Result<Value, ConfigError> {
    let document = Document::parse(format, text)?;
    document.keys()?;
    Ok(document.value())
}
