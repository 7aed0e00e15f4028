//! Many at once, through two handles on the same data.

use crate::sample::{
    FIRST, activity, completed, done, noted, puts, running, secs, signal, summary, timer,
};
use crate::world::{Turn, World};
use durably_kernel::{Claim, Place, RunId, RunStatus, Seq, TaskState, WorkerId};
use durably_store::{
    Base, ClaimCall, Claimed, ClaimedTask, ClaimedWork, CommitAnswer, Delivered, Delivery,
    LoadCall, RunCommit, Store,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// So many do the same at once.
const MANY: usize = 8;
/// So often a race is tried.
const ROUNDS: usize = 10;
/// Nobody looks longer than this for something that another has promised.
const LOOKS_MAX: usize = 100_000;

/// What somebody does with a handle.
type Task<F> = Box<dyn FnOnce(Arc<dyn Store>) -> F + Send>;

/// Runs tasks that begin together, every other one on another handle; their results in order.
async fn at_once<T, F>(world: &World, tasks: Vec<impl FnOnce(Arc<dyn Store>) -> F>) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let handles = [world.store.clone(), world.other_handle().await];
    let barrier = Arc::new(Barrier::new(tasks.len()));
    let mut set = JoinSet::new();
    for (at, task) in tasks.into_iter().enumerate() {
        let (work, barrier) = (task(handles[at % 2].clone()), barrier.clone());
        set.spawn(async move {
            barrier.wait().await;
            (at, work.await)
        });
    }
    let results: BTreeMap<usize, T> = set.join_all().await.into_iter().collect();
    results.into_values().collect()
}

async fn commit(store: &Arc<dyn Store>, who: Option<WorkerId>, commit: RunCommit) -> CommitAnswer {
    store.commit(who, vec![commit].into()).await.expect("commit").remove(0)
}

async fn deliver(store: &Arc<dyn Store>, run: RunId, id: &str) -> Delivered {
    let delivery = Delivery { run, id: id.to_owned(), fact: signal(id), claim: None };
    store.deliver(vec![delivery]).await.expect("deliver").remove(0)
}

async fn claim(store: &Arc<dyn Store>, call: ClaimCall) -> Vec<ClaimedTask> {
    match store.claim(call).await.expect("claim") {
        Claimed::Tasks { tasks, .. } => tasks,
        Claimed::Refused => panic!("the process is active"),
    }
}

pub(crate) async fn many_claimers_never_get_the_same_task(world: &World) {
    const TASKS: usize = 200;
    let batch = (0..TASKS).map(|n| world.start_of(world.new_for(["a", "b", "c"][n % 3]))).collect();
    for answer in world.commit_all(None, batch).await {
        done(answer);
    }
    let taken = Arc::new(AtomicUsize::new(0));
    let mut claimers = Vec::new();
    for n in 0..MANY {
        let who = world.worker(&format!("w{n}")).await;
        let calls: Vec<ClaimCall> = (0..1000).map(|_| world.claim_call(&who, 3)).collect();
        let taken = taken.clone();
        claimers.push(move |store: Arc<dyn Store>| async move {
            let mut mine = Vec::new();
            for call in calls {
                let tasks = claim(&store, call).await;
                taken.fetch_add(tasks.len(), Ordering::SeqCst);
                mine.extend(tasks.into_iter().map(|task| task.claim.run));
                if taken.load(Ordering::SeqCst) >= TASKS {
                    break;
                }
                tokio::task::yield_now().await;
            }
            mine
        });
    }
    let all: Vec<RunId> = at_once(world, claimers).await.concat();
    assert_eq!(all.len(), TASKS);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), TASKS, "each to one of them");
}

/// The repeat waits for the call whose answer is lost.
pub(crate) async fn a_claim_call_made_twice_at_once_gives_the_same_tasks(world: &World) {
    let who = world.worker("one").await;
    for _ in 0..ROUNDS {
        for _ in 0..4 {
            world.start(world.new_run()).await;
        }
        let call = world.claim_call(&who, 3);
        let calls = vec![call.clone(), call];
        let asks =
            calls.into_iter().map(|call| move |store| async move { claim(&store, call).await });
        let answers = at_once(world, asks.collect()).await;
        let claims = |tasks: &[ClaimedTask]| {
            tasks.iter().map(|task| task.claim).collect::<BTreeSet<Claim>>()
        };
        assert_eq!(answers[0].len(), 3);
        assert_eq!(claims(&answers[0]), claims(&answers[1]));
        world.claim(&who, 100).await;
    }
}

