//! Single operations at the sizes that models have, by `nnhal-cpu` and by their reference kernels.
//!
//! Prints the least time of an execution on one thread, the driver's part included. With `--test` each
//! runs once.
#![allow(clippy::print_stdout)] // What it is for.

use nnhal_cpu::Settings;
use nnhal_hal::{
    Device, ExecutionOptions, HalVersion, OperandId, OperandSpec, OperationType as Op,
    PrepareOptions, PreparedModel, Request, RequestBuilder, SubgraphBuilder,
};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one device is asked again.
const TIMEOUT: Duration = Duration::from_millis(300);

/// A model of one or a few operations while it is written.
#[derive(Default)]
struct GraphBuilder {
    graph: SubgraphBuilder,
    request: RequestBuilder,
    state: u32,
}

impl GraphBuilder {
    /// Bytes without a pattern.
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let next = || {
            self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            self.state.to_be_bytes()[0]
        };
        std::iter::repeat_with(next).take(count).collect()
    }

    /// The elements of a tensor: floats from 0 to 2, small integers, any bytes.
    fn elements(&mut self, spec: &OperandSpec) -> Vec<u8> {
        let count = spec.dimensions.iter().product::<u32>() as usize;
        let bytes = self.bytes(count).into_iter();
        match spec.operand_type.element_size() {
            _ if spec.operand_type == nnhal_hal::OperandType::TensorFloat32 => {
                bytes.flat_map(|it| (f32::from(it) / 128.0).to_le_bytes()).collect()
            }
            Some(4) => bytes.flat_map(|it| (i32::from(it) + 1).to_le_bytes()).collect(),
            Some(2) => bytes.flat_map(|it| u16::from(it).to_le_bytes()).collect(),
            _ => bytes.collect(),
        }
    }

    fn input(&mut self, spec: OperandSpec) -> OperandId {
        let bytes = self.elements(&spec);
        self.request.input_shaped(&bytes, &spec.dimensions);
        self.graph.input("", spec)
    }

    fn constant(&mut self, spec: OperandSpec) -> OperandId {
        let bytes = self.elements(&spec);
        self.graph.constant_bytes(spec, &bytes)
    }

    fn ints(&mut self, dimensions: &[u32], numbers: &[i32]) -> OperandId {
        self.graph.constant(OperandSpec::tensor_int32(dimensions), numbers)
    }

    /// Endpoints with an operation.
    fn end(mut self, operation: Op, inputs: &[OperandId], outputs: &[OperandSpec]) -> Case {
        let results: Vec<OperandId> =
            outputs.iter().map(|spec| self.graph.temporary(spec.clone())).collect();
        self.graph.operation_into(operation, inputs, &results);
        for (result, spec) in results.into_iter().zip(outputs) {
            self.graph.output(result);
            let elements: u32 = spec.dimensions.iter().product();
            self.request
                .output((elements * spec.operand_type.element_size().unwrap_or(1)) as usize);
        }
        Case {
            model: self.graph.into_model().expect("a model"),
            request: self.request.build().expect("a request"),
        }
    }
}

struct Case {
    model: nnhal_hal::Model,
    request: Request,
}

fn bytes(dimensions: &[u32], scale: f32) -> OperandSpec {
    OperandSpec::tensor_quant8_asymm_signed(dimensions, scale, -3)
}

fn floats(dimensions: &[u32]) -> OperandSpec {
    OperandSpec::tensor_float32(dimensions)
}

fn binary(operation: Op, inputs: [OperandSpec; 2], output: OperandSpec, fused: bool) -> Case {
    let mut builder = GraphBuilder::default();
    let mut inputs: Vec<OperandId> = inputs.into_iter().map(|it| builder.input(it)).collect();
    if fused {
        inputs.push(builder.graph.scalar_i32(0));
    }
    builder.end(operation, &inputs, &[output])
}

fn select() -> Case {
    let mut builder = GraphBuilder::default();
    let shape = [1, 56, 56, 64];
    let inputs = [OperandSpec::tensor_bool8(shape), bytes(&shape, 0.05), bytes(&shape, 0.04)];
    let inputs = inputs.map(|it| builder.input(it));
    builder.end(Op::Select, &inputs, &[bytes(&shape, 0.05)])
}

