//! Nobody but `arm` makes an `Armed`.

use backout_model::{Armed, DriverKind, OperationId, Recipe};

fn main() {
    let recipe = Recipe {
        driver: DriverKind::File,
        version: 1,
        contents: vec![],
        slots: vec![],
        body: Default::default(),
    };
    let _forged = Armed { id: OperationId::from_bits(1), recipe, staged: () };
}
