//! Reads `[[compensation]]`: which call takes which back.

use std::collections::BTreeMap;
use std::ops::Range;

use backout_model::compensation::{
    BodyTemplate, CallPattern, CallTemplate, Compensation, Condition, Idempotency, Look, Lookup,
    ROOTS, Reversibility, Template, Verify, WRITES,
};
use toml_edit::{Item, TableLike};

use super::mistake::{Mistakes, nearest};
use super::read::{is, json_of_item, text, texts, time};

/// How a variable of the environment is written.
const VARIABLE: &str = "${env:NAME}";

/// How long a service remembers a key unless the rule says otherwise.
const WINDOW_MS: u64 = 24 * 60 * 60 * 1000;

/// How often, and how long, it is looked whether an effect is gone unless the rule says otherwise.
const INTERVAL_MS: u64 = 500;
const LIMIT_MS: u64 = 30_000;

/// Reads one table. None if it cannot be read; that is noted.
pub(super) fn compensation(
    table: &dyn TableLike,
    span: Option<Range<usize>>,
    mistakes: &mut Mistakes<'_>,
) -> Option<Compensation> {
    let before = mistakes.found.len();
    let pattern = pattern(table, span.clone(), mistakes);
    let names: Vec<String> = match &pattern {
        Some(pattern) => pattern.names().map(str::to_owned).collect(),
        None => Vec::new(),
    };
    let mut reader = Reader {
        names: &names,
        mistakes,
    };
    let under = |name: &str| table.get(name).and_then(Item::as_table_like);
    let capture = is(table, "capture").unwrap_or(false);
    let inverse = under("inverse").map(|inverse| reader.call(inverse));
    let lookup = under("lookup").map(|lookup| reader.lookup(lookup));
    let verify = under("verify").map(|verify| reader.verify(verify));
    let look = under("look").map(|look| reader.look(look));
    let idempotency = under("idempotency").map(|it| Idempotency {
        header: text(it, "header").unwrap_or_else(|| "Idempotency-Key".to_owned()),
        window_ms: millis(it, "window").unwrap_or(WINDOW_MS),
    });
    let is_irreversible = text(table, "reversibility").as_deref() == Some("irreversible");
    reader.check_whole(table, span, is_irreversible, pattern.as_ref());
    let is_good = mistakes.found.len() == before;
    let pattern = pattern.filter(|_| is_good)?;
    Some(Compensation {
        name: text(table, "name").unwrap_or_else(|| pattern.as_str().to_owned()),
        pattern,
        reversibility: if is_irreversible {
            Reversibility::Irreversible
        } else {
            Reversibility::Compensable
        },
        capture,
        ignore: texts(table, "ignore"),
        inverse: inverse.flatten(),
        idempotency,
        lookup: lookup.flatten(),
        verify: verify.flatten(),
        look: look.flatten(),
    })
}

fn pattern(
    table: &dyn TableLike,
    span: Option<Range<usize>>,
    mistakes: &mut Mistakes<'_>,
) -> Option<CallPattern> {
    let Some(item) = table.get("match") else {
        let what = "a [[compensation]] needs a `match`: which calls is it for?".to_owned();
        mistakes.note(span, what);
        return None;
    };
    match CallPattern::parse(item.as_str()?) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            mistakes.note(item.span(), format!("`compensation.match`: {error}"));
            None
        }
    }
}

struct Reader<'n, 't, 'm> {
    names: &'n [String],
    mistakes: &'m mut Mistakes<'t>,
}

