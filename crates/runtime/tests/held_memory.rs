//! How much memory the runtime itself may take. The process is counted as a whole, so nothing else runs
//! in it.

use nnhal_hal::OperationType;
use nnhal_hal::memory::{Protection, machine_memory};
use nnhal_runtime::{
    Compilation, CompilationBuilder, Devices, Execution, Memory, MemoryDescription, ModelBuilder,
    OperandDescription, OutputBuffer, Result, ResultCode,
};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const MIB: u64 = 1 << 20;

fn limit() -> u64 {
    machine_memory() / 2
}

/// A file in memory of this length, which has pages only for the first of them.
fn memfd(length: u64, written: u64) -> OwnedFd {
    let name = "test";
    let fd = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&fd, length).unwrap();
    let bytes = vec![1; usize::try_from(written).unwrap()];
    assert_eq!(rustix::io::pwrite(&fd, &bytes, 0).unwrap(), bytes.len());
    rustix::fs::fcntl_add_seals(&fd, rustix::fs::SealFlags::SHRINK).unwrap();
    fd
}

fn from_fd(fd: OwnedFd, length: u64) -> Result<Memory> {
    let protection = Protection::READ_WRITE.bits();
    Memory::from_fd(fd, protection, 0, usize::try_from(length).unwrap())
}

fn expect_out_of_memory<T: std::fmt::Debug>(result: Result<T>) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), ResultCode::OutOfMemory, "{error}");
    assert!(error.to_string().contains("client of the runtime has"), "{error}");
}

/// y = relu(x) of this number of elements.
fn compile(length: u32) -> Compilation {
    let devices = Devices::new([nnhal_reference::device()]);
    let mut builder = ModelBuilder::new(&devices);
    let tensor = OperandDescription::tensor_float32([length]);
    let [x, y] = [(); 2].map(|()| builder.add_operand(&tensor).unwrap());
    let relu = OperationType::Relu.code().cast_signed();
    builder.add_operation(relu, &[x], &[y]).unwrap();
    builder.identify_inputs_and_outputs(&[x], &[y]).unwrap();
    CompilationBuilder::new(&builder.finish().unwrap()).finish().unwrap()
}

/// Memory from a description that two compilations on different devices share, so that no device makes
/// it.
fn from_description(one: &Compilation, other: &Compilation) -> Result<Memory> {
    let mut description = MemoryDescription::new();
    description.add_input_role(one, 0, 1.0)?;
    description.add_output_role(other, 0, 1.0)?;
    description.finish()?;
    description.allocate()
}

#[test]
fn sec_3_holes_count_and_pages_that_are_there_do_not() {
    let _alone = alone();
    expect_out_of_memory(from_fd(memfd(limit() + 4096, 0), limit() + 4096));
    let most = from_fd(memfd(limit() - MIB / 2, 0), limit() - MIB / 2).unwrap();
    expect_out_of_memory(from_fd(memfd(MIB, 0), MIB));
    // All but a quarter of it is there already.
    let full = from_fd(memfd(MIB, MIB / 4 * 3), MIB).unwrap();
    // Only what is used of a file counts.
    expect_out_of_memory(from_fd(memfd(limit(), 0), MIB));
    let part = from_fd(memfd(limit(), 0), MIB / 8).unwrap();
    let clone = most.clone();
    drop(most);
    expect_out_of_memory(from_fd(memfd(MIB, 0), MIB));
    drop((clone, full, part));
    from_fd(memfd(limit(), 0), limit()).unwrap();
}

#[test]
fn what_other_compilations_keep_makes_no_execution_fail() {
    let _alone = alone();
    // A MiB for the input and one for the output.
    let compilations = [(); 4].map(|()| compile(1 << 18));
    let most = from_fd(memfd(limit() - 3 * MIB, 0), limit() - 3 * MIB).unwrap();
    for _ in 0..2 {
        for compilation in &compilations {
            let execution = Execution::new(compilation);
            execution.set_input(0, None, Some(Arc::new(vec![0; 1 << 20]))).unwrap();
            execution.set_output(0, None, Some(Arc::new(OutputBuffer::new(1 << 20)))).unwrap();
            execution.compute().unwrap();
        }
    }
    // Nor any memory of the client.
    from_fd(memfd(2 * MIB, 0), 2 * MIB).unwrap();
    drop(most);
}

#[test]
fn sec_3_what_the_runtime_allocates_and_copies_counts() {
    let _alone = alone();
    // A MiB each.
    let (one, other) = (compile(1 << 18), compile(1 << 18));
    let most = from_fd(memfd(limit() - MIB / 2, 0), limit() - MIB / 2).unwrap();
    expect_out_of_memory(from_description(&one, &other));
    let execute = || {
        let execution = Execution::new(&one);
        execution.set_input(0, None, Some(Arc::new(vec![0; 1 << 20]))).unwrap();
        execution.set_output(0, None, Some(Arc::new(OutputBuffer::new(1 << 20)))).unwrap();
        execution.compute()
    };
    expect_out_of_memory(execute());
    let constant = || {
        let devices = Devices::new([nnhal_reference::device()]);
        let mut builder = ModelBuilder::new(&devices);
        let tensor = OperandDescription::tensor_float32([1 << 18]);
        let [x, c, y] = [(); 3].map(|()| builder.add_operand(&tensor).unwrap());
        let none = builder.add_operand(&OperandDescription::scalar(nnhal_hal::OperandType::Int32));
        let none = none.unwrap();
        builder.set_operand_value(none, &0_i32.to_le_bytes()).unwrap();
        builder.set_operand_value_shared(c, Arc::new(vec![0; 1 << 20])).unwrap();
        let add = OperationType::Add.code().cast_signed();
        builder.add_operation(add, &[x, c, none], &[y]).unwrap();
        builder.identify_inputs_and_outputs(&[x], &[y]).unwrap();
        builder.finish()
    };
    expect_out_of_memory(constant());
    drop(most);
    from_description(&one, &other).unwrap();
    execute().unwrap();
    constant().unwrap();
}
