//! Names as the kernel takes them: with slashes and dots at their end, in `/proc`, empty, long, or odd.

use std::fs;

use super::behaviour::same;
use super::there_and_back;
use crate::world::{World, said};

/// Writes a program of Python, to be run by name.
fn python(world: &World, text: &str) -> String {
    let path = world.scratch("program.py");
    fs::write(&path, text).unwrap();
    format!("python3 {}", path.display())
}

/// Tries each call with each way to write a name, each in a directory of its own.
const ENDINGS: &str = r"
import os, itertools
def fresh(number):
    os.mkdir(f't{number}'); os.chdir(f't{number}')
    open('f', 'w').write('f'); open('g', 'w').write('g'); os.mkdir('d'); os.mkdir('e')
    open('e/x', 'w').write('x'); os.symlink('f', 'lf'); os.symlink('d', 'ld'); os.symlink('no', 'dangling')
ends = ['', '/', '//', '/.', '/..', '/./']
names = ['f', 'd', 'e', 'lf', 'ld', 'dangling', 'new']
one = {
    'unlink': os.unlink, 'rmdir': os.rmdir, 'mkdir': os.mkdir, 'mkfifo': os.mkfifo,
    'symlink': lambda n: os.symlink('f', n), 'link to': lambda n: os.link('f', n),
    'link of': lambda n: os.link(n, 'linked', follow_symlinks=False), 'chmod': lambda n: os.chmod(n, 0o700),
    'create': lambda n: os.close(os.open(n, os.O_CREAT | os.O_WRONLY)),
    'exclusive': lambda n: os.close(os.open(n, os.O_CREAT | os.O_EXCL | os.O_WRONLY)),
    'write': lambda n: os.close(os.open(n, os.O_WRONLY | os.O_TRUNC)), 'truncate': lambda n: os.truncate(n, 0), 'below': lambda n: os.truncate(n, -1),
    'utime': lambda n: os.utime(n, (1, 1)), 'lchown': lambda n: os.lchown(n, -1, -1),
    'from': lambda n: os.rename(n, 'moved'), 'onto f': lambda n: os.rename('f', n), 'onto d': lambda n: os.rename('d', n),
    'onto lf': lambda n: os.rename('lf', n),
}
number = 0
for what, name, end in itertools.product(one, names, ends):
    number += 1
    fresh(number)
    try:
        one[what](name + end)
        said = 'done'
    except OSError as error:
        said = os.strerror(error.errno)
    os.chdir('..')
    print(what, name + end, said)
for path in ['/', '.', '..', '']:
    for what in one:
        if what in ('chmod', 'utime', 'lchown'): continue
        number += 1
        fresh(number)
        try:
            one[what](path)
            said = 'done'
        except OSError as error:
            said = os.strerror(error.errno)
        os.chdir('..')
        print(what, repr(path), said)
";

#[test]
fn slashes_and_dots_at_the_end_are_taken_as_by_the_kernel() {
    let helper = World::new();
    same(&python(&helper, ENDINGS), "");
}

/// Uses a directory so often that it is remembered, and then changes where its path leads.
const AGAIN: &str = r"
import os
here = os.getcwd()
def write(where, name):
    for number in range(12):
        try:
            open(f'{where}/{name}{number}', 'w').write(name)
        except OSError as error:
            print(where.replace(here, 'whole'), name, os.strerror(error.errno))
def told(where):
    print(where, sorted(os.listdir(where)))
os.makedirs('a/b'); os.makedirs('c/b')
for where in ['a/b', here + '/a/b']:
    write(where, 'first')
    os.rename('a', 'z'); os.symlink('c', 'a')
    write(where, 'linked')
    os.unlink('a'); os.rename('z', 'a')
    write(where, 'back')
    os.chmod('a', 0); write(where, 'closed'); os.chmod('a', 0o755)
    for name in os.listdir('a/b'): os.unlink('a/b/' + name)
    os.rmdir('a/b'); write(where, 'gone')
    os.mkdir('a/b'); write(where, 'anew')
    told('a/b'); told('c/b')
for where in ['a', 'c', 'a']:
    os.chdir(where); write('b', 'in ' + where); os.chdir('..')
told('a/b'); told('c/b')
";

#[test]
fn a_directory_that_is_used_again_is_where_its_path_leads_now() {
    same("python3 -", AGAIN);
    // Modes hold for such a process.
    let line = "setpriv --bounding-set=-dac_override,-dac_read_search python3 -";
    let (bare, _watched) = same(line, AGAIN);
    let is_closed = String::from_utf8_lossy(&bare.stdout).contains("closed Permission denied");
    assert!(is_closed, "{}", said(&bare));
    let helper = World::new();
    let program = python(&helper, AGAIN);
    there_and_back(&World::new(), &program);
}

