//! Hints on their way to other processes: gathered, written as text, read again.

use durably_kernel::RunId;
use durably_store::{Gathered, Hint};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::Notify;
use uuid::Uuid;

/// More runs than this are not named: the others look at everything. The server takes 8,000 bytes.
const RUNS_MAX: usize = 200;

/// What is to be told. The plain hints go by one letter each, runs by a letter and their id.
#[derive(Debug, Default)]
struct Pending {
    ready: bool,
    due: bool,
    claims: bool,
    everything: bool,
    inboxes: BTreeSet<Uuid>,
    changed: BTreeSet<Uuid>,
}

/// Who has not heard of others for so many breaths is alone.
const COMPANY: u32 = 3;

/// Hints that wait to be told.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// For how many more breaths others are taken to be there; while nobody is, nothing is told.
    company: AtomicU32,
    pending: Mutex<Pending>,
    filled: Notify,
    /// Who tells: nobody needs to hear from itself.
    token: String,
}

impl Default for Outbox {
    fn default() -> Self {
        let token = Uuid::from_u128(rand::Rng::random(&mut rand::rng()));
        Outbox {
            company: AtomicU32::new(COMPANY),
            pending: Mutex::default(),
            filled: Notify::new(),
            token: token.simple().to_string(),
        }
    }
}

impl Outbox {
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn put(&self, gathered: &Gathered) {
        let mut hints = gathered.hints().peekable();
        if self.is_alone() || hints.peek().is_none() {
            return;
        }
        let mut pending = self.pending.lock();
        for hint in hints {
            match hint {
                Hint::Ready => pending.ready = true,
                Hint::Due => pending.due = true,
                Hint::Claims => pending.claims = true,
                Hint::Inbox(run) => {
                    pending.inboxes.insert(run.0);
                }
                Hint::Changed(run) | Hint::Ended(run, _) => {
                    pending.changed.insert(run.0);
                }
            }
        }
        if pending.inboxes.len() + pending.changed.len() > RUNS_MAX {
            *pending = Pending { everything: true, ..Pending::default() };
        }
        drop(pending);
        self.filled.notify_one();
    }

    /// Whether there is nobody to tell.
    fn is_alone(&self) -> bool {
        self.company.load(Ordering::Relaxed) == 0
    }

    /// Somebody else is there.
    pub(crate) fn meet(&self) {
        if self.company.swap(COMPANY, Ordering::Relaxed) == 0 {
            // Not all that happened since it came was told.
            self.put_everything();
        }
    }

    /// Some time has passed without hearing of anybody.
    pub(crate) fn breathe(&self) {
        // An error means that it is alone already.
        let less = |company: u32| company.checked_sub(1);
        let _ = self.company.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// The others are to look at everything.
    pub(crate) fn put_everything(&self) {
        self.pending.lock().everything = true;
        self.filled.notify_one();
    }

    /// Waits until there may be something to tell.
    pub(crate) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// What is to be told now, in one text.
    pub(crate) fn take(&self) -> String {
        let pending = std::mem::take(&mut *self.pending.lock());
        let mut text = self.token.clone();
        for (given, letter) in [
            (pending.ready, " r"),
            (pending.due, " d"),
            (pending.claims, " c"),
            (pending.everything, " *"),
        ] {
            if given {
                text.push_str(letter);
            }
        }
        for (letter, runs) in [(" i", &pending.inboxes), (" x", &pending.changed)] {
            for run in runs {
                text.push_str(letter);
                text.push_str(run.simple().encode_lower(&mut Uuid::encode_buffer()));
            }
        }
        text
    }
}

/// What was heard.
#[derive(Debug)]
pub(crate) enum Word {
    /// It is from this process.
    Own,
    Hints(Gathered),
    /// Look at everything: too much to name, or nothing that this program understands.
    Everything,
}

/// Reads what another process, or this one, has told.
pub(crate) fn read(text: &str, own: &str) -> Word {
    let mut words = text.split(' ');
    if words.next() == Some(own) {
        return Word::Own;
    }
    let mut gathered = Gathered::default();
    for word in words {
        let hint = match word.split_at_checked(1) {
            Some(("r", "")) => Some(Hint::Ready),
            Some(("d", "")) => Some(Hint::Due),
            Some(("c", "")) => Some(Hint::Claims),
            Some(("i", id)) => run_of(id).map(Hint::Inbox),
            // How it ended is in the store.
            Some(("x", id)) => run_of(id).map(Hint::Changed),
            _ => None,
        };
        match hint {
            Some(hint) => gathered.note(hint),
            None => return Word::Everything,
        }
    }
    Word::Hints(gathered)
}

fn run_of(id: &str) -> Option<RunId> {
    Uuid::try_parse(id).ok().map(RunId)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(hints: impl IntoIterator<Item = Hint>) -> Gathered {
        let mut gathered = Gathered::default();
        hints.into_iter().for_each(|hint| gathered.note(hint));
        gathered
    }

    fn run(number: u64) -> RunId {
        RunId::from_parts(number, [9; 10])
    }

    #[test]
    fn what_is_told_is_what_is_heard() {
        let outbox = Outbox::default();
        let first = [Hint::Ready, Hint::Claims, Hint::Inbox(run(1)), Hint::Changed(run(2))];
        outbox.put(&gathered(first.clone()));
        outbox.put(&gathered(first.clone()));
        let text = outbox.take();
        let Word::Hints(heard) = read(&text, "somebody else") else { panic!("{text}") };
        assert_eq!(heard.hints().cloned().collect::<Vec<_>>(), first);
        assert!(matches!(read(&text, outbox.token()), Word::Own));
        assert_eq!(outbox.take(), outbox.token(), "it was taken");
    }

    #[test]
    fn who_is_alone_tells_nothing() {
        let outbox = Outbox::default();
        for _ in 0..COMPANY {
            outbox.put(&gathered([Hint::Ready]));
            assert!(outbox.take().ends_with(" r"), "somebody may be there");
            outbox.breathe();
        }
        outbox.breathe();
        outbox.put(&gathered([Hint::Ready]));
        assert_eq!(outbox.take(), outbox.token());
        outbox.meet();
        assert!(outbox.take().ends_with(" *"), "what was not told may have been something");
        outbox.put(&gathered([Hint::Ready]));
        outbox.meet();
        assert!(outbox.take().ends_with(" r"));
    }

    #[test]
    fn a_text_is_never_longer_than_the_server_takes() {
        let outbox = Outbox::default();
        let all = [Hint::Ready, Hint::Due, Hint::Claims];
        let runs = (0..200).map(|number| Hint::Inbox(run(number)));
        outbox.put(&gathered(all.into_iter().chain(runs)));
        let text = outbox.take();
        assert!(text.len() < 8000, "{}", text.len());
        assert!(matches!(read(&text, ""), Word::Hints(_)));
        outbox.put(&gathered((0..201).map(|number| Hint::Changed(run(number)))));
        assert!(matches!(read(&outbox.take(), ""), Word::Everything));
    }

    #[test]
    fn what_nobody_understands_is_everything() {
        for text in ["x *", "x ?", "x i12", "x rr", "x ", "x é"] {
            assert!(matches!(read(text, ""), Word::Everything), "{text}");
        }
        assert!(matches!(read("x", ""), Word::Hints(_)));
    }
}
