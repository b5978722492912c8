//! What is said about a command before it runs. It needs no store.

use crate::world::World;

#[test]
fn a_line_for_a_shell() {
    let world = World::new();
    insta::assert_snapshot!(world.cli(["classify", "--", "ls | tee x"]), @r"
    writes: `tee` writes files
      decided by: tee  x
    commands:
      read-only  ls     `ls` only reads
      writes     tee x  `tee` writes files
    ");
    insta::assert_snapshot!(world.cli(["classify", "cat a"]), @r"
    read-only: `cat` only reads
      decided by: cat
    ");
    insta::assert_snapshot!(world.cli(["classify", "sort $X && echo \"$(date)\""]), @r#"
    unknown: a variable could become a flag of `sort`: `$X`
      decided by: sort  $X
    commands:
      unknown    sort $X         a variable could become a flag of `sort`: `$X`
      read-only  date            `date` only reads
      read-only  echo "$(date)"  `echo` only prints
    "#);
    insta::assert_snapshot!(world.cli(["classify", "echo 'oh"]), @r"
    unknown: it cannot be parsed: unterminated single quote at 1,6
      decided by: echo 'oh
    ");
    assert!(!world.place("state").exists(), "nothing was made");
}

#[test]
fn words_without_a_shell() {
    let world = World::new();
    insta::assert_snapshot!(world.cli(["classify", "--", "sort", "*"]), @r"
    read-only: `sort` only reads
      decided by: sort
    ");
    insta::assert_snapshot!(world.cli(["classify", "sudo", "-u", "web", "sed", "-i", "s/a/b/", "x"]), @r"
    writes: `sed` changes files in place
      decided by: sed  -i
    commands:
      read-only  sudo -u web sed -i s/a/b/ x  `sudo` runs what follows as another user
      writes     sed -i s/a/b/ x              `sed` changes files in place
    ");
    insta::assert_snapshot!(world.cli(["classify", "--shell", "sort", "*"]), @r"
    unknown: a pattern could become a flag of `sort`: `*`
      decided by: sort  *
    ");
}

#[test]
fn for_programs() {
    let world = World::new();
    insta::assert_snapshot!(world.cli(["classify", "--json", "--", "ls > x"]), @r#"{"reply":"classified","class":"writes","because":"`> x` writes a file","words":["> x"],"commands":[{"command":"ls > x","class":"writes","because":"`> x` writes a file","words":["> x"]}]}"#);
}

#[test]
fn a_command_that_is_not_given() {
    insta::assert_snapshot!(World::new().cli(["classify"]), @r"
    error: the following required arguments were not provided:
      <WORD>...

    Usage: backout classify <WORD>...

    For more information, try '--help'.
    [exit code 2]
    ");
}
