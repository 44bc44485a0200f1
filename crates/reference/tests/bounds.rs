//! What reference kernels take, of time between two questions whether to stop, and of memory: both of
//! operations whose arguments are large, so that nothing that grows with them goes unnoticed.
#![allow(unsafe_code)] // A global allocator cannot be had without.

use nnhal_hal::{
    DataLocation, ExtraParams, Operand, OperandLifeTime, OperandType, OperationType as Op,
};
use nnhal_ops::{Allowance, AnyOperation, ArgumentSource, Call, Fault, Interrupt, Shape, Value};
use rustix::time::{ClockId, clock_gettime};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

thread_local! {
    /// Bytes that this thread holds, and the most that it has held.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

/// The system's allocator, counting.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(bytes: isize) {
    // Threads that end have nothing to count with any more.
    let _ = HELD.try_with(|held| {
        let (now, most) = held.get();
        held.set((now + bytes, most.max(now + bytes)));
    });
}

// SAFETY: every call is passed on to `System` as it is; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps to the contract of this function, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps to the contract of this function, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.cast_signed() - layout.size().cast_signed());
        // SAFETY: the caller keeps to the contract of this function, which is the same.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller keeps to the contract of this function, which is the same.
        unsafe { System.dealloc(place, layout) };
    }
}

/// An input.
struct Given {
    operand: Operand,
    bytes: Option<Vec<u8>>,
}

/// An operation with inputs; outputs by their types.
struct Case {
    operation: Op,
    inputs: Vec<Given>,
    outputs: Vec<Operand>,
}

fn operand(operand_type: OperandType, dimensions: &[u32]) -> Operand {
    let is_quantized = operand_type.quantized_range().is_some();
    Operand {
        operand_type,
        dimensions: dimensions.to_vec(),
        number_of_consumers: 1,
        scale: if is_quantized { 0.5 } else { 0.0 },
        zero_point: 0,
        lifetime: OperandLifeTime::TemporaryVariable,
        location: DataLocation::default(),
        extra_params: ExtraParams::None,
    }
}

fn given(operand: Operand, bytes: Vec<u8>) -> Given {
    Given { operand, bytes: Some(bytes) }
}

/// Floats from 0 to 1.
fn floats(dimensions: &[u32]) -> Given {
    let count: u32 = dimensions.iter().product();
    let element = |index: u32| (index.wrapping_mul(2_654_435_761) >> 24) as f32 / 256.0;
    let bytes = (0..count).flat_map(|index| element(index).to_le_bytes()).collect();
    given(operand(OperandType::TensorFloat32, dimensions), bytes)
}

/// Quantized numbers of one byte, or truth values.
fn small(operand_type: OperandType, dimensions: &[u32]) -> Given {
    let count: u32 = dimensions.iter().product();
    given(operand(operand_type, dimensions), (0..count).map(|index| (index % 2) as u8).collect())
}

fn exactly(dimensions: &[u32], numbers: &[f32]) -> Given {
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    given(operand(OperandType::TensorFloat32, dimensions), bytes)
}

fn integers(dimensions: &[u32], numbers: &[i32]) -> Given {
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    given(operand(OperandType::TensorInt32, dimensions), bytes)
}

fn zeros(length: u32) -> Given {
    given(operand(OperandType::TensorInt32, &[length]), vec![0; length as usize * 4])
}

fn int(number: i32) -> Given {
    given(operand(OperandType::Int32, &[]), number.to_le_bytes().into())
}

fn float(number: f32) -> Given {
    given(operand(OperandType::Float32, &[]), number.to_le_bytes().into())
}

fn flag(truth: bool) -> Given {
    given(operand(OperandType::Bool, &[]), vec![truth.into()])
}

fn omitted() -> Given {
    Given { operand: operand(OperandType::TensorFloat32, &[]), bytes: None }
}

