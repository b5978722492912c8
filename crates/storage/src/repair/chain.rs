//! Choosing the chain: which of the rows that look like records are the records.
//!
//! Pure. A record is believed if its hash follows from the one before it. Where that one is lost, its hash may still be
//! known (its row is there, only the body is broken): then the chain goes on. Where nothing of it is known, the first
//! record behind the gap is kept only if the next one vouches for its hash, and it is marked as unlinked: nothing vouches
//! for its body.

use std::collections::{BTreeMap, HashMap};

use backout_model::{Digest, Event, GENESIS, Gap, GapLink, Lsn, Record, Timestamp};

use super::found::Candidate;

/// A record that survived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Survivor {
    pub(super) lsn: Lsn,
    pub(super) at: Timestamp,
    pub(super) event: Event,
    pub(super) body: Vec<u8>,
    pub(super) hash: Digest,
    /// Whether its hash follows from what was before it.
    pub(super) is_linked: bool,
}

/// The records that survived, and what is missing between and behind them.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) records: Vec<Survivor>,
    pub(super) gaps: Vec<Gap>,
    /// Where the chain goes on: the last known place and the hash to go on from.
    pub(super) end: (Lsn, Digest),
}

/// Chooses the chain. `end` is the last record that must have been there, with the hash if it is known.
pub(super) fn choose(
    found: &BTreeMap<Lsn, Vec<Candidate>>,
    end: Option<(Lsn, Option<Digest>)>,
) -> Chain {
    let anchors = anchors(found);
    let mut walk = Walk {
        found,
        chain: Chain {
            records: Vec::new(),
            gaps: Vec::new(),
            end: (Lsn(0), GENESIS),
        },
        last: Lsn(0),
        hash: Some(GENESIS),
    };
    for (lsn, candidates) in found {
        walk.step(*lsn, candidates, &anchors, end);
    }
    let mut chain = walk.chain;
    chain.end = chain
        .records
        .last()
        .map_or((Lsn(0), GENESIS), |record| (record.lsn, record.hash));
    forget_what_was_cut(&mut chain);
    if let Some((had, hash)) = end.filter(|(had, _)| *had > chain.end.0) {
        let go_on = hash.unwrap_or(chain.end.1);
        chain.gaps.push(Gap {
            first: chain.end.0.next(),
            last: had,
            link: GapLink::Hash(go_on),
        });
        chain.end = (had, go_on);
    }
    chain
}

struct Walk<'f> {
    found: &'f BTreeMap<Lsn, Vec<Candidate>>,
    chain: Chain,
    /// The last place that was kept,
    last: Lsn,
    /// and the hash of the one before the next, if it is known.
    hash: Option<Digest>,
}

impl Walk<'_> {
    fn step(
        &mut self,
        lsn: Lsn,
        candidates: &[Candidate],
        anchors: &HashMap<Lsn, Vec<Digest>>,
        end: Option<(Lsn, Option<Digest>)>,
    ) {
        let before = Lsn(lsn.0 - 1);
        let known = self
            .chain
            .records
            .last()
            .map_or(Lsn(0), |record| record.lsn);
        if self.last != before {
            self.hash = None;
        }
        // The hash before it: what the walk knows, or what a cut says.
        let mut hashes: Vec<Digest> = self.hash.into_iter().collect();
        hashes.extend(anchors.get(&before).into_iter().flatten());
        let follows =
            |candidate: &&Candidate| hashes.iter().any(|hash| candidate.follows(hash, lsn));
        let mut linked: Vec<&Candidate> = candidates.iter().filter(follows).collect();
        linked.sort_by_key(|candidate| self.is_vouched_for(lsn, candidate, end));
        let link = hashes.iter().find(|hash| {
            linked
                .last()
                .is_some_and(|candidate| candidate.follows(hash, lsn))
        });
        let vouched = candidates
            .iter()
            .rev()
            .find(|candidate| self.is_vouched_for(lsn, candidate, end));
        let (chosen, link) = match (linked.last(), link, vouched) {
            (Some(candidate), Some(hash), _) => (*candidate, GapLink::Hash(*hash)),
            // Its place in the chain is certain, its body is not what was written.
            (_, _, Some(candidate)) if self.hash.is_some() || candidate.event().is_none() => {
                (self.last, self.hash) = (lsn, Some(candidate.hash));
                return;
            }
            (_, _, Some(candidate)) => {
                let pin = Gap::pin(lsn, candidate.at, &candidate.body, &candidate.hash);
                (candidate, GapLink::Pin(pin))
            }
            _ => return,
        };
        let Some(event) = chosen.event() else { return };
        if known != before {
            let (first, last) = (known.next(), before);
            self.chain.gaps.push(Gap { first, last, link });
        }
        self.chain.records.push(Survivor {
            lsn,
            at: chosen.at,
            event,
            body: chosen.body.clone(),
            hash: chosen.hash,
            is_linked: matches!(link, GapLink::Hash(_)),
        });
        (self.last, self.hash) = (lsn, Some(chosen.hash));
    }

    /// Tells whether the next record, or the witness, says that this hash is right.
    fn is_vouched_for(
        &self,
        lsn: Lsn,
        candidate: &Candidate,
        end: Option<(Lsn, Option<Digest>)>,
    ) -> bool {
        let next = self.found.get(&lsn.next()).into_iter().flatten();
        next.into_iter()
            .any(|next| next.follows(&candidate.hash, lsn.next()))
            || end == Some((lsn, Some(candidate.hash)))
    }
}

impl Candidate {
    fn follows(&self, previous: &Digest, lsn: Lsn) -> bool {
        Record::chain(previous, lsn, self.at, &self.body) == self.hash
    }
}

/// What the cuts say about the hash of the last record that each took away.
fn anchors(found: &BTreeMap<Lsn, Vec<Candidate>>) -> HashMap<Lsn, Vec<Digest>> {
    let mut anchors: HashMap<Lsn, Vec<Digest>> = HashMap::new();
    for candidate in found.values().flatten() {
        if let Some(Event::Cut { up_to, anchor }) = candidate.event() {
            anchors.entry(up_to).or_default().push(anchor);
        }
    }
    anchors
}

/// Old copies of records that were cut off are no part of the journal any more.
fn forget_what_was_cut(chain: &mut Chain) {
    let cut = chain.records.iter().rev().find_map(|record| {
        if let Event::Cut { up_to, .. } = record.event {
            Some(up_to)
        } else {
            None
        }
    });
    let Some(cut) = cut else { return };
    chain.records.retain(|record| record.lsn > cut);
    chain.gaps.retain(|gap| gap.last > cut);
    for gap in &mut chain.gaps {
        gap.first = gap.first.max(cut.next());
    }
}
