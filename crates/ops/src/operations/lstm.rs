//! LSTM: one step of a long short-term memory layer. The formulas are those of
//! [`lstm_cell`].
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, input]` | float32, float16 |
//! | input 1 to 17 | weights and biases, some optional | see [`lstm_arguments`](crate::rules::lstm_arguments) | as the input |
//! | input 18 | output state before | `[batch, output]` | as the input |
//! | input 19 | cell state before | `[batch, units]` | as the input |
//! | input 20 | activation | scalar | INT32: 0 none, 1 RELU, 3 RELU6, 4 TANH, 6 sigmoid |
//! | input 21, 22 | cell clip, projection clip | scalar, 0 or more; 0 is no limit | FLOAT32; FLOAT16 with float16 |
//! | input 23 to 26, from 1.2 | layer norm weights, optional | `[units]` | as the input |
//! | output 0 | scratch buffer | `[batch, 4 * units]`; 3 if input and forget gate are coupled | as the input |
//! | output 1 | output state | `[batch, output]` | as the input |
//! | output 2 | cell state | `[batch, units]` | as the input |
//! | output 3 | output | as output 1, and the same numbers | as the input |
//!
//! Only the batch may be 0. What the scratch buffer holds says nothing; here it is filled with 0.
//!
//! Source: `types.hal` 1.0, 1.2 (float16, layer norm).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::lstm_arguments::LstmArguments;
use crate::rules::lstm_cell::{self, Settings};
use crate::rules::recurrence::{self, Direction, Extent, Extents, Inputs, Rows, Sequences};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{Float16, Float32, TensorFloat16, TensorFloat32};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// LSTM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lstm {
    /// Activation and clips.
    pub settings: Settings,
}

/// Where the cell's arguments stand.
pub const ARGUMENTS: LstmArguments =
    LstmArguments { weights: 1, states: 18, layer_norm: 23, auxiliary: None };

static SIGNATURE: Signature = Signature {
    operation: OperationType::Lstm,
    // Columns: tensors; clips.
    rows: &[
        Row::new(HalVersion::V1_0, &[TensorFloat32, Float32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, Float16]),
    ],
    forms: &[Form::new(
        HalVersion::V1_0,
        &[
            Parameter::column("input", 0),
            Parameter::column("input-to-input weights", 0).omittable(),
            Parameter::column("input-to-forget weights", 0),
            Parameter::column("input-to-cell weights", 0),
            Parameter::column("input-to-output weights", 0),
            Parameter::column("recurrent-to-input weights", 0).omittable(),
            Parameter::column("recurrent-to-forget weights", 0),
            Parameter::column("recurrent-to-cell weights", 0),
            Parameter::column("recurrent-to-output weights", 0),
            Parameter::column("cell-to-input weights", 0).omittable(),
            Parameter::column("cell-to-forget weights", 0).omittable(),
            Parameter::column("cell-to-output weights", 0).omittable(),
            Parameter::column("input gate bias", 0).omittable(),
            Parameter::column("forget gate bias", 0),
            Parameter::column("cell bias", 0),
            Parameter::column("output gate bias", 0),
            Parameter::column("projection weights", 0).omittable(),
            Parameter::column("projection bias", 0).omittable(),
            Parameter::column("output state (in)", 0),
            Parameter::column("cell state (in)", 0),
            Parameter::int32("activation"),
            Parameter::column("cell clip", 1),
            Parameter::column("projection clip", 1),
            Parameter::column("input layer norm weights", 0).omittable().trailing(HalVersion::V1_2),
            Parameter::column("forget layer norm weights", 0).omittable(),
            Parameter::column("cell layer norm weights", 0).omittable(),
            Parameter::column("output layer norm weights", 0).omittable(),
        ],
        &[
            Parameter::column("scratch buffer", 0),
            Parameter::column("output state (out)", 0),
            Parameter::column("cell state (out)", 0),
            Parameter::column("output", 0),
        ],
    )],
};

impl Operation for Lstm {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        ARGUMENTS.validate(call)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self { settings: Settings::decode(call, 20)? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let mut known = Extents::default();
        known.learn(call.input(0), [Extent::Batch, Extent::Input])?;
        let output = ARGUMENTS.learn_shapes(call, &mut known)?;
        let (batch, units) = (known.get(Extent::Batch), known.get(Extent::Units));
        let scratch = match (units, ARGUMENTS.is_coupled(call)) {
            (Some(units), Some(is_coupled)) => {
                let gates = if is_coupled { 3 } else { 4 };
                let length = units.checked_mul(gates).ok_or_else(|| {
                    let expected = format!("below 2^32 for {gates} gates together");
                    call.wrong("number of units", units, expected)
                })?;
                Some(length)
            }
            _ => None,
        };
        let output = known.shape([Extent::Batch, output]);
        let cell = known.shape([Extent::Batch, Extent::Units]);
        Ok(vec![Shape::new([batch, scratch]), output.clone(), cell, output])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let dimensions = recurrence::dimensions(call, &self.output_shapes(call)?)?;
        let scratch = recurrence::zeros(call.output(0), &dimensions[0])?;
        let mut elements = recurrence::zeros(call.output(3), &dimensions[3])?;
        let [batch, width] = call.input(18).lengths_of()?;
        let states = lstm_cell::run(
            call,
            ARGUMENTS,
            self.settings,
            Inputs { input: call.input(0), auxiliary: None },
            (Sequences::single_step(batch), Direction::Forward),
            Rows { elements: &mut elements, width, offset: 0 },
        )?;
        let results = [&scratch, &states.output, &states.cell, &elements];
        let outputs = call.outputs().iter().zip(dimensions).zip(results);
        outputs.map(|((output, dimensions), it)| output.with_f32s(dimensions, it)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_refused, float, tensor};
    use crate::rules::lstm_arguments::testing::{
        INPUT_GATE, PEEPHOLES, PROJECTION, PROJECTION_BIAS, Plan,
    };
    use HalVersion::{V1_0, V1_2};
    use nnhal_hal::OperandSpec;

    const FLOAT32: [OperandType; 2] = [TensorFloat32, Float32];

    /// All weights and biases are 0, but those of the cell gate's bias, which are 2. The state before
    /// is 0, the cell before 4. Without activation.
    fn example(
        types: [OperandType; 2],
        sizes: [u32; 3],
        given: &[usize],
        clips: [f64; 2],
    ) -> Example {
        let [batch, units, output] = [2, sizes[1], sizes[2]];
        let plan = Plan { types: [types[0]; 3], sizes, given };
        let zeros = |count: u32| vec![0.0; count as usize];
        let example = Example::new(OperationType::Lstm)
            .input(tensor(types[0], [batch, sizes[0]]), &zeros(batch * sizes[0]));
        plan.weights(example, || 0.0)
            .with_input(14, tensor(types[0], [units]), &vec![2.0; units as usize])
            .input(tensor(types[0], [batch, output]), &zeros(batch * output))
            .input(tensor(types[0], [batch, units]), &vec![4.0; (batch * units) as usize])
            .int32s([0])
            .input(OperandSpec::scalar(types[1]), &[clips[0]])
            .input(OperandSpec::scalar(types[1]), &[clips[1]])
            .output(tensor(types[0], []))
            .output(tensor(types[0], []))
            .output(tensor(types[0], []))
            .output(tensor(types[0], []))
    }

    fn plain() -> Example {
        example(FLOAT32, [3, 1, 1], &INPUT_GATE, [0.0; 2])
    }

    /// The same with other layer norm weights, all 1 where given.
    fn with_norm(example: Example, given: [bool; 4]) -> Example {
        let plan = Plan { types: [TensorFloat32; 3], sizes: [3, 1, 1], given: &[] };
        plan.layer_norm(example, given, 1.0)
    }

    /// Cell and output of the first row.
    fn row(example: &Example) -> [f64; 2] {
        let results = example.results();
        assert_eq!(results[1], results[3]);
        [results[2].1[0], results[3].1[0]]
    }

    fn bias(value: f64) -> (OperandSpec, [f64; 1]) {
        (float([1]), [value])
    }

    #[test]
    fn values_by_hand() {
        // Every gate is half open: 4 / 2 + 2 / 2 stays, and half of that comes out.
        assert_eq!(row(&plain()), [3.0, 1.5]);
        // The forget gate is open.
        let (spec, value) = bias(100.0);
        assert_eq!(row(&plain().with_input(13, spec.clone(), &value)), [5.0, 2.5]);
        // If it also is the input gate, nothing enters.
        let coupled = || example(FLOAT32, [3, 1, 1], &[], [0.0; 2]);
        assert_eq!(row(&coupled()), [3.0, 1.5]);
        assert_eq!(row(&coupled().with_input(13, spec, &value)), [4.0, 2.0]);
    }

    #[test]
    fn peepholes_open_gates_by_the_cell() {
        let given = [&INPUT_GATE[..], &PEEPHOLES].concat();
        let with = |index| {
            let (spec, value) = bias(100.0);
            example(FLOAT32, [3, 1, 1], &given, [0.0; 2]).with_input(index, spec, &value)
        };
        assert_eq!(row(&with(9)), [4.0, 2.0]); // input gate
        assert_eq!(row(&with(10)), [5.0, 2.5]); // forget gate
        assert_eq!(row(&with(11)), [3.0, 3.0]); // output gate
        // The output gate looks at the new cell: -100 * 0 while the cell before is 4.
        let (spec, value) = bias(-4.0);
        let emptied = with(11).with_input(14, spec, &value);
        assert_eq!(row(&emptied), [0.0, 0.0]);
    }

    #[test]
    fn clips_and_projection_by_hand() {
        assert_eq!(row(&example(FLOAT32, [3, 1, 1], &INPUT_GATE, [2.0, 0.25])), [2.0, 1.0]);
        let given = [&INPUT_GATE[..], &[PROJECTION, PROJECTION_BIAS]].concat();
        let projected = |clips| {
            let example = example(FLOAT32, [3, 1, 2], &given, clips)
                .with_input(16, float([2, 1]), &[10.0, -20.0])
                .with_input(17, float([2]), &[1.0, 2.0]);
            example.results().swap_remove(3)
        };
        let twice = |numbers: [f64; 2]| (vec![2, 2], [numbers, numbers].concat());
        assert_eq!(projected([0.0, 0.0]), twice([16.0, -28.0]));
        assert_eq!(projected([0.0, 20.0]), twice([16.0, -20.0]));
        let scratch = plain().results().swap_remove(0);
        assert_eq!(scratch, (vec![2, 4], vec![0.0; 8]));
    }

    #[test]
    fn layer_norm_leaves_the_biases() {
        // A single unit is its own mean: what is left of the gates is their biases.
        let weights = float([1, 3]);
        let shouting =
            plain().with_input(4, weights, &[1e6; 3]).with_input(0, float([2, 3]), &[1.0; 6]);
        assert_eq!(row(&shouting), [3.0, 3.0]);
        assert_eq!(row(&with_norm(shouting, [true; 4])), [3.0, 1.5]);
    }

    #[test]
    fn each_row_has_its_version() {
        assert_eq!(plain().since(), Ok(V1_0));
        assert_eq!(with_norm(plain(), [false; 4]).since(), Ok(V1_2));
        let half = example([TensorFloat16, Float16], [3, 1, 1], &INPUT_GATE, [0.0; 2]);
        assert_eq!(half.since(), Ok(V1_2));
        assert_eq!(row(&half), [3.0, 1.5]);
    }

    #[test]
    fn what_is_known_of_the_shapes_is_inferred() {
        let shapes = |example: Example| example.shapes().unwrap();
        let known = [[2, 20], [2, 5], [2, 5], [2, 5]].map(Shape::known);
        let wide = || example(FLOAT32, [3, 5, 5], &INPUT_GATE, [0.0; 2]);
        assert_eq!(shapes(wide()), known);
        let unknown = |example: Example, index| example.with_input_to_come(index, float([]));
        // Others know the batch, and whether there is an input gate is not decided.
        let undecided = unknown(unknown(wide(), 0), 1);
        assert_eq!(shapes(undecided)[0], Shape::new([Some(2), None]));
        let coupled = example(FLOAT32, [3, 5, 5], &[], [0.0; 2]);
        assert_eq!(shapes(coupled)[0], Shape::known([2, 15]));
        let projected = example(FLOAT32, [3, 5, 4], &[PROJECTION], [0.0; 2]);
        assert_eq!(shapes(projected.clone())[1..3], [Shape::known([2, 4]), Shape::known([2, 5])]);
        let states = unknown(unknown(projected, 18), 19);
        assert_eq!(shapes(unknown(states, 0))[3], Shape::new([None, Some(4)]));
    }

    #[test]
    fn an_empty_batch_gives_empty_results() {
        let empty = plain()
            .with_input(0, float([0, 3]), &[])
            .with_input(18, float([0, 1]), &[])
            .with_input(19, float([0, 1]), &[]);
        let dimensions = empty.results().into_iter().map(|(dimensions, _)| dimensions);
        assert!(dimensions.eq([[0, 4], [0, 1], [0, 1], [0, 1]]));
    }

    #[test]
    fn what_the_definition_excludes_is_refused() {
        let given = |given: &[usize]| example(FLOAT32, [3, 1, 1], given, [0.0; 2]);
        let with_all = |more: &[usize]| given(&[&INPUT_GATE[..], more].concat());
        let clipped = |clips| example(FLOAT32, [3, 1, 1], &INPUT_GATE, clips);
        let table = [
            (
                given(&[0, 4]),
                "value of input 12 (input gate bias) is left out, expected a value, as input 1 has one",
            ),
            (given(&[0, 11]), "value of input 5 (recurrent-to-input weights) is left out"),
            (given(&[4, 11]), "value of input 1 (input-to-input weights) is left out"),
            (with_all(&[9, 10]), "value of input 9 (cell-to-input weights) is left out"),
            (
                with_all(&[8]),
                "value of input 9 (cell-to-input weights) is given, expected none, as input 10",
            ),
            (with_all(&[8, 9]), "value of input 11 (cell-to-output weights) is left out"),
            (
                given(&[8, 9, 10]),
                "value of input 9 (cell-to-input weights) is given, expected none, as there is no input gate",
            ),
            (
                with_all(&[16]),
                "value of input 16 (projection weights) is left out, expected a value, as input 17",
            ),
            (
                with_norm(plain(), [true, true, false, true]),
                "value of input 25 (cell layer norm weights) is left out",
            ),
            (
                with_norm(plain(), [false, true, true, true]),
                "value of input 23 (input layer norm weights) is left out",
            ),
            (
                with_norm(given(&[]), [true; 4]),
                "value of input 23 (input layer norm weights) is given",
            ),
            (
                plain().with_int32(20, 2),
                "value of input 20 (activation) is 2, expected 0, 1, 3, 4 or 6",
            ),
            (plain().with_int32(20, 5), "value of input 20 (activation) is 5"),
            (clipped([-1.0, 0.0]), "value of input 21 (cell clip) is -1, expected 0 or more"),
            (clipped([0.0, f64::NAN]), "value of input 22 (projection clip) is NaN"),
            (
                plain().with_input(0, float([2, 3, 1]), &[0.0; 6]),
                "rank of input 0 (input) is 3, expected 2",
            ),
            (
                plain().with_input(2, float([1, 4]), &[0.0; 4]),
                "shape of input 2 (input-to-forget weights) is [1, 4], expected length 3 along axis 1",
            ),
            (
                plain().with_input(6, float([1, 2]), &[0.0; 2]),
                "shape of input 6 (recurrent-to-forget weights) is [1, 2], expected length 1 along axis 1",
            ),
            (
                plain().with_input(13, float([2]), &[0.0; 2]),
                "shape of input 13 (forget gate bias) is [2], expected length 1",
            ),
            (
                plain().with_input(18, float([1, 1]), &[0.0]),
                "shape of input 18 (output state (in)) is [1, 1], expected length 2 along axis 0",
            ),
            (
                plain().with_input(19, float([2, 2]), &[0.0; 4]),
                "shape of input 19 (cell state (in)) is [2, 2], expected length 1 along axis 1",
            ),
            (
                plain().with_input(0, float([2, 0]), &[]),
                "shape of input 0 (input) is [2, 0], expected no length of 0 along axis 1",
            ),
            (plain().with_input_to_come(2, float([1 << 31, 3])), "expected length 1 along axis 0"),
            (
                with_norm(plain(), [false; 4]).int32s([1]),
                "number of arguments of the operation is 28 inputs and 4 outputs, expected 23 or 27 inputs and 4 outputs",
            ),
            (plain().omitted(float([1])), "number of arguments of the operation is 24 inputs"),
        ];
        assert_refused(&table);
    }

    #[test]
    fn a_scratch_buffer_can_be_too_long() {
        // Coupled: three gates.
        let unknown = |example: Example, index| example.with_input_to_come(index, float([]));
        let tall = |units| {
            let coupled = example(FLOAT32, [3, 1, 1], &[], [0.0; 2]);
            let others = [0, 2, 3, 4, 6, 7, 8, 14, 15, 18, 19].into_iter();
            others.fold(coupled, unknown).with_input_to_come(13, float([units]))
        };
        assert_eq!(tall(1 << 30).shapes().unwrap()[0], Shape::new([None, Some(3 << 30)]));
        let refusal = tall(1 << 31).shapes().unwrap_err().to_string();
        assert_eq!(
            refusal,
            "LSTM: number of units of the operation is 2147483648, expected below 2^32 for 3 gates \
             together"
        );
    }

    /// The list of 1.0 ends before the layer norm weights, which is no reason to look for them.
    #[test]
    fn a_list_of_23_arguments_is_asked_for_nothing_behind_its_end() {
        let optional = [&INPUT_GATE[..], &PEEPHOLES, &[PROJECTION, PROJECTION_BIAS]].concat();
        for bits in 0..1_u32 << optional.len() {
            let given: Vec<usize> = (0..)
                .zip(&optional)
                .filter_map(|(bit, index)| (bits >> bit & 1 == 1).then_some(*index))
                .collect();
            let has = |group: &[usize]| group.iter().filter(|it| given.contains(it)).count();
            let (gate, peepholes) = (has(&INPUT_GATE), has(&PEEPHOLES));
            let fits = match gate {
                0 => peepholes == 0 || given.contains(&9) && given.contains(&10) && peepholes == 2,
                3 => peepholes == 0 || peepholes == 3,
                _ => false,
            };
            let fits = fits && (given.contains(&PROJECTION) || !given.contains(&PROJECTION_BIAS));
            let plain = example(FLOAT32, [3, 1, 1], &given, [0.0; 2]);
            assert_eq!(plain.run().is_ok(), fits, "{given:?}");
            // The list of 1.2 without values for them is as good.
            assert_eq!(with_norm(plain, [false; 4]).run().is_ok(), fits, "{given:?}");
        }
    }
}
