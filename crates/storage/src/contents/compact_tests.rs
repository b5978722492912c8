//! Compaction: how small it gets, that nobody notices, and that no chain is too long or a circle.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use backout_model::Status;
use backout_model::ports::ReadContents;
use proptest::collection::vec;
use proptest::prelude::*;

use super::super::fixture::{HOUR_MS, World, id, noise};
use super::*;

/// Ten kibibytes of real code.
fn source() -> Vec<String> {
    let mut left: usize = 10 * 1024;
    let fits = |line: &&str| {
        left = left.saturating_sub(line.len() + 1);
        left > 0
    };
    include_str!("compact.rs")
        .lines()
        .take_while(fits)
        .map(str::to_owned)
        .collect()
}

fn text(lines: &[String]) -> Vec<u8> {
    lines.join("\n").into_bytes()
}

/// Edits one line after the other and records each edit as an operation.
fn edit(world: &World, path: &str, first: u64, edits: u64) -> Vec<Vec<u8>> {
    let mut lines = source();
    let mut versions = vec![text(&lines)];
    for n in 0..edits {
        let at = usize::try_from(n * 37).unwrap() % lines.len();
        lines[at] = format!(
            "    let changed_{n} = self.reader.take({}, offset);",
            n * 31 + 7
        );
        versions.push(text(&lines));
        let [.., before, after] = versions.as_slice() else {
            panic!("two versions")
        };
        world.write(first + n, path, &[before, after]);
    }
    versions
}

fn all_are_readable(world: &World, versions: &[Vec<u8>]) {
    for (number, version) in versions.iter().enumerate() {
        assert!(world.read(version), "version {number}");
    }
}

/// Reads how many deltas each content is away from a whole one, and finds circles.
fn deepest(world: &World) -> usize {
    let connection = world.raw();
    let mut statement = connection
        .prepare("SELECT digest, base FROM content")
        .unwrap();
    let rows = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    let bases: HashMap<Vec<u8>, Option<Vec<u8>>> = rows.map(Result::unwrap).collect();
    let depth = |digest: &Vec<u8>| {
        let up = |at: &&Vec<u8>| bases[*at].as_ref();
        let steps = std::iter::successors(Some(digest), up).take(1000).count() - 1;
        assert!(steps < 999, "a circle");
        steps
    };
    bases.keys().map(depth).max().unwrap_or(0)
}

#[test]
fn fifty_edits_of_a_small_file_take_six_kilobytes() {
    let world = World::new();
    let versions = edit(&world, "/src/main.rs", 1, 50);
    assert!(
        (10_000..=10_240).contains(&versions[0].len()),
        "{}",
        versions[0].len()
    );
    let before = world.store.stored_bytes().unwrap().inline;
    let report = world.compact();
    let after = world.count("SELECT sum(length(bytes)) FROM content");
    println!("50 edits: {before} bytes before, {after} after");
    assert!(after <= 6000, "{after} bytes");
    assert!(report.is_complete);
    assert_eq!(report.damaged, 0);
    assert_eq!(
        before - report.bytes_before + report.bytes_after,
        after.cast_unsigned()
    );
    assert_eq!(
        world.store.stored_bytes().unwrap().inline,
        after.cast_unsigned()
    );
    all_are_readable(&world, &versions);
    assert_eq!(deepest(&world), 50);
    // Nothing is left to do.
    assert_eq!(
        world.compact(),
        CompactReport {
            is_complete: true,
            ..CompactReport::default()
        }
    );
}

#[test]
fn compacting_after_every_edit_comes_to_the_same() {
    let world = World::new();
    let mut lines = source();
    let mut versions = vec![text(&lines)];
    for n in 0..50_usize {
        lines[n * 3] = format!("    let changed_{n} = self.reader.take({n}, offset);");
        versions.push(text(&lines));
        world.write(n as u64, "/f", &[&versions[n], &versions[n + 1]]);
        assert!(world.compact().is_complete);
    }
    let after = world.count("SELECT sum(length(bytes)) FROM content");
    assert!(after <= 6000, "{after} bytes");
    all_are_readable(&world, &versions);
}

#[test]
fn readers_do_not_notice() {
    let world = World::new();
    let versions = edit(&world, "/f", 1, 60);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (store, versions, is_over) = (world.again(), &versions, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    for version in versions {
                        let read = ReadContents::read(&store, &Digest::of(version));
                        assert_eq!(&read.unwrap(), version);
                    }
                }
            });
        }
        // Two at once, a few operations at a time.
        scope.spawn(|| {
            let other = world.again();
            for budget in 1..30 {
                let budget = CompactBudget {
                    operations_max: budget % 4,
                    bytes_max: u64::MAX,
                };
                other.compact(budget, &mut |_, _| {}).unwrap();
            }
        });
        let budget = CompactBudget {
            operations_max: 3,
            bytes_max: u64::MAX,
        };
        while !world
            .store
            .compact(budget, &mut |_, _| {})
            .unwrap()
            .is_complete
        {}
        is_over.store(true, Ordering::Relaxed);
    });
    all_are_readable(&world, &versions);
    world.counts_are_right();
    assert!(world.count("SELECT sum(length(bytes)) FROM content") < 10_000);
}

