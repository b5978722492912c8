//! Every system call of the kernel by what becomes of it, against the filter: a new one must be put somewhere.
//!
//! The list is `calls.txt`. A number without a name there is not known, and must be refused.

use std::collections::BTreeMap;

use super::super::table::NEWEST;
use super::tests::{ARCHITECTURE, answer};
use super::{ALLOW, ERRNO, Filter, NOTIFY, Wanted, enosys};

/// Reads the list: the number, the name and the class of each call.
fn listed() -> Vec<(i64, &'static str, &'static str)> {
    let lines = include_str!("calls.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut words = line.split(' ');
            let mut word = || words.next().expect("a number, a name and a class");
            (word().parse().expect("a number"), word(), word())
        })
        .collect()
}

/// What the filter says to a call of a class.
fn answer_to(class: &str) -> Option<u32> {
    match class {
        "changes" | "standing" | "never" => Some(NOTIFY),
        "absent" => Some(ERRNO | enosys()),
        "writes" | "harmless" => Some(ALLOW),
        _ => None,
    }
}

#[test]
fn every_call_of_the_kernel_has_its_place() {
    let filter = Filter::new(Wanted::default());
    let mut classes: BTreeMap<i64, u32> = BTreeMap::new();
    for (number, name, class) in listed() {
        let class = answer_to(class).expect("one of the classes");
        let before = classes.insert(number, class);
        assert_eq!(before, None, "{name} is listed twice");
    }
    // Opened for writing; asked to change flags.
    let arguments = |number: i64| match number {
        libc::SYS_open => [0, 1, 0, 0, 0, 0],
        libc::SYS_ioctl => [0, 0x4008_6602, 0, 0, 0, 0],
        _ => [0, 0, 1, 0, 0, 0],
    };
    for number in 0..=1000 {
        let answered = answer(&filter, number, arguments(number), ARCHITECTURE);
        let is_reserved = (337..424).contains(&number);
        match classes.get(&number) {
            Some(class) => assert_eq!(answered, *class, "{number}"),
            None if number > NEWEST => assert_eq!(answered, NOTIFY, "{number}"),
            None => assert!(is_reserved, "{number} is in no class"),
        }
    }
    let newest = classes.keys().max();
    assert_eq!(newest, Some(&NEWEST));
}

/// Where the machine has the kernel's own list, none of its calls may be missing.
#[test]
fn no_call_of_this_machine_is_missing() {
    let header = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h";
    let text = std::fs::read_to_string(header).unwrap_or_default();
    let all = listed().into_iter().map(|(number, name, _)| (number, name));
    let all: BTreeMap<i64, &str> = all.collect();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if let (Some("#define"), Some(name), Some(number)) =
            (words.next(), words.next(), words.next())
            && let (Some(name), Ok(number)) = (name.strip_prefix("__NR_"), number.parse())
        {
            assert_eq!(all.get(&number), Some(&name));
        }
    }
}
