//! Models that somebody wrote to do harm: what they take of time and memory, and that what they
//! compute is what the reference engine computes.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // Of small numbers.

use nnhal_cpu::{InstructionSet, Settings};
use nnhal_hal::{
    Deadline, Device, ErrorStatus, ExecutionOptions, HalVersion, Model, ModelBuilder, OperandId,
    OperandSpec, OperationType as Op, PrepareOptions, Request, RequestBuilder, SubgraphBuilder,
};
use nnhal_ops::extension::{self, ExtensionOperation};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const SAME: i32 = 1;

/// Held by each test, since all of them measure time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A tensor of unsigned bytes; `None`: of floats.
type Quantization = Option<(f32, i32)>;

fn tensor(dimensions: [u32; 4], quantization: Quantization) -> OperandSpec {
    match quantization {
        Some((scale, zero_point)) => {
            OperandSpec::tensor_quant8_asymm(dimensions, scale, zero_point)
        }
        None => OperandSpec::tensor_float32(dimensions),
    }
}

fn elements(count: u32) -> impl Iterator<Item = u8> {
    (0..count).map(|index| (index % 97 * 5 % 251) as u8)
}

/// Bytes of a tensor, which is not small.
fn bytes(dimensions: [u32; 4], quantization: Quantization) -> Vec<u8> {
    let elements = elements(dimensions.iter().product());
    match quantization {
        Some(_) => elements.collect(),
        None => elements.flat_map(|it| ((f32::from(it) - 120.0) / 64.0).to_le_bytes()).collect(),
    }
}

/// A convolution, as CONV_2D, DEPTHWISE_CONV_2D or, of more than one group, GROUPED_CONV_2D, padded as SAME.
#[derive(Debug, Clone, Copy)]
struct Convolution {
    image: [u32; 4],
    filter: [u32; 4],
    output: [u32; 4],
    /// Of width and height.
    strides: [i32; 2],
    dilations: [i32; 2],
    groups: u32,
    is_depthwise: bool,
    is_filter_constant: bool,
    is_float: bool,
}

impl Convolution {
    fn model(&self) -> (Model, Request) {
        let quantization = |scale: f32, zero_point| (!self.is_float).then_some((scale, zero_point));
        let [of_image, of_filter] = [quantization(0.5, 100), quantization(0.25, 120)];
        let mut graph = SubgraphBuilder::new();
        let image = graph.input("image", tensor(self.image, of_image));
        let filter = tensor(self.filter, of_filter);
        let mut request = RequestBuilder::new();
        request.input(&bytes(self.image, of_image));
        let filter = if self.is_filter_constant {
            graph.constant_bytes(filter, &bytes(self.filter, of_filter))
        } else {
            request.input(&bytes(self.filter, of_filter));
            graph.input("filter", filter)
        };
        let channels = self.output[3];
        let biases = elements(channels).map(|it| i32::from(it) * 11);
        let bias = if self.is_float {
            let biases: Vec<f32> = biases.map(|it| it as f32 / 100.0).collect();
            graph.constant(OperandSpec::tensor_float32([channels]), &biases)
        } else {
            let spec = OperandSpec::tensor_int32([channels]).quantized(0.125, 0);
            graph.constant(spec, &biases.collect::<Vec<i32>>())
        };
        let mut inputs = vec![image, filter, bias];
        let [stride_x, stride_y] = self.strides;
        let multiplier = (self.output[3] / self.image[3]).cast_signed();
        let groups = Some(self.groups.cast_signed()).filter(|groups| *groups > 1);
        let number = if self.is_depthwise { Some(multiplier) } else { groups };
        let numbers = [SAME, stride_x, stride_y].into_iter().chain(number).chain([0]);
        inputs.extend(numbers.map(|number| graph.scalar_i32(number)));
        inputs.push(graph.scalar_bool(false));
        let operation = match groups {
            Some(_) => Op::GroupedConv2d,
            None => {
                inputs.extend(self.dilations.map(|number| graph.scalar_i32(number)));
                if self.is_depthwise { Op::DepthwiseConv2d } else { Op::Conv2d }
            }
        };
        let of_output = quantization(64.0, 7);
        let output = graph.operation(operation, inputs, tensor(self.output, of_output));
        graph.output(output);
        let size = if self.is_float { 4 } else { 1 };
        request.output(self.output.iter().product::<u32>() as usize * size);
        (graph.into_model().unwrap(), request.build().unwrap())
    }
}

