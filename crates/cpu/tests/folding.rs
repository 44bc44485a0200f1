//! Constants are folded as long as that is little work, and no longer than the deadline.

use nnhal_cpu::Settings;
use nnhal_driver::Prepared;
use nnhal_hal::{
    Deadline, ErrorStatus, HalVersion, Model, OperandSpec, OperationType as O, PrepareOptions,
    PreparedModel, SubgraphBuilder,
};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::time::Duration;

fn floats(dimensions: &[u32]) -> OperandSpec {
    OperandSpec::tensor_float32(dimensions)
}

/// Processor time of this thread, in seconds.
fn now() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// How preparing ends, and seconds that it takes.
fn prepare(
    model: &Model,
    deadline: Option<Duration>,
) -> (nnhal_hal::Result<Arc<dyn PreparedModel>>, f64) {
    let deadline = deadline.map(Deadline::after);
    let options = PrepareOptions { deadline, ..PrepareOptions::default() };
    let started = now();
    let prepared =
        nnhal_cpu::device(Settings::default()).prepare_model(model, HalVersion::LATEST, options);
    (prepared, now() - started)
}

/// The sum of an input and of what is computed of constants.
fn beside(
    dimensions: &[u32],
    constant: impl Fn(&mut SubgraphBuilder) -> nnhal_hal::OperandId,
) -> Model {
    let mut graph = SubgraphBuilder::new();
    let folded = constant(&mut graph);
    let x = graph.input("x", floats(&[1]));
    let none = graph.scalar_i32(0);
    let y = graph.operation(O::Add, [x, folded, none], floats(dimensions));
    graph.output(y);
    graph.into_model().unwrap()
}

/// 4.3 thousand million multiplications of constants of 1 MB and 4 MB.
fn convolution() -> Model {
    beside(&[1, 64, 64, 64], |graph| {
        let image = graph.constant(floats(&[1, 64, 64, 64]), &vec![1.0; 64 * 64 * 64]);
        let filter = graph.constant(floats(&[64, 16, 16, 64]), &vec![1.0; 64 * 16 * 16 * 64]);
        let bias = graph.constant(floats(&[64]), &[1.0; 64]);
        let [same, one, none] = [1, 1, 0].map(|number| graph.scalar_i32(number));
        let inputs = [image, filter, bias, same, one, one, none];
        graph.operation(O::Conv2d, inputs, floats(&[1, 64, 64, 64]))
    })
}

#[test]
fn what_is_much_work_is_left_to_executions() {
    let (prepared, seconds) = prepare(&convolution(), None);
    let prepared = prepared.unwrap();
    assert!(seconds < 2.0, "{seconds} s");
    let plan = Prepared::of(&*prepared).expect("a driver's").plan();
    assert!(plan.iter().any(|step| step.place.operation_type == O::Conv2d), "{plan:?}");
}

#[test]
fn many_foldings_keep_the_deadline() {
    // Each takes some milliseconds.
    let model = beside(&[1 << 19], |graph| {
        let mut folded = graph.constant(floats(&[1 << 19]), &vec![1.0; 1 << 19]);
        for _ in 0..1000 {
            folded = graph.operation(O::Tanh, [folded], floats(&[1 << 19]));
        }
        folded
    });
    let (prepared, seconds) = prepare(&model, Some(Duration::from_millis(200)));
    let error = prepared.err().expect("no time");
    assert_eq!(error.status(), ErrorStatus::MissedDeadlineTransient, "{error}");
    assert!(seconds < 0.25, "{seconds} s");
}

#[test]
fn little_work_is_done_once() {
    let model = beside(&[2], |graph| {
        let constant = graph.constant(floats(&[2]), &[1.0, 2.0]);
        graph.operation(O::Tanh, [constant], floats(&[2]))
    });
    let (prepared, _) = prepare(&model, None);
    let plan = Prepared::of(&*prepared.unwrap()).expect("a driver's").plan();
    assert_eq!(plan.len(), 1, "{plan:?}");
}
