use super::*;
use crate::fence::FenceSignal;
use std::sync::mpsc::{Receiver, Sender, channel};

const LONG: Duration = Duration::from_secs(30);

/// What became of a job, by its number.
type Outcome = (usize, Option<NotRun>);

struct Test {
    class: u8,
    number: usize,
    switch: Option<Cancellation>,
    deadline: Option<Deadline>,
    work: Box<dyn FnOnce() + Send>,
    reports: Sender<Outcome>,
}

impl Job for Test {
    type Class = u8;

    fn class(&self) -> u8 {
        self.class
    }

    fn switches(&self) -> Vec<Cancellation> {
        self.switch.clone().into_iter().collect()
    }

    fn deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    fn run(self, _: Instant) {
        (self.work)();
        self.reports.send((self.number, None)).unwrap();
    }

    fn end(self, why: NotRun) {
        self.reports.send((self.number, Some(why))).unwrap();
    }
}

struct Scene {
    background: Background<Test>,
    reports: Sender<Outcome>,
    outcomes: Receiver<Outcome>,
}

impl Scene {
    fn new(threads: usize, waiting: usize, idle: Duration) -> Self {
        let (reports, outcomes) = channel();
        let background = Background::new("test", Limits { threads, waiting, idle });
        Self { background, reports, outcomes }
    }

    fn job(&self, class: u8, number: usize) -> Test {
        let reports = self.reports.clone();
        Test { class, number, switch: None, deadline: None, work: Box::new(|| ()), reports }
    }

    fn start(&self, job: Test, fences: &[SyncFence]) -> Result<()> {
        self.background.start(job, SyncFence::unsignalled(fences)?)
    }

    /// A job that runs until it is let go, and runs already.
    fn blocking(&self, class: u8, number: usize) -> Sender<()> {
        let (go, gone) = channel();
        let (begun, has_begun) = channel();
        let work = Box::new(move || {
            begun.send(()).unwrap();
            gone.recv_timeout(LONG).unwrap();
        });
        self.start(Test { work, ..self.job(class, number) }, &[]).unwrap();
        has_begun.recv_timeout(LONG).unwrap();
        go
    }

    fn next(&self) -> Outcome {
        self.outcomes.recv_timeout(LONG).unwrap()
    }

    /// The numbers of a number of jobs that have run.
    fn have_run(&self, count: usize) -> Vec<usize> {
        let run = |_| match self.next() {
            (number, None) => number,
            other => panic!("{other:?}"),
        };
        (0..count).map(run).collect()
    }
}

fn pair() -> (FenceSignal, SyncFence) {
    SyncFence::pair().unwrap()
}

fn eventually(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG);
        thread::sleep(Duration::from_millis(2));
    }
}

const SOON: Duration = Duration::from_millis(20);

#[test]
fn sec_3_jobs_that_wait_hold_no_thread() {
    let scene = Scene::new(3, usize::MAX, SOON);
    let (signal, fence) = pair();
    for number in 0..10_000 {
        scene.start(scene.job(0, number), std::slice::from_ref(&fence)).unwrap();
    }
    assert_eq!(scene.background.workers(0), 0);
    signal.signal();
    let mut seen = scene.have_run(10_000);
    assert!(scene.background.workers(0) <= 3);
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..10_000));
    // Nothing is kept of a class without jobs.
    eventually(|| {
        let state = scene.background.0.lock();
        state.queues.is_empty() && state.entries.is_empty() && state.watches.is_empty()
    });
}

#[test]
fn a_chain_longer_than_there_are_threads_ends_in_whatever_order_it_was_started() {
    for backwards in [false, true] {
        let scene = Scene::new(1, usize::MAX, SOON);
        let (first, mut before) = pair();
        let mut jobs = Vec::new();
        for number in 0..200 {
            let (signal, fence) = pair();
            let work = Box::new(|| signal.signal());
            jobs.push((Test { work, ..scene.job(0, number) }, [before]));
            before = fence;
        }
        if backwards {
            jobs.reverse();
        }
        for (job, fences) in jobs {
            scene.start(job, &fences).unwrap();
        }
        first.signal();
        assert!(scene.have_run(200).into_iter().eq(0..200));
    }
}