/// The output, and how long preparing and running took.
fn run(device: &dyn Device, (model, request): &(Model, Request)) -> (Vec<u8>, Duration) {
    let started = Instant::now();
    let prepared =
        device.prepare_model(model, HalVersion::LATEST, PrepareOptions::default()).unwrap();
    if let Err(failed) = prepared.execute(request, &ExecutionOptions::default()) {
        panic!("{}", failed.error);
    }
    let output = RequestBuilder::read_output(request, 0).unwrap();
    (output, started.elapsed())
}

fn devices() -> impl Iterator<Item = (String, Arc<dyn Device>)> {
    InstructionSet::available().flat_map(|instruction_set| {
        [1, 2].map(|threads| {
            let settings = Settings { instruction_set, ..Settings::default() };
            let settings = settings.with_threads(NonZeroUsize::new(threads).unwrap());
            (format!("{instruction_set}, {threads} threads"), nnhal_cpu::device(settings))
        })
    })
}

/// The least of up to five measurements, of which more are made as long as they are longer than `most`: on a busy
/// machine a thread may wait for a processor, but what is slow is so every time.
fn least_within(most: Duration, first: Duration, mut again: impl FnMut() -> Duration) -> Duration {
    let mut least = first;
    for _ in 0..4 {
        if least > most {
            least = least.min(again());
        }
    }
    least
}

/// Compares with the reference engine, and demands no more than three times as long, and a little.
fn check(convolution: Convolution) {
    let network = convolution.model();
    let (expected, time_of_reference) = run(&*nnhal_reference::device(), &network);
    for (name, device) in devices() {
        let (found, time) = run(&*device, &network);
        if convolution.is_float {
            let floats = |bytes: &[u8]| -> Vec<f32> {
                bytes.as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)).collect()
            };
            let magnitude = convolution.filter[1] * convolution.filter[2];
            let tolerance = 1e-6 * 4.0 * magnitude as f32;
            for (found, expected) in floats(&found).iter().zip(floats(&expected)) {
                assert!((found - expected).abs() <= tolerance, "{name}: {found} {expected}");
            }
        } else {
            assert!(found == expected, "{name}: {convolution:?}");
        }
        let most = 3 * time_of_reference + Duration::from_millis(300);
        let time = least_within(most, time, || run(&*device, &network).1);
        assert!(time <= most, "{name}: {time:?}, the reference: {time_of_reference:?}");
    }
}

const SMALL: Convolution = Convolution {
    image: [1, 1, 1, 5],
    filter: [3, 2, 2, 5],
    output: [1, 1, 1, 3],
    strides: [1, 1],
    dilations: [1, 1],
    groups: 1,
    is_depthwise: false,
    is_filter_constant: true,
    is_float: false,
};

#[test]
fn dilations_whose_product_wraps_read_nothing_else() {
    let _alone = alone();
    for dilations in [[2_094_594_559, 1_761_366_559], [1_761_366_559, 2_094_594_559]] {
        for is_float in [false, true] {
            check(Convolution { dilations, is_float, ..SMALL });
        }
    }
}

#[test]
fn windows_that_reach_far_take_little_memory_and_time() {
    let _alone = alone();
    // As copies of the rows that it sees: 4.5 GB.
    let far = Convolution { dilations: [30_000, 30_000], ..SMALL };
    let wide = Convolution { image: [1, 3, 3, 5], output: [1, 3, 3, 3], ..far };
    for convolution in [far, wide] {
        for is_float in [false, true] {
            check(Convolution { is_float, ..convolution });
        }
    }
    for is_float in [false, true] {
        check(Convolution {
            image: [1, 1, 1, 1],
            filter: [1, 1500, 1500, 1],
            output: [1, 1, 1, 1],
            is_float,
            ..SMALL
        });
    }
}