fn concatenation() -> Case {
    let mut builder = GraphBuilder::default();
    let mut inputs: Vec<OperandId> =
        [0.05, 0.04, 0.05].map(|scale| builder.input(bytes(&[1, 28, 28, 96], scale))).to_vec();
    inputs.push(builder.graph.scalar_i32(3));
    builder.end(Op::Concatenation, &inputs, &[bytes(&[1, 28, 28, 288], 0.05)])
}

fn mirror_pad() -> Case {
    let mut builder = GraphBuilder::default();
    let inputs = [
        builder.input(floats(&[1, 128, 128, 32])),
        builder.ints(&[4, 2], &[0, 0, 1, 1, 1, 1, 0, 0]),
        builder.graph.scalar_i32(0),
    ];
    builder.end(Op::MirrorPad, &inputs, &[floats(&[1, 130, 130, 32])])
}

fn l2_normalization(spec: OperandSpec, output: OperandSpec, axis: i32) -> Case {
    let mut builder = GraphBuilder::default();
    let inputs = [builder.input(spec), builder.graph.scalar_i32(axis)];
    builder.end(Op::L2Normalization, &inputs, &[output])
}

/// Between DEQUANTIZE and QUANTIZE.
fn through_floats(operation: Op) -> Case {
    let mut builder = GraphBuilder::default();
    let shape = [1, 14, 14, 576];
    let input = builder.input(bytes(&shape, 0.05));
    let real = builder.graph.operation(Op::Dequantize, [input], floats(&shape));
    let (inputs, dimensions) = match operation {
        Op::Mean => {
            let axes = builder.ints(&[2], &[1, 2]);
            (vec![real, axes, builder.graph.scalar_i32(1)], vec![1, 1, 1, 576])
        }
        _ => (vec![real], shape.to_vec()),
    };
    let result = builder.graph.operation(operation, inputs, floats(&dimensions));
    builder.end(Op::Quantize, &[result], &[bytes(&dimensions, 0.03)])
}

fn reduce_max() -> Case {
    let mut builder = GraphBuilder::default();
    let inputs = [
        builder.input(bytes(&[1, 56, 56, 64], 0.05)),
        builder.ints(&[2], &[1, 2]),
        builder.graph.scalar_bool(false),
    ];
    builder.end(Op::ReduceMax, &inputs, &[bytes(&[1, 64], 0.05)])
}

fn embedding() -> Case {
    let mut builder = GraphBuilder::default();
    let lookups = builder.input(OperandSpec::tensor_int32([128]));
    let table = builder.constant(OperandSpec::tensor_float16([30_000, 128]));
    builder.end(Op::EmbeddingLookup, &[lookups, table], &[OperandSpec::tensor_float16([128, 128])])
}

/// With the sizes of SSD.
fn detection(is_regular: bool) -> Case {
    let mut builder = GraphBuilder::default();
    let (anchors, classes, limit) = (1917, 91, 10);
    let tensors = [floats(&[1, anchors, classes]), floats(&[1, anchors, 4]), floats(&[anchors, 4])];
    let mut inputs: Vec<OperandId> = tensors.into_iter().map(|it| builder.input(it)).collect();
    inputs.extend([10.0, 10.0, 5.0, 5.0].map(|it| builder.graph.scalar_f32(it)));
    inputs.push(builder.graph.scalar_bool(is_regular));
    inputs.extend([limit, 1, 100].map(|it| builder.graph.scalar_i32(it)));
    inputs.extend([1e-8, 0.6].map(|it| builder.graph.scalar_f32(it)));
    inputs.push(builder.graph.scalar_bool(false));
    let limit = limit.cast_unsigned();
    let outputs = [
        floats(&[1, limit]),
        floats(&[1, limit, 4]),
        OperandSpec::tensor_int32([1, limit]),
        OperandSpec::tensor_int32([1]),
    ];
    builder.end(Op::DetectionPostprocessing, &inputs, &outputs)
}

