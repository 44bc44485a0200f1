//! The description of a saved compilation: everything but the bulk.
//!
//! It is written in the order of its fields: changing any of them counts [`FORMAT`](super::FORMAT) up.

use super::described::{DescribedOperand, DescribedSubgraph, all};
use super::error::CacheError;
use super::identity::Identity;
use super::sealed::LENGTH_LIMIT;
use crate::constants::Constants;
use crate::engine::CompileOptions;
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{
    ExecutionPreference, ExtensionNameAndPrefix, HalVersion, Hints, Model, Operand,
    OperandLifeTime, Priority, TokenValuePair,
};
use nnhal_ops::ValidModel;
use serde::{Deserialize, Serialize};

/// How a model was compiled, and what a saved compilation's content is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Description {
    preference: i32,
    priority: i32,
    /// Position in [`HalVersion::ALL`].
    version: u8,
    extension_names: Vec<(String, u16)>,
    hints: DescribedHints,
    content: DescribedContent,
}

/// What extensions say of the compilation.
#[derive(Debug, Serialize, Deserialize)]
struct DescribedHints {
    /// Token and value.
    values: Vec<(i32, Vec<u8>)>,
    extension_names: Vec<(String, u16)>,
}

impl DescribedHints {
    fn of(hints: &Hints) -> Self {
        let values = hints.values.iter().map(|pair| (pair.token, pair.value.clone())).collect();
        Self { values, extension_names: described_names(&hints.extension_name_to_prefix) }
    }

    fn into_hints(self) -> Hints {
        let pair = |(token, value)| TokenValuePair { token, value };
        let values = self.values.into_iter().map(pair).collect();
        Hints { values, extension_name_to_prefix: names(self.extension_names) }
    }
}

fn described_names(rows: &[ExtensionNameAndPrefix]) -> Vec<(String, u16)> {
    rows.iter().map(|row| (row.name.clone(), row.prefix)).collect()
}

fn names(described: Vec<(String, u16)>) -> Vec<ExtensionNameAndPrefix> {
    let row = |(name, prefix)| ExtensionNameAndPrefix { name, prefix };
    described.into_iter().map(row).collect()
}

#[derive(Debug, Serialize, Deserialize)]
enum DescribedContent {
    /// An engine's; these are the arguments.
    Program { inputs: Vec<DescribedOperand>, outputs: Vec<DescribedOperand> },
    /// The constants of this model.
    Model {
        main: DescribedSubgraph,
        referenced: Vec<DescribedSubgraph>,
        relax_computation_float32_to_float16: bool,
    },
}

/// What a description says of the content.
pub(super) enum Parts {
    /// It is an engine's.
    Program {
        version: HalVersion,
        inputs: Vec<Operand>,
        outputs: Vec<Operand>,
        extension_name_to_prefix: Vec<ExtensionNameAndPrefix>,
    },
    /// It is the `operand_values` of this model, which has none yet.
    Model { version: HalVersion, model: Model },
}

impl Description {
    /// Of a program that an engine made of a model.
    pub(super) fn of_program(
        model: &ValidModel,
        options: &CompileOptions,
    ) -> Result<Self, CacheError> {
        let main = model.main();
        let operands = |indexes: &[u32]| {
            let operand = |index: &u32| DescribedOperand::of(&main.operands[*index as usize]);
            indexes.iter().map(operand).collect()
        };
        let content = DescribedContent::Program {
            inputs: operands(&main.inputs),
            outputs: operands(&main.outputs),
        };
        Self::new(model, options, content)
    }

    /// Of a model, and the constants that it uses, each byte once.
    pub(super) fn of_model(
        model: &ValidModel,
        options: &CompileOptions,
    ) -> Result<(Self, Vec<u8>), CacheError> {
        let constants = Constants::read(model, &crate::memory::Ledger::of_model(LENGTH_LIMIT))
            .map_err(CacheError::Constants)?;
        let mut graphs: Vec<_> =
            model.model().subgraphs().map(|(_, graph)| DescribedSubgraph::of(graph)).collect();
        let bytes = flatten(model, &constants, &mut graphs)?;
        let referenced = graphs.split_off(1);
        let main = graphs.remove(0);
        let content = DescribedContent::Model {
            main,
            referenced,
            relax_computation_float32_to_float16: model
                .model()
                .relax_computation_float32_to_float16,
        };
        Ok((Self::new(model, options, content)?, bytes))
    }

    fn new(
        model: &ValidModel,
        options: &CompileOptions,
        content: DescribedContent,
    ) -> Result<Self, CacheError> {
        let version = HalVersion::ALL.iter().position(|version| *version == model.version());
        let version = version.and_then(|position| u8::try_from(position).ok());
        Ok(Self {
            preference: options.preference.code(),
            priority: options.priority.code(),
            version: version.ok_or(CacheError::Version { found: u8::MAX })?,
            extension_names: described_names(&model.model().extension_name_to_prefix),
            hints: DescribedHints::of(&options.hints),
            content,
        })
    }

