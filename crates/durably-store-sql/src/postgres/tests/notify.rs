use super::scene::{Database, through};
use crate::postgres::open::{Ground, open};
use durably_kernel::RunId;
use durably_store::{Clock, Gathered, Heard, Hint, Hints, Listener};
use std::sync::Arc;

async fn process(url: &str) -> (Ground, Hints) {
    let hints = Hints::default();
    let ground = open(url, Clock::Database, &hints).await.expect("opens");
    (ground, hints)
}

fn gathered(hints: impl IntoIterator<Item = Hint>) -> Gathered {
    let mut gathered = Gathered::default();
    hints.into_iter().for_each(|hint| gathered.note(hint));
    gathered
}

fn run(number: u64) -> RunId {
    RunId::from_parts(number, [7; 10])
}

/// Waits until something is heard that is as wanted.
async fn hear(listener: &mut Listener, wanted: impl Fn(&Heard) -> bool) {
    loop {
        let heard = listener.next().await;
        if wanted(&heard) {
            return;
        }
    }
}

fn tell(ground: &Ground, hints: impl IntoIterator<Item = Hint>) {
    ground.herald.as_ref().expect("a herald").pass_on(&gathered(hints));
}

/// Two processes, and the ear of the second, that hear each other.
async fn pair(url: &str, other: &str) -> ((Ground, Hints), (Ground, Hints), Listener) {
    let first = process(url).await;
    let second = process(other).await;
    let mut listener = second.1.listen();
    // Whoever begins to listen is told to look at everything; that it listens shows only when
    // something that was told afterwards arrives.
    let beacon = run(0);
    let patience = std::time::Duration::from_millis(20);
    loop {
        tell(&first.0, [Hint::Inbox(beacon)]);
        let heard = hear(&mut listener, |heard| heard.inboxes.contains(&beacon));
        if tokio::time::timeout(patience, heard).await.is_ok() {
            break;
        }
    }
    (first, second, listener)
}

#[tokio::test]
async fn one_process_hears_what_another_has_done() {
    let database = Database::new("notify");
    let (first, second, mut listener) = pair(&database.url(), &database.url()).await;
    tell(&first.0, [Hint::Ready]);
    hear(&mut listener, |heard| heard.ready && !heard.missed).await;
    tell(&first.0, [Hint::Due, Hint::Claims, Hint::Inbox(run(1))]);
    hear(&mut listener, |heard| heard.due && heard.claims && heard.inboxes == [run(1)]).await;
    let watch = second.1.watch(run(2));
    tell(&first.0, [Hint::Changed(run(2))]);
    watch.changed().await;
    let event = Arc::new(durably_kernel::Event::WorkflowCancelled { reason: String::new() });
    tell(&first.0, [Hint::Ended(run(2), event)]);
    watch.changed().await;
}

#[tokio::test]
async fn nobody_hears_from_itself() {
    let database = Database::new("notify_self");
    let (second, first, mut at_first) = pair(&database.url(), &database.url()).await;
    let mut at_second = second.1.listen();
    tell(&first.0, [Hint::Inbox(run(1))]);
    hear(&mut at_second, |heard| heard.inboxes.contains(&run(1))).await;
    // Comes after what the first has told, also to the first.
    tell(&second.0, [Hint::Inbox(run(2))]);
    let mut heard = Vec::new();
    while !heard.contains(&run(2)) {
        heard.extend(at_first.next().await.inboxes);
    }
    assert!(!heard.contains(&run(1)));
}

#[tokio::test]
async fn too_many_runs_are_everything() {
    let database = Database::new("notify_many");
    let (first, _second, mut listener) = pair(&database.url(), &database.url()).await;
    tell(&first.0, (0..5000).map(|number| Hint::Inbox(run(number))));
    hear(&mut listener, |heard| heard.missed && heard.ready && heard.due && heard.claims).await;
}

#[tokio::test]
async fn a_listener_survives_lost_connections_and_looks_at_everything_again() {
    let database = Database::new("notify_lost");
    let proxy = database.proxy().await;
    let other = through(&proxy, &database.url());
    let (first, _second, mut listener) = pair(&database.url(), &other).await;
    for _ in 0..3 {
        proxy.cut().await;
        hear(&mut listener, |heard| heard.missed).await;
        tell(&first.0, [Hint::Inbox(run(5))]);
        hear(&mut listener, |heard| heard.inboxes.contains(&run(5)) || heard.missed).await;
    }
}

#[tokio::test]
async fn stores_on_other_tables_are_not_disturbed() {
    let database = Database::new("notify_other");
    let (first, _second, _listener) = pair(&database.url(), &database.url()).await;
    let prefixed = database.url_with("prefix=other_");
    let (third, _fourth, mut listener) = pair(&prefixed, &prefixed).await;
    tell(&first.0, [Hint::Inbox(run(1))]);
    tell(&third.0, [Hint::Inbox(run(2))]);
    let mut heard = Vec::new();
    while !heard.contains(&run(2)) {
        heard.extend(listener.next().await.inboxes);
    }
    assert!(!heard.contains(&run(1)));
}

#[tokio::test]
async fn without_a_listener_the_store_polls() {
    let database = Database::new("notify_off");
    let (ground, _) = process(&database.url_with("listen=off")).await;
    assert!(ground.herald.is_none());
}
