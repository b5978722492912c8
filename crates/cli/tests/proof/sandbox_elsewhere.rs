//! A sandbox goes on for long, is driven by a program, and is taken elsewhere: batches, retention, exports.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::world::{World, said};

fn tool(name: &str, arguments: &[&str]) -> Option<Output> {
    Command::new(name).args(arguments).output().ok()
}

/// A sandbox with something of every kind.
fn filled() -> World {
    let world = World::new().with_project();
    world.ok(&["sandbox", "start"]);
    let line = "mkdir -p 'new dir/sub'; cd 'new dir'; export CC='cl ang' NOTE=$'two\\nlines' API_TOKEN=hush123; \
                echo a > a; ln a b; ln -s a link; mkfifo pipe; rm ../run.sh; printf x > \"$(printf 'n\\377')\"; \
                setfattr -n user.note -v 'of ours' a 2>/dev/null; chmod 4750 b";
    world.ok(&["sandbox", "exec", "-c", line]);
    world.fails(1, &["sandbox", "exec", "-c", "rm -rf ..; false"]);
    let line = "echo \"$CC\" > cc; printf '%s' \"$NOTE\" > note; rm -rf ../src; mkdir ../src; echo new > ../src/only; unset CC";
    world.ok(&["sandbox", "exec", "-c", line]);
    world.ok(&[
        "sandbox",
        "exec",
        "--",
        "touch",
        "sub/with 'quotes\" and $signs",
    ]);
    world
}

/// The directory to work in, as others write it.
fn work(world: &World) -> String {
    let path = world.path("").display().to_string();
    path.trim_end_matches('/').to_owned()
}

