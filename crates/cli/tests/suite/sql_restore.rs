//! `restore` of single rows of an `SQLite` file.

use crate::sql::{SCHEMA, ok, open, ran, says, world};

#[test]
fn a_row_is_restored_whatever_it_is_now_and_the_others_stay() {
    let world = world(SCHEMA);
    ran(
        &world,
        "UPDATE orders SET price = 1, item = 'it''s' WHERE id = 7",
    );
    ran(&world, "DELETE FROM orders WHERE id = 2");
    ran(&world, "INSERT INTO orders VALUES(9, 'jar', 3)");
    ran(&world, "UPDATE orders SET price = price + 100");
    let row = |id: i64| -> Option<(String, f64)> {
        let sql = "SELECT item, price FROM orders WHERE id = ?1";
        let found = open(&world).query_row(sql, [id], |row| Ok((row.get(0)?, row.get(1)?)));
        found.ok()
    };
    let is = |item: &str, price: f64| Some((item.to_owned(), price));
    let told = ok(&world, ["restore", "shop.db:orders.7", "--from", "@-3"]);
    says(&told, "restored shop.db:orders.7 to what it was before");
    assert_eq!((row(7), row(1)), (is("pot", 9.0), is("tea", 102.5)));
    ok(
        &world,
        ["restore", "shop.db:orders.7", "--from", "@-4", "--after"],
    );
    assert_eq!(row(7), is("it's", 1.0));
    // A row that was deleted comes back, and one that was not there goes.
    ok(&world, ["restore", "shop.db:orders.2", "--from", "@-4"]);
    assert_eq!(row(2), is("cup", 4.0));
    ok(&world, ["restore", "shop.db:orders.9", "--from", "@-4"]);
    assert_eq!((row(9), row(1)), (None, is("tea", 102.5)));
    // It is a write like any other.
    ok(&world, ["undo"]);
    assert_eq!(row(9), is("jar", 103.0));
    // Of a row that was updated only what changed is kept.
    ran(&world, "DELETE FROM orders WHERE id = 1");
    let refused = world.cli(["restore", "shop.db:orders.1", "--from", "@-5"]);
    assert_eq!((refused.code, row(1)), (1, None), "{refused}");
    for said in [
        "`shop.db:orders.1` cannot be restored",
        "the row is gone, and only what changed of it is kept",
        "take the operation back that removed it, or restore what it was before that",
    ] {
        assert!(refused.err.contains(said), "{refused}");
    }
}
