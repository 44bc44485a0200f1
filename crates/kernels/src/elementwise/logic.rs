//! Comparisons and truth values, element by element.

use super::pairs::{Broadcast, PairFunction};
use crate::InstructionSet;
use crate::prepared::{ElementType, Inputs, Operands, PreparedKernel, WrongValue, for_integers};
use crate::quantization::Quantization;
use crate::team::Team;

/// A comparison; false if one of the numbers is NaN, but for [`Self::NotEqual`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `a == b`
    Equal,
    /// `a != b`
    NotEqual,
    /// `a < b`
    Less,
    /// `a <= b`
    LessEqual,
    /// `a > b`
    Greater,
    /// `a >= b`
    GreaterEqual,
}

/// What all comparisons are made of.
#[derive(Debug, Clone, Copy)]
enum Relation {
    Equal,
    Less,
    LessEqual,
}

/// A prepared comparison of two tensors that broadcast. Its outputs are 1 or 0.
#[derive(Debug, Clone)]
pub struct Compare {
    pairs: Broadcast,
    relation: Relation,
    /// Whether outputs are 1 where the relation does not hold.
    is_negated: bool,
    /// The numbers of the inputs, that which comes first in the relation first.
    inputs: [usize; 2],
    elements: ElementType,
    /// Of quantized numbers that are stored in different ways: they are not in the order of what they
    /// stand for.
    quantizations: Option<[Quantization; 2]>,
}

impl Compare {
    /// For tensors of two shapes, aligned at their last axes. Numbers of 8 or 16 bits are compared by what they
    /// stand for, if quantizations are given, and otherwise as they are.
    ///
    /// # Panics
    /// If they do not broadcast to a common shape, or numbers of other types have quantizations.
    pub fn prepare(
        set: InstructionSet,
        shapes: [&[usize]; 2],
        comparison: Comparison,
        elements: ElementType,
        quantizations: Option<[Quantization; 2]>,
    ) -> Self {
        let (relation, is_negated, inputs) = match comparison {
            Comparison::Equal => (Relation::Equal, false, [0, 1]),
            Comparison::NotEqual => (Relation::Equal, true, [0, 1]),
            Comparison::Less => (Relation::Less, false, [0, 1]),
            Comparison::LessEqual => (Relation::LessEqual, false, [0, 1]),
            Comparison::Greater => (Relation::Less, false, [1, 0]),
            Comparison::GreaterEqual => (Relation::LessEqual, false, [1, 0]),
        };
        let pairs = Broadcast::prepare(set, inputs.map(|index| shapes[index]));
        let quantizations = quantizations.map(|of| inputs.map(|index| of[index]));
        let is_stored = elements.is_integer() && elements.size() <= 2;
        assert!(is_stored || quantizations.is_none(), "quantized {}", elements.name());
        Self { pairs, relation, is_negated, inputs, elements, quantizations }
    }

    /// Of quantized numbers.
    fn compare_stored(
        &self,
        team: &mut Team,
        inputs: Inputs<'_>,
        output: &mut [u8],
        [of_a, of_b]: [Quantization; 2],
    ) {
        #[allow(clippy::cast_precision_loss)] // Of 17 bits.
        let real = |stored: i32, of: Quantization| (stored - of.zero_point) as f32 * of.scale;
        /// Numbers of a type as what they stand for.
        macro_rules! stored {
            ($T:ty) => {
                self.compare_as(team, inputs, output, |[a, b]: [$T; 2]| {
                    [real(a.into(), of_a), real(b.into(), of_b)]
                })
            };
        }
        match self.elements {
            ElementType::I8 => stored!(i8),
            ElementType::I16 => stored!(i16),
            ElementType::U16 => stored!(u16),
            _ => stored!(u8),
        }
    }

    /// By what `both` makes of both elements.
    fn compare_as<T: bytemuck::Pod + Sync, K: PartialOrd>(
        &self,
        team: &mut Team,
        inputs: Inputs<'_>,
        output: &mut [u8],
        both: impl Fn([T; 2]) -> [K; 2] + Sync,
    ) {
        let inputs = self.inputs.map(|index| inputs.of(index));
        let flip = u8::from(self.is_negated);
        /// The elements compared.
        macro_rules! compared {
            ($relation:tt) => {
                self.pairs.by_element(team, inputs, output, |a, b| {
                    let [a, b] = both([a, b]);
                    u8::from(a $relation b) ^ flip
                })
            };
        }
        match self.relation {
            Relation::Equal => compared!(==),
            Relation::Less => compared!(<),
            Relation::LessEqual => compared!(<=),
        }
    }
}

impl PreparedKernel for Compare {
    fn name(&self) -> String {
        format!("compare {}", self.elements.name())
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        if let Some(quantizations) = self.quantizations {
            self.compare_stored(team, inputs, output, quantizations);
            return Ok(());
        }
        for_integers!(
            self.elements,
            T => self.compare_as(team, inputs, output, |both: [T; 2]| both),
            ElementType::F32 => self.compare_as(team, inputs, output, |both: [f32; 2]| both),
            ElementType::F64 => self.compare_as(team, inputs, output, |both: [f64; 2]| both),
            ElementType::Bool => {
                self.compare_as(team, inputs, output, |both: [u8; 2]| both.map(|it| it != 0));
            }
        );
        Ok(())
    }
}