/// Operations whose largest argument has about this many elements, a square number. `heavy` ones do
/// much more work than that.
fn cases(n: u32, heavy: bool) -> Vec<Case> {
    use OperandType::{TensorBool8 as B, TensorFloat32 as F, TensorInt32 as I};
    use OperandType::{TensorQuant8Asymm as Q, TensorQuant8AsymmSigned as S};
    let side = n.isqrt();
    let ints = |numbers: &[i32]| numbers.iter().map(|it| int(*it)).collect::<Vec<_>>();
    let image = || floats(&[1, side, side, 1]);
    let quantized_bias = || {
        let mut bias = integers(&[1], &[0]);
        bias.operand.scale = 0.25;
        bias
    };
    let mut all = Vec::new();
    let mut add = |operation, outputs: &[OperandType], inputs: Vec<Vec<Given>>| {
        let outputs = outputs.iter().map(|it| operand(*it, &[])).collect();
        all.push(Case { operation, inputs: inputs.into_iter().flatten().collect(), outputs });
    };
    let signed = n.cast_signed();
    let length = side.cast_signed();

    add(Op::Relu, &[F], vec![vec![floats(&[n])]]);
    add(Op::Relu, &[Q], vec![vec![small(Q, &[n])]]);
    add(Op::Tanh, &[F], vec![vec![floats(&[n])]]);
    add(Op::Add, &[F], vec![vec![floats(&[n]), floats(&[1]), int(0)]]);
    add(Op::Add, &[Q], vec![vec![small(Q, &[n]), small(Q, &[1]), int(0)]]);
    add(Op::Maximum, &[F], vec![vec![floats(&[n]), floats(&[1])]]);
    add(Op::Maximum, &[S], vec![vec![small(S, &[n]), small(S, &[1])]]);
    add(Op::Less, &[B], vec![vec![floats(&[n]), floats(&[1])]]);
    add(Op::Less, &[B], vec![vec![small(Q, &[n]), small(Q, &[1])]]);
    add(Op::LogicalAnd, &[B], vec![vec![small(B, &[n]), small(B, &[1])]]);
    add(Op::Pow, &[F], vec![vec![floats(&[n]), floats(&[1])]]);
    add(Op::Prelu, &[F], vec![vec![floats(&[n]), floats(&[1])]]);
    add(Op::Select, &[F], vec![vec![small(B, &[n]), floats(&[n]), floats(&[n])]]);
    add(Op::Select, &[S], vec![vec![small(B, &[n]), small(S, &[n]), small(S, &[n])]]);
    add(Op::Cast, &[I], vec![vec![floats(&[n])]]);
    add(Op::Cast, &[F], vec![vec![small(Q, &[n])]]);
    add(Op::Dequantize, &[F], vec![vec![small(Q, &[n])]]);
    add(Op::Quantize, &[Q], vec![vec![floats(&[n])]]);

    let window = ints(&[0, 0, 0, 0, 1, 1, 0]);
    add(Op::Conv2d, &[F], vec![vec![image(), image(), floats(&[1])], window]);
    let window = ints(&[0, 0, 0, 0, 1, 1, 0]);
    let deep = || floats(&[1, 1, 1, n]);
    add(Op::Conv2d, &[F], vec![vec![deep(), deep(), floats(&[1])], window]);
    let window = ints(&[0, 0, 0, 0, 1, 1, 0]);
    let deep_q = || small(Q, &[1, 1, 1, n]);
    add(Op::Conv2d, &[Q], vec![vec![deep_q(), deep_q(), quantized_bias()], window]);
    let window = ints(&[0, 0, 0, 0, 1, 1, 1, 0]);
    add(Op::DepthwiseConv2d, &[F], vec![vec![image(), image(), floats(&[1])], window]);
    let window = ints(&[0, 0, 0, 0, 1, 1, 1, 0]);
    add(
        Op::GroupedConv2d,
        &[F],
        vec![vec![deep(), deep(), floats(&[1])], window, vec![flag(false)]],
    );
    let window = ints(&[0, 0, 0, 0, 1, 1, 0]);
    add(
        Op::TransposeConv2d,
        &[F],
        vec![vec![deep(), deep(), floats(&[1])], window, vec![flag(false)]],
    );
    let row = || floats(&[1, n]);
    add(Op::FullyConnected, &[F], vec![vec![row(), row(), floats(&[1]), int(0)]]);
    add(
        Op::FullyConnected,
        &[Q],
        vec![vec![small(Q, &[1, n]), small(Q, &[1, n]), quantized_bias(), int(0)]],
    );
    add(Op::BatchMatmul, &[F], vec![vec![row(), floats(&[n, 1]), flag(false), flag(false)]]);
    for (operation, output, input) in [
        (Op::AveragePool2d, F, image()),
        (Op::L2Pool2d, F, image()),
        (Op::MaxPool2d, Q, small(Q, &[1, side, side, 1])),
    ] {
        let window = ints(&[0, 0, 0, 0, 1, 1, length, length, 0]);
        add(operation, &[output], vec![vec![input], window]);
    }
    add(Op::Mean, &[F], vec![vec![floats(&[n]), zeros(1), int(1)]]);
    add(Op::Mean, &[Q], vec![vec![small(Q, &[n, 1]), integers(&[1], &[1]), int(1)]]);
    add(Op::ReduceProd, &[F], vec![vec![floats(&[n, 1]), integers(&[1], &[1]), flag(true)]]);
    add(Op::Softmax, &[F], vec![vec![row(), float(1.0)]]);
    add(Op::LogSoftmax, &[F], vec![vec![row(), float(1.0), int(1)]]);
    let radius = if heavy { signed } else { 2 };
    let scale = || vec![float(1.0), float(1.0), float(0.5)];
    add(Op::LocalResponseNormalization, &[F], vec![vec![deep(), int(radius)], scale()]);
    add(Op::L2Normalization, &[F], vec![vec![deep()]]);
    add(Op::InstanceNormalization, &[F], vec![vec![image()], scale(), vec![flag(false)]]);
    add(
        Op::InstanceNormalization,
        &[F],
        vec![vec![floats(&[1, 1, side, side])], scale(), vec![flag(true)]],
    );
    add(Op::TopkV2, &[F, I], vec![vec![floats(&[n]), int(signed)]]);
    add(Op::Argmax, &[I], vec![vec![floats(&[n]), int(0)]]);
    add(Op::Gather, &[F], vec![vec![floats(&[1]), int(0), zeros(n)]]);
    add(Op::EmbeddingLookup, &[F], vec![vec![zeros(n), floats(&[1, 1])]]);
    add(Op::HashtableLookup, &[F, Q], vec![vec![zeros(n), zeros(1), floats(&[1, 1])]]);
    add(Op::Tile, &[F], vec![vec![floats(&[n]), integers(&[1], &[2])]]);
    add(Op::Pad, &[F], vec![vec![floats(&[1]), integers(&[1, 2], &[0, signed])]]);
    add(Op::MirrorPad, &[F], vec![vec![floats(&[n]), integers(&[1, 2], &[0, signed - 1]), int(0)]]);
    add(Op::Transpose, &[F], vec![vec![floats(&[side, side]), integers(&[2], &[1, 0])]]);
    add(Op::Reverse, &[F], vec![vec![floats(&[n]), zeros(1)]]);
    add(Op::Split, &[F, F], vec![vec![floats(&[n]), int(0), int(2)]]);
    add(Op::Concatenation, &[F], vec![vec![floats(&[n]), floats(&[n]), int(0)]]);
    add(Op::Concatenation, &[Q], vec![vec![small(Q, &[n]), small(Q, &[n]), int(0)]]);
    add(Op::Fill, &[F], vec![vec![integers(&[1], &[signed]), float(1.0)]]);
    add(
        Op::StridedSlice,
        &[F],
        vec![
            vec![floats(&[n]), zeros(1), integers(&[1], &[signed]), integers(&[1], &[1])],
            ints(&[0, 0, 0]),
        ],
    );
    add(Op::ChannelShuffle, &[F], vec![vec![deep(), int(2), int(3)]]);
    add(Op::SpaceToDepth, &[F], vec![vec![image(), int(2)]]);
    add(Op::ResizeBilinear, &[F], vec![vec![floats(&[1, 8, 8, 1])], ints(&[length, length])]);
    add(Op::RandomMultinomial, &[I], vec![vec![row(), int(signed), integers(&[2], &[1, 2])]]);
    let key = given(operand(I, &[1, n]), vec![1; n as usize * 4]);
    add(Op::LshProjection, &[I], vec![vec![floats(&[1, 8]), key, omitted(), int(3)]]);
    add(
        Op::HeatmapMaxKeypoint,
        &[F, F],
        vec![vec![image(), exactly(&[1, 4], &[0.0, 0.0, 9.0, 9.0]), flag(false)]],
    );
    for operation in [Op::RoiAlign, Op::RoiPooling] {
        let end = side as f32;
        let mut inputs =
            vec![image(), exactly(&[1, 4], &[0.0, 0.0, end, end]), zeros(1), int(1), int(1)];
        inputs.extend([float(1.0), float(1.0)]);
        if operation == Op::RoiAlign {
            inputs.extend([int(0), int(0)]);
        }
        inputs.push(flag(false));
        add(operation, &[F], vec![inputs]);
    }
    let square = || floats(&[side, side]);
    let (wide, units) = (|| floats(&[1, side]), || floats(&[side]));
    add(Op::Rnn, &[F, F], vec![vec![wide(), square(), square(), units(), wide(), int(0)]]);
    add(
        Op::Svdf,
        &[F, F],
        vec![vec![
            wide(),
            square(),
            floats(&[side, 4]),
            omitted(),
            floats(&[1, 4 * side]),
            int(1),
            int(0),
        ]],
    );
    let mut lstm = vec![floats(&[1, 1, side])];
    lstm.extend((0..8).map(|_| square()));
    lstm.extend((0..3).map(|_| omitted()));
    lstm.extend((0..4).map(|_| units()));
    lstm.extend([
        omitted(),
        omitted(),
        wide(),
        wide(),
        int(4),
        float(0.0),
        float(0.0),
        flag(false),
    ]);
    lstm.extend((0..4).map(|_| omitted()));
    add(Op::UnidirectionalSequenceLstm, &[F], vec![lstm]);
    let boxes = if heavy { n / 16 } else { 1024 };
    let corners = |count: u32| {
        let edges: Vec<f32> =
            (0..count).flat_map(|it| [0.0, it as f32, 1.0, it as f32 + 1.0]).collect();
        edges
    };
    let classes = corners(2 * boxes);
    let inputs = vec![floats(&[boxes, 2]), exactly(&[boxes, 8], &classes), zeros(boxes)];
    let rule = vec![float(0.0), int(-1), int(0), float(0.9), float(0.5), float(0.0)];
    add(Op::BoxWithNmsLimit, &[F, F, I, I], vec![inputs, rule]);
    let places = boxes.isqrt();
    let inputs = vec![
        floats(&[1, places, places, 1]),
        exactly(&[1, places, places, 4], &vec![0.0; (places * places * 4) as usize]),
        exactly(&[1, 4], &[0.0, 0.0, 1.0, 1.0]),
        exactly(&[1, 2], &[1e6, 1e6]),
    ];
    let rule = vec![float(1.0), float(1.0), int(-1), int(-1), float(0.9), float(0.0), flag(false)];
    add(Op::GenerateProposals, &[F, F, I], vec![inputs, rule]);
    for case in all.iter_mut().filter(|case| case.operation == Op::HashtableLookup) {
        case.outputs[1].scale = 1.0;
    }
    all
}