/// The regions of a second stage.
fn roi_align() -> Case {
    let mut builder = GraphBuilder::default();
    let image = builder.input(floats(&[1, 50, 68, 256]));
    let numbers: Vec<u8> = (0..100_u8)
        .flat_map(|it| [it, it, it + 30, it + 60])
        .flat_map(|it| f32::from(it).to_le_bytes())
        .collect();
    builder.request.input_shaped(&numbers, &[100, 4]);
    let regions = builder.graph.input("", floats(&[100, 4]));
    let batch = builder.ints(&[100], &[0; 100]);
    let bins = [7, 7].map(|it| builder.graph.scalar_i32(it));
    let strides = [4.0, 4.0].map(|it| builder.graph.scalar_f32(it));
    let samples = [2, 2].map(|it| builder.graph.scalar_i32(it));
    let nchw = builder.graph.scalar_bool(false);
    let inputs = [&[image, regions, batch][..], &bins, &strides, &samples, &[nchw]].concat();
    builder.end(Op::RoiAlign, &inputs, &[floats(&[100, 7, 7, 256])])
}

/// From floats or integers to another type.
fn cast(from: OperandSpec, to: OperandSpec) -> Case {
    let mut builder = GraphBuilder::default();
    let input = builder.input(from);
    builder.end(Op::Cast, &[input], &[to])
}

fn unary(operation: Op, spec: &OperandSpec) -> Case {
    let mut builder = GraphBuilder::default();
    let input = builder.input(spec.clone());
    builder.end(operation, &[input], std::slice::from_ref(spec))
}

fn select_of(spec: &OperandSpec) -> Case {
    let mut builder = GraphBuilder::default();
    let truth = builder.input(OperandSpec::tensor_bool8(spec.dimensions.clone()));
    let inputs = [truth, builder.input(spec.clone()), builder.input(spec.clone())];
    builder.end(Op::Select, &inputs, std::slice::from_ref(spec))
}

/// The `k` greatest of rows of 1000.
fn top_k(rows: u32, k: u32) -> Case {
    let mut builder = GraphBuilder::default();
    let inputs = [builder.input(floats(&[rows, 1000])), builder.graph.scalar_i32(k.cast_signed())];
    let outputs = [floats(&[rows, k]), OperandSpec::tensor_int32([rows, k])];
    builder.end(Op::TopkV2, &inputs, &outputs)
}

fn hashtable_lookup() -> Case {
    let mut builder = GraphBuilder::default();
    let lookups = builder.input(OperandSpec::tensor_int32([128]));
    let keys: Vec<i32> = (0..10_000).map(|it| it * 3).collect();
    let keys = builder.ints(&[10_000], &keys);
    let table = builder.constant(floats(&[10_000, 64]));
    let hits = OperandSpec::tensor_quant8_asymm([128], 1.0, 0);
    builder.end(Op::HashtableLookup, &[lookups, keys, table], &[floats(&[128, 64]), hits])
}

/// Steps that have next to nothing to do and are not made one.
fn tiny_steps(steps: u32) -> Case {
    let mut builder = GraphBuilder::default();
    let spec = bytes(&[16], 0.05);
    let first = builder.input(spec.clone());
    let other = builder.input(spec.clone());
    let none = builder.graph.scalar_i32(0);
    let mut last = first;
    for _ in 1..steps {
        last = builder.graph.operation(Op::Add, [last, other, none], spec.clone());
    }
    builder.end(Op::Add, &[last, other, none], &[spec])
}

