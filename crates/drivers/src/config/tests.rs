//! The conformance suite over keys of every format, and what is the driver's own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use backout_config::{KeyPath, NewValue, Value};
use backout_model::ports::{Driver, How, OnConflict, Prepared, Request, State};
use backout_model::{
    Armed, Effect, Key, OperationId, OutcomeKind, Recipe, Strategy, TargetPath, Verb,
};

use super::{ConfigDriver, ConfigEdit, ConfigFault, ConfigRequest};
use crate::file::{FileDriver, FileError};
use backout_testkit::driver::{Harness, applied, conforms, taken_back};
use backout_testkit::fakes::{DirDepots, MemoryContents, MemoryJournal};

/// A directory with one config file, and the driver.
struct World {
    _directory: tempfile::TempDir,
    file: TargetPath,
    files: Arc<FileDriver>,
    driver: ConfigDriver,
    contents: Arc<MemoryContents>,
    journal: MemoryJournal,
    edit: fn() -> ConfigEdit,
    drift: Option<(&'static str, &'static str)>,
}

impl World {
    fn new(name: &str, text: &str, edit: fn() -> ConfigEdit) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let file = TargetPath::new(root.join("world").join(name)).unwrap();
        fs::create_dir(root.join("world")).unwrap();
        fs::write(file.as_path(), text).unwrap();
        fs::set_permissions(file.as_path(), fs::Permissions::from_mode(0o640)).unwrap();
        let contents = Arc::new(MemoryContents::default());
        let depots = Arc::new(DirDepots::new(&root.join("home"), true).unwrap());
        let files = Arc::new(FileDriver::new(contents.clone(), contents.clone(), depots));
        Self {
            _directory: directory,
            file,
            driver: ConfigDriver::new(Arc::clone(&files)),
            files,
            journal: MemoryJournal::new(Arc::clone(&contents)),
            contents,
            edit,
            drift: None,
        }
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file.as_path()).unwrap()
    }

    /// Edits the file as somebody else would.
    fn replace(&self, old: &str, new: &str) {
        let text = self.text();
        assert!(text.contains(old), "{old} in {text}");
        fs::write(self.file.as_path(), text.replace(old, new)).unwrap();
    }

    fn undone(&self, effect: &Effect, how: How<'_>) -> (Effect, Vec<OutcomeKind>) {
        let id = OperationId::from_bits(0xc0 + self.contents.size().0 as u64);
        let undo = self.driver.prepare_undo(id, effect, how).unwrap();
        let recipe = undo.prepared.recipe.clone();
        let kinds = undo.outcomes.into_iter().map(|outcome| outcome.kind);
        let kinds = kinds.collect();
        let applied = self.driver.apply(self.arm(id, undo.prepared)).unwrap();
        let completion = Some(applied.completion);
        (Effect { recipe, completion }, kinds)
    }
}

impl Harness for World {
    type Snapshot = (Vec<String>, String, u32, Option<std::time::SystemTime>);

    fn driver(&self) -> &dyn Driver {
        &self.driver
    }

    fn request(&self) -> Box<dyn Request> {
        Box::new(ConfigRequest {
            path: self.file.as_path().to_owned(),
            format: None,
            edit: (self.edit)(),
        })
    }

    fn strategy(&self) -> Strategy {
        Strategy::Transaction
    }

    fn snapshot(&self, exactly: bool) -> Self::Snapshot {
        let directory = self.file.as_path().parent().unwrap();
        let names = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = names
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let found = fs::metadata(self.file.as_path()).unwrap();
        let time = exactly.then(|| found.modified().unwrap());
        (names, self.text(), found.permissions().mode(), time)
    }

    fn contents(&self, snapshot: &Self::Snapshot) -> std::collections::BTreeSet<String> {
        [snapshot.1.clone()].into()
    }

    fn arm(&self, id: OperationId, prepared: Prepared) -> Armed {
        self.journal.arm(id, Verb::Edit, prepared)
    }

    fn release(&self, recipe: &Recipe) {
        self.contents.release(recipe);
    }

    fn drift(&self) -> bool {
        let Some((old, new)) = self.drift else {
            return false;
        };
        self.replace(old, new);
        true
    }

    fn fail_at_step(&self, at: Option<usize>, abandons: bool) {
        self.files.fail_at_step(at, abandons);
    }

    fn steps_passed(&self) -> usize {
        self.files.steps_passed()
    }
}

fn key(text: &str) -> KeyPath {
    text.parse().unwrap()
}

fn set(at: &str, value: &str) -> ConfigEdit {
    ConfigEdit::Set {
        key: key(at),
        value: NewValue::Plain(value.to_owned()),
    }
}

const TOML: &str = "# app\nhost = \"a\"\n\n[server]\nport = 80 # public\nname = \"x\"\n";