#[test]
fn proc_is_that_of_the_process() {
    let prepare = "mkdir sub; echo 1 > f; echo 2 > sub/f; ln -s /proc/self/cwd here; ln -s /proc/self/fd fds; ln -s /proc mine";
    for line in [
        "cd sub; rm ../here/f",
        "cd sub; echo x > ../here/g",
        "exec 5<> f; echo x > //proc/self/fd/5",
        "exec 5<> f; cd /proc; echo x > self/fd/5",
        "exec 5<> f; echo x > fds/5",
        "exec 5<> f; cd sub; echo x > ../mine/self/fd/5",
        "exec 5< f; echo more >> /dev/fd/5",
        "exec 5< sub; rm /proc/self/fd/5/f",
        "exec 5< sub; mv /proc/thread-self/fd/5/f /proc/self/cwd/moved",
        "cd sub; chmod 600 /proc/self/root$PWD/f",
        "cd sub; echo x > ../here/../here/f",
        "cd sub; sh -c 'rm /proc/$PPID/cwd/f; echo'; true",
    ] {
        same(&format!("{prepare}; {line}"), "");
        let world = World::new();
        let prepared = world.run(&["run", "--", "bash", "-c", prepare]);
        assert!(prepared.status.success(), "{}", said(&prepared));
        there_and_back(&world, line);
    }
}

/// Numbers of processes count from another beginning there.
#[test]
fn proc_of_another_namespace_of_processes() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new();
    world.file("f", "1\n");
    world.file("sub/f", "2\n");
    there_and_back(
        &world,
        "unshare --pid --fork --mount --mount-proc bash -c 'cd sub; rm /proc/self/cwd/f; exec 5<> ../f; echo x > /proc/self/fd/5; true'",
    );
    there_and_back(
        &world,
        "unshare --pid --fork bash -c 'cd sub; echo x > f; true'",
    );
}

const EMPTY: &str = r"
import os, ctypes
libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, EMPTY, FOLLOW = -100, 0x1000, 0x400
def check(result):
    if result != 0: print(os.strerror(ctypes.get_errno()))
";

#[test]
fn no_path_means_the_descriptor() {
    for line in [
        "os.chdir('d'); check(libc.fchownat(AT_FDCWD, b'', 1, 1, EMPTY))",
        "f = os.open('d', os.O_PATH); check(libc.fchownat(f, b'', 1, 1, EMPTY))",
        "f = os.open('a', os.O_PATH); check(libc.syscall(452, f, b'', 0o600, EMPTY))",
        "f = os.open('a', os.O_RDONLY); check(libc.futimens(f, None))",
        "f = os.open('l', os.O_PATH | os.O_NOFOLLOW); check(libc.fchownat(f, b'', 1, 1, EMPTY))",
        "f = os.open('.', os.O_TMPFILE | os.O_RDWR); os.write(f, b'new'); check(libc.linkat(f, b'', AT_FDCWD, b'n', EMPTY))",
        "f = os.open('.', os.O_TMPFILE | os.O_RDWR); os.write(f, b'new'); check(libc.linkat(AT_FDCWD, b'/proc/self/fd/%d' % f, AT_FDCWD, b'n', FOLLOW))",
        "f = os.open('a', os.O_RDONLY); check(libc.linkat(f, b'', AT_FDCWD, b'n', EMPTY)); os.chmod('n', 0o600)",
        "os.link('a', 'b'); f = os.open('b', os.O_RDONLY); os.fchmod(f, 0o600)",
        "os.link('a', 'b'); f = os.open('b', os.O_RDWR); os.write(f, b'more'); os.fchmod(f, 0o600); os.unlink('b')",
        "os.chmod('a', 0o640); os.link('a', 'd/b'); f = os.open('d/b', os.O_RDONLY); os.fchown(f, 1, 1); os.utime(f, (1, 1))",
    ] {
        let world = World::new();
        world.file("a", "a\n");
        world.file("d/x", "x\n");
        std::os::unix::fs::symlink("a", world.path("l")).unwrap();
        let program = python(&world, &format!("{EMPTY}{line}\n"));
        there_and_back(&world, &program);
    }
}

#[test]
fn directories_that_are_called_deleted() {
    let world = World::new();
    world.file("d (deleted)/f", "f\n");
    world.file("d (deleted)/g (deleted)", "g\n");
    for line in [
        "rm 'd (deleted)/f'",
        "cd 'd (deleted)'; echo x > f; echo new > new; mkdir 'e (deleted)'; touch 'e (deleted)/y'",
        "exec 5<> 'd (deleted)/g (deleted)'; echo x >&5; chmod 600 /proc/self/fd/5",
        "python3 -c 'import os; os.fchmod(os.open(\"d (deleted)/g (deleted)\", 0), 0o600)'",
        "rm -r 'd (deleted)'",
        "mv 'd (deleted)' d; echo x > d/f",
    ] {
        there_and_back(&world, line);
    }
    same(
        "mkdir d; cd d; rmdir ../d; echo x > f; mkdir e; touch ../d; ls -A ..",
        "",
    );
}

