//! The gate for paths: rules of every `backout.toml` above a target, and of the user's own.
//!
//! - A tree that goes or moves as one is looked through: what lies in it is written too, and a `backout.toml` in it counts.
//! - A `backout.toml` governs; an agent changes none without somebody's consent, nor what leads to it: the directories that it is in,
//!   links on its way, and the file that it is a link to.
//! - Who gives a protected file one more name could write it by that.

mod reached;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backout_model::ports::{Gate, Reason, Ruling, StagedChange, UnreadableRules};
use backout_model::{AgentId, Proposal, Reach, Target, TargetPath};

use crate::notify::{self, Keeper};
use crate::other_names::Shared;
use crate::patterns::Roots;
use crate::rules::{Mistake, Rules};
use crate::ways::Way;

/// The name of a file of rules.
pub(crate) const FILE: &str = "backout.toml";

/// More entries of one tree are not looked through; then somebody has to decide.
const ENTRIES_MAX: usize = 100_000;

/// How long a proposal waits that no file of rules asked for.
const WAIT: Duration = Duration::from_hours(24);

/// Lets a change pass unless a `backout.toml` protects one of its paths.
#[derive(Debug)]
pub struct Paths {
    /// The user's own file of rules.
    own: Option<PathBuf>,
    home: Option<PathBuf>,
    /// What was read, so that it is read once.
    read: Mutex<BTreeMap<PathBuf, Found>>,
    /// The ways to files of rules.
    ways: Mutex<BTreeMap<PathBuf, Arc<Way>>>,
    /// Which directories have no rules above them.
    free: Mutex<HashMap<PathBuf, bool>>,
    /// The rules that count in a directory.
    counting: Mutex<HashMap<PathBuf, Vec<Arc<Rules>>>>,
    /// Who tells people for us.
    keeper: Option<Keeper>,
    /// Where we are: the rules there count for files that have names there.
    here: Option<PathBuf>,
    /// Files with several names, by the places that were looked through.
    shared: Mutex<HashMap<Vec<PathBuf>, Arc<Shared>>>,
    /// What is wrong with the way to a file of rules, where that was looked at.
    astray: Mutex<HashMap<PathBuf, Option<Mistake>>>,
}

/// A file of rules: none, its rules, or what is wrong with it.
type Found = Option<Result<Arc<Rules>, Arc<[Mistake]>>>;

impl Paths {
    /// Takes the user's own file of rules and what `~` stands for in it.
    pub fn new(own: Option<PathBuf>, home: Option<PathBuf>) -> Self {
        Self {
            own,
            home,
            read: Mutex::default(),
            ways: Mutex::default(),
            free: Mutex::default(),
            counting: Mutex::default(),
            keeper: None,
            here: std::env::current_dir().ok(),
            shared: Mutex::default(),
            astray: Mutex::default(),
        }
    }

    /// Has a program tell people that something waits, so that nobody waits for them.
    #[must_use]
    pub fn told_by(mut self, keeper: Keeper) -> Self {
        self.keeper = Some(keeper);
        self
    }

    /// Tells everybody whom rules name that something waits, and waits until all are told or their time is up. Gives what went
    /// wrong.
    pub fn tell_of(&self, proposal: &Proposal) -> Vec<String> {
        notify::tell_now(self, proposal)
    }

    /// Says what the rules above a path say of it.
    fn rule_on(&self, path: &Path, target: &Target) -> Ruling {
        let above = path.ancestors().skip(1).map(|above| above.join(FILE));
        let files = above.chain(self.own.clone());
        files.fold(Ruling::Allow, |ruling, file| match self.rules_in(&file) {
            None => ruling,
            Some(Ok(rules)) => match self.astray(&file) {
                None => ruling.and(judge(&rules, path, target)),
                Some(mistake) => ruling.and(unreadable(&file, &[mistake], target)),
            },
            Some(Err(found)) => ruling.and(unreadable(&file, &found, target)),
        })
    }

