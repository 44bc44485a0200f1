//! TRANSPOSEs that a model has itself: how many copies they are, and that elements end where they should.

#[path = "../../reference/tests/calls/random.rs"]
#[allow(dead_code)] // Others draw more.
mod random;
mod support;

use nnhal_cpu::Settings;
use nnhal_hal::{
    Device, Model, OperandId, OperandSpec, OperandType, OperationType as Op, RequestBuilder,
    SubgraphBuilder,
};
use random::Random;
use support::{execute, kernels, prepare};

/// A graph in the making, of elements of one type.
struct Chain {
    graph: SubgraphBuilder,
    kind: OperandType,
}

impl Chain {
    fn new(kind: OperandType) -> Self {
        Self { graph: SubgraphBuilder::new(), kind }
    }

    fn spec(&self, dimensions: &[u32]) -> OperandSpec {
        match self.kind {
            OperandType::TensorQuant8AsymmSigned => {
                OperandSpec::new(self.kind, dimensions).quantized(0.5, 3)
            }
            _ => OperandSpec::new(self.kind, dimensions),
        }
    }

    fn transposed(&mut self, x: OperandId, order: &[i32], to: &[u32]) -> OperandId {
        let length = u32::try_from(order.len()).unwrap();
        let order = self.graph.constant(OperandSpec::tensor_int32([length]), order);
        let spec = self.spec(to);
        self.graph.operation(Op::Transpose, [x, order], spec)
    }

    fn reshaped(&mut self, x: OperandId, to: &[u32]) -> OperandId {
        let lengths: Vec<i32> = to.iter().map(|it| it.cast_signed()).collect();
        let length = u32::try_from(to.len()).unwrap();
        let lengths = self.graph.constant(OperandSpec::tensor_int32([length]), &lengths);
        let spec = self.spec(to);
        self.graph.operation(Op::Reshape, [x, lengths], spec)
    }

    fn sliced(&mut self, x: OperandId, begins: &[i32], to: &[u32]) -> OperandId {
        let counts: Vec<i32> = to.iter().map(|it| it.cast_signed()).collect();
        let of = OperandSpec::tensor_int32([u32::try_from(to.len()).unwrap()]);
        let begins = self.graph.constant(of.clone(), begins);
        let counts = self.graph.constant(of, &counts);
        let spec = self.spec(to);
        self.graph.operation(Op::Slice, [x, begins, counts], spec)
    }

    fn finished(mut self, output: OperandId) -> Model {
        self.graph.output(output);
        self.graph.into_model().unwrap()
    }
}

/// Runs a model on both devices, whose results are to be the same.
fn is_as_the_reference(model: &Model, input_bytes: u32, output_bytes: u32) {
    let bytes: Vec<u8> = (0..input_bytes).map(|at| (at * 7 % 63).to_le_bytes()[0]).collect();
    let outputs = |device: &dyn Device| {
        let mut request = RequestBuilder::new();
        request.input(&bytes).output(output_bytes as usize);
        let request = request.build().unwrap();
        execute(&*prepare(device, model), &request);
        RequestBuilder::read_output(&request, 0).unwrap()
    };
    let expected = outputs(&*nnhal_reference::device());
    assert_eq!(outputs(&*nnhal_cpu::device(Settings::default())), expected);
}

#[test]
fn there_and_back_with_a_reshape_between_is_no_copy() {
    let mut chain = Chain::new(OperandType::TensorFloat32);
    let spec = chain.spec(&[1, 6, 5, 8]);
    let image = chain.graph.input("image", spec);
    let turned = chain.transposed(image, &[0, 3, 1, 2], &[1, 8, 6, 5]);
    let flat = chain.reshaped(turned, &[1, 8, 30]);
    let back = chain.transposed(flat, &[0, 2, 1], &[1, 30, 8]);
    let bent = chain.graph.operation(Op::Abs, [back], OperandSpec::tensor_float32([1, 30, 8]));
    let model = chain.finished(bent);
    assert_eq!(kernels(&model), ["elementwise f32"]);
    is_as_the_reference(&model, 960, 960);
}

