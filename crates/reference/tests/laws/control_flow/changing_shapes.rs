//! Shapes inside a WHILE that change from round to round: sizes, ranks, and which branch says them.
//! What the WHILE itself passes on has a size that is known (contract: CF-4).

use crate::run::{ROOM, execute};
use nnhal_hal::builder::SubgraphId;
use nnhal_hal::{
    ModelBuilder, OperandId, OperandSpec, OperationType, RequestBuilder, SubgraphBuilder,
};

/// What the loops look at.
const NUMBERS: [f32; 8] = [3.0, -1.0, 4.0, 1.5, -5.0, 9.0, 2.0, -6.0];
/// As many rounds as there are numbers at most.
const ROUNDS: i32 = 7;

fn float(dimensions: &[u32]) -> OperandSpec {
    OperandSpec::tensor_float32(dimensions)
}

fn integers(dimensions: &[u32]) -> OperandSpec {
    OperandSpec::tensor_int32(dimensions)
}

/// A subgraph running, with a tensor `[n]` that counts rounds from 1.
struct Round<'a> {
    graph: &'a mut SubgraphBuilder,
    builder: &'a mut ModelBuilder,
    n: OperandId,
    /// What a model says of a vector whose length changes: that it is one, or nothing at all.
    unknown: &'a [u32],
}

impl Round<'_> {
    fn numbers(&mut self) -> OperandId {
        self.graph.constant(float(&[8]), &NUMBERS)
    }

    fn zero(&mut self) -> OperandId {
        self.graph.constant(integers(&[1]), &[0])
    }

    /// The first n elements of a vector.
    fn first(&mut self, vector: OperandId, spec: OperandSpec) -> OperandId {
        let zero = self.zero();
        self.graph.operation(OperationType::Slice, [vector, zero, self.n], spec)
    }

    /// The first n numbers.
    fn first_numbers(&mut self) -> OperandId {
        let numbers = self.numbers();
        self.first(numbers, float(self.unknown))
    }

    /// What a vector comes to, `[1]`.
    fn reduce(&mut self, operation: OperationType, vector: OperandId) -> OperandId {
        let axes = self.zero();
        let keep = self.graph.scalar_bool(true);
        self.graph.operation(operation, [vector, axes, keep], float(&[1]))
    }

    fn sum(&mut self, vector: OperandId) -> OperandId {
        self.reduce(OperationType::ReduceSum, vector)
    }
}