#[test]
fn paths_beyond_what_the_kernel_takes() {
    let helper = World::new();
    for line in [
        "import os; open('f', 'w').close(); os.rename('f', './' * 2046 + 'abc')",
        "import os; open('f', 'w').close(); os.rename('f', './' * 2046 + 'abcd')",
        "import os; open('f', 'w').close(); os.rename('f', './' * 2200 + 'abc')",
        "import os; os.mkdir('x' * 256)",
        "import os; os.mkdir('x' * 255); os.rename('x' * 255, 'x' * 255 + '/')",
    ] {
        let line = line.replace("; ", "\n");
        let tried = format!(
            "try:\n {}\nexcept OSError as e: print(e.strerror)\n",
            line.replace('\n', "\n ")
        );
        same(&python(&helper, &tried), "");
    }
}

/// So deep that no call takes the whole path: what cannot be kept does not happen, and that is said.
#[test]
fn trees_that_are_too_deep_are_not_lost() {
    let world = World::new();
    let levels = "import os\nfor level in range(24):\n open('f', 'w').write(str(level)); os.mkdir('x' * 200); os.chdir('x' * 200)\nopen('f', 'w').write('end')\n";
    let made = std::process::Command::new("python3")
        .args(["-c", levels])
        .current_dir(world.path(""))
        .status()
        .unwrap();
    assert!(made.success());
    let count = || {
        let listed = std::process::Command::new("bash")
            .args(["-c", "find . -type f -printf x | wc -c"])
            .current_dir(world.path(""))
            .output()
            .unwrap();
        String::from_utf8(listed.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(count(), "25");
    let output = world.run(&["run", "--", "rm", "-rf", &"x".repeat(200)]);
    let told = said(&output);
    assert!(!output.status.success(), "{told}");
    assert!(told.contains("more than 4096 bytes"), "{told}");
    world.ok(&["undo"]);
    assert_eq!(count(), "25");
}

/// A directory that is seen at two places while this lives.
struct Bind(std::path::PathBuf);

impl Bind {
    fn new(world: &World, real: &str, alias: &str) -> Self {
        let at = world.path(alias);
        std::fs::create_dir_all(&at).unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.arg("--bind").arg(world.path(real)).arg(&at);
        assert!(mount.status().unwrap().success());
        Self(at)
    }
}

impl Drop for Bind {
    fn drop(&mut self) {
        let mut unmount = std::process::Command::new("umount");
        let _gone = unmount.arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_file_that_is_reached_by_two_mounts_is_one_file() {
    for line in [
        "echo 1 >> alias/f; echo 2 >> real/f; echo 1 >> real/g",
        "echo 2 >> real/f; echo 1 >> alias/f; rm alias/g",
        "mkdir real/d/n; echo x > alias/d/n/y; mv real/d/n/y real/d/z; chmod 600 alias/d/z; rm -r alias/d/n",
        "rm -r alias/d; mkdir real/d; echo new > alias/d/x",
    ] {
        let world = World::new();
        for name in ["real/f", "real/g", "real/d/x"] {
            world.file(name, "0\n");
        }
        let _bind = Bind::new(&world, "real", "alias");
        there_and_back(&world, line);
    }
}

/// Where a mount is gone, nobody can see what a command did there: it is not called undone, and nothing is put in its place.
#[test]
fn what_was_done_on_a_mount_that_is_gone_waits_until_it_is_back() {
    for line in [
        "echo n > m/new; mkdir m/d; echo y > m/d/y",
        "rm m/f",
        "echo 2 > m/f; rm m/g",
        "mv m/f m/h; chmod 600 m/g",
        "mv m/f .; echo out > out",
    ] {
        let world = World::new();
        world.file("real/f", "1\n");
        world.file("real/g", "1\n");
        let bind = Bind::new(&world, "real", "m");
        let before = world.tree();
        let output = world.run(&["run", "--", "bash", "-c", line]);
        assert!(output.status.success(), "{line}: {}", said(&output));
        let after = world.tree();
        drop(bind);
        let without = world.tree();
        let told = world.fails(1, &["undo"]);
        let why = "nothing is mounted at `m` any more";
        assert!(told.contains(why), "{line}: {told}");
        assert!(world.tree() == without, "{line}");
        let bind = Bind::new(&world, "real", "m");
        assert!(world.tree() == after, "{line}");
        world.ok(&["undo"]);
        let now = world.tree();
        assert!(now == before, "{line}: {}", now.difference(&before));
        drop(bind);
        let told = world.fails(1, &["redo"]);
        assert!(told.contains(why), "{line}: {told}");
        let _bind = Bind::new(&world, "real", "m");
        world.ok(&["redo"]);
        world.ok(&["undo"]);
        assert!(world.tree() == before, "{line}");
        world.check_store();
    }
}

/// The same directory needs no mount: a command may have run where it was seen by one.
#[test]
fn what_was_done_by_a_mount_of_the_same_directory_is_undone_without_it() {
    let world = World::new();
    world.file("d/f", "1\n");
    let bind = Bind::new(&world, "d", "d");
    let before = world.tree();
    world.ok(&["run", "--", "sh", "-c", "echo 2 > d/f; echo n > d/new"]);
    drop(bind);
    world.ok(&["undo"]);
    let now = world.tree();
    assert!(now == before, "{}", now.difference(&before));
}
