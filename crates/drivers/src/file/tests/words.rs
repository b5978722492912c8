//! What the errors say that only a bad disk, a program of the future or a caller of this crate brings about.

use std::io;
use std::sync::Arc;

use backout_files::BaseChanged;
use backout_model::ports::Driver;
use backout_model::{Digest, Effect, Recipe};

use super::world::World;
use crate::config::{ConfigDriver, ConfigFault};
use crate::file::{FileDriver, FileError, FileRequest};

#[test]
fn errors_of_a_bad_disk_name_the_target_and_what_happened() {
    let path = || "/f".to_owned();
    let digest = Digest::of(b"x");
    for (error, said) in [
        (
            FileError::OutOfReach {
                path: path(),
                why: "the disk is not there".to_owned(),
            },
            "what `/f` was is out of reach".to_owned(),
        ),
        (
            FileError::BaseChanged(BaseChanged {
                paths: vec![path(), "/g".to_owned()],
            }),
            "2 paths changed since the layer was made".to_owned(),
        ),
        (
            FileError::Damaged {
                path: path(),
                why: "it is gone".to_owned(),
            },
            "`/f` was put back but is not as it was: it is gone".to_owned(),
        ),
        (
            FileError::WrongContent {
                path: path(),
                digest,
            },
            format!("the content for `/f` is not {digest}"),
        ),
        (
            FileError::NotSynced {
                path: path(),
                source: io::Error::other("bad disk"),
            },
            "could not sync `/f`".to_owned(),
        ),
    ] {
        assert_eq!(error.to_string(), said);
    }
}

#[test]
fn a_recipe_of_a_newer_program_says_so_for_files_and_for_keys() {
    let said = "the recipe has version 9, this program reads up to 2";
    let file = FileError::Recipe { found: 9, known: 2 };
    let keys = ConfigFault::Recipe { found: 9, known: 2 };
    assert_eq!(
        (file.to_string(), keys.to_string()),
        (said.to_owned(), said.to_owned())
    );
}

#[test]
fn a_recipe_that_is_none_says_so_for_files_and_for_keys() {
    let world = World::new();
    let config = ConfigDriver::new(Arc::new(FileDriver::new(
        world.contents.clone(),
        world.contents.clone(),
        world.depots.clone(),
    )));
    let drivers: [&dyn Driver; 2] = [&world.driver, &config];
    for driver in drivers {
        let effect = Effect {
            recipe: Recipe::of(driver.name(), 1, &"no recipe").unwrap(),
            completion: None,
        };
        let error = driver.outline(&effect).unwrap_err();
        assert_eq!(error.to_string(), "the recipe cannot be read");
    }
}

#[test]
fn a_batch_of_nothing_is_called_one() {
    assert_eq!(FileRequest::Batch(vec![]).summary(), "an empty batch");
}