    /// Lists the rules that count for a path: the user's own, then those of each directory from the root down. Files that
    /// cannot be understood are not among them: this gate refuses what they might be about.
    pub(crate) fn rules_for(&self, path: &Path) -> Vec<Arc<Rules>> {
        if self.is_free(path) {
            return Vec::new();
        }
        let directory = path.parent().unwrap_or(path);
        let mut counting = self.counting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rules) = counting.get(directory) {
            return rules.clone();
        }
        let rules = self.rules_above(path);
        counting.insert(directory.to_owned(), rules.clone());
        rules
    }

    /// Gives the rules that count for a path, or says which file of them cannot be understood.
    pub(crate) fn readable_rules_for(
        &self,
        path: &Path,
    ) -> Result<Vec<Arc<Rules>>, UnreadableRules> {
        if self.is_free(path) {
            return Ok(Vec::new());
        }
        for file in self.files_above(path) {
            if let Some(Err(mistakes)) = self.rules_in(&file) {
                let mistake = mistakes.first().map(ToString::to_string);
                let mistake = mistake.unwrap_or_default();
                return Err(UnreadableRules { file, mistake });
            }
        }
        Ok(self.rules_for(path))
    }

    fn rules_above(&self, path: &Path) -> Vec<Arc<Rules>> {
        let files = self.files_above(path).into_iter();
        let found = files.filter_map(|file| self.rules_in(&file));
        found.filter_map(Result::ok).collect()
    }

    /// Lists the files that may have rules for a path, the outermost first.
    fn files_above(&self, path: &Path) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = path.ancestors().skip(1).map(|at| at.join(FILE)).collect();
        files.extend(self.own.clone());
        files.reverse();
        files
    }

    fn rules_in(&self, file: &Path) -> Found {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = read.get(file) {
            return found.clone();
        }
        let found = self.load(file);
        read.insert(file.to_owned(), found.clone());
        found
    }

    /// Tells whether there is no file of rules above a path.
    fn is_free(&self, path: &Path) -> bool {
        let Some(directory) = path.parent().filter(|_| self.own_is_nothing()) else {
            return false;
        };
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(is_free) = free.get(directory) {
            return *is_free;
        }
        let mut above = directory.ancestors().map(|above| above.join(FILE));
        let is_free = above.all(|file| self.rules_in(&file).is_none());
        free.insert(directory.to_owned(), is_free);
        is_free
    }

    fn own_is_nothing(&self) -> bool {
        self.own
            .as_deref()
            .is_none_or(|own| self.rules_in(own).is_none())
    }

    fn load(&self, file: &Path) -> Found {
        let rules = self.read_anew(file)?;
        Some(rules.map(Arc::new).map_err(Arc::from))
    }

    /// Reads a file of rules, whatever was read of it before; none if there is none.
    pub(crate) fn read_anew(&self, file: &Path) -> Option<Result<Rules, Vec<Mistake>>> {
        let text = match text_of(file).transpose()? {
            Ok(text) => text,
            Err(what) => return Some(Err(vec![Mistake { what, place: None }])),
        };
        let roots = Roots {
            base: file.parent().unwrap_or(Path::new("/")),
            home: self.home.as_deref(),
            is_own: self.is_own(file),
        };
        Some(Rules::read(file, &text, &roots))
    }

    /// Gives the user's own file of rules.
    pub(crate) fn own_file(&self) -> Option<PathBuf> {
        self.own.clone()
    }

    /// Tells whether there are rules where we are.
    pub(crate) fn has_rules_here(&self) -> bool {
        let here = self.here.as_ref().map(|here| here.join(FILE));
        here.is_some_and(|inside| !self.rules_for(&inside).is_empty())
    }

    /// Tells whether a file is the user's own, by whichever name.
    pub(crate) fn is_own(&self, file: &Path) -> bool {
        let own = self.own.as_deref();
        own.is_some_and(|own| own == file || self.way_to(own).end == file)
    }

    /// Looks at all that lies in a tree which is written as one, as if it were at `place`.
    fn rule_below(&self, top: &Path, place: &Path, target: &Target, is_agents: bool) -> Ruling {
        let mut ruling = Ruling::Allow;
        let mut waiting = vec![(top.to_path_buf(), place.to_path_buf())];
        let mut count = 0_usize;
        while let Some((directory, place)) = waiting.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                count += 1;
                if count > ENTRIES_MAX {
                    return ruling.and(too_many(target));
                }
                if is_agents && entry.file_name() == FILE {
                    ruling = ruling.and(governs(&place.join(FILE), target));
                }
                let place = place.join(entry.file_name());
                ruling = ruling.and(self.rule_on(&place, target));
                if let Ruling::Deny { .. } = ruling {
                    return ruling;
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    waiting.push((entry.path(), place));
                }
            }
        }
        ruling
    }

    /// Finds the file of rules that an agent would change, or would take from where it counts, by writing a path.
    fn governed_by(&self, path: &Path, reach: Reach) -> Option<PathBuf> {
        if path.file_name().is_some_and(|name| name == FILE) {
            return Some(path.to_owned());
        }
        let above = path.ancestors().skip(1).map(|above| above.join(FILE));
        let mut files = above.chain(self.own.clone());
        files.find(|file| self.leads_to(path, file, reach))
    }

    /// Tells whether a path leads to a file of rules: it is a link on its way, the file that it is a link to, or a directory above
    /// that goes as one.
    fn leads_to(&self, path: &Path, file: &Path, reach: Reach) -> bool {
        if self.rules_in(file).is_none() {
            return false;
        }
        let way = self.way_to(file);
        let mut names = way.links.iter().chain([&way.end]);
        names.any(|name| name == path || (reach == Reach::Tree && name.starts_with(path)))
    }

    fn way_to(&self, file: &Path) -> Arc<Way> {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        let way = ways.entry(file.to_owned());
        Arc::clone(way.or_insert_with(|| Arc::new(Way::of(file))))
    }

    /// The same for a call of a command, which moves `path` if there is a `to`. Rules that it makes count afterwards.
    fn taken_by_a_call(&self, path: &Path, to: Option<&Path>) -> Option<PathBuf> {
        let reach = match to {
            Some(_) => Reach::Tree,
            None => Reach::Node,
        };
        let mut names = [Some(path), to].into_iter().flatten();
        let is_there = |file: &PathBuf| self.rules_in(file).is_some();
        let found = names.find_map(|name| self.governed_by(name, reach).filter(is_there));
        found.or_else(|| to.and_then(|_| rules_below(path)))
    }
}