#[test]
fn a_long_history_has_whole_versions_in_between() {
    let world = World::new();
    let versions = edit(&world, "/f", 1, 200);
    world.compact();
    all_are_readable(&world, &versions);
    assert_eq!(deepest(&world), 64);
    let whole = world.count("SELECT count(*) FROM content WHERE base IS NULL");
    assert!((4..=5).contains(&whole), "{whole}");
}

#[test]
fn large_contents_have_short_chains_and_very_large_ones_none() {
    let world = World::new();
    // Repeated, so that the database has less to write.
    let mut bytes = noise(1, 1 << 20).repeat(20);
    let mut versions = vec![bytes.clone()];
    for n in 0..6_u8 {
        bytes[usize::from(n) << 20] ^= 0xff;
        versions.push(bytes.clone());
        let [.., before, after] = versions.as_slice() else {
            panic!("two versions")
        };
        world.write(u64::from(n), "/f", &[before, after]);
    }
    let huge = [vec![0; 65 << 20], vec![0; (65 << 20) + 1]];
    world.write(90, "/huge", &[&huge[0], &huge[1]]);
    world.compact();
    assert_eq!(deepest(&world), 3, "3 × 20 MiB are less than 64 MiB");
    assert_eq!(
        world.count("SELECT count(*) FROM content WHERE size > 67108864 AND form = 2"),
        0
    );
    all_are_readable(&world, &versions);
}

#[test]
fn going_back_and_forth_makes_no_circle() {
    let world = World::new();
    let (one, two) = (text(&source()), text(&source()[1..]));
    for n in 0..10 {
        let pair = if n % 2 == 0 {
            [one.as_slice(), &two]
        } else {
            [two.as_slice(), &one]
        };
        world.write(n, "/f", &pair);
        world.compact();
    }
    assert_eq!(deepest(&world), 1);
    all_are_readable(&world, &[one, two]);
}

#[test]
fn versions_that_somebody_else_made_in_between_are_paired_too() {
    let world = World::new();
    let versions: Vec<Vec<u8>> = (0..6).map(|n| text(&source()[n..])).collect();
    // Between two operations a person edited the file.
    for (n, pair) in versions.chunks_exact(2).enumerate() {
        world.write(n as u64, "/f", &[&pair[0], &pair[1]]);
    }
    world.compact();
    assert_eq!(
        world.count("SELECT count(*) FROM content WHERE form = 2"),
        5
    );
    all_are_readable(&world, &versions);
}

#[test]
fn an_operation_on_many_files_is_paired_by_nearness() {
    let world = World::new();
    let mut contents = Vec::new();
    for n in 0..20_usize {
        let before = [noise(n as u64, 3000 + 40 * n), text(&source()[n..n + 20])].concat();
        let after = [before.as_slice(), b" and a little more"].concat();
        contents.extend([before, after]);
    }
    let borrowed: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
    world.arm(1, &["/a", "/b", "/c"], &borrowed);
    world.compact();
    assert_eq!(
        world.count("SELECT count(*) FROM content WHERE form = 2"),
        20
    );
    all_are_readable(&world, &contents);
}

#[test]
fn contents_that_have_nothing_in_common_are_left_apart() {
    let world = World::new();
    let contents: Vec<Vec<u8>> = (0..6).map(|n| noise(n, 5000)).collect();
    let borrowed: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
    world.arm(1, &["/a", "/b", "/c"], &borrowed);
    world.write(2, "/a", &[&contents[0], &contents[1]]);
    world.compact();
    assert_eq!(
        world.count("SELECT count(*) FROM content WHERE form = 2"),
        0
    );
}

#[test]
fn a_damaged_version_is_left_alone_and_counted() {
    let world = World::new();
    let versions = edit(&world, "/f", 1, 5);
    let damaged = Digest::of(&versions[3]);
    world
        .raw()
        .execute(
            "UPDATE content SET bytes = x'00' WHERE digest = ?1",
            [damaged.as_bytes().as_slice()],
        )
        .unwrap();
    assert!(world.compact().damaged > 0);
    for (number, version) in versions.iter().enumerate() {
        assert_eq!(world.read(version), number != 3, "version {number}");
    }
}