/// Asks the operation everything, as engines do.
fn run(case: &Case, stop: &dyn Fn() -> bool, take: &dyn Fn(u64) -> bool) -> Result<usize, Fault> {
    let inputs = case.inputs.iter().map(|input| ArgumentSource {
        operand: &input.operand,
        shape: Shape::known(input.operand.dimensions.iter().copied()),
        value: input.bytes.as_deref().map_or(Value::Omitted, Value::Known),
    });
    let outputs = case.outputs.iter().map(|operand| ArgumentSource {
        operand,
        shape: Shape::UNKNOWN,
        value: Value::Given,
    });
    let call = Call::new(case.operation, inputs, outputs)
        .with_interrupt(Interrupt(stop))
        .with_allowance(Allowance(take));
    nnhal_ops::operations::validate(&call)?;
    let operation = AnyOperation::decode(&call)?;
    operation.output_shapes(&call)?;
    Ok(operation.reference(&call)?.len())
}

/// Time that this thread has computed.
fn computed() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("a time since the thread began")
}

#[test]
fn qos_3_every_kernel_asks_whether_to_stop() {
    let mut late = Vec::new();
    for case in cases(1 << 22, true) {
        let (started, last, longest) =
            (computed(), Cell::new(computed()), Cell::new(Duration::ZERO));
        let asked = || {
            let now = computed();
            longest.set(longest.get().max(now - last.replace(now)));
            // Long enough to have seen all there is to see of most.
            now - started > Duration::from_millis(400)
        };
        match run(&case, &asked, &|_| true) {
            Ok(_) | Err(Fault::Interrupted { .. }) => {}
            Err(fault) => late.push(fault.to_string()),
        }
        asked();
        if longest.get() > Duration::from_millis(40) {
            late.push(format!("{}: {:?}", case.operation, longest.get()));
        }
    }
    assert!(late.is_empty(), "not asked for:\n{}", late.join("\n"));
}

#[test]
fn sec_3_every_kernel_asks_for_the_memory_that_it_takes() {
    const NOT_WORTH_ASKING: u64 = 256 << 10;
    let mut greedy = Vec::new();
    for case in cases(1 << 18, false) {
        let asked = Cell::new(0);
        let take = |bytes: u64| {
            asked.set(asked.get() + bytes);
            true
        };
        let before = HELD.get().0;
        HELD.set((before, before));
        if let Err(fault) = run(&case, &|| false, &take) {
            greedy.push(fault.to_string());
            continue;
        }
        let taken = (HELD.get().1 - before).cast_unsigned() as u64;
        if taken > asked.get() + NOT_WORTH_ASKING {
            greedy.push(format!("{}: {taken} bytes, asked for {}", case.operation, asked.get()));
        }
        // What is asked for and refused is not taken.
        let refused = run(&case, &|| false, &|bytes| bytes <= 1 << 10);
        if !matches!(refused, Err(Fault::OutOfMemory { .. })) {
            greedy.push(format!("{}: {refused:?} without memory", case.operation));
        }
    }
    assert!(greedy.is_empty(), "not asked for:\n{}", greedy.join("\n"));
}
