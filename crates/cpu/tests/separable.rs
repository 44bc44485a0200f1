//! Depthwise and 1x1 convolutions that are computed strip by strip.

mod support;

use nnhal_cpu::{Passes, Settings};
use nnhal_driver::Prepared;
use nnhal_hal::{
    Device, Model, OperandId, OperandSpec, OperationType as Op, RequestBuilder, SubgraphBuilder,
};
use std::num::NonZero;
use std::sync::Arc;
use support::{execute, prepare};

/// Channels of what goes in and comes out, and of what is between.
const OUTSIDE: u32 = 12;
const BETWEEN: u32 = 48;

/// A block of a network.
#[derive(Debug, Clone, Copy)]
struct Block {
    batch: u32,
    side: u32,
    filter: u32,
    stride: u32,
    has_before: bool,
    has_behind: bool,
    has_residual: bool,
    /// What is between the depthwise convolution and the one behind it is also an output.
    is_seen: bool,
    is_half: bool,
}

const PLAIN: Block = Block {
    batch: 1,
    side: 130,
    filter: 3,
    stride: 1,
    has_before: true,
    has_behind: true,
    has_residual: false,
    is_seen: false,
    is_half: false,
};

impl Block {
    fn spec(self, dimensions: &[u32]) -> OperandSpec {
        match self.is_half {
            true => OperandSpec::new(nnhal_hal::OperandType::TensorFloat16, dimensions),
            false => OperandSpec::tensor_float32(dimensions),
        }
    }

    fn constant(self, graph: &mut SubgraphBuilder, dimensions: &[u32], seed: u32) -> OperandId {
        let count = dimensions.iter().product::<u32>();
        let depth = count / dimensions[0].max(*dimensions.last().unwrap_or(&1));
        let scale = 1.0 / (127.0 * f32::from(u16::try_from(depth.max(1)).unwrap()).sqrt());
        let values = (0..count).map(|it| ((it + seed) * 167 % 255) as f32 - 127.0);
        let values: Vec<f32> = values.map(|it| it * scale).collect();
        let spec = self.spec(dimensions);
        if self.is_half {
            let halves = values.iter().map(|it| half::f16::from_f32(*it).to_le_bytes());
            return graph.constant_bytes(spec, &halves.flatten().collect::<Vec<u8>>());
        }
        graph.constant(spec, &values)
    }

    /// A convolution, 1x1 without padding or depthwise with SAME, with an activation.
    fn convolution(
        self,
        graph: &mut SubgraphBuilder,
        image: OperandId,
        [from, to]: [&[u32]; 2],
        activation: i32,
        is_depthwise: bool,
    ) -> OperandId {
        let size = if is_depthwise { self.filter } else { 1 };
        let filter = match is_depthwise {
            true => [1, size, size, to[3]],
            false => [to[3], 1, 1, from[3]],
        };
        let filter = self.constant(graph, &filter, from[3]);
        let bias = self.constant(graph, &[to[3]], 7);
        let stride = i32::try_from(if is_depthwise { self.stride } else { 1 }).unwrap();
        let mut inputs = vec![image, filter, bias];
        inputs.extend([1, stride, stride].map(|it| graph.scalar_i32(it)));
        if is_depthwise {
            inputs.push(graph.scalar_i32(1));
        }
        inputs.push(graph.scalar_i32(activation));
        let operation = if is_depthwise { Op::DepthwiseConv2d } else { Op::Conv2d };
        graph.operation(operation, inputs, self.spec(to))
    }

    /// The model, and the lengths of its input and outputs.
    fn model(self) -> (Model, [u32; 4], Vec<[u32; 4]>) {
        let (batch, side) = (self.batch, self.side);
        let small = side.div_ceil(self.stride);
        let outside = [batch, side, side, OUTSIDE];
        let between = [batch, side, side, BETWEEN];
        let seen = [batch, small, small, BETWEEN];
        let last = [batch, small, small, OUTSIDE];
        let first = if self.has_before { outside } else { between };
        let mut graph = SubgraphBuilder::new();
        let input = graph.input("image", self.spec(&first));
        let mut image = input;
        if self.has_before {
            image = self.convolution(&mut graph, image, [&outside, &between], 3, false);
        }
        image = self.convolution(&mut graph, image, [&between, &seen], 1, true);
        let mut outputs = Vec::new();
        if self.is_seen {
            graph.output(image);
            outputs.push(seen);
        }
        if self.has_behind {
            image = self.convolution(&mut graph, image, [&seen, &last], 0, false);
            if self.has_residual {
                let none = graph.scalar_i32(0);
                image = graph.operation(Op::Add, [input, image, none], self.spec(&last));
            }
        }
        if self.has_behind || !self.is_seen {
            graph.output(image);
            outputs.push(if self.has_behind { last } else { seen });
        }
        (graph.into_model().unwrap(), first, outputs)
    }