    /// Behind the one who saves it.
    pub(super) fn to_bytes(&self, saver: &Identity) -> Result<Vec<u8>, CacheError> {
        postcard::to_allocvec(&(saver, self)).map_err(CacheError::Description)
    }

    /// Who saved it is asked first: what another version wrote may mean something else.
    pub(super) fn from_bytes(bytes: &[u8], loader: &Identity) -> Result<Self, CacheError> {
        let (saver, rest) =
            postcard::take_from_bytes::<Identity>(bytes).map_err(CacheError::Description)?;
        if saver != *loader {
            let (found, expected) = (Box::new(saver), Box::new(loader.clone()));
            return Err(CacheError::Saver { found, expected });
        }
        match postcard::take_from_bytes(rest).map_err(CacheError::Description)? {
            (description, []) => Ok(description),
            (_, rest) => Err(CacheError::Rest { found: rest.len() }),
        }
    }

    /// Codes become what they stand for (contract: CACHE-18).
    pub(super) fn into_parts(self) -> Result<(CompileOptions, Parts), CacheError> {
        let options = CompileOptions {
            preference: ExecutionPreference::from_code(self.preference)?,
            priority: Priority::from_code(self.priority)?,
            hints: self.hints.into_hints(),
        };
        let version = HalVersion::ALL.get(usize::from(self.version)).copied();
        let version = version.ok_or(CacheError::Version { found: self.version })?;
        let extension_name_to_prefix = names(self.extension_names);
        let parts = match self.content {
            DescribedContent::Program { inputs, outputs } => Parts::Program {
                version,
                inputs: all(inputs, DescribedOperand::into_operand)?,
                outputs: all(outputs, DescribedOperand::into_operand)?,
                extension_name_to_prefix,
            },
            DescribedContent::Model { main, referenced, relax_computation_float32_to_float16 } => {
                let model = Model {
                    main: main.into_subgraph()?,
                    referenced: all(referenced, DescribedSubgraph::into_subgraph)?,
                    relax_computation_float32_to_float16,
                    extension_name_to_prefix,
                    ..Model::default()
                };
                Parts::Model { version, model }
            }
        };
        Ok((options, parts))
    }
}

/// A constant, and the operand that it is the value of.
struct Value<'a> {
    graph: usize,
    operand: usize,
    bytes: &'a [u8],
}

/// Puts the constants behind each other and makes the operands refer to their new places.
///
/// Constants that overlap in the model overlap here, so what is saved is no longer than what the
/// model holds however many operands share it (contract: SEC-3).
fn flatten(
    model: &ValidModel,
    constants: &Constants,
    graphs: &mut [DescribedSubgraph],
) -> Result<Vec<u8>, CacheError> {
    let mut values = Vec::new();
    for (graph, (subgraph, operands)) in model.model().subgraphs().enumerate() {
        for (operand, declared) in operands.operands.iter().enumerate() {
            let bytes = constant(constants, subgraph, operand, declared);
            values.extend(bytes.map(|bytes| Value { graph, operand, bytes }));
        }
    }
    // By address: slices that overlap are parts of one allocation.
    values.sort_by_key(|value| (value.bytes.as_ptr().addr(), value.bytes.len()));
    let mut flat = Vec::new();
    // Where the run of overlapping slices begins and ends, and where it is in `flat`.
    let (mut start, mut end, mut at) = (0, 0, 0);
    for Value { graph, operand, bytes } in values {
        let address = bytes.as_ptr().addr();
        if flat.is_empty() || address >= end {
            (start, end, at) = (address, address, flat.len());
        }
        let new = bytes.get(end - address..).unwrap_or_default();
        let length = (flat.len() as u64).saturating_add(new.len() as u64);
        if length > LENGTH_LIMIT {
            return Err(CacheError::TooLong { found: length, limit: LENGTH_LIMIT });
        }
        flat.extend_from_slice(new);
        end += new.len();
        // Below the limit, which is below 2^32.
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let declared = &mut graphs[graph].operands[operand];
        declared.lifetime = OperandLifeTime::ConstantCopy.code();
        declared.location = (0, number(at + (address - start)), number(bytes.len()));
    }
    Ok(flat)
}

/// The bytes of an operand that is a constant with bytes.
fn constant<'a>(
    constants: &'a Constants,
    subgraph: SubgraphName,
    operand: usize,
    declared: &Operand,
) -> Option<&'a [u8]> {
    let is_constant = matches!(
        declared.lifetime,
        OperandLifeTime::ConstantCopy | OperandLifeTime::ConstantReference
    );
    is_constant.then(|| constants.bytes(subgraph, u32::try_from(operand).ok()?)).flatten()
}
