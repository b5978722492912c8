//! Who is how fast: every contender makes and takes back the same steps, in turns.
//!
//! After each undo the touched files are compared with what they were. A time counts only if they are all back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::fidelity::{self, Lost};
use super::foreign::{self, Foreign};
use super::{Peer, Step, Undone, World, contenders, tree};
use crate::Failure;
use crate::process::run_well;
use crate::report::say;

/// What is timed, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    WriteOne,
    UndoOne,
    WriteForty,
    UndoForty,
    WriteMany,
    UndoMany,
    RemoveMany,
    UndoRemoval,
}

/// A median, or why there is none.
pub(super) type Time = Result<Duration, String>;

/// Where one contender came in.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) name: &'static str,
    /// Or why it took no part.
    pub(super) version: Result<String, String>,
    pub(super) how: &'static str,
    /// By the number of files in the tree.
    pub(super) times: BTreeMap<(usize, Work), Time>,
    /// By the number of files in the tree.
    pub(super) stored_bytes: BTreeMap<usize, u64>,
    pub(super) lost: Option<Lost>,
    pub(super) foreign: Option<Foreign>,
}

/// A tree to race on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    pub(super) files: usize,
    /// How often the small steps are made.
    pub(super) rounds: usize,
    /// How often half of the tree is written and removed.
    pub(super) big_rounds: usize,
}

/// The whole event.
#[derive(Debug)]
pub(super) struct Race {
    place: PathBuf,
    backout: PathBuf,
    pub(super) courses: Vec<Course>,
    /// Contenders by name; none is everybody.
    pub(super) only: Vec<&'static str>,
}

/// A contender on a course.
struct Runner {
    peer: Box<dyn Peer>,
    world: World,
    times: BTreeMap<Work, Vec<Duration>>,
    failures: BTreeMap<Work, String>,
}

impl Race {
    pub(super) fn new(place: &Path, backout: &Path) -> Self {
        let course = |files, rounds, big_rounds| Course {
            files,
            rounds,
            big_rounds,
        };
        Self {
            place: place.to_path_buf(),
            backout: backout.to_path_buf(),
            courses: vec![course(2_000, 5, 0), course(20_000, 3, 1)],
            only: Vec::new(),
        }
    }

    /// Runs everything. A contender that cannot take part is listed with the reason.
    pub(super) fn run(&self) -> Result<Vec<Standing>, Failure> {
        let mut standings = Vec::new();
        for peer in self.peers() {
            standings.push(Standing {
                name: peer.name(),
                version: peer.version().map_err(|why| why.to_string()),
                how: peer.how(),
                times: BTreeMap::new(),
                stored_bytes: BTreeMap::new(),
                lost: None,
                foreign: None,
            });
        }
        for course in &self.courses {
            self.run_course(*course, &mut standings)?;
        }
        for standing in &mut standings {
            if standing.version.is_err() || standing.name.starts_with("bare") {
                continue;
            }
            say(&format!("  corners of {}", standing.name));
            let place = self.place.join("corners");
            standing.lost = Some(fidelity::examine(&place, || self.peer(standing.name)));
            standing.foreign = Some(foreign::examine(&place, self.peer(standing.name)));
        }
        Ok(standings)
    }

    fn peers(&self) -> Vec<Box<dyn Peer>> {
        let mut peers = contenders(&self.backout);
        peers.retain(|peer| self.only.is_empty() || self.only.contains(&peer.name()));
        peers
    }

    /// A fresh contender.
    fn peer(&self, name: &str) -> Box<dyn Peer> {
        let mut peers = contenders(&self.backout);
        peers.retain(|peer| peer.name() == name);
        peers.pop().expect("the name is that of a contender")
    }

    fn run_course(&self, course: Course, standings: &mut [Standing]) -> Result<(), Failure> {
        let place = self.place.join(course.files.to_string());
        let pristine = place.join("pristine");
        tree::make(&pristine, course.files, 0)?;
        let mut runners = Vec::new();
        for standing in standings
            .iter_mut()
            .filter(|standing| standing.version.is_ok())
        {
            say(&format!("  {} gets {} files", standing.name, course.files));
            let world = World::new(&place.join(standing.name.replace(['*', '`', ' '], "")))?;
            copy(&pristine, Path::new("."), &world)?;
            let mut peer = self.peer(standing.name);
            match peer.prepare(&world) {
                Ok(()) => runners.push(Runner {
                    peer,
                    world,
                    times: BTreeMap::new(),
                    failures: BTreeMap::new(),
                }),
                Err(why) => standing.version = Err(format!("cannot be prepared: {why}")),
            }
        }
        for (step, works, rounds) in steps(course) {
            say(&format!("  {} files: {:?}", course.files, works.0));
            for round in 0..rounds {
                for runner in &mut runners {
                    runner.turn(&step, works, round as u64 + 1, &pristine)?;
                }
            }
        }
        for runner in runners {
            let name = runner.peer.name();
            if let Some(standing) = standings.iter_mut().find(|one| one.name == name) {
                runner.finish(course, standing)?;
            }
        }
        fs::remove_dir_all(&place)?;
        Ok(())
    }
}

