//! Arguments that are in files: how long a file system takes is nothing that others wait for.

mod engine;

use engine::{Scripted, relu};
use nnhal_driver::EngineError;
use nnhal_hal::memory::Protection;
use nnhal_hal::{
    DataLocation, Device, ExecutionOptions, HalVersion, Memory, OperandSpec, PrepareOptions,
    Request, RequestArgument, RequestMemoryPool,
};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

fn memory(file: &File) -> Memory {
    let fd = file.try_clone().unwrap().into();
    Memory::from_file(fd, Protection::READ_WRITE, 0, 16).unwrap()
}

fn argument(pool_index: u32) -> RequestArgument {
    let location = DataLocation { pool_index, offset: 4, length: 8 };
    RequestArgument { location, ..RequestArgument::default() }
}

#[test]
fn files_are_read_before_the_slot_is_taken_and_written_after_it() {
    let input = tempfile::tempfile().unwrap();
    let output = tempfile::tempfile().unwrap();
    input.write_all_at(&[1; 16], 0).unwrap();
    output.write_all_at(&[9; 16], 0).unwrap();
    let files = Arc::new(Mutex::new((input.try_clone().unwrap(), output.try_clone().unwrap())));
    let engine = Scripted::running(move |bindings, _| {
        // Here the slot is held.
        let (input, output) = &*files.lock().unwrap();
        input.write_all_at(&[2; 16], 0).unwrap();
        let region = bindings.inputs()[0].value().expect("an input");
        assert!(region.view().is_mapped(), "the engine would wait for a file");
        let bytes = region.read_to_vec()?;
        assert_eq!(bytes, [1; 8]);
        bindings.outputs()[0].deliver(&[2], &[3; 8])?;
        let mut found = [0; 16];
        output.read_exact_at(&mut found, 0).unwrap();
        assert_eq!(found, [9; 16], "written while the slot is held");
        Ok::<(), EngineError>(())
    });
    let spec = OperandSpec::tensor_float32([2]);
    let model = relu(spec.clone(), spec);
    let prepared =
        engine.device().prepare_model(&model, HalVersion::V1_3, PrepareOptions::default()).unwrap();
    let request = Request {
        inputs: vec![argument(0)],
        outputs: vec![argument(1)],
        pools: [&input, &output].map(|file| RequestMemoryPool::Memory(memory(file))).to_vec(),
    };
    prepared.execute(&request, &ExecutionOptions::default()).unwrap();
    let mut found = [0; 16];
    output.read_exact_at(&mut found, 0).unwrap();
    assert_eq!(found, [9, 9, 9, 9, 3, 3, 3, 3, 3, 3, 3, 3, 9, 9, 9, 9]);
}
