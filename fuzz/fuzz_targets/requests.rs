//! A request is run or refused, whatever is in it (contract: section 9, GEN-3, GEN-8, SHAPE-8,
//! DBUF): nothing outside of its outputs is written, a check beforehand agrees with the execution,
//! and a failure has no shapes but where buffers are too short.

#![no_main]

use nnhal_hal::{
    Buffer, BufferDescription, BufferRole, DataLocation, ErrorStatus, ExecutionOptions, HalVersion,
    Memory, OperandSpec, OperationType, PrepareOptions, PreparedModel, Request, RequestArgument,
    RequestMemoryPool, SubgraphBuilder,
};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, OnceLock};

const POOL_SIZE: u32 = 256;

struct Subject {
    prepared: Arc<dyn PreparedModel>,
    buffer: Arc<dyn Buffer>,
}

/// ADD of tensors of open shape, and a buffer for all of its arguments.
fn subject() -> &'static Subject {
    static SUBJECT: OnceLock<Subject> = OnceLock::new();
    SUBJECT.get_or_init(|| {
        let mut graph = SubgraphBuilder::new();
        let a = graph.input("a", OperandSpec::tensor_float32([2, 0]));
        let b = graph.input("b", OperandSpec::tensor_float32([]));
        let none = graph.scalar_i32(0);
        let sum =
            graph.operation(OperationType::Add, [a, b, none], OperandSpec::tensor_float32([]));
        graph.output(sum);
        let model = graph.into_model().expect("a whole model");
        let device = nnhal_reference::device();
        let prepared = device
            .prepare_model(&model, HalVersion::V1_3, PrepareOptions::default())
            .expect("a valid model");
        let role = |io_index| BufferRole { model_index: 0, io_index, frequency: 1.0 };
        let buffer = device
            .allocate(&BufferDescription {
                dimensions: vec![2, 2],
                prepared_models: vec![Arc::clone(&prepared)],
                input_roles: vec![role(0), role(1)],
                output_roles: vec![role(0)],
            })
            .expect("a buffer");
        Subject { prepared, buffer }
    })
}

/// Mostly what makes sense, sometimes anything.
fn number(source: &mut Unstructured<'_>, sensible: &[u32]) -> Result<u32> {
    if source.ratio(1, 16)? { source.arbitrary() } else { source.choose(sensible).copied() }
}

fn argument(source: &mut Unstructured<'_>) -> Result<RequestArgument> {
    let location = DataLocation {
        pool_index: number(source, &[0, 1, 2])?,
        offset: number(source, &[0, 0, 16, 64, 128, 255, 256])?,
        length: number(source, &[0, 4, 8, 16, 24, 32, 64, 256])?,
    };
    let mut dimensions = Vec::new();
    for _ in 0..source.int_in_range(0..=4)? {
        dimensions.push(number(source, &[0, 1, 2, 2, 3, 4])?);
    }
    Ok(RequestArgument { has_no_value: source.ratio(1, 16)?, location, dimensions })
}

fn arguments(source: &mut Unstructured<'_>, usual: usize) -> Result<Vec<RequestArgument>> {
    let count = if source.ratio(1, 16)? { source.int_in_range(0..=4)? } else { usual };
    (0..count).map(|_| argument(source)).collect()
}

fn pool(source: &mut Unstructured<'_>, buffer: u32) -> Result<RequestMemoryPool> {
    Ok(match source.int_in_range(0..=7_u8)? {
        0 => RequestMemoryPool::Token(source.arbitrary()?),
        1 | 2 => RequestMemoryPool::Token(buffer),
        _ => {
            let bytes: Vec<u8> = (0..POOL_SIZE).map(|byte| byte.to_le_bytes()[0]).collect();
            RequestMemoryPool::Memory(Memory::from_bytes(&bytes).expect("memory"))
        }
    })
}

fn contents(request: &Request) -> Vec<Option<Vec<u8>>> {
    let of = |pool: &RequestMemoryPool| match pool {
        RequestMemoryPool::Memory(memory) => {
            Some(memory.view().and_then(|view| view.read_to_vec(0, view.size())).expect("bytes"))
        }
        RequestMemoryPool::Token(_) => None,
    };
    request.pools.iter().map(of).collect()
}

/// Whether an output may be written at this byte of a pool.
fn is_output(request: &Request, pool: usize, byte: usize) -> bool {
    request.outputs.iter().any(|output| {
        let DataLocation { pool_index, offset, length } = output.location;
        !output.has_no_value
            && pool_index as usize == pool
            && (u64::from(offset)..u64::from(offset) + u64::from(length)).contains(&(byte as u64))
    })
}

fn run(source: &mut Unstructured<'_>) -> Result<()> {
    let Subject { prepared, buffer } = subject();
    let mut request = Request {
        inputs: arguments(source, 2)?,
        outputs: arguments(source, 1)?,
        pools: Vec::new(),
    };
    for _ in 0..source.int_in_range(1..=3)? {
        request.pools.push(pool(source, buffer.token())?);
    }
    let before = contents(&request);
    let checked = prepared.check_request(&request);
    let result = prepared.execute(&request, &ExecutionOptions::default());
    for (pool, (before, after)) in before.iter().zip(contents(&request)).enumerate() {
        let (Some(before), Some(after)) = (before, after) else { continue };
        for (byte, (before, after)) in before.iter().zip(&after).enumerate() {
            assert!(before == after || is_output(&request, pool, byte), "pool {pool}, byte {byte}");
        }
    }
    match result {
        Ok(execution) => {
            assert!(checked.is_ok(), "{checked:?}");
            assert_eq!(execution.output_shapes.len(), request.outputs.len());
            assert!(execution.output_shapes.iter().all(|shape| shape.is_sufficient));
        }
        Err(failed) => {
            let short = failed.error.status() == ErrorStatus::OutputInsufficientSize;
            assert_eq!(short, !failed.output_shapes.is_empty(), "{failed}");
            if let Err(checked) = checked {
                assert_eq!(checked.status(), failed.error.status());
            }
        }
    }
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    // Too few bytes are no request.
    let _ = run(&mut Unstructured::new(bytes));
});