#[test]
fn threads_idle_out_and_come_back() {
    let scene = Scene::new(4, 10, SOON);
    for number in 0..2 {
        scene.start(scene.job(0, number), &[]).unwrap();
        scene.have_run(1);
        eventually(|| scene.background.workers(0) == 0);
    }
}

#[test]
fn beyond_the_limit_jobs_are_refused_and_dropped_whatever_they_wait_for() {
    let scene = Scene::new(1, 2, SOON);
    let go = scene.blocking(0, 0);
    let (signal, fence) = pair();
    scene.start(scene.job(0, 1), &[]).unwrap();
    scene.start(scene.job(0, 2), std::slice::from_ref(&fence)).unwrap();
    let held = Arc::new(());
    for fences in [vec![], vec![fence]] {
        let kept = Arc::clone(&held);
        let work = Box::new(move || drop(kept));
        let refused = scene.start(Test { work, ..scene.job(0, 3) }, &fences).unwrap_err();
        assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedTransient);
        assert!(refused.to_string().contains("2 jobs of its class wait already, of at most 2"));
        assert_eq!(Arc::strong_count(&held), 1);
    }
    // Another class has capacity of its own.
    scene.start(scene.job(1, 4), &[]).unwrap();
    assert_eq!(scene.have_run(1), [4]);
    go.send(()).unwrap();
    signal.signal();
    let mut seen = scene.have_run(3);
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2]);
    scene.start(scene.job(0, 5), &[]).unwrap();
    assert_eq!(scene.have_run(1), [5]);
}

#[test]
fn conc_4_a_class_that_blocks_keeps_no_other_from_running() {
    let scene = Scene::new(2, 100, SOON);
    let blocked = [scene.blocking(0, 0), scene.blocking(0, 1)];
    for number in 2..10 {
        scene.start(scene.job(0, number), &[]).unwrap();
    }
    scene.start(scene.job(1, 10), &[]).unwrap();
    assert_eq!(scene.have_run(1), [10]);
    for go in blocked {
        go.send(()).unwrap();
    }
    scene.have_run(10);
}

#[test]
fn a_panic_ends_the_job_and_nothing_else() {
    let scene = Scene::new(1, 10, SOON);
    let work = Box::new(|| panic!("on purpose"));
    scene.start(Test { work, ..scene.job(0, 0) }, &[]).unwrap();
    scene.start(scene.job(0, 1), &[]).unwrap();
    assert_eq!(scene.have_run(1), [1]);
}

#[test]
fn conc_3_what_was_started_goes_on_when_it_is_dropped_and_threads_end() {
    let scene = Scene::new(2, 100, Duration::from_secs(3600));
    let go = scene.blocking(0, 0);
    let (signal, fence) = pair();
    for number in 1..5 {
        scene.start(scene.job(0, number), &[]).unwrap();
        scene.start(scene.job(0, number + 10), std::slice::from_ref(&fence)).unwrap();
    }
    let shared = Arc::downgrade(&scene.background.0);
    let Scene { background, reports, outcomes } = scene;
    drop((background, reports));
    go.send(()).unwrap();
    let run = |count| {
        let all = (0..count).map(|_| outcomes.recv_timeout(LONG).unwrap());
        let mut all: Vec<_> = all.map(|(number, why)| (number, why.is_none())).collect();
        all.sort_unstable();
        all
    };
    assert!(run(5).into_iter().eq((0..5).map(|number| (number, true))));
    signal.signal();
    assert!(run(4).into_iter().eq((11..15).map(|number| (number, true))));
    // No thread is left that has it.
    eventually(|| shared.strong_count() == 0);
}