/// The steps of a course: what is done, what is timed, how often.
fn steps(course: Course) -> Vec<(Step, (Work, Work), usize)> {
    let forty = PathBuf::from("a").join(tree::directory_name(1));
    let one = forty.join(tree::file_name(13));
    let all = PathBuf::from("a");
    let (rounds, big_rounds) = (course.rounds, course.big_rounds);
    vec![
        (Step::Write(one), (Work::WriteOne, Work::UndoOne), rounds),
        (
            Step::Write(forty),
            (Work::WriteForty, Work::UndoForty),
            rounds,
        ),
        (
            Step::Write(all.clone()),
            (Work::WriteMany, Work::UndoMany),
            big_rounds,
        ),
        (
            Step::Remove(all),
            (Work::RemoveMany, Work::UndoRemoval),
            big_rounds,
        ),
    ]
}

impl Runner {
    /// One step and its undo. What somebody before left in memory is synced first, so that nobody pays for another.
    fn turn(
        &mut self,
        step: &Step,
        works: (Work, Work),
        version: u64,
        pristine: &Path,
    ) -> Result<(), Failure> {
        self.world.stage(step, version)?;
        run_well(self.world.command("sync").arg("--file-system").arg("."))?;
        let begun = Instant::now();
        let stepped = self.peer.step(&self.world, step);
        self.note(works.0, begun, stepped);
        run_well(self.world.command("sync").arg("--file-system").arg("."))?;
        let begun = Instant::now();
        let result = match self.peer.undo(&self.world, step) {
            Ok(Undone::Done) => Ok(()),
            Ok(Undone::Refused(why)) => Err(why.into()),
            Err(why) => Err(why),
        };
        self.note(works.1, begun, result);
        let missing = different(pristine, step.at(), &self.world)?;
        if missing > 0 {
            self.failures
                .entry(works.1)
                .or_insert_with(|| format!("{missing} files did not come back"));
            let at = self.world.tree.join(step.at());
            if at.is_dir() {
                fs::remove_dir_all(&at)?;
            }
            copy(pristine, step.at(), &self.world)?;
        }
        Ok(())
    }

    fn note(&mut self, work: Work, begun: Instant, result: Result<(), Failure>) {
        let time = begun.elapsed();
        match result {
            Ok(()) => self.times.entry(work).or_default().push(time),
            Err(why) => {
                self.failures.entry(work).or_insert(why.to_string());
            }
        }
    }

    fn finish(self, course: Course, standing: &mut Standing) -> Result<(), Failure> {
        let stores = self.peer.stores(&self.world);
        let bytes = World::bytes_below(&stores)?;
        standing.stored_bytes.insert(course.files, bytes);
        for (work, mut times) in self.times {
            times.sort();
            if let Some(median) = times.get(times.len() / 2) {
                standing.times.insert((course.files, work), Ok(*median));
            }
        }
        for (work, why) in self.failures {
            standing.times.insert((course.files, work), Err(why));
        }
        Ok(())
    }
}

/// Puts a part of the pristine tree into a world.
fn copy(pristine: &Path, at: &Path, world: &World) -> Result<(), Failure> {
    let mut copy = world.command("cp");
    copy.current_dir(pristine)
        .args(["-a", "--parents"])
        .arg(at)
        .arg(&world.tree);
    run_well(&mut copy)?;
    Ok(())
}

/// How many files below `at` are not what they were.
fn different(pristine: &Path, at: &Path, world: &World) -> Result<usize, Failure> {
    let mut paths = vec![at.to_path_buf()];
    if pristine.join(at).is_dir() {
        let inside = tree::files_below(&pristine.join(at))?;
        paths = inside.into_iter().map(|path| at.join(path)).collect();
    }
    let mut different = 0;
    for path in paths {
        let was = fs::read(pristine.join(&path))?;
        let is_back = fs::read(world.tree.join(&path)).is_ok_and(|is| is == was);
        different += usize::from(!is_back);
    }
    Ok(different)
}
