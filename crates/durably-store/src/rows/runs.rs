//! Runs by id. A command asks for the same run again and again: where the
//! last one was found is remembered, so that only the first question searches.

use super::state::RunRecord;
use durably_kernel::RunId;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Index;

/// Runs by id.
#[derive(Debug, Default)]
pub struct Runs {
    /// Where the record of each run is; none is ever removed.
    places: BTreeMap<RunId, usize>,
    #[allow(clippy::vec_box, reason = "a record is large and does not move when there are more")]
    records: Vec<Box<RunRecord>>,
    last: Cell<Option<(RunId, usize)>>,
}

impl Runs {
    fn place(&self, run: &RunId) -> Option<usize> {
        match self.last.get() {
            Some((last, place)) if last == *run => Some(place),
            _ => {
                let place = *self.places.get(run)?;
                self.last.set(Some((*run, place)));
                Some(place)
            }
        }
    }

    /// A run.
    pub fn get(&self, run: &RunId) -> Option<&RunRecord> {
        self.place(run).map(|place| &*self.records[place])
    }

    /// A run, to be changed.
    pub fn get_mut(&mut self, run: &RunId) -> Option<&mut RunRecord> {
        self.place(run).map(|place| &mut *self.records[place])
    }

    /// Adds a run that is not there yet.
    pub(crate) fn insert(&mut self, run: RunId, record: Box<RunRecord>) {
        let before = self.places.insert(run, self.records.len());
        assert!(before.is_none(), "a run is started once");
        self.records.push(record);
    }

    #[allow(clippy::vec_box, reason = "as they are kept here")]
    pub(crate) fn into_records(self) -> Vec<Box<RunRecord>> {
        self.records
    }

    /// Whether it is there.
    pub fn contains(&self, run: &RunId) -> bool {
        self.place(run).is_some()
    }

    /// All of them, to be changed, in no order that says anything.
    pub fn records_mut(&mut self) -> impl Iterator<Item = &mut RunRecord> {
        self.records.iter_mut().map(|record| &mut **record)
    }

    /// All of them, by id.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&RunId, &RunRecord)> {
        self.places.iter().map(|(run, place)| (run, &*self.records[*place]))
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }
}

impl Index<&RunId> for Runs {
    type Output = RunRecord;

    fn index(&self, run: &RunId) -> &RunRecord {
        self.get(run).expect("a run that is there")
    }
}
