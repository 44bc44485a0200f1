//! Valid models broken in one place, in each of the ways that the contract's section 8 describes:
//! a device must refuse every one of them.
//!
//! What is broken follows from the contract and from the signatures of the operations, never from
//! what a validator says: a change that a definition allows (leaving a trailing argument out, a type
//! of another row) makes no mutant. So this tests any driver's validation, ours included.

mod control_flow;
mod definition;
mod graphs;
mod operands;
mod operations;

use nnhal_hal::model::SubgraphName;
use nnhal_hal::{
    ChannelQuant, DataLocation, Device, ErrorStatus, ExtraParams, HalVersion, Model, Operand,
    OperandLifeTime, OperandType, Operation, PrepareOptions, Subgraph,
};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The rules that mutants break, as the contract numbers them. Of its section 8 these are missing:
/// what must be accepted (MODEL-2, MODEL-18, MODEL-28, CF-8), what may be (MODEL-29), what the other
/// rules imply (CF-7), what is about the memory of pools (MODEL-27), and what a vector cannot show
/// because it has no extensions (EXT-4 to EXT-6).
pub const RULES: &[&str] = &[
    "MODEL-1", "MODEL-3", "MODEL-4", "MODEL-5", "MODEL-6", "MODEL-7", "MODEL-8", "MODEL-9",
    "MODEL-10", "MODEL-11", "MODEL-12", "MODEL-13", "MODEL-14", "MODEL-15", "MODEL-16", "MODEL-17",
    "MODEL-19", "MODEL-20", "MODEL-21", "MODEL-22", "MODEL-23", "MODEL-24", "MODEL-25", "MODEL-26",
    "EXT-1", "EXT-2", "CF-1", "CF-2", "CF-3", "CF-4", "CF-5", "CF-6",
];

/// Places of one kind in one model that are broken, at most. Which ones differs from model to
/// model.
const MOST_PLACES: usize = 12;

/// A model that must be refused.
#[derive(Debug)]
pub struct Mutant {
    /// The rule that it breaks.
    pub rule: &'static str,
    /// Where, and how.
    pub what: String,
    /// The valid model with one thing changed.
    pub model: Model,
    /// The version of the interface by whose rules it is wrong.
    pub version: HalVersion,
}

/// Makes all mutants of a valid model, one after the other: those that the newest version of a
/// device must refuse; and, where an older version is named for which the model is valid, those
/// that only need refusing there.
///
/// `seed` chooses the places that are broken in a model that has many.
pub fn mutants(
    model: &Model,
    newest: HalVersion,
    oldest: Option<HalVersion>,
    seed: usize,
    mut each: impl FnMut(Mutant),
) {
    // What a model is said to be for an older version is said of it without arguments that say
    // nothing.
    let simpler = nnhal_ops::simplify::without_defaults(model);
    let whole = if newest < HalVersion::LATEST { &simpler } else { model };
    Mutants { model: whole, version: newest, seed, each: &mut each }.all();
    let Some(version) = oldest.filter(|oldest| *oldest < newest) else { return };
    Mutants { model: &simpler, version, seed, each: &mut each }.all_of_version();
}

/// What a device did with the mutants that break one rule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// How many there were.
    pub mutants: usize,
    /// How many it did not refuse as it must.
    pub failed: usize,
    /// What was wrong with the first of these.
    pub failure: Option<String>,
}

/// Shows a device all mutants of a model; see [`mutants`]. By rule; a rule that cannot be broken in
/// this model is not there.
pub fn judge(
    device: &dyn Device,
    model: &Model,
    oldest: Option<HalVersion>,
    seed: usize,
) -> BTreeMap<&'static str, Verdict> {
    let mut verdicts = BTreeMap::<_, Verdict>::new();
    mutants(model, device.version(), oldest, seed, |mutant| {
        let verdict = verdicts.entry(mutant.rule).or_default();
        verdict.mutants += 1;
        if let Err(what) = expect_refusal(device, &mutant) {
            verdict.failed += 1;
            verdict.failure.get_or_insert_with(|| {
                format!("{}: {what} (by version {})", mutant.what, mutant.version)
            });
        }
    });
    verdicts
}

/// Contract: DEV-SUP-1, PREP-1.
pub(crate) fn expect_refusal(device: &dyn Device, mutant: &Mutant) -> Result<(), String> {
    let Mutant { model, version, .. } = mutant;
    let supported =
        unharmed("supported_operations", || device.supported_operations(model, *version))?;
    expect_invalid("supported_operations", supported.map(drop))?;
    let prepared = unharmed("prepare_model", || {
        device.prepare_model(model, *version, PrepareOptions::default())
    })?;
    expect_invalid("prepare_model", prepared.map(drop))
}

/// A panic is a defect of the device, whether it comes out or the driver makes an error of it.
fn unharmed<T>(
    method: &str,
    call: impl FnOnce() -> nnhal_hal::Result<T>,
) -> Result<nnhal_hal::Result<T>, String> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Err(_) => Err(format!("{method} panicked")),
        Ok(Err(error)) if error.to_string().contains("panicked") => {
            Err(format!("{method} panicked: {error}"))
        }
        Ok(result) => Ok(result),
    }
}

