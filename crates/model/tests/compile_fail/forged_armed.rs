//! Nobody but `arm` makes an `Armed`.

use backout_model::{Armed, DriverName, OperationId, Recipe};

fn main() {
    let recipe = Recipe {
        driver: DriverName::FILE,
        version: 1,
        contents: vec![],
        slots: vec![],
        body: Default::default(),
    };
    let _forged = Armed { id: OperationId::from_bits(1), recipe, staged: () };
}
