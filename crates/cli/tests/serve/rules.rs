//! Rules that come, change and go while a server runs.

use std::fs;

use crate::world::World;

#[test]
fn a_running_server_goes_by_the_rules_that_hold_now() {
    let world = World::new();
    let (server, token) = (world.serve(&[]), world.token(&["agent", "--agent", "ann"]));
    let write = |text: &str| server.post(&token, "/v1/command", &world.write("f", text));
    let rules = |text: &str| fs::write(world.path("backout.toml"), text).unwrap();
    write("one").is(200);

    rules("[protect]\ndeny = [\"f\"]\n");
    let told = write("two");
    assert!(told.status >= 400, "{}", told.text());
    assert!(told.text().contains("is protected"), "{}", told.text());
    assert_eq!(world.read("f"), "one");

    rules("[protect]\nask = [\"f\"]\n");
    let told = write("three");
    assert!(
        told.text().contains("has to be approved"),
        "{}",
        told.text()
    );
    assert_eq!(world.read("f"), "one");

    rules("[protect]\ndeny = [\"g\"]\n");
    write("four").is(200);
    fs::remove_file(world.path("backout.toml")).unwrap();
    write("five").is(200);
    assert_eq!(world.read("f"), "five");

    // What cannot be read refuses.
    rules("[protect\n");
    assert!(write("six").status >= 400);
    assert_eq!(world.read("f"), "five");
}
