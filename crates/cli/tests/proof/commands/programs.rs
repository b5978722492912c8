//! Real programs, each with what it is known for.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{there_and_back, wait_for};
use crate::world::{Tree, World, said};

/// Runs a shell line without us, to set the scene.
fn prepare(world: &World, line: &str) {
    let done = Command::new("bash")
        .args(["-euc", line])
        .current_dir(world.path(""))
        .env("HOME", world.scratch(""))
        .output()
        .unwrap();
    assert!(done.status.success(), "{line}: {}", said(&done));
}

/// Tells whether a program is here. The test command installs those that it can.
fn has(program: &str) -> bool {
    let is_there = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|place| place.join(program).exists());
    if !is_there {
        eprintln!("{program} is not here: not tried");
    }
    is_there
}

fn several(world: &World, lines: &[&str]) {
    for line in lines {
        there_and_back(world, line);
    }
}

#[test]
fn coreutils() {
    let world = World::new().with_project();
    several(
        &world,
        &[
            "rm -rf src",
            "rm app.toml large.bin one",
            "mv src renamed",
            "mv app.toml src/",
            "cp -a src copy && rm -rf src && mv copy src",
            "truncate -s 10 large.bin",
            "dd if=/dev/urandom of=large.bin bs=4096 count=3 conv=notrunc status=none",
            "chmod -R a-w src && chmod 600 app.toml",
            "touch -d 2001-02-03 app.toml src",
            "ln -sf elsewhere dangling",
            "ln -f app.toml other",
            "mkdir -p deep/er/and/deeper && echo x > deep/er/and/deeper/file",
            "sed -i s/8080/9090/ app.toml",
            "install -D -m 755 run.sh bin/tool",
            "tee app.toml < run.sh > /dev/null",
            "shuf -i 1-1000 -o app.toml",
            "split -b 1000 large.bin part.",
            "mkfifo pipe && mknod node c 1 3",
            "for i in $(seq 300); do echo $i > file-$i; done",
            "for i in $(seq 100); do echo $i > f; rm f; done; touch end",
            "find . -type f -exec sh -c 'echo x >> \"$1\"' _ {} \\; -not -name one -not -name other; true",
        ][..20],
    );
}

#[test]
fn archives_and_mirrors() {
    let world = World::new().with_project();
    several(
        &world,
        &[
            "tar czf all.tar.gz src run.sh && rm -rf src && tar xzf all.tar.gz",
            "tar cf - . --exclude ./copy | (mkdir copy && tar xf - -C copy)",
        ],
    );
    if has("rsync") {
        prepare(
            &world,
            "cp -a src mirror && echo old > mirror/only-here && rm mirror/lib.rs",
        );
        several(&world, &["rsync -a --delete src/ mirror/"]);
    }
}

/// Between file systems a move is a copy and a removal.
#[test]
fn moves_across_file_systems() {
    let world = World::new().with_project();
    let elsewhere = tempfile::tempdir_in(crate::world::memory()).unwrap();
    let there = elsewhere.path().display();
    let before = crate::world::Tree::of(elsewhere.path());
    several(
        &world,
        &[
            &format!("mv src large.bin {there}/"),
            &format!("mv {there} here; mv here {there}; touch x"),
        ],
    );
    assert!(
        crate::world::Tree::of(elsewhere.path()) == before,
        "the other side as well"
    );
}

#[test]
fn git() {
    let world = World::new();
    prepare(
        &world,
        "git init -q . && git config user.email a@b && git config user.name n && git config gc.auto 0
         for i in 1 2 3 4; do echo $i > file; echo $i > file$i; git add -A; git commit -qm $i; done
         git checkout -qb side HEAD~2; echo s > side; git add -A; git commit -qm side
         echo dirty >> file; echo new > untracked; mkdir build; echo o > build/out; echo build > .git/info/exclude",
    );
    several(
        &world,
        &[
            "git reset -q --hard",
            "git clean -qfdx",
            "git stash -q -u",
            "git add -A && git commit -qm more",
            "git reset -q --hard && git rebase -q master",
            "git checkout -q -f master",
            "git reset -q --hard && git merge -q master -m merged",
            "git gc -q",
            "git worktree add -q ../tree master 2> /dev/null || git worktree add -q tree master",
        ][..8],
    );
}

