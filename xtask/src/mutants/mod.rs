//! Changing the code on purpose, one place at a time, to see that a test notices.
//!
//! Only where a wrong line would lose or lie: the model, and undo, redo and recovery in the engine. `cargo-mutants` says
//! what to change. To compile the project once for each change would take days, so one copy holds all of them, each
//! behind a switch (`splice.rs`), and is compiled once (`tree.rs`). Each test runs once to see which changes it comes by
//! (`tests.rs`). Then each change is switched on, and the tests that come by it run, those of the model first, then the
//! engine's, then those of the program, until one fails (`judge.rs`). What became of it is written down at once
//! (`ledger.rs`), and so is which test comes by what: a round can be cut, and goes on where it was.
//!
//! The values of constants have no switch; `cargo-mutants` itself changes them, with the tests of the model.

mod judge;
mod ledger;
mod list;
mod notes;
mod place;
mod splice;
mod tests;
mod tree;

use std::sync::Mutex;
use std::time::Instant;

use judge::Verdict;
use ledger::Ledger;
use list::Mutant;
use tree::Tree;

use crate::run::{Step, cargo, root, run_all, say};

/// Where changes are made.
const SWITCHED: [&str; 2] = ["crates/model", "crates/engine"];

const USAGE: &str = "usage: cargo xtask mutants [--again] [PART/OF] [WORD]

  --again  also changes that were missed the last time, with three times as long for the tests of each
  PART/OF  every OF-th change, from the PART-th on
  WORD     only changes whose name holds this, like `plan.rs`; not the constants";

/// What somebody asks for.
struct Asked<'a> {
    is_again: bool,
    part: usize,
    of: usize,
    word: Option<&'a str>,
}

impl<'a> Asked<'a> {
    fn read(arguments: &'a [String]) -> Option<Self> {
        let mut asked = Self {
            is_again: false,
            part: 0,
            of: 1,
            word: None,
        };
        for argument in arguments {
            let numbers = argument.split_once('/');
            let numbers = numbers.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
            match numbers {
                Some((first, step)) if first < step => (asked.part, asked.of) = (first, step),
                None if argument == "--again" => asked.is_again = true,
                None if asked.word.is_none() => asked.word = Some(argument),
                _ => return None,
            }
        }
        Some(asked)
    }

    fn is_meant(&self, mutant: &Mutant) -> bool {
        mutant.id % self.of == self.part && self.word.is_none_or(|w| mutant.name.contains(w))
    }
}

/// Makes the changes, or some of them. What became of each stands in `target/mutants/outcomes`.
pub(crate) fn mutants(arguments: &[String]) -> Result<(), String> {
    let asked = Asked::read(arguments).ok_or(USAGE)?;
    install()?;
    let tree = Tree::grow(list::list()?)?;
    let ledger = Ledger::open(tree.folder.join("outcomes"), &tree.ready);
    let is_new = |it: &&Mutant| asked.is_meant(it) && !ledger.is_known(it, asked.is_again);
    let mut chosen: Vec<&Mutant> = tree.ready.iter().filter(is_new).collect();
    // The model's are the cheap ones.
    chosen.sort_by_key(|it| !it.file.starts_with("crates/model"));
    say(&format!(
        "{} changes with a switch, {} constants, {} that do not compile; {} are made now",
        tree.ready.len(),
        tree.alone.len(),
        tree.unviable.len(),
        chosen.len()
    ));
    let ledger = make(&tree, &chosen, ledger, asked.is_again)?;
    for folder in SWITCHED {
        let (caught, missed) = ledger.count(folder);
        say(&format!(
            "{folder}: {caught} caught, {} missed",
            missed.len()
        ));
        for name in missed {
            say(&format!("  {name}"));
        }
    }
    if asked.word.is_none() && asked.part == 0 {
        change_constants(&tree);
    }
    Ok(())
}

/// Makes changes and notes what becomes of each.
fn make(tree: &Tree, chosen: &[&Mutant], ledger: Ledger, is_again: bool) -> Result<Ledger, String> {
    // The model has to do without the program.
    let is_model = |it: &&Mutant| it.file.starts_with("crates/model");
    let tests = tests::survey(tree, !chosen.iter().all(is_model))?;
    let ledger = Mutex::new(ledger);
    let begun = Instant::now();
    place::each(&tree.folder, chosen, |place, _, mutant| {
        let same_file = tree.ready.iter().filter(|it| it.file == mutant.file);
        let neighbours = same_file.map(|it| it.id).collect();
        let verdict = judge::judge(tree, place, &tests, (mutant, &neighbours), is_again)?;
        if let Verdict::Missed(count) = &verdict {
            say(&format!("missed by {count} tests: {}", mutant.name));
        }
        let mut ledger = ledger.lock().map_err(|error| error.to_string())?;
        ledger.note(mutant, &verdict)
    })?;
    say(&format!("made in {} s", begun.elapsed().as_secs()));
    ledger.into_inner().map_err(|error| error.to_string())
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