    fn outputs(self, device: &dyn Device) -> Vec<f32> {
        let (model, input, outputs) = self.model();
        let count = |dimensions: &[u32; 4]| dimensions.iter().product::<u32>() as usize;
        let size = if self.is_half { 2 } else { 4 };
        let values = (0..count(&input)).map(|it| (it * 37 % 251) as f32 / 125.0 - 1.0);
        let mut request = RequestBuilder::new();
        if self.is_half {
            let halves = values.map(|it| half::f16::from_f32(it).to_le_bytes());
            request.input(&halves.flatten().collect::<Vec<u8>>());
        } else {
            request.input(&values.flat_map(f32::to_le_bytes).collect::<Vec<u8>>());
        }
        for output in &outputs {
            request.output(count(output) * size);
        }
        let request = request.build().unwrap();
        execute(&*prepare(device, &model), &request);
        let floats = |bytes: Vec<u8>| -> Vec<f32> {
            match self.is_half {
                true => bytes
                    .as_chunks()
                    .0
                    .iter()
                    .map(|it| half::f16::from_le_bytes(*it).to_f32())
                    .collect(),
                false => bytes.as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)).collect(),
            }
        };
        (0..outputs.len())
            .flat_map(|at| floats(RequestBuilder::read_output(&request, at).unwrap()))
            .collect()
    }

    /// The kernels of its steps.
    fn kernels(self, threads: usize) -> Vec<String> {
        let prepared = prepare(&*device(threads), &self.model().0);
        let plan = Prepared::of(&*prepared).unwrap().plan();
        plan.into_iter().map(|step| step.kernel).collect()
    }
}

fn device(threads: usize) -> Arc<dyn Device> {
    let threads = NonZero::new(threads).unwrap();
    nnhal_cpu::device(Settings { threads, ..Settings::default() })
}

fn expect_near(found: &[f32], expected: &[f32], bound: f32, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= bound, "{what}: {found} at {at}, expected {expected}");
    }
}

#[test]
fn blocks_are_one_step_and_what_the_reference_computes() {
    let blocks = [
        (PLAIN, [1; 2]),
        (Block { has_residual: true, ..PLAIN }, [1; 2]),
        (Block { stride: 2, filter: 5, side: 151, ..PLAIN }, [1; 2]),
        (Block { has_before: false, side: 161, ..PLAIN }, [1; 2]),
        (Block { has_behind: false, stride: 2, side: 150, ..PLAIN }, [1; 2]),
        (Block { batch: 2, side: 120, ..PLAIN }, [1; 2]),
        (Block { is_half: true, ..PLAIN }, [1; 2]),
        // Nothing but the first two can be one.
        (Block { is_seen: true, side: 150, ..PLAIN }, [2; 2]),
        // What is between stays in the caches, but threads wait for each other once less; of the first two they would compute
        // too many rows twice.
        (Block { side: 20, ..PLAIN }, [3, 2]),
    ];
    for (block, steps_of) in blocks {
        let expected = block.outputs(&*nnhal_reference::device());
        for (threads, steps) in [1, 2].into_iter().zip(steps_of) {
            let kernels = block.kernels(threads);
            let what = format!("{block:?}, {threads} threads: {kernels:?}");
            assert_eq!(kernels.len(), steps, "{what}");
            assert_eq!(
                kernels.iter().filter(|it| it.contains("strips")).count(),
                usize::from(steps < 3)
            );
            let found = block.outputs(&*device(threads));
            expect_near(&found, &expected, if block.is_half { 4e-3 } else { 1e-5 }, &what);
        }
    }
}

#[test]
fn with_many_threads_and_few_rows_there_are_no_strips() {
    assert_eq!(PLAIN.kernels(1).len(), 1);
    // Too many rows of the first convolution would be computed twice.
    let kernels = PLAIN.kernels(16);
    assert!(kernels.len() == 2 && kernels[1].contains("3x3+1x1 strips"), "{kernels:?}");
    // A thread would have one or two rows.
    assert_eq!(Block { side: 20, ..PLAIN }.kernels(16).len(), 3);
}

#[test]
fn strips_give_what_single_steps_give() {
    let off = Passes::ALL.without("separable").unwrap();
    let single = nnhal_cpu::device(Settings { passes: off, ..Settings::default() });
    let block = Block { has_residual: true, ..PLAIN };
    expect_near(&block.outputs(&*device(2)), &block.outputs(&*single), 0.0, "other rounding");
}