/// Says everything about what is in a directory, but for times.
fn listing(directory: &Path) -> String {
    let line = "find . -mindepth 1 -printf '%P %y %m %l %n\\n' | LC_ALL=C sort; find . -type f -exec md5sum {} + | LC_ALL=C sort";
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(directory)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_script_makes_the_same_and_holds_no_secret() {
    let world = filled();
    let output = world.run(&["sandbox", "export", "--script"]);
    let script = String::from_utf8(output.stdout.clone()).unwrap();
    let told = said(&output);
    assert!(!told.contains("hush123"), "{told}");
    assert!(
        told.contains("these look like secrets and were left out: API_TOKEN"),
        "{told}"
    );
    assert!(
        told.contains("it contains these variables: CC, NOTE"),
        "{told}"
    );
    assert!(!script.contains("rm -rf ..;"), "{script}");
    // Elsewhere, above the same beginning, it makes what applying makes.
    let twin = World::new().with_project();
    let script = script.replace(&work(&world), &work(&twin));
    let run = Command::new("bash")
        .arg("-c")
        .arg(&script)
        .env("API_TOKEN", "other")
        .output()
        .unwrap();
    assert!(run.status.success(), "{script}\n{}", said(&run));
    world.ok(&["sandbox", "apply"]);
    assert_eq!(listing(&world.path("")), listing(&twin.path("")));
    assert_eq!(twin.read("new dir/note"), "two\nlines");
    let all = world.ok(&["sandbox", "export", "--script", "--secrets"]);
    assert!(all.contains("hush123"), "{all}");
}

#[test]
fn a_dockerfile_gives_each_command_its_directory_and_variables() {
    let world = filled();
    let told = world.ok(&["sandbox", "export", "--dockerfile"]);
    let home = work(&world);
    assert!(
        told.contains(&format!("COPY [\".\", \"{home}\"]\n")),
        "{told}"
    );
    assert!(
        told.contains(&format!("WORKDIR \"{home}/new dir\"\n")),
        "{told}"
    );
    assert!(told.contains("ENV CC=\"cl ang\"\n"), "{told}");
    let argument = told.find("ARG API_TOKEN").unwrap();
    assert!(argument < told.find("RUN [").unwrap(), "{told}");
    assert!(!told.contains("hush123"), "{told}");
    // Each instruction is one line, and each command can be read back.
    for line in told.lines().filter_map(|line| line.strip_prefix("RUN ")) {
        let words: Vec<String> = serde_json::from_str(line).unwrap();
        assert!(!words.is_empty());
    }
    let last = told.lines().last().unwrap();
    assert!(
        last.contains("\"-u\",\"CC\"") && last.contains("NOTE=two\\nlines"),
        "{last}"
    );
}

#[test]
fn a_tar_is_read_by_others_and_gives_the_same_files() {
    let world = filled();
    let (tar, out) = (world.scratch("layer.tar"), world.scratch("out"));
    world.ok(&["sandbox", "export", "--tar", tar.to_str().unwrap()]);
    let again = world.fails(1, &["sandbox", "export", "--tar", tar.to_str().unwrap()]);
    assert!(
        again.contains("is there already, and an export replaces nothing"),
        "{again}"
    );
    let names = "import sys, tarfile, json; t = tarfile.open(sys.argv[1]); \
                 print(json.dumps([m.name.encode('utf8', 'surrogateescape').decode('latin1') for m in t]))";
    let names = tool("python3", &["-c", names, tar.to_str().unwrap()]).unwrap();
    let names: Vec<String> = serde_json::from_slice(&names.stdout).unwrap();
    let work = work(&world);
    let work = work.trim_start_matches('/');
    for name in [
        ".wh.run.sh",
        "src/.wh.lib.rs",
        "src/only",
        "new dir/a",
        "new dir/n\u{ff}",
        "new dir/pipe",
    ] {
        assert!(
            names.contains(&format!("{work}/{name}")),
            "{name}: {names:?}"
        );
    }
    fs::create_dir(&out).unwrap();
    let unpack = tool(
        "tar",
        &[
            "--xattrs",
            "-xpf",
            tar.to_str().unwrap(),
            "-C",
            out.to_str().unwrap(),
        ],
    )
    .unwrap();
    assert!(unpack.status.success(), "{}", said(&unpack));
    world.ok(&["sandbox", "apply"]);
    assert_eq!(
        listing(&out.join(work).join("new dir")),
        listing(&world.path("new dir"))
    );
}

#[test]
fn an_oci_layout_has_the_digests_that_it_names_and_other_tools_take_it() {
    let world = filled();
    let layout = world.scratch("image");
    world.ok(&["sandbox", "export", "--oci", layout.to_str().unwrap()]);
    let check = r"
import hashlib, json, os, sys, tarfile
top = sys.argv[1]
assert json.load(open(top + '/oci-layout'))['imageLayoutVersion'] == '1.0.0'
def blob(it):
    body = open(top + '/blobs/' + it['digest'].replace(':', '/'), 'rb').read()
    assert len(body) == it['size'] and 'sha256:' + hashlib.sha256(body).hexdigest() == it['digest'], it
    return body
index = json.load(open(top + '/index.json'))
manifest = json.loads(blob(index['manifests'][0]))
config = json.loads(blob(manifest['config']))
layer = blob(manifest['layers'][0])
assert config['rootfs']['diff_ids'] == ['sha256:' + hashlib.sha256(layer).hexdigest()]
assert config['config']['Env'] == ['NOTE=two\nlines'], config
assert config['config']['WorkingDir'].endswith('/new dir')
assert len(os.listdir(top + '/blobs/sha256')) == 3
";
    let checked = tool("python3", &["-c", check, layout.to_str().unwrap()]).unwrap();
    assert!(checked.status.success(), "{}", said(&checked));
    let file = world.scratch("image.tar");
    world.ok(&["sandbox", "export", "--oci", file.to_str().unwrap()]);
    let packed = tool("tar", &["-tf", file.to_str().unwrap()]).unwrap();
    assert!(said(&packed).contains("index.json"), "{}", said(&packed));
    // Where they are installed.
    let source = format!("oci:{}:latest", layout.display());
    if let Some(inspected) = tool("skopeo", &["inspect", &source]) {
        assert!(inspected.status.success(), "{}", said(&inspected));
    }
    let (image, bundle) = (
        format!("{}:latest", layout.display()),
        world.scratch("bundle"),
    );
    if let Some(unpacked) = tool(
        "umoci",
        &["unpack", "--image", &image, bundle.to_str().unwrap()],
    ) {
        assert!(unpacked.status.success(), "{}", said(&unpacked));
        world.ok(&["sandbox", "apply"]);
        let work = world.path("new dir");
        let there = bundle.join("rootfs").join(work.strip_prefix("/").unwrap());
        assert_eq!(listing(&there), listing(&work));
    }
}

#[test]
fn death_in_an_export_leaves_nothing_under_its_name() {
    for point in 1..200 {
        let world = World::in_memory().with_project();
        world.ok(&["sandbox", "start"]);
        world.ok(&["sandbox", "exec", "-c", "echo 1 > n"]);
        let before = world.tree();
        let image = world.scratch("image");
        let mut command = world.command(&["sandbox", "export", "--oci", image.to_str().unwrap()]);
        let output = command
            .env("BACKOUT_CRASH_AT", point.to_string())
            .output()
            .unwrap();
        assert!(
            !image.exists() || image.join("index.json").exists(),
            "point {point}"
        );
        assert!(world.tree() == before, "point {point}");
        assert_eq!(
            world.ok(&["sandbox", "exec", "-c", "cat n"]),
            "1\n",
            "point {point}"
        );
        if output.status.code().is_some() {
            assert!(point > 2, "{}", said(&output));
            return;
        }
        world.ok(&["sandbox", "end", "--discard"]);
        let left = fs::read_dir(world.state().join("layers")).unwrap().count();
        assert_eq!(left, 0, "point {point}");
    }
    panic!("it never ended");
}

#[test]
fn a_batch_stops_or_goes_on_and_tells_of_each_command() {
    let world = World::new().with_project();
    world.ok(&["sandbox", "start"]);
    let lines = "# comment\ncd src && export A=1\necho $A > a\nrm a; exit 4\necho after > b\n";
    fs::write(world.scratch("batch"), lines).unwrap();
    let batch = world.scratch("batch").display().to_string();
    let stopped = world.run(&["--json", "sandbox", "exec", "--batch", &batch]);
    assert_eq!(stopped.status.code(), Some(1), "{}", said(&stopped));
    let reply: serde_json::Value = serde_json::from_slice(&stopped.stdout).unwrap();
    assert_eq!(
        (&reply["succeeded"], &reply["not_run"]),
        (&2.into(), &1.into()),
        "{reply}"
    );
    let last = &reply["ran"][2];
    assert_eq!(
        (&last["exit_code"], &last["is_rolled_back"]),
        (&4.into(), &true.into()),
        "{reply}"
    );
    assert_eq!(
        world.ok(&["sandbox", "exec", "-c", "cat a; ls b 2>&1 | head -c 0"]),
        "1\n"
    );
    let went_on = world.run(&[
        "sandbox",
        "exec",
        "--batch",
        &batch,
        "--on-error",
        "continue",
    ]);
    assert_eq!(went_on.status.code(), Some(1), "{}", said(&went_on));
    assert!(
        said(&went_on).contains("4 commands ran, 2 succeeded"),
        "{}",
        said(&went_on)
    );
    let orders = "{\"line\": \"sleep 60\", \"timeout\": \"1s\"}\n{\"command\": [\"sh\", \"-c\", \"echo k > kept; exit 1\"], \"on_failure\": \"keep\"}\n{\"command\": [\"cat\", \"kept\"]}\n";
    fs::write(world.scratch("batch"), orders).unwrap();
    let ran = world.run(&[
        "--json",
        "sandbox",
        "exec",
        "--batch",
        &batch,
        "--on-error",
        "continue",
    ]);
    let reply: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let verdict = |at: usize| reply["ran"][at]["verdict"].as_str().unwrap().to_owned();
    assert_eq!(
        [verdict(0), verdict(1), verdict(2)],
        ["timed-out", "failed", "succeeded"],
        "{reply}"
    );
    assert_eq!(reply["ran"][2]["output"], "k\n");
    fs::write(world.scratch("batch"), "{\"lin\": \"x\"}\n").unwrap();
    let wrong = world.fails(2, &["sandbox", "exec", "--batch", &batch]);
    assert!(wrong.contains("line 1 is no command"), "{wrong}");
}

#[test]
fn five_hundred_checkpoints_and_what_retention_leaves_of_them() {
    let world = World::new().with_project();
    world.ok(&["sandbox", "start"]);
    let lines: Vec<String> = (1..=500)
        .map(|number| format!("echo {number} > n; echo {number} > f{}", number % 7))
        .collect();
    fs::write(world.scratch("batch"), lines.join("\n")).unwrap();
    let batch = world.scratch("batch").display().to_string();
    let ran = world.json(&["sandbox", "exec", "--batch", &batch]);
    assert_eq!(ran["succeeded"], 500, "{}", ran["error"]);
    let list = world.json(&["sandbox", "list"]);
    let depth = list["sandboxes"][0]["depth"].as_u64().unwrap();
    assert!(depth <= 60, "{depth} layers");
    let status = world.ok(&["status"]);
    assert!(status.contains("checkpoint 500, not applied"), "{status}");
    let seen = |number: u64| {
        world.ok(&["sandbox", "rollback", &number.to_string()]);
        world.ok(&["sandbox", "exec", "-c", "cat n 2>/dev/null; true"])
    };
    assert_eq!((seen(3), seen(477)), ("3\n".to_owned(), "477\n".to_owned()));
    world.ok(&["sandbox", "rollback", "500"]);
    // The two looks stay set aside; they hold nothing.
    let foreseen = world.ok(&["sandbox", "prune", "--keep", "20", "-n"]);
    assert!(
        foreseen.contains("would be folded into the next: 1, 2, 3"),
        "{foreseen}"
    );
    let pruned = world.json(&["sandbox", "prune", "--keep", "20"]);
    assert!(pruned["folded"].as_array().unwrap().len() > 470, "{pruned}");
    assert!(
        pruned["bytes_after"].as_u64() < pruned["bytes_before"].as_u64(),
        "{pruned}"
    );
    let gone = world.fails(1, &["sandbox", "rollback", "3"]);
    assert!(gone.contains("has no checkpoint `3`"), "{gone}");
    assert_eq!(seen(495), "495\n");
    assert_eq!(seen(0), "");
    world.ok(&["sandbox", "rollback", "500"]);
    assert_eq!(
        world.ok(&["sandbox", "exec", "-c", "cat n f0 f1 f2 f3 f4 f5 f6"]),
        "500\n497\n498\n499\n500\n494\n495\n496\n"
    );
    world.ok(&["sandbox", "apply"]);
    assert_eq!(world.read("n"), "500\n");
    world.ok(&["undo"]);
    world.ok(&["sandbox", "end", "--discard"]);
    assert_eq!(
        fs::read_dir(world.state().join("layers")).unwrap().count(),
        0
    );
    world.check_store();
}

#[test]
fn what_was_set_aside_and_not_applied_goes_only_by_a_word_and_a_sandbox_prunes_itself() {
    let world = World::new().with_project();
    world.ok(&["sandbox", "start", "--keep", "3"]);
    for number in 1..=3 {
        world.ok(&["sandbox", "exec", "-c", &format!("echo {number} > n")]);
    }
    world.ok(&["sandbox", "fork", "sandbox@3", "other"]);
    world.ok(&["sandbox", "rollback", "sandbox", "1"]);
    world.ok(&["sandbox", "exec", "sandbox", "-c", "echo aside > aside"]);
    let told = world.run(&["sandbox", "exec", "sandbox", "-c", "echo more > aside"]);
    assert!(
        said(&told).contains("checkpoints that cannot be gone back to any more: 1")
            || said(&told).contains("checkpoint 5"),
        "{}",
        said(&told)
    );
    let left = world.ok(&["sandbox", "prune", "sandbox", "--keep", "1"]);
    let noted = said(&world.run(&["sandbox", "prune", "sandbox", "--keep", "1"]));
    assert!(
        noted.contains("set aside and not applied, so they stay: 2, 3"),
        "{left} {noted}"
    );
    assert_eq!(
        world.ok(&["sandbox", "exec", "sandbox", "-c", "cat n aside"]),
        "1\nmore\n"
    );
    // The whole branch goes at once.
    let discard = ["sandbox", "prune", "sandbox", "--keep", "1", "--discard"];
    let gone = world.ok(&discard);
    assert!(gone.contains("let go, set aside before: 2, 3"), "{gone}");
    let none = world.ok(&discard);
    assert!(!none.contains("let go"), "{none}");
    assert_eq!(
        world.ok(&["sandbox", "exec", "sandbox", "-c", "cat n aside"]),
        "1\nmore\n"
    );
    // The fork has all it needs.
    assert_eq!(
        world.ok(&["sandbox", "exec", "other", "-c", "cat n"]),
        "3\n"
    );
    for name in ["sandbox", "other"] {
        world.ok(&["sandbox", "end", name, "--discard"]);
    }
    assert_eq!(
        fs::read_dir(world.state().join("layers")).unwrap().count(),
        0
    );
}

#[test]
fn death_in_a_prune_loses_nothing_of_the_present_state() {
    for point in 1..200 {
        let world = World::in_memory().with_project();
        world.ok(&["sandbox", "start"]);
        for number in 1..=4 {
            world.ok(&["sandbox", "exec", "-c", &format!("echo {number} > n; echo {number} > f{number}; rm -rf d; mkdir d; echo {number} > d/{number}")]);
        }
        let mut command = world.command(&["sandbox", "prune", "--keep", "1"]);
        let output = command
            .env("BACKOUT_CRASH_AT", point.to_string())
            .output()
            .unwrap();
        let told = world.ok(&["recover"]);
        let seen = world.ok(&["sandbox", "exec", "-c", "cat n f1 f2 f3 f4; ls d"]);
        assert_eq!(seen, "4\n1\n2\n3\n4\n4\n", "point {point}: {told}");
        world.ok(&["sandbox", "end", "--discard"]);
        let left = fs::read_dir(world.state().join("layers")).unwrap().count();
        assert_eq!(left, 0, "point {point}");
        if output.status.code().is_some() {
            assert!(point > 2, "{}", said(&output));
            return;
        }
    }
    panic!("it never ended");
}

#[test]
fn an_end_that_died_is_finished_by_a_recovery() {
    let mut is_finished = false;
    for point in 1..200 {
        let world = World::in_memory().with_project();
        world.ok(&["sandbox", "start"]);
        world.ok(&["sandbox", "exec", "-c", "echo 1 > n"]);
        let mut command = world.command(&["sandbox", "end", "--discard"]);
        let output = command
            .env("BACKOUT_CRASH_AT", point.to_string())
            .output()
            .unwrap();
        if output.status.code().is_some() {
            assert!(is_finished, "{}", said(&output));
            return;
        }
        let told = world.ok(&["recover"]);
        if told.contains("it was about to end, and is gone now") {
            is_finished = true;
            assert!(
                world
                    .ok(&["sandbox", "list"])
                    .contains("there is no sandbox")
            );
            let left = fs::read_dir(world.state().join("layers")).unwrap().count();
            assert_eq!(left, 0, "point {point}");
        }
    }
    panic!("it never ended");
}

#[test]
fn recover_and_the_doctor_name_what_a_dead_owner_left() {
    let world = World::new().with_project();
    world.ok(&["sandbox", "start"]);
    let mut command = world.command(&["sandbox", "exec", "-c", "echo half > half; sleep 60"]);
    let mut child = command.spawn().unwrap();
    while world.json(&["sandbox", "list"])["sandboxes"][0]["standing"] != "running" {}
    assert!(world.ok(&["status"]).contains(", a command runs in it"));
    child.kill().unwrap();
    child.wait().unwrap();
    let sick = said(&world.run(&["doctor"]));
    assert!(
        sick.contains("`sandbox` was left by a dead process"),
        "{sick}"
    );
    let status = world.ok(&["status"]);
    assert!(status.contains(", left by a dead process"), "{status}");
    let told = world.ok(&["recover"]);
    assert!(
        told.contains("sandbox sandbox: the owner of") && told.contains("was dropped"),
        "{told}"
    );
    let well = said(&world.run(&["doctor"]));
    assert!(well.contains("there are sandbox"), "{well}");
    assert_eq!(
        world.ok(&["sandbox", "exec", "-c", "ls half 2>/dev/null; true"]),
        ""
    );
    world.ok(&["sandbox", "end"]);
}
