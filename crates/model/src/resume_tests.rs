//! Good checkpoints are known from bad ones.

use serde_json::json;

use super::*;

fn checkpoint() -> Checkpoint {
    let mut checkpoint = Checkpoint {
        name: "before".parse().unwrap(),
        lsn: Lsn(0),
        at: crate::Timestamp(0),
        agent: Some("robin".parse().unwrap()),
        task: Some("fix".parse().unwrap()),
        state: settled(json!({"ratio": 0.1, "seen": [1, "two", null], "big": 1e300})),
        files: None,
        resume: Some(Box::new(ResumePoint {
            format: RESUME_FORMAT,
            step: Some("3/7".parse().unwrap()),
            decisions: vec!["canary".to_owned()],
            environment: BTreeMap::from([("GONE".to_owned(), None)]),
            position: Lsn(4),
            ..ResumePoint::default()
        })),
    };
    let (said, _) = checkpoint.said();
    checkpoint.resume.as_mut().unwrap().digest = Some(said);
    checkpoint
}

fn task() -> TaskId {
    "fix".parse().unwrap()
}

#[test]
fn a_checkpoint_is_good_wherever_the_journal_placed_it() {
    let written = checkpoint();
    let text = serde_json::to_string(&written).unwrap();
    let mut read: Checkpoint = serde_json::from_str(&text).unwrap();
    assert_eq!(read, written);
    read.lsn = Lsn(12);
    read.at = crate::Timestamp(99);
    assert_eq!(read.good_for(Some(&task()), None), Ok(()));
}

#[test]
fn a_checkpoint_that_says_something_else_is_damaged() {
    let changes: [fn(&mut Checkpoint); 4] = [
        |it| it.state = json!({}),
        |it| it.resume.as_mut().unwrap().position = Lsn(1),
        |it| it.resume.as_mut().unwrap().decisions.clear(),
        |it| it.resume.as_mut().unwrap().digest = None,
    ];
    for change in changes {
        let mut checkpoint = checkpoint();
        change(&mut checkpoint);
        let good = checkpoint.good_for(Some(&task()), None);
        assert_eq!(good, Err(BadCheckpoint::Damaged));
    }
    // A task of another name is a change, too.
    let mut other = checkpoint();
    other.task = Some("other".parse().unwrap());
    assert_eq!(
        other.good_for(Some(&task()), None),
        Err(BadCheckpoint::Damaged)
    );
}

#[test]
fn a_newer_checkpoint_is_called_newer_whatever_it_holds() {
    let mut value = serde_json::to_value(checkpoint()).unwrap();
    value["resume"] = json!({"format": 9, "step": "quite another thing"});
    let read: Checkpoint = serde_json::from_value(value).unwrap();
    let bad = read.good_for(Some(&task()), None).unwrap_err();
    assert_eq!(bad, BadCheckpoint::Newer { format: 9 });
    assert_eq!(
        bad.to_string(),
        "a newer version of Backout wrote it: format 9, and this one reads up to 1"
    );
}

#[test]
fn a_checkpoint_of_another_task_is_none_to_go_on_from() {
    let other: TaskId = "other".parse().unwrap();
    let bad = checkpoint().good_for(Some(&other), None).unwrap_err();
    assert_eq!(bad.to_string(), "it belongs to the task fix");
    let robin: AgentId = "robin".parse().unwrap();
    assert!(checkpoint().good_for(None, Some(&robin)).is_err());
}

#[test]
fn a_checkpoint_of_an_older_program_is_good() {
    let old = json!({"name": "before", "task": "fix", "state": {"step": 3}});
    let read: Checkpoint = serde_json::from_value(old).unwrap();
    assert_eq!(read.good_for(Some(&task()), None), Ok(()));
}

#[test]
fn steps_are_counted_from_what_is_done() {
    let step = |text: &str| text.parse::<StepAt>().unwrap();
    assert_eq!(step("3/7").next(), Some(4));
    assert_eq!(step("7/7").next(), None);
    assert_eq!(step("0").next(), Some(1));
    assert_eq!(step("3/7").to_string(), "3/7");
    for bad in ["", "x", "8/7", "1/", "-1", "1/2/3"] {
        assert!(bad.parse::<StepAt>().is_err(), "{bad}");
    }
}

#[test]
fn what_is_settled_is_read_back_as_it_is() {
    for number in [0.1, 1.0 / 3.0, 2.2e-308, 1.797e308, 123_456_789.123_456_78] {
        let value = settled(json!({"n": [number]}));
        let text = serde_json::to_string(&value).unwrap();
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            value
        );
    }
}