/// Finds a file of rules in a tree that is moved, as near to its top as there is one. More than some names are not looked at.
fn rules_below(top: &Path) -> Option<PathBuf> {
    let mut waiting = VecDeque::from([top.to_path_buf()]);
    let mut left = ENTRIES_MAX;
    while let Some(directory) = waiting.pop_front() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            left = left.checked_sub(1)?;
            if entry.file_name() == FILE {
                return Some(entry.path());
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push_back(entry.path());
            }
        }
    }
    None
}

/// Reads a file of rules; none if there is no such name. Whatever is no file is not opened: a pipe would keep us waiting.
fn text_of(file: &Path) -> Result<Option<String>, String> {
    let said = |error: io::Error| error.to_string();
    let is_nothing = |error: &io::Error| {
        let kind = error.kind();
        matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    };
    match file.symlink_metadata() {
        Err(error) if is_nothing(&error) => return Ok(None),
        found => found.map_err(said)?,
    };
    match file.metadata() {
        Err(error) if is_nothing(&error) => {
            return Err("it is a link that leads nowhere".to_owned());
        }
        found if !found.as_ref().is_ok_and(fs::Metadata::is_file) => {
            found.map_err(said)?;
            return Err("it is not a file".to_owned());
        }
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let opened = options.read(true).custom_flags(flags).open(file);
    let mut text = String::new();
    opened
        .map_err(said)?
        .read_to_string(&mut text)
        .map_err(said)?;
    Ok(Some(text))
}

impl Gate for Paths {
    fn begins(&self) {
        self.read
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.ways
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.counting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.shared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.astray
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    fn look(&self, change: &StagedChange<'_>) -> Ruling {
        // Who wrote it was asked before, and may have closed what he made since.
        if change.has_happened {
            return Ruling::Allow;
        }
        let mut ruling = Ruling::Allow;
        let is_agents = change.agent.is_some();
        for target in change.targets {
            let Some(path) = target.file() else {
                continue;
            };
            let path = path.as_path();
            ruling = ruling.and(self.rule_on(path, target));
            if target.reach() == Reach::Tree {
                ruling = ruling.and(self.rule_below(path, path, target, is_agents));
            }
            if change.verb.may_retouch() {
                ruling = ruling.and(self.rule_on_other_name(path, target));
            }
            if is_agents && let Some(file) = self.governed_by(path, target.reach()) {
                ruling = ruling.and(governs(&file, target));
            }
        }
        for (name, _) in change.staged.through() {
            let target = Target::node(name.clone());
            ruling = ruling.and(self.rule_on(name.as_path(), &target));
        }
        ruling = ruling.and(self.rule_on_led_to(change, is_agents));
        for (file, name) in change.staged.linked() {
            let more = self.rule_on_more_names(file.as_path(), &Target::node(name));
            ruling = ruling.and(more);
        }
        // What lies in a tree that moves comes to lie at the new place.
        for (from, to) in change.staged.moved() {
            let target = Target::tree(to.clone());
            let below = self.rule_below(from.as_path(), to.as_path(), &target, is_agents);
            ruling = ruling.and(below);
            for name in [&from, &to].into_iter().filter(|_| is_agents) {
                if let Some(file) = self.governed_by(name.as_path(), Reach::Tree) {
                    ruling = ruling.and(governs(&file, &target));
                }
            }
        }
        ruling
    }

    fn forbids(&self, agent: Option<&AgentId>, path: &Path, to: Option<&Path>) -> Option<Reason> {
        let is_free = self.is_free(path) && to.is_none_or(|to| self.is_free(to));
        // Whoever gave no name may be an agent all the same; what it moves as one is not looked through.
        let governed = if agent.is_some() || !is_free {
            self.taken_by_a_call(path, to)
        } else {
            None
        };
        if governed.is_none() && is_free {
            return None;
        }
        let target = Target::node(TargetPath::new(path).ok()?);
        let mut ruling = self.rule_on(path, &target);
        if let Some(file) = governed {
            ruling = ruling.and(governs(&file, &target));
        }
        if let Some(to) = to {
            ruling = ruling.and(self.rule_on(to, &target));
            for place in [path, to] {
                ruling = ruling.and(self.rule_below(path, place, &target, false));
            }
        }
        match ruling {
            Ruling::Allow | Ruling::Warn { .. } => None,
            Ruling::Deny { reasons } | Ruling::Ask { reasons, .. } => reasons.into_iter().next(),
        }
    }

    fn forbids_by_other_names(&self, path: &Path) -> Option<Reason> {
        let target = Target::node(TargetPath::new(path).ok()?);
        match self.rule_on_other_name(path, &target) {
            Ruling::Allow | Ruling::Warn { .. } => None,
            Ruling::Deny { reasons } | Ruling::Ask { reasons, .. } => reasons.into_iter().next(),
        }
    }

    fn waits(&self, proposal: &Proposal) -> Vec<String> {
        notify::tell(self, self.keeper.as_ref(), proposal)
    }
}

/// Says what one file of rules says of a path.
fn judge(rules: &Rules, path: &Path, target: &Target) -> Ruling {
    let rule =
        |word: &str, pattern: &str| format!("{word} `{pattern}` in {}", rules.file.display());
    if let Some(pattern) = rules.denies(path) {
        let found = format!("`{}` is protected", path.display());
        return Ruling::Deny {
            reasons: vec![
                reason(rule("deny", pattern), target, found)
                    .mended_by("leave it as it is, or ask a person to change the rule"),
            ],
        };
    }
    let Some(pattern) = rules.asks(path) else {
        return Ruling::Allow;
    };
    let found = format!("a write of `{}` has to be approved", path.display());
    let expires = rules.expires.map(|wait| u64::try_from(wait.as_millis()));
    let waits_ms_max = expires.transpose().unwrap_or(Some(u64::MAX));
    Ruling::Ask {
        reasons: vec![reason(rule("ask", pattern), target, found)],
        waits_ms_max,
    }
}

fn reason(rule: String, target: &Target, found: String) -> Reason {
    Reason::new(rule, found).about(target.clone())
}

fn ask(rule: &str, target: &Target, found: String) -> Ruling {
    Ruling::Ask {
        reasons: vec![reason(rule.to_owned(), target, found)],
        waits_ms_max: u64::try_from(WAIT.as_millis()).ok(),
    }
}

fn governs(file: &Path, target: &Target) -> Ruling {
    let file = file.display();
    let found = if target
        .file()
        .is_some_and(|path| path.as_path().ends_with(FILE))
    {
        format!("`{target}` says what may be written, and an agent wants to change it")
    } else {
        format!("`{file}` says what may be written, and an agent wants to change what leads to it")
    };
    ask("rules are changed by people", target, found)
}

fn too_many(target: &Target) -> Ruling {
    let found = format!("`{target}` holds more than {ENTRIES_MAX} names, too many to look through");
    ask("protected paths", target, found)
}

/// Refuses what might be protected, since nobody can tell.
fn unreadable(file: &Path, mistakes: &[Mistake], target: &Target) -> Ruling {
    let file = file.display();
    let reasons = mistakes.iter().map(|mistake| {
        let found = format!("`{file}` cannot be understood: {mistake}");
        reason("rules must be readable".to_owned(), target, found)
            .mended_by(format!("mend `{file}`"))
    });
    Ruling::Deny {
        reasons: reasons.collect(),
    }
}
