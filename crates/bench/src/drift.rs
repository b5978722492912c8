//! What it costs to look for drift: a first look, a look at rest, and a look after ten thousand changes by others.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use backout_drivers::file::FileRequest;
use backout_engine::{Engine, Settings, Watcher};
use backout_model::drift::DriftNote;

use crate::Failure;
use crate::report::Row;

const FILES: usize = 50_000;
const PER_DIRECTORY: usize = 500;
const CHANGES: usize = 10_000;

/// How long a watch is left alone.
const ALONE: Duration = Duration::from_secs(10);

/// Measures looks of a watch at many recorded files.
pub(crate) fn measure(directory: &Path) -> Result<Vec<Row>, Failure> {
    let (engine, copy) = recorded(directory)?;
    let mut watcher = Watcher::new(&engine, Vec::new(), Duration::from_mins(1));
    let first = watcher.round()?;
    // What is younger than two seconds is compared by its bytes.
    std::thread::sleep(Duration::from_secs(3));
    watcher.round()?;
    let begun = Instant::now();
    let idle = watcher.round()?;
    let at_rest = begun.elapsed();
    let share = share_at_rest(&mut watcher)?;
    for number in 0..CHANGES {
        let home = copy.join((number / PER_DIRECTORY).to_string());
        fs::write(home.join(number.to_string()), "theirs")?;
    }
    let begun = Instant::now();
    let stormy = watcher.round()?;
    let storm = begun.elapsed();
    let found = stormy.news.iter().map(|note| match note {
        DriftNote::Detected(drift) => drift.count,
        DriftNote::Resolved(_) | DriftNote::Ignoring { .. } | DriftNote::Heeding { .. } => 0,
    });
    let found: u64 = found.sum();
    let row = |work: String, measured: String, kept: Option<bool>| Row {
        work,
        measured,
        promise: kept.map_or_else(String::new, |_| "all, and few notes".to_owned()),
        kept,
    };
    let millis = |time: Duration| format!("{} ms", time.as_millis());
    Ok(vec![
        row(
            format!("drift: a first look at {} recorded names", first.targets),
            millis(first.took),
            None,
        ),
        row(
            format!(
                "drift: a look at rest, {} names in {} watched directories",
                idle.targets, idle.directories
            ),
            format!(
                "{}; between looks {:.2} % of one processor",
                millis(at_rest),
                share * 100.0
            ),
            None,
        ),
        row(
            format!("drift: a look after {CHANGES} changes by others"),
            format!(
                "{}, {found} found, {} notes",
                millis(storm),
                stormy.news.len()
            ),
            Some(found == CHANGES as u64 && stormy.news.len() <= 64),
        ),
    ])
}

/// Makes a store that has recorded many files, and says where they are.
fn recorded(directory: &Path) -> Result<(Engine, PathBuf), Failure> {
    let (source, copy) = (directory.join("source"), directory.join("copy"));
    for number in 0..FILES {
        let home = source.join((number / PER_DIRECTORY).to_string());
        if number % PER_DIRECTORY == 0 {
            fs::create_dir_all(&home)?;
        }
        fs::write(home.join(number.to_string()), number.to_string())?;
    }
    let settings = Settings::new(directory.join("state"));
    let engine = Engine::open(settings, backout_drivers::local)?;
    let request = FileRequest::Copy {
        from: source,
        to: copy.clone(),
        recursive: true,
        replace: false,
    };
    engine.write(&request)?;
    Ok((engine, copy))
}

/// Says which part of one processor a watch takes to which nothing happens.
fn share_at_rest(watcher: &mut Watcher<'_>) -> Result<f64, Failure> {
    let (begun, before) = (Instant::now(), processor_time()?);
    watcher.wait(&|| begun.elapsed() >= ALONE)?;
    let used = processor_time()?.saturating_sub(before);
    Ok(used.as_secs_f64() / begun.elapsed().as_secs_f64())
}

/// Gives the processor time that this thread has had.
fn processor_time() -> Result<Duration, Failure> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = text.split(' ').next().ok_or("schedstat is empty")?;
    Ok(Duration::from_nanos(nanos.parse()?))
}
