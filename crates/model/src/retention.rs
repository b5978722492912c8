//! How long images are kept: three tiers, decided by a pure function.
//!
//! 1. Images of uncommitted operations: for ever. They are not even candidates.
//! 2. Images of committed operations: at least `committed_ms_min` (a guarantee), then until `committed_ms_max`
//!    while the store is under its cap and the file has no more than `versions_per_file_max` newer ones.
//! 3. Audit records: `audit_ms` past the images, then exported and cut off. Those of a call with a key stay at least
//!    `KEY_MS_MIN`: whoever makes the call again must get the first answer.

use serde::{Deserialize, Serialize};

use crate::{Key, OperationId, Timestamp};

const HOUR_MS: i64 = 60 * 60 * 1000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// A call with a key is known again at least this long, whatever `audit_ms` says.
pub const KEY_MS_MIN: i64 = 7 * DAY_MS;

/// The numbers of the three tiers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// A committed image is never let go before this age.
    pub committed_ms_min: i64,
    /// A committed image is let go after this age.
    pub committed_ms_max: i64,
    /// A file keeps this many committed versions once they are older than the minimum.
    pub versions_per_file_max: usize,
    /// The store's cap. Above it the oldest committed images go first, and only past the minimum age.
    pub store_bytes_max: u64,
    /// Audit records stay this long past their images.
    pub audit_ms: i64,
}

impl Retention {
    /// Our defaults.
    pub const fn standard() -> Self {
        Self {
            committed_ms_min: HOUR_MS,
            committed_ms_max: 30 * DAY_MS,
            versions_per_file_max: 50,
            store_bytes_max: 2 * 1024 * 1024 * 1024,
            audit_ms: 7 * DAY_MS,
        }
    }

    /// The article's exact numbers: one hour, fifty versions, 500 MB, seven days.
    pub const fn article() -> Self {
        Self {
            committed_ms_min: HOUR_MS,
            committed_ms_max: HOUR_MS,
            versions_per_file_max: 50,
            store_bytes_max: 500 * 1024 * 1024,
            audit_ms: 7 * DAY_MS,
        }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self::standard()
    }
}

/// A finished operation whose images could be let go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// It stays in the log without its images.
    pub id: OperationId,
    /// When it was committed, aborted or undone.
    pub at: Timestamp,
    /// What it holds versions of.
    pub keys: Vec<Key>,
    /// How many bytes of the store go with it, at the least.
    pub bytes: u64,
}

/// Why an operation's images are let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpiryReason {
    /// They are older than the maximum.
    TooOld,
    /// The file has enough newer versions.
    TooManyVersions,
    /// The store is over its cap.
    OverCap,
}

impl ExpiryReason {
    /// Says the rule in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooOld => "past the retention window",
            Self::TooManyVersions => "more versions of the file than are kept",
            Self::OverCap => "the store was over its cap",
        }
    }
}