#[test]
fn work_is_taken_up_where_it_stopped() {
    let world = World::new();
    let versions = edit(&world, "/f", 1, 30);
    let budget = CompactBudget {
        operations_max: 7,
        bytes_max: u64::MAX,
    };
    let mut seen = Vec::new();
    let mut looked_at = 0;
    loop {
        let report = world
            .store
            .compact(budget, &mut |done, total| seen.push((done, total)))
            .unwrap();
        looked_at += report.operations;
        if report.is_complete {
            break;
        }
    }
    assert_eq!(looked_at, 30);
    assert_eq!(seen.first(), Some(&(1, 30)));
    assert_eq!(seen.last(), Some(&(2, 2)));
    assert_eq!(
        world.count("SELECT count(*) FROM content WHERE form = 2"),
        30
    );
    all_are_readable(&world, &versions);
}

/// One step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Write {
        file: u8,
        at: prop::sample::Index,
        put: Vec<u8>,
        keep: bool,
    },
    Batch {
        at: prop::sample::Index,
    },
    Compact {
        operations_max: u64,
    },
    Collect {
        hours: i64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3_u8, any::<prop::sample::Index>(), vec(any::<u8>(), 1..50), prop::bool::weighted(0.8))
            .prop_map(|(file, at, put, keep)| Step::Write { file, at, put, keep }),
        1 => any::<prop::sample::Index>().prop_map(|at| Step::Batch { at }),
        2 => (1..9_u64).prop_map(|operations_max| Step::Compact { operations_max }),
        2 => (0..40_i64).prop_map(|hours| Step::Collect { hours }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// Whatever is written, compacted and collected in whatever order: each operation that is retained has its
    /// images, and no image stays that nobody needs.
    #[test]
    fn a_random_history_keeps_exactly_what_is_needed(steps in vec(step(), 1..60)) {
        let world = World::new();
        let retention = backout_model::Retention {
            committed_ms_max: 12 * HOUR_MS,
            versions_per_file_max: 5,
            ..backout_model::Retention::standard()
        };
        let mut files = vec![text(&source()), noise(5, 3000), b"small".repeat(30)];
        let mut images: HashMap<u64, Vec<Vec<u8>>> = HashMap::new();
        for (number, step) in steps.iter().enumerate() {
            let number = number as u64;
            match step {
                Step::Write { file, at, put, keep } => {
                    let current = &mut files[usize::from(*file)];
                    let before = current.clone();
                    let at = at.index(current.len());
                    current.splice(at..(at + 5).min(before.len()), put.iter().copied());
                    world.arm(number, &[&format!("/{file}")], &[&before, current]);
                    images.insert(number, vec![before, current.clone()]);
                    let status = if *keep { Status::Committed } else { Status::Applied };
                    world.bring(id(number), status);
                }
                Step::Batch { at } => {
                    let before = files.clone();
                    for file in &mut files {
                        let at = at.index(file.len());
                        file[at] ^= 1;
                    }
                    let all: Vec<&[u8]> = before.iter().chain(&files).map(Vec::as_slice).collect();
                    world.arm(number, &["/0", "/1", "/2"], &all);
                    images.insert(number, all.iter().map(|bytes| bytes.to_vec()).collect());
                    world.bring(id(number), Status::Committed);
                }
                Step::Compact { operations_max } => {
                    let budget = CompactBudget { operations_max: *operations_max, bytes_max: u64::MAX };
                    let report = world.store.compact(budget, &mut |_, _| {}).unwrap();
                    prop_assert_eq!(report.damaged, 0);
                }
                Step::Collect { hours } => {
                    world.pass(hours * HOUR_MS);
                    for (gone, _) in world.gc(&retention).expired {
                        images.remove(&gone.bits());
                    }
                    let needed: std::collections::HashSet<Digest> =
                        images.values().flatten().map(|bytes| Digest::of(bytes)).collect();
                    let stored = world.count("SELECT count(*) FROM content");
                    prop_assert_eq!(needed.len(), usize::try_from(stored).unwrap());
                }
            }
        }
        for (number, contents) in &images {
            for content in contents {
                prop_assert!(world.read(content), "an image of operation {}", number);
            }
        }
        prop_assert!(deepest(&world) <= 64);
        world.counts_are_right();
    }
}

#[cfg(feature = "testing")]
mod crashes {
    use super::super::super::fixture::{dies_at, state_of_child};
    use super::*;

    #[test]
    fn child_that_compacts() {
        let Some(state) = state_of_child() else {
            return;
        };
        World::at(&state).compact();
    }

    #[test]
    fn a_compaction_that_dies_is_finished_by_the_next() {
        let test = "contents::compact::tests::crashes::child_that_compacts";
        for point in [
            "compact.before-write",
            "compact.written",
            "compact.before-write#2",
        ] {
            let world = World::new();
            let versions = edit(&world, "/f", 1, 120);
            assert!(dies_at(test, &world.path(""), point), "{point}");
            all_are_readable(&world, &versions);
            world.counts_are_right();
            assert!(world.compact().is_complete);
            all_are_readable(&world, &versions);
            let deltas = world.count("SELECT count(*) FROM content WHERE form = 2");
            assert!(deltas >= 117, "{point}: {deltas} deltas");
        }
    }
}
