//! The runtime of durably: worker, committer, mailboxes, sweeper, beat
