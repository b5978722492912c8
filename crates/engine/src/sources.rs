//! Where time and ids come from.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use backout_model::ports::{Clock, Ids};
use backout_model::{OperationId, Timestamp};

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Ids from the kernel's random numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn next(&self) -> OperationId {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).expect("the kernel gives random numbers once it has booted");
        OperationId::from_bits(u64::from_le_bytes(bytes))
    }
}

/// Gives the clock and the ids of a normal run, or the fixed ones that a hermetic test asked for.
pub(crate) fn sources() -> (Arc<dyn Clock>, Arc<dyn Ids>) {
    #[cfg(feature = "testing")]
    if let Some(fixed) = testing::fixed() {
        return fixed;
    }
    (Arc::new(SystemClock), Arc::new(RandomIds))
}

#[cfg(feature = "testing")]
mod testing {
    //! `BACKOUT_TEST_SEED=FILE` counts in a file, across processes: ids and moments become predictable.

    use std::fs;
    use std::path::PathBuf;

    use super::{Arc, Clock, Ids, OperationId, Timestamp};

    #[derive(Debug)]
    struct Counted(PathBuf);

    impl Counted {
        fn count(&self, what: &str) -> u64 {
            let path = self.0.join(what);
            let last = fs::read_to_string(&path)
                .ok()
                .and_then(|text| text.parse::<u64>().ok());
            let next = last.unwrap_or(0) + 1;
            let _written = fs::write(&path, next.to_string());
            next
        }
    }

    impl Ids for Counted {
        fn next(&self) -> OperationId {
            // Spread like random ids, so that short prefixes tell them apart, but the same in every run.
            OperationId::from_bits(self.count("ids").wrapping_mul(0x9e37_79b9_7f4a_7c15))
        }
    }

    impl Clock for Counted {
        fn now(&self) -> Timestamp {
            let fixed = fs::read_to_string(self.0.join("now")).ok();
            let base = fixed
                .and_then(|text| text.trim().parse().ok())
                .unwrap_or(1_800_000_000_000);
            Timestamp(base)
        }
    }

    pub(super) fn fixed() -> Option<(Arc<dyn Clock>, Arc<dyn Ids>)> {
        let directory = PathBuf::from(std::env::var_os("BACKOUT_TEST_SEED")?);
        Some((
            Arc::new(Counted(directory.clone())),
            Arc::new(Counted(directory)),
        ))
    }
}
