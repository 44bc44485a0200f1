//! What extensions say of a compilation or an execution, as engines get it.

mod engine;

use engine::{Scripted, relu, request_with_room, vector};
use nnhal_hal::{
    Device, ExecutionOptions, ExtensionNameAndPrefix, HalVersion, Hints, PrepareOptions, SyncFence,
    TokenValuePair,
};
use std::sync::{Arc, Mutex};

fn hints(value: u8) -> Hints {
    Hints {
        values: vec![TokenValuePair { token: 0x0001_0007, value: vec![value] }],
        extension_name_to_prefix: vec![ExtensionNameAndPrefix {
            name: "com.example".into(),
            prefix: 1,
        }],
    }
}

#[test]
fn engines_get_them_with_the_model_and_with_each_request() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (of_compilation, of_run) = (Arc::clone(&seen), Arc::clone(&seen));
    let engine = Scripted::running(move |bindings, context| {
        of_run.lock().unwrap().push(context.hints.clone());
        Ok(bindings.outputs()[0].deliver(&[2], &[0; 8])?)
    });
    let engine = engine.compiling(move |_, options, _| {
        of_compilation.lock().unwrap().push(options.hints.clone());
        Ok(())
    });
    let model = relu(vector(2), vector(2));
    let options = PrepareOptions { hints: hints(1), ..PrepareOptions::default() };
    let prepared = engine.device().prepare_model(&model, HalVersion::V1_3, options).unwrap();
    let request = request_with_room(8);
    let with = |value| ExecutionOptions { hints: hints(value), ..ExecutionOptions::default() };
    prepared.execute(&request, &with(2)).unwrap();
    prepared.execute(&request, &ExecutionOptions::default()).unwrap();
    let (signal, fence) = SyncFence::pair().unwrap();
    let fenced = prepared.execute_fenced(&request, &[fence], &with(3), None).unwrap();
    signal.signal();
    fenced.sync_fence.unwrap().wait(None).unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(*seen, [hints(1), hints(2), Hints::NONE, hints(3)]);
    assert_eq!(seen[1].get("com.example", 7), Some(&[2][..]));
}
