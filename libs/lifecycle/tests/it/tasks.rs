//! Task groups and their bounded drain.

use std::future::pending;
use std::time::Duration;

use lifecycle::{Drained, Shutdown, TaskGroup};
use tokio::sync::oneshot;

use crate::soon;

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn drain_waits_for_tasks_that_end() {
    let group = TaskGroup::new();
    let (finish, finished) = oneshot::channel::<()>();
    group.spawn("sender", async {
        let _ = finished.await;
    });
    assert_eq!(group.len(), 1);

    let draining = tokio::spawn({
        let group = group.clone();
        async move { group.drain(LONG).await }
    });
    finish.send(()).unwrap();

    assert_eq!(soon("drained", draining).await.unwrap(), Drained::Complete);
    assert!(group.is_empty());
}

#[tokio::test]
async fn drain_abandons_what_is_left_after_the_grace_period() {
    let group = TaskGroup::new();
    let (alive, dropped) = oneshot::channel::<()>();
    group.spawn("stuck", async move {
        let _alive = alive;
        pending::<()>().await;
    });
    group.spawn("stuck", pending());

    assert_eq!(group.drain(Duration::ZERO).await, Drained::Abandoned(2));
    soon("the task's future is dropped", dropped).await.unwrap_err();
}

#[tokio::test]
async fn second_signal_ends_the_drain() {
    let shutdown = Shutdown::new();
    let group = TaskGroup::under(&shutdown);
    group.spawn("stuck", pending());

    shutdown.hurry();

    assert_eq!(soon("drained", group.drain(LONG)).await, Drained::Abandoned(1));
}

#[tokio::test]
async fn panicking_task_ends_alone() {
    let group = TaskGroup::new();
    let panicked = group.spawn("faulty", async { panic!("on purpose") });

    assert!(soon("ended", panicked).await.unwrap_err().is_panic());
    assert_eq!(soon("drained", group.drain(LONG)).await, Drained::Complete);
}
