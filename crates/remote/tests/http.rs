//! The suite of all drivers on calls, against the web service of the program's own tests. Deaths at every step are told there, too:
//! `crates/cli/tests/proof/http`.

#![cfg(feature = "http")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[expect(dead_code, reason = "the service can do more than is asked of it here")]
#[path = "../../cli/tests/proof/http/service.rs"]
mod service;

use std::collections::BTreeSet;
use std::sync::Arc;

use backout_model::compensation::Compensation;
use backout_model::ports::{Driver, Prepared, Request};
use backout_model::{Armed, OperationId, Recipe, Strategy, Verb};
use backout_remote::http::{Heard, HttpDriver, HttpRequest, TIMEOUT_MS};
use backout_testkit::driver::{Harness, conforms_in_life};
use backout_testkit::fakes::{MemoryContents, MemoryJournal};
use serde_json::{Value, json};
use service::Service;

/// A service, and a call of it.
struct World {
    service: Service,
    driver: HttpDriver,
    journal: MemoryJournal,
    contents: Arc<MemoryContents>,
    method: &'static str,
    path: &'static str,
    rule: Value,
}

impl World {
    fn new(method: &'static str, path: &'static str, mut rule: Value) -> Self {
        let service = Service::start();
        service.put("7", "ann");
        let contents = Arc::new(MemoryContents::default());
        let text = rule.to_string().replace("$S", &service.url(""));
        rule = serde_json::from_str(&text).unwrap();
        Self {
            driver: HttpDriver::new(Arc::clone(&contents) as _),
            journal: MemoryJournal::new(Arc::clone(&contents)),
            service,
            contents,
            method,
            path,
            rule,
        }
    }
}

impl Harness for World {
    type Snapshot = BTreeSet<String>;

    fn driver(&self) -> &dyn Driver {
        &self.driver
    }

    fn request(&self) -> Box<dyn Request> {
        let rule: Compensation = serde_json::from_value(self.rule.clone()).unwrap();
        let body = (self.method != "DELETE").then(|| json!({"name": "bob"}).to_string());
        Box::new(HttpRequest {
            method: self.method.to_owned(),
            url: self.service.url(self.path),
            headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
            body,
            timeout_ms: TIMEOUT_MS,
            irreversible: false,
            compensation: Some(rule),
            heard: Heard::default(),
        })
    }

    fn strategy(&self) -> Strategy {
        Strategy::Compensation
    }

    fn is_named_before(&self) -> bool {
        self.method != "POST"
    }

    // What is made again has another number, and is the same to whoever looks for it by name.
    fn snapshot(&self, _exactly: bool) -> Self::Snapshot {
        let names = self.service.names().into_iter().enumerate();
        names.map(|(at, name)| format!("{at} {name}")).collect()
    }

    fn contents(&self, snapshot: &Self::Snapshot) -> BTreeSet<String> {
        snapshot.clone()
    }

    fn arm(&self, id: OperationId, prepared: Prepared) -> Armed {
        self.journal.arm(id, Verb::Write, prepared)
    }

    fn release(&self, recipe: &Recipe) {
        self.contents.release(recipe);
    }

    fn drift(&self) -> bool {
        let id = if self.method == "POST" { "1" } else { "7" };
        self.service.put(id, "somebody's");
        true
    }

    fn fail_at_step(&self, _at: Option<usize>, _abandons: bool) {}

    fn steps_passed(&self) -> usize {
        0
    }
}

#[test]
fn what_is_made_conforms() {
    for more in [
        json!({}),
        json!({"verify": {"url": "$S/things/{response.id}", "interval_ms": 10, "limit_ms": 1000}}),
        json!({"idempotency": {"header": "Idempotency-Key", "window_ms": 60000}}),
    ] {
        let mut rule = json!({
            "name": "things", "match": "POST $S/things", "ignore": ["version"],
            "inverse": {"method": "DELETE", "url": "$S/things/{response.id}"},
        });
        for (name, value) in more.as_object().unwrap() {
            rule[name.as_str()] = value.clone();
        }
        let make = || World::new("POST", "/things", rule.clone());
        conforms_in_life(&format!("POST {more}"), &make);
    }
}

#[test]
fn what_is_changed_conforms() {
    let rule = json!({
        "name": "thing", "match": "PUT|PATCH|DELETE $S/things/{id}", "capture": true,
        "ignore": ["version"],
    });
    // A DELETE of what is gone is refused by the service, so the same request once more is not for the suite.
    for method in ["PUT", "PATCH"] {
        let make = || World::new(method, "/things/7", rule.clone());
        conforms_in_life(method, &make);
    }
}
