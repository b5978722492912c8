//! Says in time, and in words, that SQLite must be built with its session extension.

fn main() {
    println!("cargo:rerun-if-env-changed=LIBSQLITE3_FLAGS");
    let flags = std::env::var("LIBSQLITE3_FLAGS").unwrap_or_default();
    for flag in ["SQLITE_ENABLE_SESSION", "SQLITE_ENABLE_PREUPDATE_HOOK"] {
        assert!(
            flags.contains(flag),
            "SQLite would be built without {flag}: build inside of the workspace, or set LIBSQLITE3_FLAGS as its \
             .cargo/config.toml does"
        );
    }
}
