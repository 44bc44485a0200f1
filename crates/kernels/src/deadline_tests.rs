//! Kernels are asked to compute a single row, slice or sum that is long: inside of it they ask whether to go
//! on, as often as its length wants.

use crate::batch_matmul::quantized::BatchMatmul;
use crate::convolution::Shape;
use crate::convolution::quantized::{Convolution, Layer};
use crate::detection::{DetectionPostprocessing, Detections, Rule};
use crate::dynamic;
use crate::fully_connected::{FullyConnected, Sizes, Storage};
use crate::movement::{Axis, StridedCopy, gather};
use crate::quantization::{Activations, Signedness, Weights};
use crate::reduction::{
    ArgExtreme, CumulativeSum, IntegerReduction, Normalization, Order, Reduce, ReduceIntegers,
    ReduceStored, Reduction, RowNormalization, StoredReduction, arg_extreme,
    instance_normalization, local_response_normalization,
};
use crate::softmax::{QuantizedSoftmax, Softmax};
use crate::{
    ElementType, Epilogue, Image, ImageKernel, ImageMut, Images, InstructionSet, Lines,
    MOST_WRITTEN, OneInput, Operands, Preparation, PreparedKernel, Requantization, Team, TooLarge,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Elements of a row.
const LENGTH: usize = 1 << 22;

/// Whatever takes this many of them is asked about.
const MOST_BETWEEN: usize = 1 << 21;

/// Counts a question, and answers it.
fn counted(questions: &AtomicUsize, answer: bool) -> bool {
    questions.fetch_add(1, Ordering::Relaxed);
    answer
}

/// Runs a kernel alone and on two threads, without an end and until the first question: it asks often
/// enough, and after the answer it ends.
fn asks(what: &str, mut kernel: impl FnMut(&mut Team)) {
    for threads in [1, 2] {
        let mut team = Team::new(threads);
        let questions = AtomicUsize::new(0);
        team.until(&|| counted(&questions, false), &mut kernel);
        let found = questions.into_inner();
        assert!(found >= LENGTH / MOST_BETWEEN, "{what}: {found} questions, {threads} threads");
        let questions = AtomicUsize::new(0);
        team.until(&|| counted(&questions, true), |team| {
            kernel(team);
            assert!(team.is_stopped(), "{what}: not stopped, {threads} threads");
        });
        let found = questions.into_inner();
        assert!(found <= 2 * threads, "{what}: {found} questions after the end");
    }
}

/// Runs a kernel of one input, one output and no scratch memory.
fn run_prepared(kernel: &dyn PreparedKernel, team: &mut Team, input: &[u8], output: &mut [u8]) {
    let inputs: &[&[u8]] = &[input];
    let mut written: [&mut [u8]; MOST_WRITTEN] = Default::default();
    written[0] = output;
    kernel.run_on(team, Operands::new(&inputs, written)).expect("values that it takes");
}

fn floats() -> (Vec<f32>, Vec<f32>) {
    (vec![0.5; LENGTH], vec![0.0; LENGTH])
}

#[test]
fn softmax_along_and_across() {
    let set = InstructionSet::best();
    let (input, mut output) = floats();
    for sizes in [[1, LENGTH, 1], [1, LENGTH / 2, 2], [1, 1, LENGTH]] {
        for is_logarithm in [false, true] {
            let kernel = Softmax::prepare(set, sizes, 1.0, is_logarithm);
            asks("softmax", |team| kernel.run(team, &input, &[], &mut output));
        }
        let kernel = QuantizedSoftmax::<u8>::prepare(set, sizes, 0.1, 1.0);
        let (input, mut output) = (vec![7; LENGTH], vec![0; LENGTH]);
        asks("quantized softmax", |team| kernel.run(team, &input, &mut output));
    }
}

#[test]
fn reductions_to_few() {
    let set = InstructionSet::best();
    let (input, mut output) = floats();
    let mut places = vec![0; LENGTH];
    for sizes in [[1, LENGTH, 1], [1, LENGTH / 2, 2], [1, 1, LENGTH]] {
        let places = &mut places[..sizes[2]];
        asks("extreme", |team| arg_extreme(set, team, ArgExtreme::Max, sizes, &input, places));
    }
    for (lengths, reduced) in
        [(vec![LENGTH], 0), (vec![LENGTH / 2, 2], 0), (vec![2, LENGTH / 2], 1)]
    {
        let kept = LENGTH / lengths[reduced];
        let output = &mut output[..kept];
        use Reduction::{Max, Mean, Min, Product, Sum};
        for reduction in [Sum, Mean, Max, Min, Product] {
            let kernel = Reduce::prepare(set, reduction, &lengths, &[reduced]);
            asks("reduction", |team| kernel.run(team, &input, output));
        }
        let (integers, mut results) = (vec![3_i32; LENGTH], vec![0_i32; kept]);
        let integers = bytemuck::cast_slice(&integers);
        for reduction in [IntegerReduction::Sum, IntegerReduction::Mean] {
            let elements = ElementType::I32;
            let kernel = ReduceIntegers::prepare(set, reduction, elements, &lengths, &[reduced]);
            let results = bytemuck::cast_slice_mut(&mut results);
            asks("integers", |team| run_prepared(&kernel, team, integers, results));
        }
        let mean = StoredReduction::Mean { zero_point: 0 };
        let kernel = ReduceStored::prepare(set, mean, &lengths, &[reduced]);
        // Along a row there are no more of them than in a moment.
        if reduced == 0 && kept > 1 {
            let (bytes, mut means) = (vec![3_u8; LENGTH], vec![0; kept]);
            asks("bytes", |team| kernel.run(team, &bytes, &mut means));
        }
    }
}

#[test]
fn cumulative_sums() {
    let (input, mut output) = floats();
    let (input, output) = (bytemuck::cast_slice(&input), bytemuck::cast_slice_mut(&mut output));
    for sizes in [[1, LENGTH, 1], [1, LENGTH / 2, 2], [1, 2, LENGTH / 2]] {
        let order = Order { exclusive: false, reverse: true };
        let kernel = CumulativeSum::prepare(InstructionSet::best(), ElementType::F32, sizes, order);
        asks("cumulative sum", |team| run_prepared(&kernel, team, input, output));
    }
}

#[test]
fn normalizations() {
    let set = InstructionSet::best();
    let (input, mut output) = floats();
    for normalization in [Normalization::Layer { epsilon: 0.1 }, Normalization::L2 { least: 0.1 }] {
        let kernel = RowNormalization::prepare(set, normalization, 1, LENGTH);
        asks("normalization", |team| kernel.run(team, &input, None, None, &mut output));
    }
    for channels in [1, 2] {
        let sizes = [1, LENGTH / channels, channels];
        asks("instance normalization", |team| {
            instance_normalization(team, sizes, [1.0, 0.0, 0.1], &input, &mut output);
        });
    }
    let numbers = [1.0, 0.5, 0.5];
    let (short, to) = (&input[..1 << 17], &mut output[..1 << 17]);
    asks("local response", |team| {
        local_response_normalization(team, 1 << 17, 2, numbers, short, to);
    });
    let (short, to) = (&input[..1 << 12], &mut output[..1 << 12]);
    asks("local response of all", |team| {
        local_response_normalization(team, 1 << 12, usize::MAX, numbers, short, to);
    });
}

#[test]
fn copies() {
    let (input, mut output) = floats();
    let half = LENGTH / 2;
    let axis = |length, input_stride, output_stride| Axis { length, input_stride, output_stride };
    for (what, copy) in [
        ("run", StridedCopy::prepare(&[axis(LENGTH, 1, 1)], 0, 0)),
        ("repeated", StridedCopy::prepare(&[axis(LENGTH, 0, 1)], 0, 0)),
        ("backwards", StridedCopy::prepare(&[axis(LENGTH, -1, 1)], LENGTH - 1, 0)),
        ("long rows", StridedCopy::transpose(&[2, half], &[1, 0])),
        ("long columns", StridedCopy::transpose(&[half, 2], &[1, 0])),
        ("square", StridedCopy::transpose(&[2048, 2048], &[1, 0])),
    ] {
        asks(what, |team| copy.run(team, &input, &mut output));
    }
    asks("gather", |team| {
        gather(team, [1, 2, half], &input, &[1, 0], &mut output).unwrap();
    });
}

#[test]
fn detections_of_many_images_and_of_many_boxes() {
    for (images, anchors) in [(LENGTH / 4, 2), (1, 1 << 13)] {
        for rule in [Rule::Fast { classes_of_box: 1 }, Rule::Regular { class_limit: anchors }] {
            let kernel = DetectionPostprocessing {
                set: InstructionSet::best(),
                sizes: [images, anchors, 2, 4],
                scales: [10.0, 10.0, 5.0, 5.0],
                rule,
                limit: anchors / 2,
                score_threshold: 0.0,
                // Each is compared with all before.
                overlap_threshold: 2.0,
                first_label: 0,
                threads: 1,
            };
            let (scores, deltas) =
                (vec![0.5; images * anchors * 2], vec![0.5; images * anchors * 4]);
            let of_anchors = vec![0.5; anchors * 4];
            let found = images * anchors / 2;
            let (mut out_scores, mut boxes) = (vec![0.0; found], vec![0.0; 4 * found]);
            let (mut classes, mut numbers) = (vec![0; found], vec![0; images]);
            let mut scratch = vec![0; kernel.scratch_words()];
            asks("detections", |team| {
                let output = Detections {
                    scores: &mut out_scores,
                    boxes: &mut boxes,
                    classes: &mut classes,
                    numbers: &mut numbers,
                };
                kernel.run(team, [&scores, &deltas, &of_anchors], output, &mut scratch);
            });
        }
    }
}

#[test]
fn sums_of_products() {
    for set in InstructionSet::available() {
        for rows in [1, 3] {
            let inputs = LENGTH / 8;
            let sizes = Sizes { rows, inputs, units: 1 };
            let weights = vec![0.5; inputs];
            let mut preparation = Preparation::new(set, 1);
            let kernel = FullyConnected::prepare(
                sizes,
                &weights,
                &[0.0],
                Storage::Full,
                Epilogue::NONE,
                &mut preparation,
            )
            .unwrap();
            drop(preparation);
            let (input, mut output) = (vec![0.5; rows * inputs], vec![0.0; rows]);
            let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
            asks("fully connected", |team| {
                kernel.run(team, &input, None, &mut output, scratch.lines_mut());
            });
        }
    }
}

/// Requantization by an eighth.
fn an_eighth() -> Requantization {
    Requantization::by(0.125, 0, Signedness::Unsigned)
}

/// A layer of unsigned numbers.
fn layer<'a>(values: &'a [u8], bias: &'a [i32]) -> Layer<'a> {
    let signedness = Signedness::Unsigned;
    Layer {
        weights: Weights { values, signedness, zero_point: 2 },
        bias,
        activations: Activations { signedness, zero_point: 3 },
        requantization: an_eighth(),
    }
}

/// Products of this many pairs of matrices.
fn matrices(
    count: usize,
    sizes: [usize; 3],
    preparation: &mut Preparation,
) -> Result<BatchMatmul, TooLarge> {
    let pairs = (0..count).map(|index| [index, index]);
    let (signedness, zero_points, of_outputs) = (Signedness::Unsigned, [3, 2], an_eighth());
    BatchMatmul::prepare(
        count,
        pairs,
        sizes,
        [false; 2],
        signedness,
        zero_points,
        of_outputs,
        None,
        preparation,
    )
}

#[test]
fn sums_of_8_bit_products() {
    let ones = vec![1_u8; LENGTH];
    for set in InstructionSet::available() {
        let mut preparation = Preparation::new(set, 1);
        let shape = Shape::matrix_product([1, LENGTH, 1]);
        let layer = Convolution::prepare(&shape, layer(&ones, &[0]), &mut preparation).unwrap();
        let matrices = matrices(1, [1, LENGTH, 1], &mut preparation).unwrap();
        let row = dynamic::Convolution::fully_connected([1, LENGTH, 1]);
        // What it sees is copied: there is padding before it.
        let window = Shape {
            input: [1, LENGTH - 1],
            filter: [1, LENGTH],
            input_channels: 1,
            padding_before: [0, 1],
            ..row
        };
        let mut rounded = |shape: &Shape| {
            let none = Epilogue::NONE;
            let preparation = &mut preparation;
            dynamic::Convolution::prepare(shape, &ones, &[0.5], &[0.0], none, preparation).unwrap()
        };
        let rounded = [("rounded row", rounded(&row)), ("rounded window", rounded(&window))];
        drop(preparation);
        let (mut output, mut scratch) = ([0; 1], Lines::with_bytes(layer.scratch_bytes()));
        asks("8-bit layer", |team| {
            let input = Image { values: &ones, pixel_stride: LENGTH };
            let output = ImageMut { values: &mut output, pixel_stride: 1 };
            layer.run(team, Images::new(input, output), scratch.lines_mut());
        });
        let mut scratch = Lines::with_bytes(matrices.scratch_bytes());
        asks("8-bit matrices", |team| {
            matrices.run(team, &ones, &ones, &[], &mut output, scratch.lines_mut());
        });
        for (what, rounded) in rounded {
            let mut scratch = Lines::with_bytes(rounded.scratch_bytes());
            let (input, mut output) = (vec![0.5; LENGTH], [0.0; 1]);
            asks(what, |team| rounded.run(team, &input, &mut output, scratch.lines_mut()));
        }
    }
}

/// Windows that are read where they are, by kernels of tiles: those of a wide image with many taps, and those of a narrow
/// one, of which many lines are computed together.
#[test]
fn large_windows_of_8_bits() {
    const CHANNELS: usize = 16;
    // What is computed between two questions has no more inputs.
    const INPUTS: usize = 1 << 23;
    let one = Shape { output_channels: CHANNELS, ..dynamic::Convolution::fully_connected([1; 3]) };
    let wide =
        Shape { input: [8, 1023], input_channels: 64, output: [8, 512], filter: [1, 512], ..one };
    let narrow =
        Shape { input: [519, 8], input_channels: 1024, output: [512, 1], filter: [8, 8], ..one };
    for (shape, set) in [wide, narrow]
        .iter()
        .flat_map(|shape| InstructionSet::available().map(move |set| (shape, set)))
    {
        let window = shape.filter[0] * shape.filter[1] * shape.input_channels;
        let weights = vec![1_u8; CHANNELS * window];
        let multipliers = an_eighth().multipliers.repeat(CHANNELS);
        let layer = Layer {
            weights: Weights { values: &weights, signedness: Signedness::Signed, zero_point: 0 },
            requantization: Requantization { multipliers, ..an_eighth() },
            ..layer(&[], &[0; CHANNELS])
        };
        let mut preparation = Preparation::new(set, 1);
        let kernel = Convolution::prepare(shape, layer, &mut preparation).unwrap();
        drop(preparation);
        let pixels = shape.output[0] * shape.output[1];
        let input = vec![3_u8; shape.input[0] * shape.input[1] * shape.input_channels];
        let mut output = vec![0; pixels * CHANNELS];
        let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
        let questions = AtomicUsize::new(0);
        Team::new(1).until(&|| counted(&questions, false), |team| {
            let input = Image { values: &input, pixel_stride: shape.input_channels };
            let output = ImageMut { values: &mut output, pixel_stride: CHANNELS };
            kernel.run(team, Images::new(input, output), scratch.lines_mut());
        });
        let (found, least) = (questions.into_inner(), pixels * window / INPUTS);
        assert!(found >= least, "{set}, {shape:?}: {found} questions of {least}");
    }
}

#[test]
fn many_channels_are_prepared_as_long_as_they_are_wanted() {
    let channels = 1 << 16;
    for set in InstructionSet::available() {
        let questions = Arc::new(AtomicUsize::new(0));
        let asked = Arc::clone(&questions);
        let is_over = Arc::new(move || counted(&asked, false));
        let mut preparation = Preparation::new(set, 1).until(is_over);
        let shape = Shape::matrix_product([1, 1, channels]);
        let (weights, bias) = (vec![1; channels], vec![7; channels]);
        let layer = Convolution::prepare(&shape, layer(&weights, &bias), &mut preparation);
        assert!(layer.is_ok(), "{set}");
        // The portable kernel has nothing to find out about a channel. Packing alone asks far less often.
        let least = if set == InstructionSet::Portable { 0 } else { channels >> 10 };
        let found = questions.load(Ordering::Relaxed);
        assert!(found >= least, "{set}: {found} questions");
    }
}

#[test]
fn many_groups_are_prepared_as_long_as_they_are_wanted() {
    let groups = 1 << 16;
    let shape = Shape { groups, ..Shape::matrix_product([1, groups, groups]) };
    let prepare = |preparation: &mut Preparation| {
        let (weights, bias) = (vec![1; groups], vec![7; groups]);
        Convolution::prepare(&shape, layer(&weights, &bias), preparation)
    };
    for set in InstructionSet::available().filter(|set| *set != InstructionSet::Portable) {
        let questions = AtomicUsize::new(0);
        let is_over = move || questions.fetch_add(1, Ordering::Relaxed) > 0;
        let mut preparation = Preparation::new(set, 1).until(Arc::new(is_over));
        // Whoever asked drops it.
        let unwanted = prepare(&mut preparation).unwrap();
        assert_eq!(unwanted.kernel(), "portable", "{set}: all groups were packed");
        let refusal = prepare(&mut Preparation::new(set, 1).with_limit(groups)).unwrap_err();
        assert_eq!(refusal.what, "groups", "{set}");
    }
}

#[test]
fn many_columns_and_products_are_prepared_as_long_as_they_are_wanted() {
    let sets = InstructionSet::available().filter(|set| *set != InstructionSet::Portable);
    let (columns, products) =
        ((1, 1 << 26, "blocks of channels"), (1 << 22, 1, "pairs of matrices"));
    for (set, (count, columns, what)) in sets.flat_map(|set| [(set, columns), (set, products)]) {
        let questions = Arc::new(AtomicUsize::new(0));
        let asked = Arc::clone(&questions);
        let is_over = move || asked.fetch_add(1, Ordering::Relaxed) > 0;
        let prepare = |preparation: &mut Preparation| matrices(count, [1, 1, columns], preparation);
        let mut preparation = Preparation::new(set, 1).until(Arc::new(is_over));
        assert!(prepare(&mut preparation).is_ok(), "{set}: it is made, and whoever asked drops it");
        assert_eq!(questions.load(Ordering::Relaxed), 2, "{set}: {what}");
        let refusal = prepare(&mut Preparation::new(set, 1).with_limit(1 << 20)).unwrap_err();
        assert_eq!(refusal.what, what, "{set}");
    }
}