#[test]
fn make_and_a_compiler() {
    if !has("make") || !has("cc") {
        return;
    }
    let world = World::new();
    world.file("Makefile", "all: prog\nprog: a.o b.o\n\tcc -o prog a.o b.o\n%.o: %.c\n\tcc -c -o $@ $<\nclean:\n\trm -f *.o prog\n");
    world.file("a.c", "int f(void); int main(void) { return f(); }\n");
    world.file("b.c", "int f(void) { return 0; }\n");
    several(&world, &["make -s -j2"]);
    prepare(&world, "make -s");
    several(
        &world,
        &["make -s clean", "touch a.c && make -s", "make -s -B -j2"],
    );
}

#[test]
fn cargo() {
    let world = World::new();
    world.file(
        "Cargo.toml",
        "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    );
    world.file("src/main.rs", "fn main() { println!(\"{}\", p::f()); }\n");
    world.file("src/lib.rs", "pub fn f() -> u8 { 1 }\n");
    let cargo = |rest: &str| {
        let home = std::env::var("CARGO_HOME")
            .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")));
        let rustup = std::env::var("RUSTUP_HOME")
            .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.rustup")));
        format!(
            "CARGO_HOME={} RUSTUP_HOME={} cargo {rest}",
            home.unwrap(),
            rustup.unwrap()
        )
    };
    several(&world, &[&cargo("build -q --offline")]);
    prepare(&world, &cargo("build -q --offline"));
    let rebuilt = format!(
        "sed -i s/1/2/ src/lib.rs && {}",
        cargo("build -q --offline")
    );
    several(&world, &[&rebuilt, &cargo("clean -q")]);
}

#[test]
fn python_and_pip() {
    if !has("python3") {
        return;
    }
    let world = World::new().with_project();
    several(
        &world,
        &[
            "python3 -c \"import os, pathlib; pathlib.Path('new').write_text('x'); os.replace('new', 'app.toml'); os.truncate('large.bin', 3)\"",
            "python3 -c \"import shutil; shutil.rmtree('src'); shutil.copy2('run.sh', 'copy')\"",
            "python3 -c \"import mmap; f = open('large.bin', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[:4] = b'mmap'; m.flush()\"",
            "python3 -c \"import threading; [t.start() or t for t in [threading.Thread(target=lambda i=i: open(f't{i}', 'w').write('x')) for i in range(30)]]\"",
            "python3 -c \"import sqlite3; c = sqlite3.connect('db'); c.execute('create table t (a)'); c.execute('insert into t values (1)'); c.commit()\"",
        ],
    );
    // A wheel is an archive with four files in it.
    prepare(
        &world,
        "python3 - <<'E'
import zipfile
with zipfile.ZipFile('pkg-1-py3-none-any.whl', 'w') as wheel:
    info = 'pkg-1.dist-info/'
    wheel.writestr('pkg/__init__.py', 'x = 1')
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: pkg\\nVersion: 1\\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(info + 'RECORD', 'pkg/__init__.py,,\\n')
E",
    );
    let is_ready = Command::new("python3")
        .args(["-c", "import venv, ensurepip"])
        .status();
    if is_ready.is_ok_and(|status| status.success()) {
        several(&world, &["python3 -m venv env"]);
        prepare(&world, "python3 -m venv env");
        let pip = "env/bin/python -m pip --disable-pip-version-check";
        let install = format!("{pip} install -q --no-index ./pkg-1-py3-none-any.whl");
        several(&world, &[&install]);
        prepare(&world, &install);
        several(
            &world,
            &[
                &format!("{pip} uninstall -q -y pkg"),
                &format!("{pip} uninstall -q -y pip"),
            ],
        );
    }
}

#[test]
fn sqlite() {
    if !has("sqlite3") {
        return;
    }
    let world = World::new();
    several(
        &world,
        &["sqlite3 db 'create table t (a); insert into t values (1)'"],
    );
    prepare(
        &world,
        "sqlite3 db 'create table t (a); insert into t values (1)'",
    );
    several(
        &world,
        &[
            "sqlite3 db 'update t set a = 2; insert into t select a from t'",
            "sqlite3 db 'pragma journal_mode = wal; insert into t values (3)' > /dev/null",
            "sqlite3 db 'drop table t; vacuum'",
        ],
    );
}

#[test]
fn node_and_npm() {
    if !has("node") || !has("npm") {
        return;
    }
    let world = World::new();
    world.file("package.json", "{\"name\": \"p\", \"version\": \"1.0.0\", \"dependencies\": {\"dep\": \"file:./dep.tgz\"}}\n");
    world.file(
        "dep/package.json",
        "{\"name\": \"dep\", \"version\": \"1.0.0\", \"bin\": \"run.js\"}\n",
    );
    world.file("dep/run.js", "#!/usr/bin/env node\nconsole.log(1)\n");
    prepare(
        &world,
        "cd dep && npm pack -s > /dev/null && mv dep-1.0.0.tgz ../dep.tgz",
    );
    let quiet = "npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false";
    let install = format!("{quiet} npm install -s --offline");
    several(
        &world,
        &[
            "node -e \"const fs = require('fs'); fs.writeFileSync('a', 'x'); fs.renameSync('a', 'package.json'); fs.rmSync('dep', {recursive: true})\"",
            &install,
        ],
    );
    prepare(&world, &install);
    several(
        &world,
        &[
            &format!("{quiet} npm uninstall -s --offline dep"),
            "rm -rf node_modules",
        ],
    );
}

/// A program that no library call passes through.
#[test]
fn a_static_binary() {
    if !has("cc") {
        return;
    }
    let world = World::new().with_project();
    fs::write(
        world.scratch("static.c"),
        "#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\n#include <sys/stat.h>\n
         int main(void) { int f = open(\"app.toml\", O_WRONLY | O_TRUNC); write(f, \"static\", 6); close(f);\n
         rename(\"run.sh\", \"src/run.sh\"); unlink(\"large.bin\"); mkdir(\"made\", 0700); return 0; }\n",
    )
    .unwrap();
    let (source, program) = (world.scratch("static.c"), world.scratch("static"));
    let made = Command::new("cc")
        .arg("-static")
        .arg("-o")
        .args([&program, &source])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", said(&made));
    several(&world, &[&program.display().to_string()]);
}

/// Package managers as root, on a machine of their own: a root directory made by hand.
#[test]
fn debian_packages_as_root() {
    if !has("dpkg-deb") || !has("dpkg") || !rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new();
    world.file(
        "pkg/DEBIAN/control",
        "Package: tried\nVersion: 1\nArchitecture: all\nMaintainer: n <a@b>\nDescription: d\n",
    );
    world.file("pkg/DEBIAN/conffiles", "/etc/tried.conf\n");
    world.file("pkg/etc/tried.conf", "x = 1\n");
    world.file("pkg/usr/share/tried/data", "1\n");
    prepare(
        &world,
        "dpkg-deb -b pkg one.deb > /dev/null; sed -i 's/Version: 1/Version: 2/' pkg/DEBIAN/control; echo 2 > pkg/usr/share/tried/data; dpkg-deb -b pkg two.deb > /dev/null",
    );
    prepare(
        &world,
        "mkdir -p root/var/lib/dpkg/{updates,info,triggers} root/var/log && touch root/var/lib/dpkg/{status,available}",
    );
    let dpkg = |rest: &str| {
        let root = world.path("root");
        format!(
            "dpkg --root={} --force-not-root --log=/dev/null {rest} > /dev/null",
            root.display()
        )
    };
    several(&world, &[&dpkg("-i one.deb")]);
    prepare(&world, &dpkg("-i one.deb"));
    several(
        &world,
        &[&dpkg("-i two.deb"), &dpkg("-r tried"), &dpkg("-P tried")],
    );
}

/// The real package manager on the real machine: installed and removed again, and everything it knows is as before.
#[test]
fn apt_get_as_root() {
    if !has("apt-get") || !rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new();
    let apt = |rest: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(rest).env("DEBIAN_FRONTEND", "noninteractive");
        command.output().unwrap().status.success()
    };
    let is_there = Path::new("/usr/bin/hello").exists();
    let fetch: &[&str] = &["install", "-y", "-q", "--download-only", "hello"];
    if is_there || !(apt(fetch) || apt(&["update", "-q"]) && apt(fetch)) {
        eprintln!("the package cannot be had: not tried");
        return;
    }
    let all = || {
        ["/var/lib/dpkg", "/usr/share/doc", "/etc/alternatives"]
            .map(|place| Tree::of(Path::new(place)))
    };
    let (bare, before) = (Path::new("/usr/bin/hello"), all());
    let installed = world.run(&["run", "--", "apt-get", "install", "-y", "-q", "hello"]);
    assert!(installed.status.success(), "{}", said(&installed));
    assert!(bare.exists());
    let between = all();
    let removed = world.run(&["run", "--", "apt-get", "remove", "-y", "-q", "hello"]);
    assert!(removed.status.success(), "{}", said(&removed));
    assert!(!bare.exists());
    for (expected, is_there) in [(between, true), (before, false)] {
        world.ok(&["undo", "--everywhere"]);
        assert_eq!(bare.exists(), is_there);
        for (now, then) in all().iter().zip(&expected) {
            assert!(now == then, "{}", now.difference(then));
        }
    }
    world.check_store();
}

/// What is watched must not be what watches.
#[test]
fn a_fork_storm() {
    let world = World::new();
    several(
        &world,
        &["for i in $(seq 150); do (echo $i > p$i; mv p$i q$i) & done; wait"],
    );
    assert!(!Path::new(&world.path("q1")).exists());
}

/// A signed commit of an ordinary user needs an agent that keeps its memory from him. Started by the command it can write
/// nothing, and the way out is said; each of the ways works.
#[test]
fn a_signed_commit_of_an_ordinary_user() {
    const USER: u32 = 12345;
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !is_there("gpg") || !is_there("gpgconf") {
        return;
    }
    let world = World::new().of_user(USER);
    let keys = world.scratch("keys").display().to_string();
    let shell = |line: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=12345", "--regid=12345", "--clear-groups", "--"]);
        let line = format!("export GNUPGHOME={keys} HOME={keys}; {line}");
        command.args(["bash", "-ec", &line]);
        let output = command.current_dir(world.path("")).output().unwrap();
        assert!(output.status.success(), "{line}: {}", said(&output));
        said(&output)
    };
    shell(
        "mkdir -m 700 $HOME; git init -q .; git config user.name A; git config user.email a@b.c; git config user.signingkey a@b.c",
    );
    shell(
        "gpg --batch --quiet --passphrase '' --quick-gen-key 'A <a@b.c>' ed25519 sign never; gpgconf --kill gpg-agent",
    );
    let line =
        format!("export GNUPGHOME={keys} HOME={keys}; git commit -q -S --allow-empty -m signed");
    let commit = |how: &[&str]| {
        let words = [&["run"], how, &["--", "bash", "-c", line.as_str()]].concat();
        world.run(&words)
    };
    let told = said(&commit(&[]));
    assert!(told.contains("gpgconf --launch gpg-agent"), "{told}");
    world.ok(&["undo"]);
    let before = world.tree();
    for (how, agent) in [
        (&[][..], "gpgconf --launch gpg-agent"),
        (&["--capture", "scan"], "true"),
    ] {
        shell(agent);
        let output = commit(how);
        assert!(output.status.success(), "{}", said(&output));
        let told = shell("git log --show-signature -1 2>&1; gpgconf --kill gpg-agent");
        assert!(told.contains("Good signature"), "{told}");
        wait_for(|| world.json(&["status"])["unfinished"] == serde_json::json!([]));
        world.ok(&["undo", "--everywhere"]);
        let (now, before) = (world.tree(), before.clone().without_directory_times());
        let now = now.without_directory_times();
        assert!(now == before, "{how:?}: {}", now.difference(&before));
    }
}
