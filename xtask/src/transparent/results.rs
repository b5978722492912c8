//! What test suites print, read as one result for each test.

use super::Results;

/// Tells whether a result is a success.
pub(super) fn is_pass(end: &str) -> bool {
    matches!(end, "ok" | "PASS")
}

/// Reads what pjdfstest prints: a name and how it ended on a line, then what failed, indented.
pub(super) fn of_posix(text: &str) -> Results {
    let mut results = Results::new();
    let mut last = None;
    for line in text.lines() {
        if let Some(more) = line.strip_prefix('\t') {
            if let Some(end) = last.as_ref().and_then(|name| results.get_mut(name)) {
                *end = format!("{end}; {more}");
            }
        } else if let Some((name, end)) = line.split_once(char::is_whitespace)
            && name.contains("::")
        {
            results.insert(name.to_owned(), end.trim().to_owned());
            last = Some(name.to_owned());
        }
    }
    results
}

/// Reads the report that Python's tests write: an element for each test, with another in it if it did not pass.
pub(super) fn of_python(text: &str) -> Results {
    let tests = text.split("<testcase ").skip(1);
    let named = tests.filter_map(|test| {
        let name = test.split("name=\"").nth(1)?.split('"').next()?;
        let own = test.split("</testcase>").next()?;
        let ends = [
            ("<failure", "failed"),
            ("<error", "error"),
            ("<skipped", "skipped"),
        ];
        let end = ends.iter().find(|(element, _)| own.contains(element));
        Some((name.to_owned(), end.map_or("ok", |(_, end)| end).to_owned()))
    });
    named.collect()
}

/// Reads what a script of git's tests prints: `ok 3 - what it is about`.
pub(super) fn of_git(script: &str, text: &str) -> Results {
    let mut results = Results::new();
    for line in text.lines() {
        let (end, rest) = match (line.strip_prefix("ok "), line.strip_prefix("not ok ")) {
            (Some(rest), _) => ("ok", rest),
            (None, Some(rest)) => ("not ok", rest),
            (None, None) => continue,
        };
        let end = if rest.contains("# skip") {
            "skipped"
        } else {
            end
        };
        let what = rest.split(" # ").next().unwrap_or(rest);
        results.insert(format!("{script} {what}"), end.to_owned());
    }
    results
}