pub(crate) async fn of_many_commits_on_one_head_exactly_one_wins(world: &World) {
    let run = world.begun([]).await;
    for round in 0..ROUNDS as u64 {
        let commits = (0..MANY).map(|n| {
            let made = RunCommit {
                events: vec![noted(&format!("{round}/{n}"))],
                ..world.on(run, Seq(2 + round))
            };
            move |store| async move { commit(&store, None, made).await }
        });
        let answers = at_once(world, commits.collect()).await;
        let won = answers.iter().filter(|a| matches!(a, CommitAnswer::Committed(_))).count();
        let lost = answers.iter().filter(|a| **a == CommitAnswer::Conflict).count();
        assert_eq!((won, lost), (1, MANY - 1), "{answers:?}");
    }
    assert_eq!(world.view(run).await.head, Seq(2 + ROUNDS as u64));
    assert_eq!(world.events(run).await.len(), 2 + ROUNDS);
}

/// Commit, delivery and time-out of the same attempt: one of them.
pub(crate) async fn of_many_ends_of_one_claim_exactly_one_wins(world: &World) {
    for round in 0..ROUNDS {
        let who = world.worker(&format!("w{round}")).await;
        let working = world.working(&who).await;
        world.pass(secs(600));
        let made = world.result_of(&working);
        let outcome = world.outcome_of(&who, &working);
        let call = durably_store::SweepCall { may_declare: false, ..world.sweep_call() };
        let tasks = (0..3).map(|n| {
            let (made, outcome, call, who) =
                (made.clone(), outcome.clone(), call.clone(), who.clone());
            move |store: Arc<dyn Store>| async move {
                match n {
                    0 => {
                        matches!(commit(&store, Some(who), made).await, CommitAnswer::Committed(_))
                    }
                    1 => store.deliver(vec![outcome]).await.unwrap() == [Delivered::Entry(1)],
                    _ => store.sweep(call).await.unwrap().delivered == 1,
                }
            }
        });
        let won = at_once(world, tasks.collect()).await;
        assert_eq!(won.iter().filter(|won| **won).count(), 1, "{won:?}");
        assert!(world.task(working.run, FIRST).await.is_none());
        let view = world.view(working.run).await;
        let (events, entries) = (view.head.0 - 2, view.inbox_last);
        assert_eq!((events + entries, events), (1, u64::from(won[0])), "one trace of it");
        world.claim(&who, 10).await;
    }
}