#[test]
fn a_depthwise_filter_that_is_computed_takes_no_longer_than_on_the_reference() {
    let _alone = alone();
    for is_filter_constant in [false, true] {
        for is_float in [false, true] {
            let convolution = Convolution {
                image: [1, 40, 40, 4],
                filter: [1, 40, 40, 4],
                output: [1, 40, 40, 4],
                is_depthwise: true,
                is_filter_constant,
                is_float,
                ..SMALL
            };
            check(convolution);
            // Far larger than the image.
            check(Convolution {
                image: [1, 2, 2, 4],
                filter: [1, 700, 700, 4],
                output: [1, 2, 2, 4],
                ..convolution
            });
            check(Convolution {
                image: [1, 9, 9, 4],
                filter: [1, 12, 12, 8],
                output: [1, 9, 9, 8],
                dilations: [1 << 20, 3],
                ..convolution
            });
        }
    }
}

#[test]
fn a_group_for_each_channel_takes_no_longer_than_on_the_reference() {
    let _alone = alone();
    for is_filter_constant in [false, true] {
        for is_float in [false, true] {
            check(Convolution {
                image: [1, 24, 24, 2048],
                filter: [2048, 3, 3, 1],
                output: [1, 24, 24, 2048],
                groups: 2048,
                is_filter_constant,
                is_float,
                ..SMALL
            });
        }
    }
}

#[test]
fn a_deadline_is_kept_within_a_kernel() {
    let _alone = alone();
    let plain = Convolution {
        image: [1, 320, 320, 160],
        filter: [160, 5, 5, 160],
        output: [1, 320, 320, 160],
        ..SMALL
    };
    let depthwise = Convolution {
        image: [1, 256, 256, 4],
        filter: [1, 256, 256, 4],
        output: [1, 256, 256, 4],
        is_depthwise: true,
        ..SMALL
    };
    for convolution in [plain, depthwise] {
        for (is_float, is_filter_constant) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let convolution = Convolution { is_float, is_filter_constant, ..convolution };
            let (model, request) = convolution.model();
            for threads in [1, 2] {
                let settings =
                    Settings::default().with_threads(NonZeroUsize::new(threads).unwrap());
                let prepared = nnhal_cpu::device(settings)
                    .prepare_model(&model, HalVersion::LATEST, PrepareOptions::default())
                    .unwrap();
                let limit = Duration::from_millis(40);
                let attempt = || {
                    let options = ExecutionOptions {
                        deadline: Some(Deadline::after(limit)),
                        ..ExecutionOptions::default()
                    };
                    let started = Instant::now();
                    let failed = prepared.execute(&request, &options).unwrap_err();
                    let time = started.elapsed();
                    assert_eq!(
                        failed.error.status(),
                        ErrorStatus::MissedDeadlineTransient,
                        "{}",
                        failed.error
                    );
                    time
                };
                // Other tests may run beside it.
                let most = limit + Duration::from_millis(250);
                let time = least_within(most, attempt(), attempt);
                assert!(time < most, "{time:?}: {convolution:?}");
            }
        }
    }
}

/// Values of constants may decide another shape than the one that is declared, which no rule of validation sees.
#[test]
fn a_shape_that_values_decide_and_that_was_declared_otherwise_is_an_error() {
    for declared in [255, 1] {
        let mut builder = ModelBuilder::new();
        builder.extension(extension::NAME, extension::PREFIX);
        let mut graph = SubgraphBuilder::new();
        let rows = graph.input("rows", OperandSpec::tensor_float32([4, 3]));
        let segments = graph.constant(OperandSpec::tensor_int32([4]), &[0, 1, 1, 2]);
        let sums = graph.operation(
            ExtensionOperation::SegmentSum.operation_type(),
            [rows, segments],
            OperandSpec::tensor_float32([declared, 3]),
        );
        graph.output(sums);
        let model = builder.build(graph).unwrap();
        let mut request = RequestBuilder::new();
        request.input(&[0; 48]);
        request.output(12 * declared as usize);
        let request = request.build().unwrap();
        for device in [nnhal_cpu::device(Settings::default()), nnhal_reference::device()] {
            let prepared = device
                .prepare_model(&model, HalVersion::LATEST, PrepareOptions::default())
                .unwrap();
            let failed = prepared.execute(&request, &ExecutionOptions::default()).unwrap_err();
            let text = failed.error.to_string();
            let expected = format!("has shape [3, 3], but was declared with [{declared}, 3]");
            assert!(text.contains(&expected), "{}: {text}", device.name());
        }
    }
}