fn expect_invalid(method: &str, result: nnhal_hal::Result<()>) -> Result<(), String> {
    match result {
        Ok(()) => Err(format!("{method} accepted it")),
        Err(error) if error.status() != ErrorStatus::InvalidArgument => {
            Err(format!("{method} answered {error}, expected INVALID_ARGUMENT"))
        }
        Err(_) => Ok(()),
    }
}

/// Makes the mutants of a model.
struct Mutants<'a> {
    model: &'a Model,
    /// For which they must be refused.
    version: HalVersion,
    seed: usize,
    each: &'a mut dyn FnMut(Mutant),
}

impl Mutants<'_> {
    /// Everything that is wrong in every version.
    fn all(mut self) {
        self.operands();
        self.graphs();
        self.operations();
        self.control_flow();
    }

    /// The model with one change.
    fn add(&mut self, rule: &'static str, what: String, change: impl FnOnce(&mut Model)) {
        let mut model = self.model.clone();
        change(&mut model);
        (self.each)(Mutant { rule, what, model, version: self.version });
    }

    /// Some of `count` places: all of them if they are few.
    fn places(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        let step = count.div_ceil(MOST_PLACES).max(1);
        (self.seed % step..count).step_by(step)
    }

    /// One of several ways, another one for every place and model.
    fn choose<'list, T>(&self, place: usize, from: &'list [T]) -> Option<&'list T> {
        from.get((self.seed + place) % from.len().max(1))
    }

    /// The places of operands that a condition holds for, some of them.
    fn operands_where(
        &self,
        applies: impl Fn(&Operand) -> bool,
    ) -> Vec<(SubgraphName, usize, Operand)> {
        let all: Vec<_> = self
            .model
            .subgraphs()
            .flat_map(|(name, graph)| {
                graph.operands.iter().enumerate().map(move |(index, it)| (name, index, it))
            })
            .filter(|(_, _, operand)| applies(operand))
            .collect();
        let chosen = self.places(all.len()).map(|place| all[place]);
        chosen.map(|(name, index, operand)| (name, index, operand.clone())).collect()
    }

    /// The model with a change to one operand, for some of those that it applies to.
    fn add_for_operands(
        &mut self,
        rule: &'static str,
        what: &str,
        applies: impl Fn(&Operand) -> bool,
        change: impl Fn(&mut Operand),
    ) {
        for (name, index, _) in self.operands_where(applies) {
            self.add(rule, format!("operand {index} of the {name}: {what}"), |model| {
                change(&mut graph_mut(model, name).operands[index]);
            });
        }
    }

    /// The places of operations, some of them.
    fn some_operations(&self) -> Vec<(SubgraphName, usize, Operation)> {
        let all: Vec<_> = self
            .model
            .subgraphs()
            .flat_map(|(name, graph)| {
                graph.operations.iter().enumerate().map(move |(index, it)| (name, index, it))
            })
            .collect();
        let chosen = self.places(all.len()).map(|place| all[place]);
        chosen.map(|(name, index, operation)| (name, index, operation.clone())).collect()
    }
}

fn graph(model: &Model, name: SubgraphName) -> &Subgraph {
    match name {
        SubgraphName::Main => &model.main,
        SubgraphName::Referenced(index) => &model.referenced[index],
    }
}

fn graph_mut(model: &mut Model, name: SubgraphName) -> &mut Subgraph {
    match name {
        SubgraphName::Main => &mut model.main,
        SubgraphName::Referenced(index) => &mut model.referenced[index],
    }
}

/// Brings the numbers of consumers in line with the operations.
fn recount(graph: &mut Subgraph) {
    for operand in &mut graph.operands {
        operand.number_of_consumers = 0;
    }
    for index in graph.operations.iter().flat_map(|operation| &operation.inputs) {
        graph.operands[*index as usize].number_of_consumers += 1;
    }
}

/// An index as the interface counts: with 32 bits.
fn index_of(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

fn is_tensor(operand: &Operand) -> bool {
    operand.operand_type.is_tensor() == Some(true)
}

fn is_constant(operand: &Operand) -> bool {
    operand.lifetime.is_constant()
}

/// Gives a constant a value of its own: zeros at the end of the model's values.
fn give_zeros(model: &mut Model, name: SubgraphName, index: usize) {
    let offset = index_of(model.operand_values.len());
    let operand = &mut graph_mut(model, name).operands[index];
    let element = operand.operand_type.element_size().unwrap_or(1);
    // Vectors have no constants that could not be measured.
    let length = operand.dimensions.iter().fold(element, |size, it| size.saturating_mul(*it));
    operand.lifetime = OperandLifeTime::ConstantCopy;
    operand.location = DataLocation { pool_index: 0, offset, length };
    let zeros = std::iter::repeat_n(0, length as usize);
    model.operand_values = model.operand_values.iter().copied().chain(zeros).collect();
}

/// Whether operations write it.
fn is_result(operand: &Operand) -> bool {
    matches!(operand.lifetime, OperandLifeTime::TemporaryVariable | OperandLifeTime::SubgraphOutput)
}

/// Whether the interface says what the type is.
fn is_fundamental(operand: &Operand) -> bool {
    !matches!(operand.operand_type, OperandType::Extension(_)) && !operand.operand_type.is_oem()
}

fn channels(count: u32) -> ExtraParams {
    let scales = vec![1.0; count as usize].into();
    ExtraParams::ChannelQuant(ChannelQuant { scales, channel_dim: 0 })
}