#[test]
fn conc_3_threads_that_wait_for_nothing_end_when_it_is_dropped() {
    let scene = Scene::new(2, 100, Duration::from_secs(3600));
    let (signal, fence) = pair();
    scene.start(scene.job(0, 0), &[fence]).unwrap();
    signal.signal();
    scene.have_run(1);
    let shared = Arc::downgrade(&scene.background.0);
    assert!(shared.strong_count() > 1);
    drop(scene);
    eventually(|| shared.strong_count() == 0);
}

#[test]
fn qos_5_fence_7_and_conc_5_a_job_that_waits_for_fences_ends_by_what_comes_first() {
    let scene = Scene::new(1, 100, SOON);
    let (_signal, unsignalled) = pair();
    let (failing, fails) = pair();
    let switch = Cancellation::new();
    let none = scene.job(0, 0);
    let cancelled = Test { switch: Some(switch.clone()), ..scene.job(0, 1) };
    let late = Some(Deadline::after(SOON));
    let late = Test { deadline: late, ..scene.job(0, 2) };
    scene.start(none, &[unsignalled.clone(), fails]).unwrap();
    scene.start(cancelled, std::slice::from_ref(&unsignalled)).unwrap();
    failing.fail(Error::failure("no"));
    let (number, why) = scene.next();
    assert_eq!(number, 0);
    let Some(NotRun::Fences(FenceWaitError::Failed { index: 1, error })) = why else {
        panic!("{why:?}")
    };
    assert_eq!(error.to_string(), "GENERAL_FAILURE: no");
    switch.cancel();
    let (number, why) = scene.next();
    assert_eq!(number, 1);
    assert!(matches!(why, Some(NotRun::Fences(FenceWaitError::Stopped { pending: 1 }))), "{why:?}");
    let begun = Instant::now();
    scene.start(late, &[unsignalled]).unwrap();
    let (number, why) = scene.next();
    assert_eq!(number, 2);
    let passed = matches!(why, Some(NotRun::Fences(FenceWaitError::DeadlinePassed { pending: 1 })));
    assert!(passed, "{why:?}");
    assert!(begun.elapsed() < LONG);
    assert_eq!(Error::from(why.unwrap()).status(), ErrorStatus::MissedDeadlineTransient);
}

#[test]
fn qos_5_and_conc_5_a_job_that_waits_for_a_thread_is_ended_too() {
    let scene = Scene::new(1, 100, SOON);
    let go = scene.blocking(0, 0);
    let switch = Cancellation::new();
    let deadline = Some(Deadline::after(SOON));
    scene.start(Test { deadline, ..scene.job(0, 1) }, &[]).unwrap();
    scene.start(Test { switch: Some(switch.clone()), ..scene.job(0, 2) }, &[]).unwrap();
    let (number, why) = scene.next();
    assert!(number == 1 && matches!(why, Some(NotRun::DeadlinePassed)), "{why:?}");
    assert_eq!(Error::from(why.unwrap()).status(), ErrorStatus::MissedDeadlineTransient);
    switch.cancel();
    let (number, why) = scene.next();
    assert!(number == 2 && matches!(why, Some(NotRun::Cancelled)), "{why:?}");
    assert_eq!(Error::from(why.unwrap()).status(), ErrorStatus::GeneralFailure);
    go.send(()).unwrap();
    scene.have_run(1);
}

#[test]
fn fence_5_fences_that_have_signalled_and_the_same_again_are_not_waited_for() {
    let (signal, unsignalled) = pair();
    let (done, signalled) = pair();
    done.signal();
    let fences = [signalled.clone(), unsignalled.clone(), unsignalled, signalled];
    let found = SyncFence::unsignalled(&fences).unwrap();
    assert_eq!(found.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [1]);
    drop(signal);
    let found = SyncFence::unsignalled(&fences).unwrap_err();
    assert!(matches!(found, FenceWaitError::Failed { index: 1, .. }), "{found}");
    assert!(SyncFence::unsignalled(&[]).unwrap().is_empty());
}
