//! What an error of the database engine means for a store.

use std::path::Path;

use backout_model::ports::StorageError;

/// Names what an error of the database engine means for the store in `directory`.
pub(crate) fn of_database(directory: &Path, source: rusqlite::Error) -> StorageError {
    use rusqlite::ErrorCode as Code;
    let path = || directory.to_path_buf();
    match source.sqlite_error_code() {
        Some(Code::DiskFull) => StorageError::DiskFull { path: path() },
        Some(Code::ReadOnly) => StorageError::ReadOnly { path: path() },
        // A table that is not there and a value of another type are damage as well.
        Some(Code::DatabaseCorrupt | Code::NotADatabase | Code::Unknown | Code::TypeMismatch)
        | None => StorageError::Damaged {
            path: path().join(crate::state_dir::JOURNAL),
            source: Box::new(source),
        },
        _ => StorageError::Database(Box::new(source)),
    }
}
