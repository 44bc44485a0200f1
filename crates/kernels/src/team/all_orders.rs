use super::*;

/// Runs rounds of tasks that write to places of the caller's stack, which loom watches.
fn rounds(threads: usize, rounds: &'static [usize], preemptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let mut team = Team::new(threads);
        for tasks in rounds {
            let counts: Vec<AtomicUsize> = (0..*tasks).map(|_| AtomicUsize::new(0)).collect();
            let places: Vec<_> = (0..*tasks).map(|_| UnsafeCell::new(0)).collect();
            let places = Places(places);
            team.run(*tasks, &|task| {
                counts[task].fetch_add(1, Ordering::Relaxed);
                // SAFETY: each task has its own; loom would tell otherwise.
                places.get(task).with_mut(|place| unsafe { *place += 1 });
            });
            for (task, count) in counts.iter().enumerate() {
                assert_eq!(count.load(Ordering::Relaxed), 1);
                // SAFETY: all tasks are done; loom would tell otherwise.
                assert_eq!(places.get(task).with(|place| unsafe { *place }), 1);
            }
        }
    });
}

struct Places(Vec<UnsafeCell<usize>>);

// SAFETY: loom watches that no two threads use one at a time.
unsafe impl Sync for Places {}

impl Places {
    fn get(&self, task: usize) -> &UnsafeCell<usize> {
        &self.0[task]
    }
}

#[test]
fn each_task_runs_once_and_before_its_round_ends() {
    rounds(2, &[2], 4);
    rounds(2, &[3, 2], 3);
}

#[test]
fn helpers_take_from_each_other() {
    rounds(3, &[3], 2);
}
