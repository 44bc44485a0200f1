//! Inputs that a request leaves out, on both engines.

use nnhal_cpu::Settings;
use nnhal_hal::{
    ErrorStatus, ExecutionOptions, HalVersion, OperandSpec, OperationType, PrepareOptions,
    RequestBuilder, SubgraphBuilder,
};

/// y = x + x of numbers whose count may be open, and an input that nothing reads.
#[test]
fn an_input_that_is_needed_fails_the_execution_and_one_that_nothing_reads_does_not() {
    for length in [2, 0] {
        let spec = || OperandSpec::tensor_float32([length]);
        let mut graph = SubgraphBuilder::new();
        let x = graph.input("x", spec());
        graph.input("unread", spec());
        let none = graph.scalar_i32(0);
        let sum = graph.operation(OperationType::Add, [x, x, none], spec());
        graph.output(sum);
        check(&graph.into_model().unwrap(), true);
    }
    let spec = || OperandSpec::tensor_float32([2]);
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", spec());
    let none = graph.scalar_i32(0);
    let sum = graph.operation(OperationType::Add, [x, x, none], spec());
    graph.output(sum);
    check(&graph.into_model().unwrap(), false);
}

fn check(model: &nnhal_hal::Model, has_unread: bool) {
    let two = [1.5, -2.0].map(f32::to_le_bytes).concat();
    for device in [nnhal_cpu::device(Settings::default()), nnhal_reference::device()] {
        let name = device.name();
        let options = PrepareOptions::default();
        let prepared = device.prepare_model(model, HalVersion::LATEST, options).unwrap();
        for (is_given, unread_is_given) in [(true, true), (true, false), (false, true)] {
            let mut request = RequestBuilder::new();
            let mut input = |is_given| {
                if is_given {
                    request.input_shaped(&two, &[2]);
                } else {
                    request.omitted_input();
                }
            };
            input(is_given);
            if has_unread {
                input(unread_is_given);
            }
            let request = request.output_shaped(8, &[2]).build().unwrap();
            let result = prepared.execute(&request, &ExecutionOptions::default());
            if is_given {
                result.unwrap();
                let found = RequestBuilder::read_output(&request, 0).unwrap();
                assert_eq!(found, [3.0, -4.0].map(f32::to_le_bytes).concat(), "{name}");
            } else {
                let status = result.unwrap_err().error.status();
                assert_eq!(status, ErrorStatus::GeneralFailure, "{name}");
            }
        }
    }
}
