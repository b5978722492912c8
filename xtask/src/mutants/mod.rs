//! Changing the code on purpose, one place at a time, to see that a test notices.
//!
//! Only where a wrong line would lose or lie: the model, and undo, redo and recovery in the engine. `cargo-mutants` says
//! what to change. To compile the project once for each change would take days, so one copy holds all of them, each
//! behind a switch (`splice.rs`), and is compiled once (`tree.rs`). Each test runs once to see which changes it comes by
//! (`tests.rs`). Then each change is switched on, and the tests that come by it run, those of the model first, then the
//! engine's, then those of the program, until one fails (`judge.rs`).
//!
//! The values of constants have no switch; `cargo-mutants` itself changes them, with the tests of the model.

mod judge;
mod list;
mod place;
mod splice;
mod tests;
mod tree;

use std::fs::File;
use std::io::Write as _;
use std::sync::Mutex;
use std::time::Instant;

use judge::Verdict;
use list::Mutant;
use tree::Tree;

use crate::run::{Step, cargo, root, run_all, say};

const USAGE: &str = "usage: cargo xtask mutants [PART/OF] [WORD]

  PART/OF  every OF-th change, from the PART-th on
  WORD     only changes whose name holds this, like `plan.rs`; not the constants";

/// Makes the changes, or some of them. What became of each stands in `target/mutants/outcomes`.
pub(crate) fn mutants(arguments: &[String]) -> Result<(), String> {
    let (mut part, mut of, mut word) = (0, 1, None);
    for argument in arguments {
        let numbers = argument.split_once('/');
        let numbers = numbers.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        match numbers {
            Some((first, step)) if first < step => (part, of) = (first, step),
            None if word.is_none() => word = Some(argument.as_str()),
            _ => return Err(USAGE.to_owned()),
        }
    }
    install()?;
    let tree = Tree::grow(list::list()?)?;
    let is_asked = |it: &&Mutant| it.id % of == part && word.is_none_or(|w| it.name.contains(w));
    let mut asked: Vec<&Mutant> = tree.ready.iter().filter(is_asked).collect();
    // The model's are the cheap ones.
    asked.sort_by_key(|it| !it.file.starts_with("crates/model"));
    say(&format!(
        "{} changes with a switch, {} constants, {} that do not compile; {} are made now",
        tree.ready.len(),
        tree.alone.len(),
        tree.unviable.len(),
        asked.len()
    ));
    let tests = tests::survey(&tree)?;
    let outcomes = tree.folder.join("outcomes");
    let outcomes = File::create(outcomes).map_err(|error| error.to_string())?;
    let counted = Mutex::new((0, 0, outcomes));
    let begun = Instant::now();
    place::each(&tree.folder, &asked, |place, _, mutant| {
        let same_file = tree.ready.iter().filter(|it| it.file == mutant.file);
        let neighbours = same_file.map(|it| it.id).collect();
        let verdict = judge::judge(&tree, place, &tests, (mutant, &neighbours))?;
        let line = match &verdict {
            Verdict::Caught(test) => format!("caught  {}  by {test}", mutant.name),
            Verdict::Endless => format!("endless  {}", mutant.name),
            Verdict::Missed(count) => format!("MISSED  {}  by {count} tests", mutant.name),
        };
        let mut counted = counted.lock().map_err(|error| error.to_string())?;
        writeln!(counted.2, "{line}").map_err(|error| error.to_string())?;
        match verdict {
            Verdict::Caught(_) | Verdict::Endless => counted.0 += 1,
            Verdict::Missed(_) => {
                counted.1 += 1;
                say(&line);
            }
        }
        Ok(())
    })?;
    let (caught, missed, _) = counted.into_inner().map_err(|error| error.to_string())?;
    let seconds = begun.elapsed().as_secs();
    say(&format!("{caught} caught, {missed} missed, in {seconds} s"));
    if word.is_none() && part == 0 {
        change_constants(&tree);
    }
    Ok(())
}

fn install() -> Result<(), String> {
    let is_there = cargo().args(["mutants", "--version"]).output();
    if is_there.is_ok_and(|output| output.status.success()) {
        return Ok(());
    }
    say("installing cargo-mutants");
    let mut install = cargo();
    install.args(["install", "cargo-mutants", "--locked"]);
    run_all(vec![Step::new("cargo-mutants", &mut install)])
}

/// Changes the values of constants, each with a compilation of its own.
fn change_constants(tree: &Tree) {
    let mut run = cargo();
    run.args(["mutants", "--no-shuffle", "--package", "backout-model"]);
    run.args(["--timeout", "60", "--output"]);
    run.arg(root().join("target/mutants"));
    for mutant in &tree.alone {
        let name = mutant.name.chars().flat_map(|letter| {
            let is_plain = letter.is_alphanumeric() || "_ /:".contains(letter);
            [(!is_plain).then_some('\\'), Some(letter)]
        });
        let name: String = name.flatten().collect();
        run.args(["--re", &format!("^{name}$")]);
    }
    run.args(["--", "--lib", "--test", "words"]);
    // It says which change was missed, and then ends as if it had failed.
    if let Err(why) = run_all(vec![Step::new("constants", &mut run)]) {
        say(&why);
    }
}