/// A function of two truth values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TruthFunction {
    /// Whether both are true
    And,
    /// Whether one is true
    Or,
}

/// Bytes are true if they are not 0; outputs are 1 or 0.
impl PairFunction for TruthFunction {
    type Input = u8;
    type Output = u8;

    fn name(&self) -> String {
        match self {
            Self::And => "logical and bool".to_owned(),
            Self::Or => "logical or bool".to_owned(),
        }
    }

    fn run(&self, pairs: &Broadcast, team: &mut Team, inputs: [&[u8]; 2], output: &mut [u8]) {
        match self {
            Self::And => {
                pairs.by_element(team, inputs, output, |a, b| u8::from((a != 0) & (b != 0)));
            }
            Self::Or => {
                pairs.by_element(team, inputs, output, |a, b| u8::from((a != 0) | (b != 0)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elementwise::{Not, Pairs};
    use crate::prepared::tests::outputs;

    #[test]
    fn truth_is_whatever_is_not_0() {
        let (a, b) = ([0, 1, 0, 255, 2], [0, 0, 3, 7, 1]);
        let shapes: [&[usize]; 2] = [&[5], &[5]];
        for set in InstructionSet::available() {
            let logical = |function| Pairs::prepare(set, shapes, function);
            let of = |kernel: &dyn PreparedKernel| outputs(kernel, &[&a, &b], [5]);
            assert_eq!(of(&logical(TruthFunction::And)), [[0, 0, 0, 1, 1]]);
            assert_eq!(of(&logical(TruthFunction::Or)), [[0, 1, 1, 1, 1]]);
            assert_eq!(of(&Not { set }), [[1, 0, 1, 0, 0]]);
            let compared = |comparison| {
                of(&Compare::prepare(set, shapes, comparison, ElementType::Bool, None))
            };
            assert_eq!(compared(Comparison::Equal), [[1, 0, 0, 1, 1]]);
            assert_eq!(compared(Comparison::Less), [[0, 0, 1, 0, 0]]);
            assert_eq!(compared(Comparison::GreaterEqual), [[1, 1, 0, 1, 1]]);
        }
    }

    #[test]
    fn stored_numbers_are_compared_by_what_they_stand_for() {
        // 1, 0 and -1, and 1, 0 and -2.
        let (a, b) = ([2, 0, 254], [4, 2, 254]);
        let of = |scale, zero_point| Quantization { scale, zero_point };
        for set in InstructionSet::available() {
            let prepare = |quantizations| {
                let shapes: [&[usize]; 2] = [&[3], &[3]];
                let (less, elements) = (Comparison::Less, ElementType::I8);
                Compare::prepare(set, shapes, less, elements, quantizations)
            };
            assert_eq!(outputs(&prepare(None), &[&a, &b], [3]), [[1, 1, 0]]);
            let stored = prepare(Some([of(0.5, 0), of(0.5, 2)]));
            assert_eq!(outputs(&stored, &[&a, &b], [3]), [[0, 0, 0]]);
        }
    }

    #[test]
    fn operands_that_broadcast_are_compared_in_their_order() {
        let (a, b) = ([4, 1], [1, 2, 5]);
        // Halves, and ones.
        let of = |scale| Quantization { scale, zero_point: 0 };
        type Expected = fn(f32, f32) -> bool;
        let all: [(Comparison, Expected); 6] = [
            (Comparison::Equal, |a, b| a == b),
            (Comparison::NotEqual, |a, b| a != b),
            (Comparison::Less, |a, b| a < b),
            (Comparison::LessEqual, |a, b| a <= b),
            (Comparison::Greater, |a, b| a > b),
            (Comparison::GreaterEqual, |a, b| a >= b),
        ];
        for (set, (comparison, expected)) in
            InstructionSet::available().flat_map(|set| all.map(|it| (set, it)))
        {
            for (quantizations, scale) in [(None, 1.0), (Some([of(0.5), of(1.0)]), 0.5)] {
                let of = |a: u8, b: u8| u8::from(expected(f32::from(a) * scale, f32::from(b)));
                let expected = a.map(|a| b.map(|b| of(a, b))).concat();
                let shapes: [&[usize]; 2] = [&[2, 1], &[3]];
                let elements = ElementType::U8;
                let kernel = Compare::prepare(set, shapes, comparison, elements, quantizations);
                assert_eq!(outputs(&kernel, &[&a, &b], [6]), [expected], "{set} {comparison:?}");
            }
        }
    }

    #[test]
    fn nothing_but_unequal_is_nan() {
        let (a, b) = ([f32::NAN, 1.0, f32::NAN], [0.0, f32::NAN, f32::NAN]);
        let bytes: [&[u8]; 2] = [bytemuck::cast_slice(&a), bytemuck::cast_slice(&b)];
        for set in InstructionSet::available() {
            let compared = |comparison| {
                let shapes: [&[usize]; 2] = [&[3], &[3]];
                let kernel = Compare::prepare(set, shapes, comparison, ElementType::F32, None);
                outputs(&kernel, &bytes, [3])
            };
            assert_eq!(compared(Comparison::NotEqual), [[1, 1, 1]]);
            assert_eq!(compared(Comparison::LessEqual), [[0, 0, 0]]);
            assert_eq!(compared(Comparison::Greater), [[0, 0, 0]]);
        }
    }
}
