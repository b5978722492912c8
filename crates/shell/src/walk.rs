//! Walks through a parsed program and judges every simple command in it.
//!
//! Bodies count whether or not they would run: a branch that is not taken, a function that is never called.
//! Nothing is skipped: an item of the tree that is not listed here does not compile.

use std::collections::BTreeSet;

use brush_parser::ast::{
    AndOr, AndOrList, ArithmeticForClauseCommand, Command, CompoundCommand, CompoundList,
    ExtendedTestExpr, FunctionDefinition, IfClauseCommand, IoRedirect, Pipeline, RedirectList,
    Word as RawWord,
};

use crate::guard;
use crate::redirect::Stdin;
use crate::scan;
use crate::source::Source;
use crate::verdict::{CommandVerdict, Finding};
use crate::word::Word;

/// Commands inside commands inside commands are read to this depth.
const DEPTH_MAX: usize = 24;

/// Of a text that is not read as a whole, this many characters are named.
const SHOWN_MAX: usize = 60;

/// How much text is parsed in all, texts inside texts counted again.
const PARSED_BYTES_MAX: usize = 512 * 1024;

/// The walk: what it found, and what it may still spend.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub(crate) found: Vec<CommandVerdict>,
    pub(crate) functions: BTreeSet<String>,
    /// Whether the shell is one without arithmetic commands.
    pub(crate) is_plain: bool,
    depth: usize,
    parsed_bytes: usize,
}

impl Walk {
    /// Judges a text that a shell runs.
    pub(crate) fn text(&mut self, text: &str) {
        self.parsed_bytes += text.len();
        if self.depth >= DEPTH_MAX || self.parsed_bytes > PARSED_BYTES_MAX {
            self.finds(
                text,
                Finding::unknown("it is nested too deeply", &beginning(text)),
            );
            return;
        }
        match guard::parse(text) {
            Ok(program) => {
                self.depth += 1;
                let source = Source::new(text);
                for list in &program.complete_commands {
                    self.list(list, &source);
                }
                self.depth -= 1;
            }
            Err(why) => self.finds(text, Finding::unknown(why, &beginning(text))),
        }
    }

    /// Writes a finding down.
    pub(crate) fn finds(&mut self, command: &str, finding: Finding) {
        self.found.push(CommandVerdict {
            command: command.trim().to_owned(),
            class: finding.class,
            because: finding.because,
            words: finding
                .words
                .iter()
                .map(|word| word.trim().to_owned())
                .collect(),
        });
    }

    /// Reads a word of the tree and judges the commands inside it. A word that is not understood is a finding.
    pub(crate) fn word(&mut self, word: &RawWord, source: &Source) -> Result<Word, Finding> {
        self.raw_word(&source.word(word))
    }

    /// Reads a word as it was written.
    pub(crate) fn raw_word(&mut self, raw: &str) -> Result<Word, Finding> {
        let scanned = scan::word(raw).map_err(|why| Finding::unknown(why, raw))?;
        for command in &scanned.commands {
            self.text(command);
        }
        Ok(scanned.word)
    }

    /// Judges the commands in a text that is no word.
    pub(crate) fn inside(&mut self, raw: &str, read: fn(&str) -> Result<scan::Scanned, String>) {
        match read(raw) {
            Ok(scanned) => scanned
                .commands
                .iter()
                .for_each(|command| self.text(command)),
            Err(why) => self.finds(raw, Finding::unknown(why, raw)),
        }
    }

