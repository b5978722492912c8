//! Rows of `MySQL` and `MariaDB` tables.