/// A number computed in round n from tensors whose shapes depend on n, and what it must be.
struct Example {
    name: &'static str,
    write: fn(&mut Round<'_>) -> OperandId,
    expected: fn(usize) -> f32,
}

fn sum_of_first(n: usize) -> f32 {
    NUMBERS[..n].iter().sum()
}

#[allow(clippy::cast_precision_loss)] // Small numbers.
fn real(n: usize) -> f32 {
    n as f32
}

const EXAMPLES: [Example; 11] = [
    Example {
        name: "SLICE by the counter",
        write: |round| {
            let part = round.first_numbers();
            round.sum(part)
        },
        expected: sum_of_first,
    },
    Example {
        name: "a chain of temporaries without shapes",
        write: |round| {
            let part = round.first_numbers();
            let relu = round.graph.operation(OperationType::Relu, [part], float(round.unknown));
            let none = round.graph.scalar_i32(0);
            let spec = float(round.unknown);
            let both = round.graph.operation(OperationType::Add, [relu, part, none], spec);
            round.reduce(OperationType::ReduceMax, both)
        },
        expected: |n| NUMBERS[..n].iter().fold(f32::MIN, |most, it| most.max(it.max(0.0) + it)),
    },
    Example {
        name: "TILE by the counter",
        write: |round| {
            let numbers = round.numbers();
            let inputs = [numbers, round.n];
            let tiled = round.graph.operation(OperationType::Tile, inputs, float(round.unknown));
            round.sum(tiled)
        },
        expected: |n| sum_of_first(8) * real(n),
    },
    Example {
        name: "GATHER with as many indexes as the counter says",
        write: |round| {
            let all = round.graph.constant(integers(&[8]), &[7, 5, 3, 1, 0, 2, 4, 6]);
            let indexes = round.first(all, integers(round.unknown));
            let (numbers, axis) = (round.numbers(), round.graph.scalar_i32(0));
            let inputs = [numbers, axis, indexes];
            let chosen = round.graph.operation(OperationType::Gather, inputs, float(round.unknown));
            round.sum(chosen)
        },
        expected: |n| [7, 5, 3, 1, 0, 2, 4, 6][..n].iter().map(|index| NUMBERS[*index]).sum(),
    },
    Example {
        name: "FILL with the counter as shape",
        write: |round| {
            let value = round.graph.scalar_f32(1.5);
            let inputs = [round.n, value];
            let filled = round.graph.operation(OperationType::Fill, inputs, float(round.unknown));
            round.sum(filled)
        },
        expected: |n| 1.5 * real(n),
    },
    Example {
        name: "FILL of a rank that the counter says",
        write: |round| {
            // RESHAPE takes no more than four axes.
            let most = round.graph.constant(integers(&[1]), &[4]);
            let inputs = [round.n, most];
            let rank = round.graph.operation(OperationType::Minimum, inputs, integers(&[1]));
            let lengths = round.graph.constant(integers(&[4]), &[2, 1, 3, 2]);
            let inputs = [lengths, round.zero(), rank];
            let spec = integers(round.unknown);
            let shape = round.graph.operation(OperationType::Slice, inputs, spec);
            let value = round.graph.scalar_f32(0.5);
            let filled = round.graph.operation(OperationType::Fill, [shape, value], float(&[]));
            let flat = round.graph.constant(integers(&[1]), &[-1]);
            let spec = float(round.unknown);
            let vector = round.graph.operation(OperationType::Reshape, [filled, flat], spec);
            round.sum(vector)
        },
        expected: |n| [1.0, 1.0, 3.0, 6.0][n.min(4) - 1],
    },
    Example {
        name: "STRIDED_SLICE up to the counter",
        write: |round| {
            let (numbers, zero) = (round.numbers(), round.zero());
            let two = round.graph.constant(integers(&[1]), &[2]);
            let masks = [(); 3].map(|()| round.graph.scalar_i32(0));
            let inputs = [numbers, zero, round.n, two, masks[0], masks[1], masks[2]];
            let spec = float(round.unknown);
            let part = round.graph.operation(OperationType::StridedSlice, inputs, spec);
            round.sum(part)
        },
        expected: |n| NUMBERS[..n].iter().step_by(2).sum(),
    },
    Example {
        name: "PAD as wide as the counter",
        write: |round| {
            let inputs = [round.graph.scalar_i32(1), round.zero(), round.n];
            let paddings = round.graph.operation(OperationType::Pack, inputs, integers(&[1, 2]));
            let (numbers, value) = (round.numbers(), round.graph.scalar_f32(2.0));
            let inputs = [numbers, paddings, value];
            let padded = round.graph.operation(OperationType::PadV2, inputs, float(round.unknown));
            round.sum(padded)
        },
        expected: |n| sum_of_first(8) + 2.0 * real(n),
    },
    Example {
        name: "a part joined to itself, and the last element of that",
        write: |round| {
            let (part, axis) = (round.first_numbers(), round.graph.scalar_i32(0));
            let spec = float(round.unknown);
            let inputs = [part, part, axis];
            let joined = round.graph.operation(OperationType::Concatenation, inputs, spec);
            let last = round.graph.constant(integers(&[1]), &[-1]);
            let end = round.graph.constant(integers(&[1]), &[0]);
            let one = round.graph.constant(integers(&[1]), &[1]);
            // The end is taken from the mask.
            let (none, all) = (round.graph.scalar_i32(0), round.graph.scalar_i32(1));
            let inputs = [joined, last, end, one, none, all, none];
            round.graph.operation(OperationType::StridedSlice, inputs, float(&[1]))
        },
        expected: |n| NUMBERS[n - 1],
    },
    Example {
        name: "an IF whose branches give results of different lengths",
        write: |round| {
            let limit = round.graph.constant(integers(&[1]), &[4]);
            let truth = OperandSpec::tensor_bool8([1]);
            let is_early = round.graph.operation(OperationType::Less, [round.n, limit], truth);
            let branches = [OperationType::Slice, OperationType::Tile];
            let [then, otherwise] = branches.map(|operation| {
                let branch = branch(operation, round.builder, round.unknown);
                round.graph.subgraph(branch)
            });
            let spec = float(round.unknown);
            let inputs = [is_early, then, otherwise, round.n];
            let chosen = round.graph.operation(OperationType::If, inputs, spec);
            round.sum(chosen)
        },
        expected: |n| if n < 4 { sum_of_first(n) } else { sum_of_first(8) * real(n) },
    },
    Example {
        name: "a loop in the loop that slices too",
        write: |round| {
            let condition = less_than(round.builder, 3);
            let body = summing_body(round.builder, round.unknown);
            let (condition, body) = (round.graph.subgraph(condition), round.graph.subgraph(body));
            let start = round.graph.constant(float(&[1]), &[0.0_f32]);
            let one = round.graph.constant(integers(&[1]), &[1]);
            let part = round.first_numbers();
            let part = round.sum(part);
            let inputs = [condition, body, start, one];
            let sums = round.graph.operation(OperationType::While, inputs, float(&[1]));
            let none = round.graph.scalar_i32(0);
            round.graph.operation(OperationType::Add, [sums, part, none], float(&[1]))
        },
        // The inner loop has the rounds 1 and 2.
        expected: |n| sum_of_first(1) + sum_of_first(2) + sum_of_first(n),
    },
];

/// A branch with the counter as its only input.
fn branch(operation: OperationType, builder: &mut ModelBuilder, unknown: &[u32]) -> SubgraphId {
    let mut graph = SubgraphBuilder::new();
    let n = graph.input("n", integers(&[1]));
    let mut round = Round { graph: &mut graph, builder, n, unknown };
    let result = if operation == OperationType::Slice {
        round.first_numbers()
    } else {
        let numbers = round.numbers();
        round.graph.operation(operation, [numbers, n], float(unknown))
    };
    graph.output(result);
    builder.reference(graph)
}

/// The condition `n < limit` of a loop over a sum and `n`.
fn less_than(builder: &mut ModelBuilder, limit: i32) -> SubgraphId {
    let mut graph = SubgraphBuilder::new();
    graph.input("sum", float(&[1]));
    let n = graph.input("n", integers(&[1]));
    let limit = graph.constant(integers(&[1]), &[limit]);
    let truth = OperandSpec::tensor_bool8([1]);
    let goes_on = graph.operation(OperationType::Less, [n, limit], truth);
    graph.output(goes_on);
    builder.reference(graph)
}

/// The body of a loop that adds to a sum what an example computes.
fn body(
    builder: &mut ModelBuilder,
    unknown: &[u32],
    write: impl Fn(&mut Round<'_>) -> OperandId,
) -> SubgraphId {
    let mut graph = SubgraphBuilder::new();
    let sum = graph.input("sum", float(&[1]));
    let n = graph.input("n", integers(&[1]));
    let more = write(&mut Round { graph: &mut graph, builder, n, unknown });
    let (none, one) = (graph.scalar_i32(0), graph.constant(integers(&[1]), &[1]));
    let sum = graph.operation(OperationType::Add, [sum, more, none], float(&[1]));
    let next = graph.operation(OperationType::Add, [n, one, none], integers(&[1]));
    graph.output(sum);
    graph.output(next);
    builder.reference(graph)
}

/// The body of a loop that adds up the first n numbers in each round.
fn summing_body(builder: &mut ModelBuilder, unknown: &[u32]) -> SubgraphId {
    body(builder, unknown, |round| {
        let part = round.first_numbers();
        round.sum(part)
    })
}

/// The sum over all rounds that a loop has with these subgraphs.
fn run_loop(builder: ModelBuilder, condition: SubgraphId, body: SubgraphId) -> f32 {
    let mut main = SubgraphBuilder::new();
    let (condition, body) = (main.subgraph(condition), main.subgraph(body));
    let sum = main.input("sum", float(&[1]));
    let one = main.constant(integers(&[1]), &[1]);
    let inputs = [condition, body, sum, one];
    let result = main.operation(OperationType::While, inputs, float(&[1]));
    main.output(result);
    let model = builder.build(main).unwrap();
    let mut request = RequestBuilder::new();
    request.input(&0_f32.to_le_bytes());
    request.output(ROOM);
    let outputs = execute(&model, &request.build().unwrap()).unwrap();
    f32::from_le_bytes(outputs[0].1[..].try_into().unwrap())
}

#[test]
fn cf_9_shapes_in_a_body_change_from_round_to_round() {
    for example in EXAMPLES {
        for unknown in [&[0][..], &[]] {
            let mut builder = ModelBuilder::new();
            let condition = less_than(&mut builder, ROUNDS + 1);
            let body = body(&mut builder, unknown, example.write);
            let found = run_loop(builder, condition, body);
            let expected: f32 = (1..=usize::try_from(ROUNDS).unwrap()).map(example.expected).sum();
            // All numbers are multiples of a half, so sums are exact.
            assert_eq!(found.to_bits(), expected.to_bits(), "{}: {found}", example.name);
        }
    }
}

#[test]
fn cf_9_shapes_in_a_condition_change_from_round_to_round() {
    // Goes on until the first n numbers come to 10 or more: 3, 2, 6, 7.5, 2.5, 11.5.
    for unknown in [&[0][..], &[]] {
        let mut builder = ModelBuilder::new();
        let mut graph = SubgraphBuilder::new();
        graph.input("sum", float(&[1]));
        let n = graph.input("n", integers(&[1]));
        let mut round = Round { graph: &mut graph, builder: &mut builder, n, unknown };
        let part = round.first_numbers();
        let part = round.sum(part);
        let limit = graph.constant(float(&[1]), &[10.0_f32]);
        let truth = OperandSpec::tensor_bool8([1]);
        let goes_on = graph.operation(OperationType::Less, [part, limit], truth);
        graph.output(goes_on);
        let condition = builder.reference(graph);
        let body = summing_body(&mut builder, unknown);
        let found = run_loop(builder, condition, body);
        let expected: f32 = (1..=5).map(sum_of_first).sum();
        assert_eq!(found.to_bits(), expected.to_bits(), "{found}");
    }
}