#[test]
fn a_key_of_every_format_conforms() {
    let port: fn() -> ConfigEdit = || set("server.port", "8080");
    let plain: fn() -> ConfigEdit = || set("PORT", "8080");
    let json = "{\n  \"server\": { \"port\": 80 }, // web\n  \"x\": [1, 2]\n}\n";
    let table = [
        ("app.toml", TOML, port),
        ("app.json", "{\"server\": {\"port\": 80}}", port),
        ("tsconfig.json", json, port),
        ("app.yaml", "# web\nserver:\n  port: 80\n", port),
        ("app.ini", "[server]\nport = 80\n", port),
        (".env", "# web\nPORT=80\n", plain),
    ];
    for (name, text, edit) in table {
        conforms(name, || World {
            drift: Some(("8080", "9090")),
            ..World::new(name, text, edit)
        });
    }
}

#[test]
fn keys_that_come_and_go_conform() {
    let unset: fn() -> ConfigEdit = || ConfigEdit::Unset {
        key: key("server.port"),
    };
    conforms("unset", || World {
        drift: Some(("name = \"x\"", "port = 1\nname = \"x\"")),
        ..World::new("app.toml", TOML, unset)
    });
    conforms("new", || World {
        drift: Some(("tls = true", "tls = false")),
        ..World::new("app.toml", TOML, || set("server.tls", "true"))
    });
    let merge: fn() -> ConfigEdit = || ConfigEdit::Merge {
        patch: Value::from_json(r#"{"host": "b", "server": {"name": null, "tls": true}}"#).unwrap(),
    };
    conforms("merge", || World {
        drift: Some(("\"b\"", "\"c\"")),
        ..World::new("app.toml", TOML, merge)
    });
}

#[test]
fn a_large_file_conforms() {
    let text = format!("{{\"a\": 1, \"big\": \"{}\"}}", "x".repeat(200 * 1024));
    conforms("large", || World {
        drift: Some(("\"a\": 2", "\"a\": 3")),
        ..World::new("app.json", &text, || set("a", "2"))
    });
}

#[test]
fn only_its_own_keys_go_back_whatever_else_changed() {
    let world = World::new("app.toml", TOML, || set("server.port", "8080"));
    let effect = applied(&world);
    world.replace("host = \"a\"", "host = \"other\"");
    world.replace("# app", "# app, by somebody else");
    fs::set_permissions(world.file.as_path(), fs::Permissions::from_mode(0o600)).unwrap();
    let edited = world.text();
    let (undo, kinds) = world.undone(&effect, How::default());
    assert_eq!(kinds, [OutcomeKind::Restored]);
    assert_eq!(world.text(), edited.replace("8080", "80"));
    let mode = fs::metadata(world.file.as_path()).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600, "the mode is somebody else's");
    world.replace("name = \"x\"", "name = \"y\"");
    let before = world.text();
    let (_, kinds) = world.undone(&undo, How::default());
    assert_eq!(kinds, [OutcomeKind::Restored]);
    assert_eq!(world.text(), before.replace("port = 80 ", "port = 8080 "));
}

