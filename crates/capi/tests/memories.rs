//! Memories and descriptions of memory: what each misuse answers, and what can be done with them.

mod c;

use c::*;
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::ptr::{null, null_mut, without_provenance_mut};

const READ: i32 = 1;
const WRITE: i32 = 2;

/// A file that holds these numbers.
fn file(values: &[f32]) -> std::fs::File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>())
        .unwrap();
    file
}

fn numbers(file: &mut std::fs::File) -> Vec<f32> {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn memory(file: &std::fs::File, size: usize) -> Handle {
    let make = ANeuralNetworksMemory_createFromFd;
    made(|memory| make(size, READ | WRITE, file.as_raw_fd(), 0, memory))
}

#[test]
fn descriptors_are_checked() {
    let file = file(&[1.0, 2.0]);
    let mut memory = null_mut();
    let place = &raw mut memory;
    let make = ANeuralNetworksMemory_createFromFd;
    assert_eq!(make(8, READ, file.as_raw_fd(), 0, null_mut()), UNEXPECTED_NULL);
    for (what, size, protection, descriptor, offset) in
        [("no descriptor", 8, READ, -1, 0), ("a closed descriptor", 8, READ, 1_000_000, 0)]
    {
        let code = make(size, protection, descriptor, offset, place);
        assert_eq!(code, OP_FAILED, "{what}");
        assert!(memory.is_null(), "{what}");
    }
    works(make(8, READ, file.as_raw_fd(), 0, place));
    ANeuralNetworksMemory_free(memory);
}

/// As Android has it: whoever uses the memory finds out that the file is too short, and may grow it before.
#[test]
fn a_file_may_be_too_short_until_it_is_used() {
    let file = file(&[1.0]);
    let memory = memory(&file, 8);
    let model = model();
    let compilation = compilation(model);
    let compute = || {
        let mut y = [0.0; 2];
        let execution = execution(compilation);
        let input = ANeuralNetworksExecution_setInputFromMemory;
        works(input(execution, 0, null(), memory, 0, 8));
        works(ANeuralNetworksExecution_setOutput(execution, 0, null(), room_of(&mut y), 8));
        let code = ANeuralNetworksExecution_compute(execution);
        ANeuralNetworksExecution_free(execution);
        (code, y)
    };
    assert_eq!(compute(), (BAD_DATA, [0.0; 2]));
    assert!(last_error().contains("holds 4"), "{}", last_error());
    let short =
        made(|place| ANeuralNetworksMemory_createFromFd(8, READ, file.as_raw_fd(), 0, place));
    assert_eq!(ANeuralNetworksMemory_copy(memory, short), BAD_DATA);
    ANeuralNetworksMemory_free(short);
    file.set_len(8).unwrap();
    assert_eq!(compute(), (NO_ERROR, [11.0, 20.0]));
    // No file is as long.
    let mut none = null_mut();
    let make = ANeuralNetworksMemory_createFromFd;
    assert_eq!(make(usize::MAX, READ, file.as_raw_fd(), 8, &raw mut none), BAD_DATA);
    assert!(none.is_null());
    ANeuralNetworksMemory_free(memory);
    ANeuralNetworksCompilation_free(compilation);
    ANeuralNetworksModel_free(model);
}

#[test]
fn hardware_buffers_are_refused_in_words() {
    let mut memory = without_provenance_mut(77);
    let make = ANeuralNetworksMemory_createFromAHardwareBuffer;
    assert_eq!(make(null_mut(), &raw mut memory), UNEXPECTED_NULL);
    assert!(memory.is_null());
    let buffer = without_provenance_mut(4096);
    assert_eq!(make(buffer, null_mut()), UNEXPECTED_NULL);
    assert_eq!(make(buffer, &raw mut memory), OP_FAILED);
    assert!(last_error().contains("hardware buffers"), "{}", last_error());
}

#[test]
fn arguments_may_be_in_one_file() {
    let mut file = file(&[0.0, 1.0, 2.0, 0.0, 0.0, 7.0]);
    let memory = memory(&file, 24);
    let model = model();
    let compilation = compilation(model);
    let execution = execution(compilation);
    let input = ANeuralNetworksExecution_setInputFromMemory;
    let output = ANeuralNetworksExecution_setOutputFromMemory;
    for (offset, length) in
        [(20, 8), (24, 8), (usize::MAX, 8), (usize::MAX - 7, 8), (0, 0), (4, 0), (4, 7)]
    {
        assert_eq!(input(execution, 0, null(), memory, offset, length), BAD_DATA, "{offset}");
        assert_eq!(output(execution, 0, null(), memory, offset, length), BAD_DATA, "{offset}");
    }
    works(input(execution, 0, null(), memory, 4, 8));
    works(output(execution, 0, null(), memory, 12, 8));
    ANeuralNetworksMemory_free(memory);
    works(ANeuralNetworksExecution_compute(execution));
    assert_eq!(numbers(&mut file), [0.0, 1.0, 2.0, 11.0, 22.0, 7.0]);
    ANeuralNetworksExecution_free(execution);
    ANeuralNetworksCompilation_free(compilation);
    ANeuralNetworksModel_free(model);
}

#[test]
fn constants_may_be_in_a_file() {
    let file = file(&[0.0, 3.0, 4.0]);
    let memory = memory(&file, 12);
    let model = unfinished_model(&[2]);
    let set = ANeuralNetworksModel_setOperandValueFromMemory;
    for (index, offset, length) in [(1, 8, 8), (1, 4, 4), (1, 4, 16), (7, 4, 8), (1, usize::MAX, 8)]
    {
        assert_eq!(
            set(model, index, memory, offset, length),
            BAD_DATA,
            "{index} {offset} {length}"
        );
    }
    works(set(model, 1, memory, 4, 8));
    ANeuralNetworksMemory_free(memory);
    works(ANeuralNetworksModel_finish(model));
    let compilation = compilation(model);
    let (x, mut y) = ([1.0, 1.0], [0.0; 2]);
    let execution = ready_execution(compilation, &x, &mut y);
    works(ANeuralNetworksExecution_compute(execution));
    assert_eq!(y, [4.0, 5.0]);
    ANeuralNetworksExecution_free(execution);
    ANeuralNetworksCompilation_free(compilation);
    ANeuralNetworksModel_free(model);
}

#[test]
fn descriptions_are_checked() {
    let model = model();
    let compilation = compilation(model);
    let description = made(|it| ANeuralNetworksMemoryDesc_create(it));
    let add_input = ANeuralNetworksMemoryDesc_addInputRole;
    let add_output = ANeuralNetworksMemoryDesc_addOutputRole;
    let set_dimensions = ANeuralNetworksMemoryDesc_setDimensions;
    let mut memory = null_mut();
    assert_eq!(ANeuralNetworksMemoryDesc_create(null_mut()), UNEXPECTED_NULL);
    assert_eq!(add_input(description, null_mut(), 0, 1.0), UNEXPECTED_NULL);
    assert_eq!(set_dimensions(description, 1, null()), UNEXPECTED_NULL);
    assert_eq!(ANeuralNetworksMemoryDesc_finish(description), BAD_DATA, "no role");
    for frequency in [0.0, -1.0, 1.5, f32::NAN, f32::INFINITY] {
        assert_eq!(add_input(description, compilation, 0, frequency), BAD_DATA, "{frequency}");
    }
    let unfinished = unfinished_compilation(model);
    assert_eq!(add_input(description, unfinished, 0, 1.0), BAD_DATA, "not finished");
    ANeuralNetworksCompilation_free(unfinished);
    assert_eq!(add_input(description, compilation, 1, 1.0), BAD_DATA, "no such input");
    assert_eq!(add_output(description, compilation, 1, 1.0), BAD_DATA, "no such output");
    works(add_input(description, compilation, 0, 1.0));
    assert_eq!(add_input(description, compilation, 0, 0.5), BAD_DATA, "the same once more");
    works(add_output(description, compilation, 0, 0.5));
    assert_eq!(set_dimensions(description, 1, [3].as_ptr()), BAD_DATA, "the model says 2");
    assert_eq!(set_dimensions(description, 2, [2, 1].as_ptr()), BAD_DATA, "the model says 1");
    works(set_dimensions(description, 1, [2].as_ptr()));
    works(set_dimensions(description, 1, [0].as_ptr()));
    let create = ANeuralNetworksMemory_createFromDesc;
    assert_eq!(create(description, &raw mut memory), BAD_STATE, "not finished");
    works(ANeuralNetworksMemoryDesc_finish(description));
    assert_eq!(ANeuralNetworksMemoryDesc_finish(description), BAD_STATE);
    assert_eq!(add_input(description, compilation, 0, 1.0), BAD_STATE);
    let unfinished = unfinished_compilation(model);
    assert_eq!(add_input(description, unfinished, 0, 1.0), BAD_STATE);
    assert_eq!(add_output(description, unfinished, 0, 1.0), BAD_STATE);
    ANeuralNetworksCompilation_free(unfinished);
    assert_eq!(set_dimensions(description, 1, [2].as_ptr()), BAD_STATE);
    assert_eq!(create(description, null_mut()), UNEXPECTED_NULL);
    ANeuralNetworksMemoryDesc_free(description);
    ANeuralNetworksCompilation_free(compilation);
    ANeuralNetworksModel_free(model);
}

#[test]
fn memory_of_the_device_holds_what_was_computed() {
    let model = model();
    let compilation = compilation(model);
    let description = made(|it| ANeuralNetworksMemoryDesc_create(it));
    works(ANeuralNetworksMemoryDesc_addInputRole(description, compilation, 0, 1.0));
    works(ANeuralNetworksMemoryDesc_addOutputRole(description, compilation, 0, 1.0));
    works(ANeuralNetworksMemoryDesc_finish(description));
    let first = made(|memory| ANeuralNetworksMemory_createFromDesc(description, memory));
    let second = made(|memory| ANeuralNetworksMemory_createFromDesc(description, memory));
    ANeuralNetworksMemoryDesc_free(description);

    let mut file = file(&[1.0, 2.0]);
    let shared = memory(&file, 8);
    let copy = ANeuralNetworksMemory_copy;
    assert_eq!(copy(first, shared), BAD_DATA, "there is nothing in it yet");
    assert_eq!(copy(null_mut(), shared), UNEXPECTED_NULL);
    assert_eq!(copy(shared, null_mut()), UNEXPECTED_NULL);
    works(copy(shared, first));

    let execution = execution(compilation);
    let input = ANeuralNetworksExecution_setInputFromMemory;
    assert_eq!(input(execution, 0, null(), first, 0, 8), BAD_DATA, "only as a whole");
    works(input(execution, 0, null(), first, 0, 0));
    works(ANeuralNetworksExecution_setOutputFromMemory(execution, 0, null(), second, 0, 0));
    works(ANeuralNetworksExecution_compute(execution));
    works(copy(second, shared));
    assert_eq!(numbers(&mut file), [11.0, 22.0]);
    // From one into the other.
    works(copy(second, first));
    works(copy(first, shared));
    assert_eq!(numbers(&mut file), [11.0, 22.0]);
    for memory in [first, second, shared] {
        ANeuralNetworksMemory_free(memory);
    }
    ANeuralNetworksExecution_free(execution);

    // Not made for another compilation.
    let other = c::compilation(model);
    let execution = c::execution(other);
    let description = made(|it| ANeuralNetworksMemoryDesc_create(it));
    works(ANeuralNetworksMemoryDesc_addInputRole(description, compilation, 0, 1.0));
    works(ANeuralNetworksMemoryDesc_finish(description));
    let memory = made(|memory| ANeuralNetworksMemory_createFromDesc(description, memory));
    assert_eq!(input(execution, 0, null(), memory, 0, 0), BAD_DATA);
    ANeuralNetworksMemory_free(memory);
    ANeuralNetworksMemoryDesc_free(description);
    ANeuralNetworksExecution_free(execution);
    ANeuralNetworksCompilation_free(other);
    ANeuralNetworksCompilation_free(compilation);
    ANeuralNetworksModel_free(model);
}