impl Reader<'_, '_, '_> {
    /// Looks whether a rule says enough, and not too much.
    fn check_whole(
        &mut self,
        table: &dyn TableLike,
        span: Option<Range<usize>>,
        is_irreversible: bool,
        pattern: Option<&CallPattern>,
    ) {
        let (inverse, capture) = (
            table.contains_key("inverse"),
            is(table, "capture") == Some(true),
        );
        let what = if is_irreversible && (inverse || capture) {
            "it is irreversible, and has a way back: say one of the two"
        } else if !is_irreversible && !inverse && !capture {
            "it takes nothing back: give it an `inverse`, `capture = true`, or reversibility = \"irreversible\""
        } else if capture && table.contains_key("look") {
            "a thing that is captured is looked at where it is: leave `look` out"
        } else if capture && inverse {
            "a thing that is captured is put back as it was: leave `inverse` out"
        } else if capture && pattern.is_some_and(|it| it.methods().iter().any(|it| it == "POST")) {
            "what a POST makes was not there before: give it an `inverse` instead of `capture`"
        } else {
            return;
        };
        self.mistakes.note(span, what.to_owned());
    }

    fn template(&mut self, item: &Item) -> Option<Template> {
        let template = match Template::parse(item.as_str()?) {
            Ok(template) => template,
            Err(error) => {
                self.mistakes.note(item.span(), error.to_string());
                return None;
            }
        };
        let known: Vec<&str> = ROOTS
            .into_iter()
            .chain(self.names.iter().map(String::as_str))
            .collect();
        for hole in template.holes() {
            let root = hole.way.first().map(String::as_str).unwrap_or_default();
            if !known.contains(&root) {
                let nearest = nearest(root, &known);
                let what = format!("nothing fills `{{{}}}`; {nearest}", hole.text);
                self.mistakes.note(item.span(), what);
            }
        }
        Some(template)
    }

    fn wanted(&mut self, table: &dyn TableLike, name: &str, of: &str) -> Option<Template> {
        if let Some(item) = table.get(name) {
            return self.template(item);
        }
        let what = format!("`{of}` needs a `{name}`");
        let span = table
            .iter()
            .next()
            .and_then(|(key, _)| table.key(key)?.span());
        self.mistakes.note(span, what);
        None
    }

    fn templates(&mut self, table: &dyn TableLike, name: &str) -> BTreeMap<String, Template> {
        let items = table.get(name).and_then(Item::as_table_like);
        let mut all = BTreeMap::new();
        for (key, item) in items.into_iter().flat_map(TableLike::iter) {
            if let Some(template) = self.template(item) {
                let is_secret = name == "headers" && is_secret(key) && !template.has_variable();
                if is_secret {
                    let what = format!(
                        "`{key}` is a secret: name a variable of the environment that holds it, like {VARIABLE}"
                    );
                    self.mistakes.note(item.span(), what);
                }
                all.insert(key.to_owned(), template);
            }
        }
        all
    }

    fn call(&mut self, table: &dyn TableLike) -> Option<CallTemplate> {
        let method = text(table, "method").unwrap_or_else(|| "DELETE".to_owned());
        if !WRITES.contains(&method.as_str()) {
            let span = table.get("method").and_then(Item::span);
            let nearest = nearest(&method, &WRITES);
            self.mistakes.note(
                span,
                format!("`{method}` is no method that writes; {nearest}"),
            );
        }
        let mut bodies = Vec::new();
        if let Some(item) = table.get("body")
            && let Some(template) = self.template(item)
        {
            let is_one = template.holes().count() == 1
                && template.as_str().trim().starts_with('{')
                && template.as_str().trim().ends_with('}');
            if template.holes().next().is_some() && !is_one {
                let what = "a `body` is one hole, or has none; use `json` or `form` to make one of several".to_owned();
                self.mistakes.note(item.span(), what);
            }
            bodies.push(BodyTemplate::Text(template));
        }
        if let Some(item) = table.get("json") {
            bodies.push(BodyTemplate::Json(json_of_item(item)));
            self.check_json(item);
        }
        if table.contains_key("form") {
            bodies.push(BodyTemplate::Form(self.templates(table, "form")));
        }
        if bodies.len() > 1 {
            let span = table
                .get("body")
                .or_else(|| table.get("json"))
                .and_then(Item::span);
            let what = "a call has one of `body`, `json` and `form`".to_owned();
            self.mistakes.note(span, what);
        }
        Some(CallTemplate {
            method,
            url: self.wanted(table, "url", "inverse")?,
            headers: self.templates(table, "headers"),
            body: bodies.pop(),
        })
    }

    /// Looks at the holes in the texts of a table.
    fn check_json(&mut self, item: &Item) {
        if item.is_str() {
            self.template(item);
        } else if let Some(table) = item.as_table_like() {
            table.iter().for_each(|(_, item)| self.check_json(item));
        } else if let Some(tables) = item.as_array_of_tables() {
            for table in tables {
                table.iter().for_each(|(_, item)| self.check_json(item));
            }
        } else if let Some(list) = item.as_array() {
            for value in list {
                self.check_json(&Item::Value(value.clone()));
            }
        }
    }

    fn condition(&mut self, table: &dyn TableLike) -> Condition {
        Condition {
            status: super::read::count(table, "status"),
            field: text(table, "field"),
            equals: table.get("equals").and_then(|item| self.template(item)),
            absent: text(table, "absent"),
        }
    }

    fn lookup(&mut self, table: &dyn TableLike) -> Option<Lookup> {
        Some(Lookup {
            url: self.wanted(table, "url", "lookup")?,
            headers: self.templates(table, "headers"),
            item: text(table, "item").unwrap_or_default(),
            when: self.condition(table),
            settle_ms: millis(table, "settle").unwrap_or_default(),
        })
    }

    fn look(&mut self, table: &dyn TableLike) -> Option<Look> {
        let change = text(table, "change").unwrap_or_else(|| "PUT".to_owned());
        Some(Look {
            url: self.wanted(table, "url", "look")?,
            headers: self.templates(table, "headers"),
            change,
        })
    }

    fn verify(&mut self, table: &dyn TableLike) -> Option<Verify> {
        Some(Verify {
            url: self.wanted(table, "url", "verify")?,
            headers: self.templates(table, "headers"),
            when: self.condition(table),
            interval_ms: millis(table, "interval").unwrap_or(INTERVAL_MS),
            limit_ms: millis(table, "limit").unwrap_or(LIMIT_MS),
        })
    }
}