#[test]
fn what_is_between_is_computed_where_it_was() {
    let mut chain = Chain::new(OperandType::TensorFloat32);
    let spec = chain.spec(&[1, 6, 5, 8]);
    let image = chain.graph.input("image", spec);
    let turned = chain.transposed(image, &[0, 3, 1, 2], &[1, 8, 6, 5]);
    let offsets = OperandSpec::tensor_float32([8, 1, 1]);
    let offsets = chain.graph.constant(offsets, &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    let none = chain.graph.scalar_i32(0);
    let spec = chain.spec(&[1, 8, 6, 5]);
    let moved = chain.graph.operation(Op::Add, [turned, offsets, none], spec);
    let back = chain.transposed(moved, &[0, 2, 3, 1], &[1, 6, 5, 8]);
    let model = chain.finished(back);
    assert_eq!(kernels(&model), ["elementwise f32"]);
    is_as_the_reference(&model, 960, 960);
}

#[test]
fn an_image_that_stays_turned_is_moved_once() {
    let mut chain = Chain::new(OperandType::TensorFloat32);
    let spec = chain.spec(&[1, 6, 5, 8]);
    let image = chain.graph.input("image", spec);
    let turned = chain.transposed(image, &[0, 3, 1, 2], &[1, 8, 6, 5]);
    let spec = || OperandSpec::tensor_float32([1, 8, 6, 5]);
    let [bent, flat] = [Op::Abs, Op::Floor].map(|op| chain.graph.operation(op, [turned], spec()));
    chain.graph.output(bent);
    let model = chain.finished(flat);
    let copies = kernels(&model).iter().filter(|kernel| *kernel == "copy").count();
    assert_eq!(copies, 1);
}

/// As ShuffleNet does it: channels of two groups in turn, of which one half is taken.
#[test]
fn shuffled_channels_are_one_copy() {
    for (kind, size) in [(OperandType::TensorFloat32, 4), (OperandType::TensorQuant8AsymmSigned, 1)]
    {
        let mut chain = Chain::new(kind);
        let spec = chain.spec(&[1, 3, 5, 24]);
        let image = chain.graph.input("image", spec);
        let turned = chain.transposed(image, &[0, 3, 1, 2], &[1, 24, 3, 5]);
        let groups = chain.reshaped(turned, &[2, 12, 15]);
        let shuffled = chain.transposed(groups, &[1, 0, 2], &[12, 2, 15]);
        let channels = chain.reshaped(shuffled, &[1, 24, 3, 5]);
        let half = chain.sliced(channels, &[0, 12, 0, 0], &[1, 12, 3, 5]);
        let back = chain.transposed(half, &[0, 2, 3, 1], &[1, 3, 5, 12]);
        let model = chain.finished(back);
        assert_eq!(kernels(&model), ["copy"], "{kind:?}");
        is_as_the_reference(&model, 360 * size, 180 * size);
    }
}

#[test]
fn chains_of_all_kinds_are_as_by_reference() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let kind = random.pick(&[OperandType::TensorFloat32, OperandType::TensorQuant8AsymmSigned]);
        let size = if kind == OperandType::TensorFloat32 { 4 } else { 1 };
        let mut chain = Chain::new(kind);
        let mut lengths: Vec<u32> = (0..4).map(|_| random.pick(&[1, 2, 3, 4, 6, 8])).collect();
        let input_elements: u32 = lengths.iter().product();
        let spec = chain.spec(&lengths);
        let mut x = chain.graph.input("x", spec);
        for _ in 0..random.length(2, 7) {
            match random.int(0, 5) {
                0..=2 => {
                    let mut order: Vec<i32> = (0..).take(lengths.len()).collect();
                    for at in (1..order.len()).rev() {
                        let other = random.length(0, u32::try_from(at).unwrap());
                        order.swap(at, other as usize);
                    }
                    if lengths.len() == 4 && random.coin() {
                        order = random.pick(&[vec![0, 3, 1, 2], vec![0, 2, 3, 1]]);
                    }
                    lengths =
                        order.iter().map(|axis| lengths[axis.cast_unsigned() as usize]).collect();
                    x = chain.transposed(x, &order, &lengths);
                }
                3 => {
                    let all = lengths.iter().product::<u32>();
                    let mut rest = all;
                    lengths.clear();
                    while rest > 1 && lengths.len() < 3 {
                        let divisors: Vec<u32> =
                            (1..=rest.min(12)).filter(|it| rest.is_multiple_of(*it)).collect();
                        let length = random.pick(&divisors);
                        lengths.push(length);
                        rest /= length;
                    }
                    lengths.push(rest);
                    x = chain.reshaped(x, &lengths);
                }
                4 => {
                    let whole = lengths.clone();
                    lengths = whole.iter().map(|length| random.length(1, *length)).collect();
                    let both = whole.iter().zip(&lengths);
                    let begins =
                        both.map(|(whole, part)| random.length(0, whole - part).cast_signed());
                    let begins: Vec<i32> = begins.collect();
                    x = chain.sliced(x, &begins, &lengths);
                }
                _ if kind == OperandType::TensorFloat32 => {
                    let spec = chain.spec(&lengths);
                    x = chain.graph.operation(Op::Abs, [x], spec);
                }
                _ => {}
            }
        }
        // So that it is no input.
        let order: Vec<i32> = (0..).take(lengths.len()).collect();
        x = chain.transposed(x, &order, &lengths);
        let elements: u32 = lengths.iter().product();
        let model = chain.finished(x);
        is_as_the_reference(&model, input_elements * size, elements * size);
    }
}
