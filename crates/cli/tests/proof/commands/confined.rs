//! A process that gave up rights has no more under `run` than without, and files that it reaches by other paths are kept.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::process::Command;

use super::behaviour::same;
use super::there_and_back;
use crate::world::World;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn has(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output();
    found.is_ok_and(|output| output.status.success())
}

/// Gives up the right to remove and to rename, in a way that nobody can look at from outside.
const LANDLOCK: &str = r"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
class Attributes(ctypes.Structure): _fields_ = [('fs', ctypes.c_uint64)]
attributes = Attributes((1 << 4) | (1 << 5) | (1 << 8))
rules = libc.syscall(444, ctypes.byref(attributes), ctypes.sizeof(attributes), 0)
if rules < 0: print('no landlock'); sys.exit(0)
libc.prctl(38, 1, 0, 0, 0)
assert libc.syscall(446, rules, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
";

#[test]
fn rights_that_were_given_up_stay_given_up() {
    if !is_root() {
        return;
    }
    let helper = World::new();
    fs::write(helper.scratch("landlock.py"), LANDLOCK).unwrap();
    let landlock = format!("python3 {}", helper.scratch("landlock.py").display());
    let prepare = "mkdir out open; echo a > out/a; echo b > out/b; echo f > open/f; chown -R 12345 out; chmod 777 open; chmod 755 out .";
    let work = "rm -f out/a 2>&1; mv out/b out/c 2>&1; echo x > out/new; rmdir out; mkdir out/d 2>&1; mv open/f open/g 2>&1; echo y > open/h; chmod 600 out/a 2>&1; true";
    for how in [
        "capsh --drop=all --",
        "setpriv --bounding-set=-all --inh-caps=-all bash",
        "setpriv --reuid=12346 --clear-groups bash",
        "setpriv --reuid=12346 --regid=12345 --clear-groups bash",
        "unshare -U bash",
        "unshare -Ur bash",
        "unshare -Um bash",
        &format!("{landlock} bash"),
    ] {
        same(&format!("{prepare}; {how} -c '{work}' 2>&1"), "");
    }
}

/// What the kernel carries out itself is seen to its end, however long it takes to have its turn.
#[test]
fn renames_of_others_are_seen_to_their_end_under_load() {
    if !is_root() {
        return;
    }
    let world = World::in_memory();
    fs::set_permissions(world.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(world.scratch(""), fs::Permissions::from_mode(0o755)).unwrap();
    for number in 0..40 {
        world.file(&format!("f{number}"), &format!("{number}\n"));
        chown(world.path(&format!("f{number}")), Some(12345), None).unwrap();
    }
    let line = "for i in 1 2 3; do (while [ ! -e stop ]; do :; done) & done; \
                setpriv --reuid=12345 --clear-groups nice -n 19 bash -c 'for i in $(seq 0 39); do mv -T f$i g$i; done; mv nosuch x 2> /dev/null; mv -T g1 g2; echo x > g3'; \
                touch stop; wait; rm stop";
    there_and_back(&world, line);
}

#[test]
fn files_by_another_path_are_the_same_files() {
    if !is_root() {
        return;
    }
    let work = "echo x > app.toml; rm run.sh; mv src/main.rs src/moved; echo new > new; mkdir -p made/inner; chmod 600 one; rm -r src/empty";
    let lines = [
        format!("unshare -m bash -c 'mount --bind . /mnt; cd /mnt; {work}'"),
        "unshare -m bash -c 'mount --bind src /mnt; cd /mnt; echo x > lib.rs; rm main.rs; ln -s a b'".to_owned(),
        "mkdir m; mount --bind src m; echo x > m/main.rs; rm m/lib.rs; touch m/new; umount m".to_owned(),
        "mkdir m; mount --bind src m; cd m; echo x > main.rs; mv lib.rs lib2.rs; cd ..; umount m; rmdir m".to_owned(),
    ];
    let bound = format!(
        "bwrap --bind / / --dev /dev --proc /proc --bind $PWD /mnt --chdir /mnt bash -c '{work}'"
    );
    let mine = "bwrap --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --dev /dev --proc /proc --tmpfs /tmp --bind $PWD /elsewhere --chdir /elsewhere bash -c 'echo x > app.toml; rm run.sh; mv one one2; echo y > /proc/self/cwd/src/lib.rs; echo t > /tmp/t'";
    let able = has("bwrap")
        && Command::new("bwrap")
            .args(["--bind", "/", "/", "true"])
            .status()
            .is_ok_and(|status| status.success());
    let wrapped = [bound, mine.to_owned()];
    for line in lines.iter().chain(wrapped.iter().filter(|_| able)) {
        let world = World::new().with_project();
        there_and_back(&world, line);
    }
}