/// Ends the run as soon as it can; what it read until then.
async fn end_soon(store: Arc<dyn Store>, run: RunId, ids: Vec<durably_kernel::CommitId>) -> u64 {
    let mut refused = 0;
    for id in ids {
        let call = LoadCall { run, after: Seq(0), claims: vec![], who: None, events_max: 10 };
        let view = store.load(call).await.expect("load").expect("there is such a run").view;
        // What is in the inbox by now is read; the loop stands for a turn.
        let ending = RunCommit {
            events: vec![completed()],
            summary: Some(summary(RunStatus::Completed)),
            inbox_used: view.inbox_last,
            end_anyway: refused == 3,
            ..RunCommit::empty(id, run, Base::Head(view.head))
        };
        match commit(&store, None, ending).await {
            CommitAnswer::Committed(_) => return view.inbox_last,
            CommitAnswer::EndConflict => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    panic!("after three conflicts the end commits");
}

pub(crate) async fn no_acknowledged_signal_vanishes_at_the_end(world: &World) {
    for _ in 0..ROUNDS {
        let run = world.begun([]).await;
        let ids: Vec<_> = (0..5).map(|_| world.commit_id()).collect();
        let mut tasks: Vec<Task<_>> = Vec::new();
        for sender in 0..4 {
            tasks.push(Box::new(move |store| send_until_ended(store, run, sender)));
        }
        let read = Arc::new(AtomicUsize::new(0));
        let ender = read.clone();
        tasks.push(Box::new(move |store| {
            Box::pin(async move {
                ender.store(end_soon(store, run, ids).await as usize, Ordering::SeqCst);
                BTreeMap::new()
            })
        }));
        let mut accepted: BTreeMap<u64, String> = BTreeMap::new();
        for mine in at_once(world, tasks).await {
            for (number, id) in mine {
                assert_eq!(accepted.insert(number, id), None, "one number, one entry");
            }
        }
        let view = world.view(run).await;
        let numbers: Vec<u64> = accepted.keys().copied().collect();
        assert_eq!(numbers, (1..=view.inbox_last).collect::<Vec<_>>());
        assert_eq!(view.inbox_used, view.inbox_last);
        let letters = world.store.dead_letters(Some(run), 1000).await.unwrap();
        let dead: BTreeSet<String> = letters.iter().map(|l| l.activity_id.to_string()).collect();
        let read = read.load(Ordering::SeqCst) as u64;
        for (number, id) in &accepted {
            assert_eq!(dead.contains(id), *number > read, "entry {number}: read or a dead letter");
        }
    }
}

type Sent = std::pin::Pin<Box<dyn Future<Output = BTreeMap<u64, String>> + Send>>;

fn send_until_ended(store: Arc<dyn Store>, run: RunId, sender: usize) -> Sent {
    Box::pin(async move {
        let mut accepted = BTreeMap::new();
        for n in 0..LOOKS_MAX {
            let id = format!("{sender}/{n}");
            match deliver(&store, run, &id).await {
                Delivered::Entry(number) => accepted.insert(number, id),
                Delivered::Ended(_) => return accepted,
                other => panic!("{other:?}"),
            };
            tokio::task::yield_now().await;
        }
        panic!("the run was to end");
    })
}

pub(crate) async fn starts_with_one_key_make_one_run(world: &World) {
    for round in 0..ROUNDS {
        let keys: Vec<String> = (0..3).map(|n| format!("{round}/{n}")).collect();
        let starts = (0..MANY).map(|n| {
            let mut keys = keys.clone();
            if n % 2 == 1 {
                keys.reverse();
            }
            let batch = keys.into_iter().map(|key| {
                let mut new = world.new_run();
                new.check.key = Some(key);
                world.start_of(new)
            });
            let batch: Vec<_> = batch.collect();
            move |store: Arc<dyn Store>| async move {
                let tried: Vec<RunId> = batch.iter().map(|commit| commit.run).collect();
                let answers = store.commit(None, batch.into()).await.expect("commit");
                let runs = tried.into_iter().zip(answers).map(|(mine, answer)| match answer {
                    CommitAnswer::Committed(_) => (mine, true),
                    CommitAnswer::Exists { run, same: true } => (run, false),
                    other => panic!("{other:?}"),
                });
                let mut runs: Vec<_> = runs.collect();
                if n % 2 == 1 {
                    runs.reverse();
                }
                runs
            }
        });
        let answers = at_once(world, starts.collect()).await;
        for key in 0..keys.len() {
            let runs: BTreeSet<RunId> = answers.iter().map(|runs| runs[key].0).collect();
            let made = answers.iter().filter(|runs| runs[key].1).count();
            assert_eq!((runs.len(), made), (1, 1), "one run, made by one of them");
        }
    }
    assert_eq!(world.snapshot().await.runs.len(), 3 * ROUNDS);
}

pub(crate) async fn deliveries_are_gapless_and_in_order_per_sender(world: &World) {
    const EACH: usize = 25;
    let who = world.worker("one").await;
    let run = world.begun([]).await;
    let senders = (0..MANY).map(|sender| {
        move |store: Arc<dyn Store>| async move {
            let mut numbers = Vec::new();
            for n in 0..EACH {
                match deliver(&store, run, &format!("{sender}/{n}")).await {
                    Delivered::Entry(number) => numbers.push(number),
                    other => panic!("{other:?}"),
                }
            }
            numbers
        }
    });
    let answers = at_once(world, senders.collect()).await;
    for numbers in &answers {
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "as it sent them: {numbers:?}");
    }
    let mut all = answers.concat();
    all.sort_unstable();
    assert_eq!(all, (1..=(MANY * EACH) as u64).collect::<Vec<_>>());
    let task = world.claim_one(&who).await;
    let ClaimedWork::Turn { mut unread, .. } = task.work else { panic!("a turn") };
    let mut turn = Turn { run, head: Seq(2), claim: task.claim };
    let mut seen = vec![0; MANY];
    while let Some(last) = unread.last() {
        for entry in &unread {
            let (sender, n) = entry.id.split_once('/').expect("sender/number");
            let (sender, n): (usize, usize) = (sender.parse().unwrap(), n.parse().unwrap());
            assert_eq!(seen[sender], n, "the next one of sender {sender}");
            seen[sender] += 1;
        }
        let used = RunCommit { inbox_used: last.number, ..world.turn_of(&turn) };
        let committed = done(world.commit(&who, used).await);
        turn.head = committed.head;
        unread = committed.unread;
    }
    assert_eq!(seen, [EACH; MANY]);
}

pub(crate) async fn one_id_delivered_by_many_is_one_entry(world: &World) {
    for _ in 0..ROUNDS {
        let run = world.begun([]).await;
        let senders =
            (0..MANY).map(|_| move |store| async move { deliver(&store, run, "same").await });
        let answers = at_once(world, senders.collect()).await;
        assert!(answers.iter().all(|answer| *answer == Delivered::Entry(1)), "{answers:?}");
        assert_eq!(world.unread(run).await.len(), 1);
    }
}

pub(crate) async fn sweeps_at_once_fire_a_timer_once(world: &World) {
    const TIMERS: u32 = 20;
    let mut runs = Vec::new();
    for _ in 0..5 {
        let rows = (1..=TIMERS).map(|n| timer(Place(n), &format!("t{n}"), Seq(2), secs(1)));
        runs.push(world.begun(rows).await);
    }
    world.pass(secs(1));
    let sweepers = (0..4).map(|_| {
        let call = durably_store::SweepCall { most: 7, ..world.sweep_call() };
        move |store: Arc<dyn Store>| async move {
            let mut delivered = 0;
            for _ in 0..LOOKS_MAX {
                let swept = store.sweep(call.clone()).await.expect("sweep");
                delivered += swept.delivered;
                if swept.next_due.is_none() {
                    return delivered;
                }
            }
            panic!("the timers were to fire");
        }
    });
    let delivered: usize = at_once(world, sweepers.collect()).await.into_iter().sum();
    assert_eq!(delivered, runs.len() * TIMERS as usize);
    for run in runs {
        let unread = world.unread(run).await;
        let ids: BTreeSet<&str> = unread.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!((unread.len(), ids.len()), (TIMERS as usize, TIMERS as usize));
        assert_eq!(world.tasks(run).await.len(), 1, "one turn row for all of them");
    }
}

/// A holder lets go while somebody delivers: either it sees the entry or a turn row is there.
pub(crate) async fn no_delivery_is_missed_by_a_holder_that_lets_go(world: &World) {
    let who = world.worker("one").await;
    for _ in 0..ROUNDS * 3 {
        let turn = world.held(&who).await;
        let run = turn.run;
        let release = world.turn_of(&turn);
        let mine = who.clone();
        let tasks: Vec<Task<_>> = vec![
            Box::new(move |store| race(store, Race::Commit(Some(mine), Box::new(release)))),
            Box::new(move |store| race(store, Race::Deliver(run))),
        ];
        let kept = at_once(world, tasks).await[0];
        let row = world.row(run, Place::TURN).await;
        let expected = if kept { TaskState::Claimed } else { TaskState::Ready };
        assert_eq!(row.state, expected);
        assert_eq!(world.unread(run).await.len(), 1);
        world.claim(&who, 10).await;
    }
}

enum Race {
    Commit(Option<WorkerId>, Box<RunCommit>),
    Deliver(RunId),
}

/// Whether the committer holds the run afterwards; of a delivery, whether it was accepted.
fn race(store: Arc<dyn Store>, what: Race) -> std::pin::Pin<Box<dyn Future<Output = bool> + Send>> {
    Box::pin(async move {
        match what {
            Race::Commit(who, made) => done(commit(&store, who, *made).await).turn.is_some(),
            Race::Deliver(run) => deliver(&store, run, "s").await == Delivered::Entry(1),
        }
    })
}

pub(crate) async fn batches_over_the_same_runs_do_not_block_each_other(world: &World) {
    let mut runs = Vec::new();
    for _ in 0..10 {
        runs.push(world.begun([]).await);
    }
    let batches = (0..MANY).map(|n| {
        let mut order = runs.clone();
        if n % 2 == 1 {
            order.reverse();
        }
        let made = order.into_iter().map(|run| RunCommit {
            events: vec![noted("x")],
            summary: Some(running()),
            tasks: puts([activity(FIRST, "a", Seq(3))]),
            ..world.on(run, Seq(2))
        });
        let made: Vec<_> = made.collect();
        move |store: Arc<dyn Store>| async move {
            store.commit(None, made.into()).await.expect("commit")
        }
    });
    let answers = at_once(world, batches.collect()).await.concat();
    let won = answers.iter().filter(|a| matches!(a, CommitAnswer::Committed(_))).count();
    assert_eq!(won, runs.len(), "each run once");
}

pub(crate) async fn what_one_handle_wrote_the_other_reads(world: &World) {
    let other = world.other_handle().await;
    let run = world.begun([activity(FIRST, "a", Seq(2))]).await;
    world.signal(run, "s").await;
    let before = world.snapshot().await;
    crate::snapshot::assert_same(&before, &crate::snapshot::Snapshot::of(other.as_ref()).await);
    let made = RunCommit { events: vec![noted("there")], ..world.on(run, Seq(2)) };
    done(commit(&other, None, made).await);
    assert_eq!(world.view(run).await.head, Seq(3));
}
