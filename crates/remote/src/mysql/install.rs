//! The tables of our own, in a database beside the one that is enrolled.

/// What makes them. `{}` stands for the database.
pub(super) const INSTALL: [&str; 8] = [
    "CREATE DATABASE IF NOT EXISTS {} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    // Who the database is: one row.
    "CREATE TABLE IF NOT EXISTS {}.identity (only_one TINYINT NOT NULL DEFAULT 1 PRIMARY KEY CHECK (only_one = 1),
        id CHAR(36) NOT NULL, name VARCHAR(64) NOT NULL, format INT NOT NULL DEFAULT 1) ENGINE = InnoDB",
    // The tables, by numbers that they keep, and the triggers as they were made.
    "CREATE TABLE IF NOT EXISTS {}.relation (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(64) NOT NULL UNIQUE,
        made LONGTEXT NOT NULL DEFAULT '') ENGINE = InnoDB",
    // What the columns of a table were when its triggers were made.
    "CREATE TABLE IF NOT EXISTS {}.shape (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, relation INT UNSIGNED NOT NULL,
        columns LONGTEXT NOT NULL, KEY (relation)) ENGINE = InnoDB",
    // Every change of a row. The server itself writes the number of the transaction into `xact`.
    "CREATE TABLE IF NOT EXISTS {}.log (place BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, relation INT UNSIGNED NOT NULL,
        shape INT UNSIGNED NOT NULL, op CHAR(1) NOT NULL, went LONGTEXT, came LONGTEXT, operation VARCHAR(64), agent VARCHAR(255),
        role VARCHAR(255) NOT NULL, connection BIGINT UNSIGNED NOT NULL,
        xact BIGINT UNSIGNED GENERATED ALWAYS AS ROW START INVISIBLE, xact_end BIGINT UNSIGNED GENERATED ALWAYS AS ROW END INVISIBLE,
        PERIOD FOR SYSTEM_TIME (xact, xact_end), PRIMARY KEY (place), KEY (xact, relation),
        CONSTRAINT row_too_large_for_backout CHECK ((op = 'i') = (went IS NULL) AND (op = 'd') = (came IS NULL))
        ) ENGINE = InnoDB WITH SYSTEM VERSIONING",
    // Which operation of a journal stands for a transaction: its own, or one of another client that it took up.
    "CREATE TABLE IF NOT EXISTS {}.marker (operation VARCHAR(64) NOT NULL, taken BIGINT UNSIGNED UNIQUE,
        at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
        started BIGINT UNSIGNED GENERATED ALWAYS AS ROW START INVISIBLE, ended BIGINT UNSIGNED GENERATED ALWAYS AS ROW END INVISIBLE,
        PERIOD FOR SYSTEM_TIME (started, ended), PRIMARY KEY (operation), KEY (started)) ENGINE = InnoDB WITH SYSTEM VERSIONING",
    "CREATE OR REPLACE TRIGGER {}.log_guard BEFORE DELETE ON {}.log FOR EACH ROW
        IF @backout_covering IS NULL THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the log of Backout is not changed by hand'; END IF",
    "CREATE OR REPLACE TRIGGER {}.log_guard_update BEFORE UPDATE ON {}.log FOR EACH ROW
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the log of Backout is not changed by hand'",
];