fn is_secret(header: &str) -> bool {
    let name = header.to_ascii_lowercase();
    [
        "authorization",
        "cookie",
        "token",
        "secret",
        "api-key",
        "apikey",
    ]
    .iter()
    .any(|word| name.contains(word))
}

fn millis(table: &dyn TableLike, name: &str) -> Option<u64> {
    u64::try_from(time(table, name)?.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::patterns::Roots;
    use crate::rules::Rules;

    fn read(text: &str) -> Result<Rules, Vec<String>> {
        let roots = Roots {
            base: Path::new("/"),
            home: None,
            is_own: false,
        };
        let said = |all: Vec<crate::Mistake>| all.iter().map(ToString::to_string).collect();
        Rules::read(Path::new("/backout.toml"), text, &roots).map_err(said)
    }

    #[test]
    fn a_rule_is_read_whole() {
        let text = r#"
            [[compensation]]
            name = "users"
            match = "POST http://h/users/{team}"
            inverse = { url = "http://h/users/{response.id}", headers = { Authorization = "Bearer ${env:T}" } }
            idempotency = { window = "30m" }
            lookup = { url = "http://h/users?mail={request.mail}", item = "data.*", field = "mail", equals = "{request.mail}" }
            verify = { url = "http://h/users/{response.id}", status = 404, interval = "10ms", limit = "1s" }
            look = { url = "http://h/users/{response.id}/whole", change = "PATCH" }
        "#;
        let rules = read(text).expect("it is read");
        let [rule] = rules.compensations.as_slice() else {
            unreachable!("there is one");
        };
        assert_eq!(rule.name, "users");
        let inverse = rule.inverse.as_ref().expect("there is an inverse");
        assert_eq!(inverse.method, "DELETE");
        let window = rule.idempotency.as_ref().map(|it| it.window_ms);
        assert_eq!(window, Some(30 * 60 * 1000));
        assert_eq!(rule.verify.as_ref().map(|it| it.limit_ms), Some(1000));
        let look = rule.looks().expect("it looks");
        assert_eq!(look.change, "PATCH");
        assert!(look.url.as_str().ends_with("/whole"));
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of mistakes")]
    fn every_mistake_has_its_place_and_the_nearest_name() {
        for (table, said) in [
            (
                "",
                "a [[compensation]] needs a `match`: which calls is it for?",
            ),
            (
                "match = \"GET http://h/\"\ncapture = true",
                "it must be a method and a URL",
            ),
            (
                "match = \"PUT http://h/{\"\ncapture = true",
                "a hole is a name in braces",
            ),
            (
                "match = \"PUT http://h/\"",
                "it takes nothing back: give it an `inverse`, `capture = true`",
            ),
            (
                "match = \"POST http://h/\"\ncapture = true",
                "what a POST makes was not there before: give it an `inverse` instead of `capture`",
            ),
            (
                "match = \"PUT http://h/\"\ncapture = true\nreversibility = \"irreversible\"",
                "it is irreversible, and has a way back: say one of the two",
            ),
            (
                "match = \"PUT http://h/\"\ncapture = true\ninverse = { url = \"http://h/\" }",
                "a thing that is captured is put back as it was: leave `inverse` out",
            ),
            (
                "match = \"PUT http://h/\"\ncapture = true\nlook = { url = \"http://h/\" }",
                "a thing that is captured is looked at where it is: leave `look` out",
            ),
            (
                "match = \"POST http://h/\"\ninverse = { url = \"http://h/\" }\nlook = { change = \"PUT\" }",
                "`look` needs a `url`",
            ),
            (
                "match = \"POST http://h/\"\ninverse = { url = \"http://h/{respnse.id}\" }",
                "nothing fills `{respnse.id}`; did you mean `response`?",
            ),
            (
                "match = \"POST http://h/\"\ninverse = { url = \"http://h/${env:}\" }",
                "needs the name of a variable",
            ),
            (
                "match = \"POST http://h/\"\ninverse = { method = \"DELET\", url = \"http://h/\" }",
                "`DELET` is no method that writes; did you mean `DELETE`?",
            ),
            (
                "match = \"POST http://h/\"\ninverse = { method = \"DELETE\" }",
                "`inverse` needs a `url`",
            ),
            (
                "match = \"POST http://h/\"\ninverse = { url = \"http://h/\", headers = { Authorization = \"x\" } }",
                "`Authorization` is a secret: name a variable of the environment that holds it, like ${env:NAME}",
            ),
            (
                "match = \"POST http://h/\"\ninverse = { url = \"http://h/\", body = \"a={response.id}\" }",
                "a `body` is one hole, or has none; use `json` or `form` to make one of several",
            ),
            (
                "match = \"POST http://h/\"\ninverse = { url = \"http://h/\", body = \"a\", json = { a = 1 } }",
                "a call has one of `body`, `json` and `form`",
            ),
            (
                "match = \"POST http://h/\"\ninvers = { url = \"http://h/\" }",
                "`compensation.invers` is not known; did you mean `inverse`?",
            ),
            (
                "match = \"POST http://h/\"\ninverse = { url = 7 }",
                "`compensation.inverse.url` must be a text",
            ),
            (
                "match = \"POST http://h/\"\ninverse = { url = \"http://h/\", headers = { a = 7 } }",
                "must be a table of texts",
            ),
        ] {
            let text = format!("[[compensation]]\n{table}\n");
            let found = read(&text).expect_err(&text).join("\n");
            assert!(found.contains(said), "{text}\n{found}");
            assert!(found.starts_with("line "), "{found}");
        }
    }
}
