//! The permission is used once: it cannot be copied.

use backout_model::Armed;

fn apply_twice(armed: Armed<()>) {
    let again = armed.clone();
    let _ = (armed.into_parts(), again.into_parts());
}

fn main() {}
