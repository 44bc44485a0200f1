//! Random numbers: RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL, MULTINOMIAL, whose generators go on from one execution to the
//! next, and STABLEHLO_RNG_BIT_GENERATOR, whose generator is given.

use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::{Operator, OperatorKind};
use crate::schema::{BuiltinOperator as B, BuiltinOptionsRef, RngAlgorithm};
use nnhal_hal::OperandSpec;
use nnhal_ops::extension::ExtensionOperation as E;
use nnhal_ops::operations::extension::random::STATE_WORDS;

/// An operator's generator.
#[derive(Debug, Clone)]
pub(super) struct Generator {
    pub(super) name: String,
    /// Its state at first, as RANDOM_UNIFORM takes it.
    pub(super) state: Vec<u8>,
}

impl GraphImporter<'_, '_> {
    /// The generators of the graph's operators, in their order.
    pub(super) fn generators(&self) -> Imported<Vec<Generator>> {
        let mut generators = Vec::new();
        for (position, operator) in self.graph.operators.iter().enumerate() {
            if let OperatorKind::Builtin(
                builtin @ (B::RandomUniform | B::RandomStandardNormal | B::Multinomial),
            ) = operator.code.kind
            {
                let name = format!("generator of operator {position}, {builtin:?}");
                self.file.allow(name.len() + 4 * STATE_WORDS as usize)?;
                let state = seeds(operator)?.map_or_else(|| Ok(Vec::new()), first_state)?;
                generators.push(Generator { name, state });
            }
        }
        Ok(generators)
    }

    pub(super) fn random(&mut self, builtin: B, operator: &Operator<'_>) -> Option<Imported> {
        Some(match builtin {
            B::RandomUniform => self.emit_drawn(operator, E::RandomUniform),
            B::RandomStandardNormal => self.emit_drawn(operator, E::RandomStandardNormal),
            B::Multinomial => self.emit_drawn(operator, E::Multinomial),
            B::StablehloRngBitGenerator => self.rng_bit_generator(operator),
            _ => return None,
        })
    }

    fn emit_drawn(&mut self, operator: &Operator<'_>, operation: E) -> Imported {
        let Some((index, before)) = self.next_generators.pop_front() else {
            return Err(Reason::new(
                "its generator cannot go on in a subgraph other than the main one",
            ));
        };
        // Whatever becomes of the operator.
        self.states[index].1 = Some(before);
        if seeds(operator)?.is_none() {
            return Err(Reason::new("it has no options"));
        }
        let output = self.output_tensor(operator, 0)?;
        let mut inputs = vec![self.input(operator, 0)?];
        if operation == E::Multinomial {
            let count = self.input(operator, 1)?;
            let one = OperandSpec { dimensions: vec![1], ..self.builder.spec(count) };
            inputs.push(self.reshape(count, one)?);
        }
        inputs.push(before);
        let specs = [self.spec(output)?, spec_of_state()];
        let [numbers, after] =
            self.builder.operation_with_outputs(operation.operation_type(), inputs, specs);
        self.set(output, numbers);
        self.states[index].1 = Some(after);
        Ok(())
    }

    fn rng_bit_generator(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options!(operator, BuiltinOptions2::StablehloRngBitGeneratorOptions);
        let algorithm = match options.algorithm()? {
            RngAlgorithm::Default | RngAlgorithm::Philox => 0,
            RngAlgorithm::Threefry => 1,
        };
        let state = self.input(operator, 0)?;
        let (after, bits) = (self.output_tensor(operator, 0)?, self.output_tensor(operator, 1)?);
        // Nothing else says how many.
        let shape = self.tensor(bits).shape.clone();
        let lengths = shape.iter().map(|length| i32::try_from(*length));
        let lengths = lengths.collect::<Result<Vec<_>, _>>();
        let mut lengths = lengths.map_err(|_| Reason::new("a length exceeds 31 bits"))?;
        if lengths.is_empty() {
            lengths.push(1);
        }
        let inputs = [state, self.integer_vector(&lengths), self.builder.scalar_i32(algorithm)];
        let specs = [self.spec(after)?, self.spec_with(bits, shape)?];
        let results =
            self.builder.operation_with_outputs(E::RngBitGenerator.operation_type(), inputs, specs);
        self.set(after, results[0]);
        self.set(bits, results[1]);
        Ok(())
    }
}

/// How a generator's state is passed.
pub(super) fn spec_of_state() -> OperandSpec {
    OperandSpec::tensor_int32([STATE_WORDS])
}

/// The two seeds, if the operator has options: their lower 32 bits, which are all that LiteRT keeps of them.
fn seeds(operator: &Operator<'_>) -> Imported<Option<[i64; 2]>> {
    Ok(match operator.table.builtin_options()? {
        Some(BuiltinOptionsRef::RandomOptions(options)) =>
        {
            #[allow(clippy::cast_possible_truncation)]
            Some([options.seed()? as i32, options.seed2()? as i32].map(i64::from))
        }
        _ => None,
    })
}

/// A generator's state for its seeds: the key, and the upper half of the counter. Two zeros are for others each time.
fn first_state(seeds: [i64; 2]) -> Imported<Vec<u8>> {
    let mut bytes = [seeds[0].to_le_bytes(), seeds[1].to_le_bytes()];
    if seeds == [0, 0] {
        let drawn = getrandom::fill(bytes.as_flattened_mut());
        drawn.map_err(|error| Reason::new(format!("there is no seed to be had: {error}")))?;
    }
    let [key, counter] = bytes;
    Ok([[0; 8], counter, key].concat())
}
