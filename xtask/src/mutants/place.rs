//! A place where tests run with a switch of their own, so that several changes are judged at once.
//!
//! The switch is a file, and the program that the tests start finds it by its name. Root gives each place a view of
//! the file system in which another directory is in the place of the one it is in. Anybody else has one place.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many tests run at once. They wait for disks and processes more than they compute.
const PLACES: usize = 4;

/// What a place does before it becomes the test.
const ENTER: &str = "mount --bind $1 $2 && shift 2 && exec \"$@\"";

/// The directory of the switch, where all programs look for it.
pub(crate) const SWITCH: &str = "switch";

#[derive(Debug)]
pub(crate) struct Place {
    /// Where programs look for the switch.
    all: PathBuf,
    /// Where its own is.
    own: PathBuf,
}

impl Place {
    fn make(all: &Path, own: PathBuf) -> Result<Self, String> {
        let place = Self {
            all: all.to_owned(),
            own,
        };
        fs::create_dir_all(&place.own).map_err(|error| error.to_string())?;
        place.switch(0)?;
        place.take_seen()?;
        Ok(place)
    }

    /// Switches one change on.
    pub(crate) fn switch(&self, id: usize) -> Result<(), String> {
        fs::write(self.own.join("which"), id.to_string()).map_err(|error| error.to_string())
    }

    /// Tells which changes were come by, and forgets them.
    pub(crate) fn take_seen(&self) -> Result<BTreeSet<usize>, String> {
        let path = self.own.join("seen");
        let seen = fs::read_to_string(&path).unwrap_or_default();
        // Tests start the program as another user, too.
        let open = || fs::set_permissions(&path, fs::Permissions::from_mode(0o666));
        let emptied = fs::write(&path, "").and_then(|()| open());
        emptied.map_err(|error| error.to_string())?;
        Ok(seen.lines().filter_map(|line| line.parse().ok()).collect())
    }

    /// A command that runs a program here.
    pub(crate) fn command(&self, program: &Path) -> Command {
        if self.own == self.all {
            return Command::new(program);
        }
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", ENTER, "sh"]);
        command.arg(&self.own).arg(&self.all).arg(program);
        command
    }
}

/// Does something with every item, in as many places as there are.
pub(crate) fn each<T: Sync>(
    folder: &Path,
    items: &[T],
    act: impl Fn(&Place, usize, &T) -> Result<(), String> + Sync,
) -> Result<(), String> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
    // All of them need the name, whatever is there.
    let all = folder.join(SWITCH);
    let mut places = vec![Place::make(&all, all.clone())?];
    if is_root {
        let own = (1..=PLACES).map(|number| folder.join(format!("place-{number}")));
        places = own
            .map(|own| Place::make(&all, own))
            .collect::<Result<_, _>>()?;
    }
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for place in &places {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(number) else {
                        break;
                    };
                    if let Err(why) = act(place, number, item) {
                        next.store(items.len(), Ordering::Relaxed);
                        failed.lock().ok().map(|mut it| it.insert(why).len());
                    }
                }
            });
        }
    });
    failed.into_inner().ok().flatten().map_or(Ok(()), Err)
}