    /// Judges a list.
    pub(crate) fn list(&mut self, list: &CompoundList, source: &Source) {
        for item in &list.0 {
            let AndOrList { first, additional } = &item.0;
            self.pipeline(first, source);
            for next in additional {
                match next {
                    AndOr::And(pipeline) | AndOr::Or(pipeline) => self.pipeline(pipeline, source),
                }
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, source: &Source) {
        for (place, command) in pipeline.seq.iter().enumerate() {
            let stdin = if place > 0 {
                Stdin::Piped
            } else {
                Stdin::Inherited
            };
            self.command(command, stdin, source);
        }
    }

    fn command(&mut self, command: &Command, stdin: Stdin, source: &Source) {
        match command {
            Command::Simple(simple) => self.simple(simple, stdin, source),
            Command::Compound(compound, redirects) => {
                self.compound(compound, source);
                self.redirects(redirects.as_ref(), source);
            }
            Command::Function(function) => self.function(function, source),
            Command::ExtendedTest(test, redirects) => {
                if !source.is_plain_test(&test.loc) {
                    let why = "a test is not understood";
                    self.finds(&test.to_string(), Finding::unknown(why, "[["));
                }
                self.test(&test.expr, source);
                self.redirects(redirects.as_ref(), source);
            }
        }
    }

    fn redirects(&mut self, redirects: Option<&RedirectList>, source: &Source) {
        for redirect in redirects.iter().flat_map(|list| &list.0) {
            self.redirect_alone(redirect, source);
        }
    }

    fn redirect_alone(&mut self, redirect: &IoRedirect, source: &Source) {
        if let Some(finding) = self.redirect(redirect, source).finding {
            self.finds(&redirect.to_string(), finding);
        }
    }

    fn compound(&mut self, compound: &CompoundCommand, source: &Source) {
        match compound {
            CompoundCommand::Arithmetic(arithmetic) => {
                let inside = source
                    .arithmetic(&arithmetic.loc)
                    .filter(|_| !self.is_plain);
                self.arithmetic(inside, &arithmetic.to_string());
            }
            CompoundCommand::ArithmeticForClause(clause) => self.arithmetic_for(clause, source),
            CompoundCommand::BraceGroup(group) => self.list(&group.list, source),
            CompoundCommand::Subshell(subshell) => {
                if source.may_be_arithmetic(&subshell.loc) {
                    let why = "commands in parentheses may be arithmetic to the shell";
                    self.finds(&subshell.to_string(), Finding::unknown(why, "(("));
                }
                self.list(&subshell.list, source);
            }
            CompoundCommand::ForClause(clause) => {
                self.assigns(
                    &clause.variable_name,
                    clause.values.as_deref().unwrap_or_default(),
                    source,
                );
                self.list(&clause.body.list, source);
            }
            CompoundCommand::CaseClause(clause) => {
                self.inside(&source.word(&clause.value), scan::pattern);
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.inside(&source.word(pattern), scan::pattern);
                    }
                    case.cmd.iter().for_each(|list| self.list(list, source));
                }
            }
            CompoundCommand::IfClause(clause) => self.branches(clause, source),
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0, source);
                self.list(&clause.1.list, source);
            }
            CompoundCommand::Coprocess(coprocess) => {
                self.command(&coprocess.body, Stdin::Piped, source);
            }
        }
    }

    fn arithmetic_for(&mut self, clause: &ArithmeticForClauseCommand, source: &Source) {
        let head = source.loop_head(&clause.loc, &clause.body.loc);
        self.arithmetic(head, "for ((…))");
        self.list(&clause.body.list, source);
    }

    fn arithmetic(&mut self, inside: Option<String>, shown: &str) {
        if let Some(text) = inside {
            self.inside(&text, scan::body);
        } else {
            let why = "commands in parentheses look like arithmetic";
            self.finds(shown, Finding::unknown(why, shown));
        }
    }

    fn branches(&mut self, clause: &IfClauseCommand, source: &Source) {
        self.list(&clause.condition, source);
        self.list(&clause.then, source);
        for other in clause.elses.iter().flatten() {
            if let Some(condition) = &other.condition {
                self.list(condition, source);
            }
            self.list(&other.body, source);
        }
    }

    fn assigns(&mut self, name: &str, values: &[RawWord], source: &Source) {
        if let Some(why) = crate::influence::of(name) {
            self.finds(name, Finding::unknown(format!("`{name}` {why}"), name));
        }
        for value in values {
            if let Err(finding) = self.word(value, source) {
                self.finds(&value.value, finding);
            }
        }
    }

    fn function(&mut self, function: &FunctionDefinition, source: &Source) {
        self.functions.insert(function.fname.value.clone());
        let body = &function.body;
        self.compound(&body.0, source);
        self.redirects(body.1.as_ref(), source);
    }

    fn test(&mut self, test: &ExtendedTestExpr, source: &Source) {
        match test {
            ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
                self.test(left, source);
                self.test(right, source);
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => {
                self.test(inner, source);
            }
            ExtendedTestExpr::UnaryTest(_, word) => self.tested(word, source),
            ExtendedTestExpr::BinaryTest(_, left, right) => {
                self.tested(left, source);
                self.tested(right, source);
            }
        }
    }

    /// Judges a word of `[[ … ]]`: numbers are evaluated there, so a quoted command may still be run.
    fn tested(&mut self, word: &RawWord, source: &Source) {
        let raw = source.word(word);
        self.inside(&raw, scan::pattern);
        if let Ok(scanned) = scan::pattern(&raw)
            && crate::simple::holds_command(&scanned.word)
        {
            let why = "a quoted command may be evaluated as a number";
            self.finds(&raw, Finding::unknown(why, &raw));
        }
    }
}

/// Shows where a long text begins.
pub(crate) fn beginning(text: &str) -> String {
    let text = text.trim();
    let shown: String = text
        .chars()
        .take_while(|next| *next != '\n')
        .take(SHOWN_MAX)
        .collect();
    if shown.len() < text.len() {
        shown + "…"
    } else {
        shown
    }
}
