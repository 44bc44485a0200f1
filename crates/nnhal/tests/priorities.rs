//! A run of a high priority overtakes those of low ones that wait for the same device.

use nnhal::hal::{OperandSpec, OperationType, Priority, SubgraphBuilder};
use nnhal::{Fill, Model, RunOptions, SessionOptions};
use std::sync::mpsc;
use std::sync::{Arc, Barrier};

/// Some ten milliseconds of work, in steps between which others may go first.
fn slow() -> Model {
    const LENGTH: u32 = 1 << 19;
    let spec = OperandSpec::tensor_float32([1, LENGTH]);
    let mut graph = SubgraphBuilder::new();
    let mut value = graph.input("x", spec.clone());
    for _ in 0..40 {
        let axes = graph.constant(OperandSpec::tensor_int32([1]), &[0_i32]);
        value = graph.operation(OperationType::Tanh, [value], spec.clone());
        value = graph.operation(OperationType::Reverse, [value, axes], spec.clone());
    }
    graph.output(value);
    Model::from_hal(graph.into_model().unwrap()).unwrap()
}

/// How many of six low runs end after a run of this priority that came last of all.
fn overtaken(priority: Option<Priority>) -> usize {
    const LOW: usize = 6;
    // All processors for one run: there is one slot.
    let threads = std::thread::available_parallelism().unwrap().get();
    let session = slow().session(SessionOptions::new().threads(threads).priority(Priority::Low));
    let session = session.unwrap();
    let values = Fill::Random { seed: 1 }.inputs(session.model(), &[]).unwrap();
    let (ended, order) = mpsc::channel();
    let begin = Arc::new(Barrier::new(LOW + 1));
    std::thread::scope(|scope| {
        let run = |name: &'static str, priority: Option<Priority>, begin: Option<Arc<Barrier>>| {
            let (session, values, ended) = (&session, &values, ended.clone());
            scope.spawn(move || {
                let mut runner = session.runner().unwrap();
                for (index, value) in values.iter().enumerate() {
                    runner.set_input(index, value).unwrap();
                }
                // The first run makes what later ones find.
                if let Some(begin) = begin {
                    begin.wait();
                }
                let options = RunOptions { priority, ..RunOptions::default() };
                runner.run_with(&options).unwrap();
                ended.send(name).unwrap();
            });
        };
        for _ in 0..LOW {
            run("low", Some(Priority::Low), Some(Arc::clone(&begin)));
        }
        begin.wait();
        // One has ended, so the others wait for the slot or have it.
        assert_eq!(order.recv().unwrap(), "low");
        run("last", priority, None);
        let rest: Vec<&str> = (0..LOW).map(|_| order.recv().unwrap()).collect();
        let at = rest.iter().position(|name| *name == "last").unwrap();
        rest.len() - 1 - at
    })
}

#[test]
fn a_high_run_overtakes_low_ones_that_wait() {
    let overtaken = [Priority::High, Priority::Medium].map(|it| overtaken(Some(it)));
    assert!(overtaken.iter().all(|it| *it >= 3), "{overtaken:?}");
}

#[test]
fn a_low_run_waits_its_turn_and_one_without_a_priority_has_the_sessions() {
    let overtaken = [Some(Priority::Low), None].map(overtaken);
    assert!(overtaken.iter().all(|it| *it <= 1), "{overtaken:?}");
}