#[test]
fn where_rows_are_taken_from_is_worked_out_until_the_deadline() {
    let _alone = alone();
    let rows = 30_000_000;
    for (operation, size) in
        [(Op::ResizeBilinear, [1, rows]), (Op::ResizeNearestNeighbor, [rows, 1])]
    {
        let mut graph = SubgraphBuilder::new();
        let image = graph.input("image", tensor([1, 1, 1, 1], Some((1.0, 0))));
        let [width, height] = size.map(|length| graph.scalar_i32(length));
        let shape = [1, size[1].cast_unsigned(), size[0].cast_unsigned(), 1];
        let inputs = [image, width, height, graph.scalar_bool(false)];
        let resized = graph.operation(operation, inputs, tensor(shape, Some((1.0, 0))));
        graph.output(resized);
        let model = ModelBuilder::new().build(graph).unwrap();
        check_prepared_until_the_deadline(&model, false);
    }
}

/// Prepares a model within 40 ms or until then; whether it may be an error for another reason, or none.
fn check_prepared_until_the_deadline(model: &Model, may_end_otherwise: bool) {
    let operation = model.main.operations[0].operation_type;
    let limit = Duration::from_millis(40);
    let attempt = || {
        let deadline = Some(Deadline::after(limit));
        let options = PrepareOptions { deadline, ..PrepareOptions::default() };
        let device = nnhal_cpu::device(Settings::default());
        let started = Instant::now();
        let prepared = device.prepare_model(model, HalVersion::LATEST, options);
        let time = started.elapsed();
        let status = prepared.err().map(|error| error.status());
        let is_missed = status == Some(ErrorStatus::MissedDeadlineTransient);
        assert!(is_missed || may_end_otherwise, "{time:?}, {operation:?}: {status:?}");
        time
    };
    let most = limit + Duration::from_millis(250);
    let time = least_within(most, attempt(), attempt);
    assert!(time < most, "{time:?}: {operation:?}");
}

#[test]
fn what_follows_from_many_groups_columns_and_rows_is_prepared_until_the_deadline() {
    let _alone = alone();
    let (quantization, sums) =
        (Some((0.5, 3)), |length| OperandSpec::tensor_int32([length]).quantized(0.25, 0));
    let groups = 1 << 22;
    let mut graph = SubgraphBuilder::new();
    let image = graph.input("image", tensor([1, 1, 1, groups], quantization));
    let filter = tensor([groups, 1, 1, 1], quantization);
    let filter = graph.constant_bytes(filter, &vec![5; groups as usize]);
    let bias = graph.constant(sums(groups), &vec![7; groups as usize]);
    let numbers = [SAME, 1, 1, groups.cast_signed(), 0].map(|number| graph.scalar_i32(number));
    let inputs = [image, filter, bias].into_iter().chain(numbers).chain([graph.scalar_bool(false)]);
    let inputs: Vec<_> = inputs.collect();
    let output =
        graph.operation(Op::GroupedConv2d, inputs, tensor([1, 1, 1, groups], quantization));
    graph.output(output);
    check_prepared_until_the_deadline(&graph.into_model().unwrap(), false);

    for [products, columns] in [[1, (1 << 31) - 1], [1 << 28, 1]] {
        let bytes =
            |columns| OperandSpec::tensor_quant8_asymm_signed([products, 1, columns], 0.5, 3);
        let mut graph = SubgraphBuilder::new();
        let inputs = [graph.input("x", bytes(1)), graph.input("y", bytes(columns))];
        let inputs = inputs.into_iter().chain([false; 2].map(|flag| graph.scalar_bool(flag)));
        let inputs: Vec<_> = inputs.collect();
        let output = graph.operation(Op::BatchMatmul, inputs, bytes(columns));
        graph.output(output);
        check_prepared_until_the_deadline(&graph.into_model().unwrap(), true);
    }

    let rows = 1 << 24;
    let mut graph = SubgraphBuilder::new();
    let image = graph.input("image", tensor([1, rows, 1, 1], quantization));
    let filter = graph.constant_bytes(tensor([1, 1, 1, 1], quantization), &[5]);
    let bias = graph.constant(sums(1), &[7]);
    let numbers = [0, 0, 0, 0, 1, 4, 0].map(|number| graph.scalar_i32(number));
    let inputs = [image, filter, bias].into_iter().chain(numbers).chain([graph.scalar_bool(false)]);
    let inputs: Vec<_> = inputs.collect();
    let shape = [1, 4 * rows - 3, 1, 1];
    let output = graph.operation(Op::TransposeConv2d, inputs, tensor(shape, quantization));
    graph.output(output);
    check_prepared_until_the_deadline(&graph.into_model().unwrap(), true);
}

