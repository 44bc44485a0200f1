//! Engines and clients that misbehave (contract: GEN-8, section 17).

mod engine;

use engine::{Scripted, bare_status, execute, relu, request_with_room, vector};
use nnhal_driver::EngineError;
use nnhal_hal::{
    Device, ErrorStatus, HalVersion, Memory, PrepareOptions, Request, RequestArgument,
    RequestMemoryPool, Support,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn gen_8_a_panic_while_running_fails_that_execution_only() {
    let runs = AtomicUsize::new(0);
    let prepared = Scripted::running(move |bindings, _| {
        assert!(runs.fetch_add(1, Ordering::Relaxed) > 0, "the first run goes wrong");
        Ok(bindings.outputs()[0].deliver(&[2], &[0; 8])?)
    })
    .prepared(vector(2), vector(2));
    let failed = execute(&*prepared, &request_with_room(8)).unwrap_err();
    assert_eq!(failed.error.status(), ErrorStatus::GeneralFailure);
    let Some(EngineError::Panicked { message }) = failed.error.reason() else {
        panic!("{}", failed.error)
    };
    assert!(message.contains("the first run goes wrong"), "{message}");
    assert!(execute(&*prepared, &request_with_room(8)).is_ok());
}

#[test]
fn gen_8_a_panic_while_compiling_or_asked_for_support_fails_that_call_only() {
    let device = Scripted::idle().compiling(|_, _, _| panic!("no")).device();
    let model = relu(vector(2), vector(2));
    let prepared = device.prepare_model(&model, HalVersion::V1_3, PrepareOptions::default());
    assert_eq!(prepared.err().unwrap().status(), ErrorStatus::GeneralFailure);
    assert_eq!(device.supported_operations(&model, HalVersion::V1_3).unwrap(), [Support::Yes]);

    let device = Scripted::idle().supporting(|_, _| panic!("no")).device();
    let error = device.supported_operations(&model, HalVersion::V1_3).unwrap_err();
    assert_eq!(error.status(), ErrorStatus::GeneralFailure);
}

#[test]
fn prep_10_and_conc_1_one_prepared_model_runs_on_many_threads_with_different_shapes() {
    let prepared = Scripted::running(|bindings, _| {
        let input = &bindings.inputs()[0];
        let bytes = input.value().expect("a value").read_to_vec()?;
        Ok(bindings.outputs()[0].deliver(&input.shape().to_model(), &bytes)?)
    })
    .prepared(vector(0), vector(0));
    std::thread::scope(|scope| {
        for length in 1..9_u8 {
            let prepared = Arc::clone(&prepared);
            scope.spawn(move || {
                for _ in 0..100 {
                    let bytes = vec![length; 4 * usize::from(length)];
                    let mut request = nnhal_hal::RequestBuilder::new();
                    request.input_shaped(&bytes, &[length.into()]).output(bytes.len());
                    let request = request.build().unwrap();
                    let execution = execute(&*prepared, &request).unwrap();
                    assert_eq!(execution.dimensions(0), Some(&[u32::from(length)][..]));
                    assert_eq!(nnhal_hal::RequestBuilder::read_output(&request, 0).unwrap(), bytes);
                }
            });
        }
    });
}

#[test]
fn req_11_an_output_over_an_input_is_harmless() {
    let prepared = Scripted::running(|bindings, _| {
        let bytes = bindings.inputs()[0].value().expect("a value").read_to_vec()?;
        Ok(bindings.outputs()[0].deliver(&[2], &bytes)?)
    })
    .prepared(vector(2), vector(2));
    let location = nnhal_hal::DataLocation { pool_index: 0, offset: 3, length: 8 };
    let memory = Memory::from_bytes(&[5; 11]).unwrap();
    let request = Request {
        inputs: vec![RequestArgument::at(location)],
        outputs: vec![RequestArgument::at(location)],
        pools: vec![RequestMemoryPool::Memory(memory)],
    };
    execute(&*prepared, &request).unwrap();
}

#[test]
fn gen_2_an_engine_s_own_status_is_passed_on() {
    let prepared = Scripted::running(|_, _| {
        let error = nnhal_hal::Error::new(ErrorStatus::DeviceUnavailable, "unplugged");
        Err(EngineError::Other(error))
    })
    .prepared(vector(2), vector(2));
    let result = execute(&*prepared, &request_with_room(8));
    assert_eq!(bare_status(result), ErrorStatus::DeviceUnavailable);
}
