//! Effects of a program's own, taken back by another process that knows the handler, and kept by one that does not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use backout::engine::Settings;
use backout::{Backout, CompensationHandler, Found, Handled, HandlerError};
use serde_json::{Value, json};

/// A list of subscribers, outside of anything that Backout knows.
#[derive(Debug, Default)]
struct List {
    names: Mutex<BTreeMap<String, String>>,
    fails: Mutex<Option<HandlerError>>,
    tells: bool,
}

impl CompensationHandler for List {
    fn name(&self) -> String {
        "subscribe".to_owned()
    }

    fn act(&self, arguments: &Value, key: &str) -> Result<Value, HandlerError> {
        let name = arguments["name"].as_str().unwrap().to_owned();
        let fails = self.fails.lock().unwrap().take();
        if !matches!(fails, Some(HandlerError::Nothing(_))) {
            self.names.lock().unwrap().insert(key.to_owned(), name);
        }
        fails.map_or_else(|| Ok(json!({"number": key})), Err)
    }

    fn compensate(&self, _: &Value, answer: &Value, _: &str) -> Result<(), HandlerError> {
        let number = answer["number"].as_str().unwrap();
        self.names.lock().unwrap().remove(number);
        Ok(())
    }

    fn find(&self, _: &Value, key: &str) -> Found {
        match (self.tells, self.names.lock().unwrap().contains_key(key)) {
            (false, _) => Found::Unknown,
            (true, true) => Found::There(json!({"number": key})),
            (true, false) => Found::NotThere,
        }
    }
}

impl List {
    fn names(&self) -> Vec<String> {
        self.names.lock().unwrap().values().cloned().collect()
    }
}

fn ann() -> Handled {
    Handled::new("subscribe", json!({"name": "ann"}))
}

#[test]
fn another_process_with_the_handler_takes_it_back_and_one_without_keeps_it() {
    let state = tempfile::tempdir().unwrap();
    let open = |handlers: Vec<Arc<dyn CompensationHandler>>| {
        Backout::with_handlers(Settings::new(state.path()), handlers).unwrap()
    };
    let list = Arc::new(List::default());
    let first = open(vec![Arc::clone(&list) as _]);
    let id = first.act(&ann()).unwrap().id.unwrap();
    assert_eq!(list.names(), ["ann"]);
    drop(first);
    let without = open(Vec::new());
    let said = without.undo(id).unwrap_err().to_string();
    assert!(said.contains("no driver `handler:subscribe`"), "{said}");
    drop(without);
    let later = open(vec![Arc::clone(&list) as _]);
    later.undo(id).unwrap();
    assert!(list.names().is_empty());
}

#[test]
fn what_failed_is_over_and_what_nobody_knows_is_in_doubt_or_found() {
    for (tells, error, left) in [
        (false, HandlerError::Nothing("no".to_owned()), 0),
        (false, HandlerError::Unknown("lost".to_owned()), 1),
        (true, HandlerError::Unknown("lost".to_owned()), 0),
    ] {
        let state = tempfile::tempdir().unwrap();
        let list = Arc::new(List {
            tells,
            ..List::default()
        });
        let handlers: Vec<Arc<dyn CompensationHandler>> = vec![Arc::clone(&list) as _];
        let backout = Backout::with_handlers(Settings::new(state.path()), handlers).unwrap();
        *list.fails.lock().unwrap() = Some(error.clone());
        backout.act(&ann()).unwrap_err();
        assert_eq!(list.names().len(), left, "{error:?}");
        backout.engine().recover(None).unwrap();
        assert_eq!(list.names().len(), left, "{error:?}");
    }
}
