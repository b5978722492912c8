//! Rows of PostgreSQL tables.