#[test]
fn one_key_of_several_goes_back_and_the_others_stay() {
    let merge: fn() -> ConfigEdit = || ConfigEdit::Merge {
        patch: Value::from_json(r#"{"host": "b", "server": {"port": 8080}}"#).unwrap(),
    };
    let world = World::new("app.toml", TOML, merge);
    let effect = applied(&world);
    let host = Key::from(world.file.clone()).part("host").unwrap();
    let only = [host].into();
    let how = How {
        only: Some(&only),
        ..How::default()
    };
    let (_, kinds) = world.undone(&effect, how);
    assert_eq!(kinds, [OutcomeKind::Restored]);
    assert_eq!(world.text(), TOML.replace("port = 80 ", "port = 8080 "));
    // A conflict on one key holds the other back, unless a part is enough.
    world.replace("port = 8080", "port = 1");
    world.replace("host = \"a\"", "host = \"b\"");
    let before = world.text();
    let (_, kinds) = world.undone(&effect, How::default());
    assert!(matches!(
        kinds.as_slice(),
        [OutcomeKind::Skipped { .. }, OutcomeKind::Conflict { .. }]
    ));
    assert_eq!(world.text(), before);
    let partly = How {
        is_partial: true,
        ..How::default()
    };
    let (_, kinds) = world.undone(&effect, partly);
    assert!(matches!(
        kinds.as_slice(),
        [OutcomeKind::Restored, OutcomeKind::Conflict { .. }]
    ));
    assert_eq!(world.text(), before.replace("host = \"b\"", "host = \"a\""));
}

#[test]
fn what_is_no_text_of_the_format_any_more_is_a_conflict_and_not_forced() {
    type Breaks = fn(&Path);
    let world = World::new("app.toml", TOML, || set("server.port", "8080"));
    let effect = applied(&world);
    let broken: [(&str, Breaks); 3] = [
        ("line 1", |file| fs::write(file, "[[[").unwrap()),
        ("it is gone", |file| fs::remove_file(file).unwrap()),
        ("it is a directory", |file| fs::create_dir(file).unwrap()),
    ];
    for (said, break_it) in broken {
        break_it(world.file.as_path());
        for on_conflict in [OnConflict::Refuse, OnConflict::Merge, OnConflict::Force] {
            let id = OperationId::from_bits(9);
            let undo = world.driver.prepare_undo(id, &effect, on_conflict.into());
            let undo = undo.unwrap();
            let [outcome] = undo.outcomes.as_slice() else {
                panic!("{:?}", undo.outcomes)
            };
            let OutcomeKind::Conflict { why } = &outcome.kind else {
                panic!("{outcome:?}")
            };
            assert!(why.contains(said) && undo.prepared.is_noop, "{why}");
        }
        let examined = world.driver.examine(&effect, false).unwrap();
        assert!(matches!(&examined[0].state, State::Other { why } if why.contains(said)));
    }
}

#[test]
fn values_that_are_lost_are_told_and_nothing_is_guessed() {
    let world = World::new("app.toml", TOML, || set("server.port", "8080"));
    let effect = applied(&world);
    for digest in &effect.recipe.contents {
        world.contents.lose(digest);
    }
    let id = OperationId::from_bits(9);
    let undo = world
        .driver
        .prepare_undo(id, &effect, OnConflict::Force.into());
    let outcomes = undo.unwrap().outcomes;
    assert!(
        matches!(outcomes[0].kind, OutcomeKind::Failed { .. }),
        "{outcomes:?}"
    );
    let examined = world.driver.examine(&effect, false).unwrap();
    assert!(examined[0].lost.is_some());
    assert_eq!(outcomes[0].target, examined[0].target);
}

#[test]
fn a_bad_file_or_key_is_refused_with_its_place_and_nothing_is_written() {
    let refused = |name: &str, text: &str, edit: fn() -> ConfigEdit| {
        let world = World::new(name, text, edit);
        let id = OperationId::from_bits(1);
        let error = world
            .driver
            .prepare(id, &*world.request(), Strategy::Transaction)
            .unwrap_err();
        assert_eq!(world.text(), text);
        match error.as_a::<ConfigFault>() {
            Some(ConfigFault::Config { cause, .. }) => cause.to_string(),
            _ => panic!("{error:?}"),
        }
    };
    let port: fn() -> ConfigEdit = || set("port", "8080");
    let cases = [
        ("a.json", "{\"port\": }", "line 1, column 10"),
        ("a.toml", "port = 1\nport = 2\n", "line 2"),
        ("a.json", "{\"port\": 1, \"port\": 2}", "stands twice"),
        ("a.json", "{\"port\": \"x\"}", "would make it a number"),
    ];
    for (name, text, said) in cases {
        let told = refused(name, text, port);
        assert!(told.contains(said), "{told}");
    }
    let no = refused("a.yaml", "port: 1\n", || set("tls", "no"));
    assert!(no.contains("unclear"), "{no}");
}

#[test]
fn what_is_no_file_is_refused_as_any_write_of_it() {
    let world = World::new("app.toml", TOML, || set("server.port", "1"));
    fs::remove_file(world.file.as_path()).unwrap();
    let id = OperationId::from_bits(1);
    let error = world
        .driver
        .prepare(id, &*world.request(), Strategy::Transaction)
        .unwrap_err();
    assert!(
        matches!(error.as_a(), Some(FileError::NotFound { .. })),
        "{error:?}"
    );
    let unknown = World::new("notes", "x", || set("a", "1"));
    let error = unknown.driver.scope(&*unknown.request()).unwrap_err();
    assert!(
        matches!(error.as_a(), Some(ConfigFault::NoFormat { .. })),
        "{error:?}"
    );
}

#[test]
fn a_value_that_is_there_already_is_nothing_to_do() {
    let world = World::new("app.toml", TOML, || set("server.port", "80"));
    let id = OperationId::from_bits(1);
    let prepared = world
        .driver
        .prepare(id, &*world.request(), Strategy::Transaction)
        .unwrap();
    assert!(prepared.is_noop);
}

#[test]
fn no_record_holds_a_value() {
    let world = World::new(".env", "TOKEN=old-secret\n", || set("TOKEN", "new-secret"));
    let effect = applied(&world);
    let (undo, _) = taken_back(&world, OperationId::from_bits(2), &effect);
    for recipe in [effect.recipe, undo.recipe] {
        let told = serde_json::to_string(&recipe).unwrap();
        assert!(told.contains("TOKEN") && !told.contains("secret"), "{told}");
    }
}

#[test]
fn a_recipe_of_version_1_is_read_for_ever() {
    let text = include_str!("golden/v1.json");
    let recipe: backout_model::Recipe = serde_json::from_str(text).unwrap();
    let completion = None;
    let effect = Effect { recipe, completion };
    let world = World::new("app.toml", TOML, || set("a", "1"));
    let targets = world.driver.outline(&effect).unwrap().targets;
    let targets: Vec<_> = targets.iter().map(ToString::to_string).collect();
    assert_eq!(targets, ["/w/app.toml:server.port", "/w/app.toml:list[0]"]);
    assert!(world.driver.as_files(&effect).unwrap().is_some());
}