fn cases() -> Vec<(&'static str, Case)> {
    let image = [1, 56, 56, 64];
    let integers = || OperandSpec::tensor_int32([1, 128, 1024]);
    let both = || [integers(), integers()];
    let stored = |scale: f32| bytes(&image, scale);
    let truth = OperandSpec::tensor_bool8(image);
    let unsigned = || OperandSpec::tensor_quant8_asymm(image, 1.0, 0);
    let unit = |shape: &[u32]| OperandSpec::tensor_quant8_asymm_signed(shape, 1.0 / 128.0, 0);
    vec![
        ("ADD int32", binary(Op::Add, both(), integers(), true)),
        ("DIV int32", binary(Op::Div, both(), integers(), true)),
        ("MAXIMUM int32", binary(Op::Maximum, both(), integers(), false)),
        ("MAXIMUM 8 bits", binary(Op::Maximum, [stored(0.05), stored(0.04)], stored(0.05), false)),
        (
            "PRELU 8 bits",
            binary(Op::Prelu, [stored(0.05), bytes(&[64], 0.01)], stored(0.05), false),
        ),
        ("LESS 8 bits", binary(Op::Less, [stored(0.05), stored(0.04)], truth, false)),
        ("SELECT 8 bits", select()),
        ("CONCATENATION 8 bits", concatenation()),
        ("MIRROR_PAD", mirror_pad()),
        ("CAST float32 to int32", cast(floats(&image), OperandSpec::tensor_int32(image))),
        ("CAST int32 to float32", cast(OperandSpec::tensor_int32(image), floats(&image))),
        ("CAST float32 to 8 bits", cast(floats(&image), unsigned())),
        ("CAST 8 bits to float32", cast(unsigned(), floats(&image))),
        ("CAST int32 to 8 bits", cast(OperandSpec::tensor_int32(image), unsigned())),
        ("CAST float32 to float16", cast(floats(&image), OperandSpec::tensor_float16(image))),
        ("LOGICAL_NOT", unary(Op::LogicalNot, &OperandSpec::tensor_bool8(image))),
        ("ABS int32", unary(Op::Abs, &OperandSpec::tensor_int32(image))),
        ("SELECT float32", select_of(&floats(&image))),
        ("SELECT 8 bits, stored alike", select_of(&stored(0.05))),
        ("TOPK_V2 5 of 1000", top_k(1, 5)),
        ("TOPK_V2 5 of 1000, 128 rows", top_k(128, 5)),
        ("HASHTABLE_LOOKUP", hashtable_lookup()),
        (
            "L2_NORMALIZATION 8 bits",
            l2_normalization(bytes(&[49, 512], 0.05), unit(&[49, 512]), -1),
        ),
        (
            "L2_NORMALIZATION axis 1",
            l2_normalization(floats(&[8, 49, 512]), floats(&[8, 49, 512]), 1),
        ),
        ("REDUCE_MAX 8 bits", reduce_max()),
        ("MEAN through floats", through_floats(Op::Mean)),
        ("LOGISTIC through floats", through_floats(Op::Logistic)),
        ("EMBEDDING_LOOKUP float16", embedding()),
        ("DETECTION_POSTPROCESSING fast", detection(false)),
        ("DETECTION_POSTPROCESSING regular", detection(true)),
        ("ROI_ALIGN", roi_align()),
    ]
}

fn prepare(device: &dyn Device, case: &Case) -> Arc<dyn PreparedModel> {
    device
        .prepare_model(&case.model, HalVersion::LATEST, PrepareOptions::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

fn run(model: &dyn PreparedModel, case: &Case) -> Duration {
    let begin = Instant::now();
    if let Err(failed) = model.execute(&case.request, &ExecutionOptions::default()) {
        panic!("{}", failed.error);
    }
    begin.elapsed()
}

fn main() {
    let timeout = if std::env::args().any(|it| it == "--test") { Duration::ZERO } else { TIMEOUT };
    let fast = nnhal_cpu::device(Settings::default().with_threads(NonZeroUsize::MIN));
    let reference = nnhal_reference::device();
    for (name, case) in cases() {
        let models = [prepare(&*fast, &case), prepare(&*reference, &case)];
        let times = models.map(|model| {
            let end = Instant::now() + timeout;
            let mut least = run(&*model, &case);
            while Instant::now() < end {
                least = least.min(run(&*model, &case));
            }
            least.as_secs_f64() * 1e6
        });
        let [fast, slow] = times;
        println!("{name:34} {fast:9.1} us {slow:11.1} us {:7.1} times", slow / fast);
    }
    // What a step costs that has nothing to do: the difference of many and few.
    const STEPS: [u32; 2] = [8, 520];
    for threads in [1, 2] {
        let threads = NonZeroUsize::new(threads).expect("not 0");
        let device = nnhal_cpu::device(Settings::default().with_threads(threads));
        let [few, many] = STEPS.map(|steps| {
            let case = tiny_steps(steps);
            let model = prepare(&*device, &case);
            let end = Instant::now() + timeout;
            let mut least = run(&*model, &case);
            while Instant::now() < end {
                least = least.min(run(&*model, &case));
            }
            least.as_secs_f64() * 1e9
        });
        let step = (many - few) / f64::from(STEPS[1] - STEPS[0]);
        println!("a step of 16 bytes, {threads} threads {step:12.1} ns");
    }
}
