use super::*;

fn every_task_runs_once(team: &mut Team, tasks: usize) {
    let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
    team.run(tasks, &|task| {
        counts[task].fetch_add(1, Ordering::Relaxed);
    });
    assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{tasks} tasks");
}

#[test]
fn each_task_runs_once() {
    for threads in [1, 2, 3, 5] {
        let mut team = Team::new(threads);
        assert_eq!(team.threads(), threads);
        for tasks in [0, 1, 2, 7, 100] {
            every_task_runs_once(&mut team, tasks);
        }
    }
}

#[test]
fn tasks_are_left_out_once_they_are_not_wanted() {
    for threads in [1, 2, 3] {
        let mut team = Team::new(threads);
        let done = AtomicUsize::new(0);
        let is_over = || done.load(Ordering::SeqCst) >= 10;
        let count = || done.fetch_add(1, Ordering::SeqCst);
        team.until(&is_over, |team| {
            team.run(5, &|_| _ = count());
            assert!(!team.is_stopped());
            team.run(100_000, &|_| _ = count());
            assert!(team.is_stopped());
            team.run(1, &|_| _ = count());
            team.run(100, &|_| _ = count());
        });
        let done = done.into_inner();
        assert!((10..10 + threads).contains(&done), "{done} tasks of {threads} threads");
        every_task_runs_once(&mut team, 100);
        let long = AtomicUsize::new(0);
        team.until(&|| long.load(Ordering::SeqCst) > 20, |team| {
            team.run_long(threads, &|_, stop| {
                while !stop.is_due() {
                    long.fetch_add(1, Ordering::SeqCst);
                }
            });
        });
        every_task_runs_once(&mut team, 100);
    }
}

#[test]
fn a_question_is_forgotten_when_work_panics() {
    let mut team = Team::new(2);
    let panicked = catch_unwind(AssertUnwindSafe(|| team.until(&|| true, |_| panic!("so"))));
    panicked.unwrap_err();
    every_task_runs_once(&mut team, 7);
}

#[test]
#[cfg_attr(miri, ignore = "too many tasks")]
fn more_tasks_than_are_numbered_run_once() {
    let mut team = Team::new(2);
    for tasks in [MOST_TASKS, MOST_TASKS + 1, 3 * MOST_TASKS - 1] {
        every_task_runs_once(&mut team, tasks);
    }
}

#[test]
fn jobs_follow_each_other_with_and_without_sleep() {
    let mut team = Team::new(2);
    let sum = AtomicUsize::new(0);
    let rounds = if cfg!(miri) { 20 } else { 2000 };
    for round in 0..rounds {
        team.run(4, &|task| {
            sum.fetch_add(task, Ordering::Relaxed);
        });
        if round % 200 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        if round % 300 == 0 {
            team.end();
            team.begin(round % 200 == 0);
        }
    }
    assert_eq!(sum.load(Ordering::Relaxed), 6 * rounds);
}

#[test]
fn a_thread_begins_with_its_own_part_in_order() {
    let mut team = Team::new(2);
    let caller = std::thread::current().id();
    for _ in 0..if cfg!(miri) { 5 } else { 200 } {
        let order = Mutex::new(Vec::new());
        team.run(10, &|task| {
            if std::thread::current().id() == caller {
                order.lock().unwrap().push(task);
            }
        });
        let order = order.into_inner().unwrap();
        let own = order.len().min(5);
        assert_eq!(order[..own], [0, 1, 2, 3, 4][..own]);
        assert!(order[own..].is_sorted_by(|a, b| a > b), "{order:?}");
    }
}

#[test]
fn a_panic_reaches_the_caller_after_the_other_tasks() {
    let mut team = Team::new(2);
    for panics in [3, 8, 9] {
        let done = AtomicUsize::new(0);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            team.run(10, &|task| {
                assert_ne!(task, panics, "this one");
                done.fetch_add(1, Ordering::Relaxed);
            });
        }));
        assert!(caught.is_err());
        assert_eq!(done.load(Ordering::Relaxed), 9);
        // And it works on.
        team.run(10, &|_| {
            done.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(done.load(Ordering::Relaxed), 19);
    }
}

#[test]
fn round_numbers_may_run_out() {
    let mut team = Team::new(2);
    every_task_runs_once(&mut team, 4);
    team.round = u32::MAX - 1;
    for _ in 0..3 {
        every_task_runs_once(&mut team, 4);
    }
    assert_eq!(team.round, 2);
    let questions = AtomicUsize::new(0);
    let is_over = || questions.fetch_add(1, Ordering::Relaxed) == 0;
    team.until(&is_over, |team| {
        // Of two threads that ask at the same time only one would be the first.
        team.is_alone = true;
        team.run(2, &|_| panic!("a task that was left out"));
        team.is_alone = false;
        team.round = u32::MAX - 1;
        for _ in 0..2 {
            team.run(4, &|_| panic!("a task that was left out"));
            assert!(team.is_stopped(), "round {}", team.round);
        }
    });
    every_task_runs_once(&mut team, 4);
}

#[test]
#[cfg_attr(miri, ignore = "looks at the clock")]
fn small_executions_wake_no_thread_unless_they_follow_closely() {
    let mut team = Team::new(2);
    let wait_for_sleep = |team: &Team| {
        while !team.shared.states[0].0.asleep.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    wait_for_sleep(&team);
    team.begin(true);
    assert!(team.is_alone);
    every_task_runs_once(&mut team, 10);
    team.end();
    assert!(!team.is_alone);
    team.ended = Instant::now().checked_add(Duration::from_secs(1));
    team.begin(true);
    assert!(!team.is_alone);
    team.ended = None;
    wait_for_sleep(&team);
    team.begin(false);
    assert!(!team.is_alone);
    every_task_runs_once(&mut team, 10);
}

#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn who_takes_away_a_team_that_asks_ends_the_process() {
    const EXCHANGES: &str = "NNHAL_TEST_EXCHANGES_TEAMS";
    if std::env::var_os(EXCHANGES).is_some() {
        let mut taken = Team::alone();
        Team::alone().until(&|| false, |team| std::mem::swap(team, &mut taken));
        // Here `taken` would ask what is no longer there.
        return;
    }
    let this = std::thread::current().name().map(str::to_owned).expect("tests have names");
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &this, "--test-threads", "2"])
        .env(EXCHANGES, "1")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(!status.success(), "{status}");
}