/// Chooses the operations whose images go, oldest first. `candidates` may come in any order.
pub fn select_expired(
    retention: &Retention,
    candidates: &[Candidate],
    stored_bytes: u64,
    now: Timestamp,
) -> Vec<(OperationId, ExpiryReason)> {
    let mut newest_first: Vec<&Candidate> = candidates.iter().collect();
    newest_first.sort_by_key(|c| (std::cmp::Reverse(c.at), c.id));
    let mut versions = std::collections::BTreeMap::<&Key, usize>::new();
    let mut expired = Vec::new();
    let mut kept = Vec::new();
    for candidate in newest_first {
        let age = now.millis_since(candidate.at);
        let mut crowded = !candidate.keys.is_empty();
        for key in &candidate.keys {
            let seen = versions.entry(key).or_default();
            *seen += 1;
            crowded &= *seen > retention.versions_per_file_max;
        }
        if age < retention.committed_ms_min {
            continue;
        }
        if age >= retention.committed_ms_max {
            expired.push((candidate, ExpiryReason::TooOld));
        } else if crowded {
            expired.push((candidate, ExpiryReason::TooManyVersions));
        } else {
            kept.push(candidate);
        }
    }
    let freed: u64 = expired.iter().map(|(candidate, _)| candidate.bytes).sum();
    let mut left = stored_bytes.saturating_sub(freed);
    while left > retention.store_bytes_max {
        let Some(oldest) = kept.pop() else { break };
        left = left.saturating_sub(oldest.bytes);
        expired.push((oldest, ExpiryReason::OverCap));
    }
    expired.sort_by_key(|(candidate, _)| (candidate.at, candidate.id));
    expired
        .into_iter()
        .map(|(candidate, reason)| (candidate.id, reason))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(100 * DAY_MS);

    fn aged(id: u64, age_ms: i64, path: &str, bytes: u64) -> Candidate {
        Candidate {
            id: OperationId::from_bits(id),
            at: Timestamp(NOW.0 - age_ms),
            keys: vec![crate::TargetPath::new(path).unwrap().into()],
            bytes,
        }
    }

    fn expired(
        retention: &Retention,
        candidates: &[Candidate],
        stored: u64,
    ) -> Vec<(u64, ExpiryReason)> {
        let chosen = select_expired(retention, candidates, stored, NOW);
        chosen
            .into_iter()
            .map(|(id, reason)| (id.bits(), reason))
            .collect()
    }

    #[test]
    fn nothing_goes_within_the_guaranteed_hour_whatever_the_pressure() {
        let retention = Retention {
            store_bytes_max: 0,
            versions_per_file_max: 0,
            ..Retention::standard()
        };
        let young: Vec<_> = (0..9)
            .map(|n| aged(n, HOUR_MS - 1, "/f", 1 << 40))
            .collect();
        assert_eq!(expired(&retention, &young, u64::MAX), []);
    }

    #[test]
    fn what_is_as_old_or_as_much_as_allowed_is_judged_by_the_edge() {
        let retention = Retention {
            store_bytes_max: 10,
            ..Retention::standard()
        };
        let candidates = [aged(1, HOUR_MS, "/a", 4), aged(2, HOUR_MS, "/b", 4)];
        assert_eq!(expired(&retention, &candidates, 10), []);
        let oldest = expired(&retention, &candidates, 11);
        assert_eq!(oldest.len(), 1, "{oldest:?}");
    }

    #[test]
    fn old_images_go_oldest_first() {
        let candidates = [
            aged(1, 31 * DAY_MS, "/a", 1),
            aged(2, DAY_MS, "/b", 1),
            aged(3, 40 * DAY_MS, "/c", 1),
        ];
        assert_eq!(
            expired(&Retention::standard(), &candidates, 3),
            [(3, ExpiryReason::TooOld), (1, ExpiryReason::TooOld)]
        );
        assert_eq!(expired(&Retention::article(), &candidates, 3).len(), 3);
    }

    #[test]
    fn a_file_keeps_its_newest_versions() {
        let retention = Retention {
            versions_per_file_max: 2,
            ..Retention::standard()
        };
        let hours = |n: u64| aged(n, i64::try_from(n).unwrap() * 2 * HOUR_MS, "/f", 1);
        let candidates: Vec<_> = (1..=4).map(hours).collect();
        assert_eq!(
            expired(&retention, &candidates, 4),
            [
                (4, ExpiryReason::TooManyVersions),
                (3, ExpiryReason::TooManyVersions)
            ]
        );
    }

    #[test]
    fn over_the_cap_the_oldest_go_until_it_fits() {
        let retention = Retention {
            store_bytes_max: 250,
            ..Retention::standard()
        };
        let candidates: Vec<_> = (1..=5)
            .map(|n| aged(n, i64::try_from(n).unwrap() * DAY_MS, &format!("/{n}"), 100))
            .collect();
        assert_eq!(
            expired(&retention, &candidates, 500),
            [
                (5, ExpiryReason::OverCap),
                (4, ExpiryReason::OverCap),
                (3, ExpiryReason::OverCap)
            ]
        );
    }
}