/// What an operation makes of a tensor of four axes: one with the same lengths, in another order, or twice as long.
fn moved(graph: &mut SubgraphBuilder, operation: Op, from: OperandId) -> OperandId {
    let int32s = |graph: &mut SubgraphBuilder, dimensions: &[u32], values: &[i32]| {
        graph.constant(OperandSpec::tensor_int32(dimensions), values)
    };
    let mut inputs = vec![from];
    match operation {
        Op::DepthToSpace | Op::SpaceToDepth => {
            inputs.extend([graph.scalar_i32(1), graph.scalar_bool(true)]);
        }
        Op::Transpose => inputs.push(int32s(graph, &[4], &[3, 1, 2, 0])),
        Op::Tile => inputs.push(int32s(graph, &[4], &[2, 2, 1, 1])),
        Op::Slice => {
            inputs.extend([int32s(graph, &[4], &[0; 4]), int32s(graph, &[4], &[-1; 4])]);
        }
        Op::StridedSlice => {
            let ends = int32s(graph, &[4], &[0; 4]);
            let strides = int32s(graph, &[4], &[1, 1, 2, 3]);
            let (all, none) = (graph.scalar_i32(15), graph.scalar_i32(0));
            inputs.extend([ends, ends, strides, all, all, none]);
        }
        Op::Pad => inputs.push(int32s(graph, &[4, 2], &[0; 8])),
        Op::ChannelShuffle => inputs.extend([graph.scalar_i32(2), graph.scalar_i32(1)]),
        Op::Maximum => inputs.push(from),
        _ => {}
    }
    graph.operation(operation, inputs, OperandSpec::tensor_float32([0; 4]))
}

/// A length is 0, and the product of the others has more than 64 bits.
#[test]
fn tensors_without_elements_have_any_lengths() {
    const LONG: i32 = i32::MAX;
    let operations = [
        Op::DepthToSpace,
        Op::SpaceToDepth,
        Op::Transpose,
        Op::Tile,
        Op::Slice,
        Op::StridedSlice,
        Op::Pad,
        Op::ChannelShuffle,
        Op::Maximum,
        Op::Tanh,
    ];
    for lengths in [[0, 8, LONG, LONG], [LONG, 8, 0, LONG], [LONG, 8, LONG, 0]] {
        for operation in operations {
            let mut graph = SubgraphBuilder::new();
            let two = graph.input("two", OperandSpec::tensor_float32([1; 4]));
            let times = graph.constant(OperandSpec::tensor_int32([4]), &lengths);
            let unknown = OperandSpec::tensor_float32([0; 4]);
            // Of an input, so that it is computed when the model runs.
            let empty = graph.operation(Op::Tile, [two, times], unknown);
            let moved = moved(&mut graph, operation, empty);
            let axes = graph.constant(OperandSpec::tensor_int32([4]), &[0, 1, 2, 3]);
            let keep = graph.scalar_bool(true);
            let one = || OperandSpec::tensor_float32([1; 4]);
            let sum = graph.operation(Op::ReduceSum, [moved, axes, keep], one());
            let no_activation = graph.scalar_i32(0);
            let sum = graph.operation(Op::Add, [sum, two, no_activation], one());
            graph.output(sum);
            let model = ModelBuilder::new().build(graph).unwrap();
            let mut request = RequestBuilder::new();
            request.input(&2.0_f32.to_le_bytes());
            request.output(4);
            let case = (model, request.build().unwrap());
            for device in [nnhal_cpu::device(Settings::default()), nnhal_reference::device()] {
                println!("{operation} of {lengths:?} on {}", device.name());
                assert_eq!(run(&*device, &case).0, 2.0_f32.to_le_bytes());
            }
        }
    }
}
