//! Clients that nobody here wrote: `SQLAlchemy`, which writes rows from objects, and `alembic`, which changes schemas, both from
//! `PyPI`. What they commit is an operation like any other. The ORM's story is told of both kinds of servers.

use std::path::{Path, PathBuf};
use std::process::Command;

use backout_testkit::python_with;

use crate::{mysql, postgres};

/// What is installed.
const PACKAGES: [&str; 4] = ["sqlalchemy", "alembic", "psycopg2-binary", "pymysql"];

/// Works on objects, at random but the same each time, in transactions of a few changes.
const ORM: &str = r#"
import random, sys
from sqlalchemy import ForeignKey, Numeric, String, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

class Base(DeclarativeBase):
    pass

class A(Base):
    __tablename__ = "a"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    v: Mapped[float] = mapped_column(Numeric(20, 2), nullable=True)
    u: Mapped[str] = mapped_column(String(100), nullable=True)
    children: Mapped[list["Child"]] = relationship(back_populates="parent", passive_deletes=True)

class Child(Base):
    __tablename__ = "child"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    a: Mapped[int] = mapped_column(ForeignKey("a.id"), nullable=True)
    parent: Mapped[A] = relationship(back_populates="children")

dice = random.Random(7)
engine = create_engine(sys.argv[1])
for turn in range(12):
    with Session(engine) as session:
        for step in range(dice.randint(1, 5)):
            number = 100 + turn * 10 + step
            match dice.randrange(4):
                case 0:
                    session.add(A(id=number, v=number, u=f"u{number}", children=[Child(id=number)]))
                case 1:
                    found = session.scalars(select(A).order_by(A.id)).all()
                    if found:
                        dice.choice(found).v = number
                case 2:
                    found = session.scalars(select(A).order_by(A.id)).all()
                    if len(found) > 1:
                        session.delete(found[-1])
                case _:
                    found = session.scalars(select(Child).order_by(Child.id)).all()
                    if found:
                        session.delete(found[0])
            session.flush()
        # Every fourth is thought better of.
        session.rollback() if turn % 4 == 3 else session.commit()
"#;

/// Carries out one migration: a table, rows in it, and rows of a table that was there.
const MIGRATION: &str = r#"
import sys
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations

engine = sa.create_engine(sys.argv[1])
with engine.begin() as connection:
    op = Operations(MigrationContext.configure(connection))
    notes = op.create_table("notes", sa.Column("id", sa.Integer, primary_key=True), sa.Column("what", sa.Text))
    op.bulk_insert(notes, [{"id": 1, "what": "one"}, {"id": 2, "what": "two"}])
    op.execute("UPDATE a SET v = v + 1")
"#;

/// Installs them once, below the target directory.
fn python() -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("orm");
    python_with(&home, &PACKAGES).join("python")
}

#[track_caller]
fn runs(script: &str, url: &str) {
    let done = Command::new(python())
        .args(["-c", script, url])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
}

/// Names all operations, the newest first.
fn operations(log: &str) -> Vec<String> {
    let log: serde_json::Value = serde_json::from_str(log).unwrap();
    let all = log
        .get("operations")
        .and_then(serde_json::Value::as_array)
        .unwrap()
        .iter();
    all.map(|it| {
        it.get("id")
            .and_then(serde_json::Value::as_str)
            .unwrap()
            .to_owned()
    })
    .collect()
}

#[test]
fn what_an_orm_wrote_into_postgres_goes_back_one_by_one() {
    let shop = postgres::Shop::new(postgres::SCHEMA);
    let before = shop.all();
    let place = shop.server.socket();
    let place = place.parent().unwrap().display();
    let url = format!("postgresql+psycopg2://postgres@/postgres?host={place}");
    runs(ORM, &url);
    assert_ne!(shop.all(), before);
    let ids = operations(&shop.ok(&["--json", "log", "-n", "0"]));
    assert!(ids.len() > 4, "{ids:?}");
    for id in ids {
        shop.ok(&["undo", &id, "--others"]);
    }
    assert_eq!(shop.all(), before);
}

#[test]
fn what_an_orm_wrote_into_mariadb_goes_back_one_by_one() {
    let shop = mysql::Shop::new(mysql::SCHEMA);
    let before = shop.all();
    let socket = shop.server.socket();
    let url = format!(
        "mysql+pymysql://root@localhost/shop?unix_socket={}&charset=utf8mb4",
        socket.display()
    );
    runs(ORM, &url);
    assert_ne!(shop.all(), before);
    let ids = operations(&shop.ok(&["--json", "log", "-n", "0"]));
    assert!(ids.len() > 4, "{ids:?}");
    for id in ids {
        shop.ok(&["undo", &id, "--others"]);
    }
    assert_eq!(shop.all(), before);
}

#[test]
fn the_rows_of_a_migration_go_back_and_its_schema_is_told() {
    let shop = postgres::Shop::new(postgres::SCHEMA);
    let before = shop.all();
    let place = shop.server.socket();
    let place = place.parent().unwrap().display();
    let url = format!("postgresql+psycopg2://postgres@/postgres?host={place}");
    runs(MIGRATION, &url);
    let id = shop.newest();
    let shown = shop.ok(&["show", &id]);
    assert!(
        shown.contains("it also changed the schema, which is not taken back"),
        "{shown}"
    );
    shop.ok(&["undo", &id, "--others"]);
    assert_eq!(shop.all(), before);
    let notes = shop.server.psql("postgres", "SELECT count(*) FROM notes");
    assert_eq!(notes.trim(), "0");
}
