//! What is kept as files.

use backout_model::TargetPath;

use super::{World, id};

/// Or not at all.
pub fn a_trial_is_written_whole_and_listed(world: &World) {
    assert_eq!(world.store.trials().expect("listed"), []);
    assert_eq!(world.store.read_trial(id(1)).expect("read"), None);
    for manifest in [&b"first"[..], b"second"] {
        world.store.write_trial(id(1), manifest).expect("written");
        let read = world.again().read_trial(id(1)).expect("read");
        assert_eq!(read.as_deref(), Some(manifest));
    }
    assert_eq!(world.again().trials().expect("listed"), [id(1)]);
    assert!(world.store.trial_directory(id(1)).is_dir());
}

/// And no operation may write there.
pub fn its_own_directories_are_its_own(world: &World) {
    let store = &world.store;
    let own = store.own_directories();
    assert!(own.contains(&store.directory().to_path_buf()));
    let places = [
        store.capture_log(id(1)),
        store.capture_desk(id(1)),
        store.scan_index(),
        store.trial_directory(id(1)),
    ];
    for place in own.iter().chain(&places) {
        let path = TargetPath::new(place).expect("a path");
        assert!(store.is_ours(&path), "{}", place.display());
    }
    assert_ne!(store.capture_log(id(1)), store.capture_log(id(2)));
    let above = store.directory().parent().expect("it is somewhere");
    let above = TargetPath::new(above).expect("a path");
    assert!(store.is_above_ours(&above) && !store.is_ours(&above));
}

/// And there already if it is asked for again.
pub fn staging_is_private_to_one_operation(world: &World) {
    let staging = |number| world.store.staging(id(number)).expect("made");
    assert!(staging(1).as_path().is_dir());
    assert_eq!(staging(1), staging(1));
    assert_ne!(staging(1), staging(2));
}
