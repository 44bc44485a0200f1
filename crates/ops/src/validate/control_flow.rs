//! How IF and WHILE go together with the subgraphs that they run (contract: CF-1 to CF-6).

use super::Rules;
use super::graph::Side;
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{
    ChannelQuant, ExtraParams, Model, Operand, OperandLifeTime, OperandType, Operation,
};
use nnhal_hal::{OperationType, Subgraph};
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A subgraph that an IF or WHILE runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Of IF: run if the condition holds.
    Then,
    /// Of IF: run if it does not.
    Else,
    /// Of WHILE: says whether there is another round.
    Condition,
    /// Of WHILE: a round.
    Body,
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Then => "then subgraph",
            Self::Else => "else subgraph",
            Self::Condition => "condition subgraph",
            Self::Body => "body subgraph",
        })
    }
}

/// An operand that an IF or WHILE has to do with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Party {
    /// An argument of the operation.
    Operation(Side, usize),
    /// An argument of a subgraph that it runs.
    Subgraph(Role, Side, usize),
}

impl fmt::Display for Party {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation(side, position) => write!(formatter, "{side} {position}"),
            Self::Subgraph(role, side, position) => {
                write!(formatter, "{side} {position} of the {role}")
            }
        }
    }
}

/// How operands and subgraphs of an IF or WHILE do not go together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlFlowError {
    /// What decides is not one truth value (contract: CF-1, CF-2).
    #[error("{party} is {operand_type} {dimensions:?}, expected TENSOR_BOOL8 [1]")]
    Condition {
        /// The operand that decides.
        party: Party,
        /// As the model declares it.
        operand_type: OperandType,
        /// As the model declares them; 0 is an unknown length.
        dimensions: Vec<u32>,
    },
    /// A subgraph takes or gives another number of arguments (contract: CF-1, CF-2).
    #[error("the {role} has {found} {side}s, expected {least} to {most}")]
    Count {
        /// Which subgraph.
        role: Role,
        /// Which list.
        side: Side,
        /// How many it has.
        found: usize,
        /// The least that the operation allows.
        least: usize,
        /// The most that the operation allows.
        most: usize,
    },
    /// Two operands that stand for each other differ (contract: CF-3).
    #[error("{what} of {party} is {found}, expected {expected} as {other}")]
    Incompatible {
        /// One of them.
        party: Party,
        /// What it is compared with.
        other: Party,
        /// In which property.
        what: &'static str,
        /// What the one has.
        found: String,
        /// What the other has.
        expected: String,
    },
    /// No model was set for an operand that stands for one, which an application sees to before it adds the
    /// operation (contract: CF-1, CF-2).
    #[error("no model is set as the {role}")]
    NoModel {
        /// What the model is to be.
        role: Role,
    },
    /// An operand of a WHILE whose size is not known (contract: CF-4).
    #[error("{party} has dimensions {found:?}, expected all known")]
    UnknownSize {
        /// The operand.
        party: Party,
        /// Its dimensions.
        found: Vec<u32>,
    },
}

/// The referenced subgraphs, each behind all that it refers to; or the first that is found to refer
/// to itself. Every reference counts, read or not. Goes without recursion, and looks at each operand
/// once.
pub(super) fn order(model: &Model) -> Result<Vec<usize>, usize> {
    #[derive(Clone, Copy, PartialEq)]
    enum Visit {
        NotYet,
        Open,
        Done,
    }
    let mut order = Vec::with_capacity(model.referenced.len());
    let mut visits = vec![Visit::NotYet; model.referenced.len()];
    for start in 0..model.referenced.len() {
        if visits[start] != Visit::NotYet {
            continue;
        }
        // From `start`: subgraphs, and the operand of each that is looked at next.
        let mut path = vec![(start, 0)];
        visits[start] = Visit::Open;
        while let Some((subgraph, next)) = path.last_mut() {
            let operands = &model.referenced[*subgraph].operands;
            let Some(operand) = operands.get(*next) else {
                visits[*subgraph] = Visit::Done;
                order.push(*subgraph);
                path.pop();
                continue;
            };
            *next += 1;
            if operand.lifetime != OperandLifeTime::Subgraph {
                continue;
            }
            let target = operand.location.offset as usize;
            match visits.get(target) {
                Some(Visit::Open) => return Err(target),
                Some(Visit::NotYet) => {
                    visits[target] = Visit::Open;
                    path.push((target, 0));
                }
                Some(Visit::Done) | None => {}
            }
        }
    }
    Ok(order)
}

/// The subgraphs of a model, prepared for comparing their operands.
pub(super) struct Subgraphs<'a> {
    model: &'a Model,
    rules: Rules,
    /// By subgraph and operand: a number for its extra parameters, 0 for none. Equal ones have
    /// equal numbers, so that comparing long lists of scales again and again costs nothing.
    extra_params: Vec<Vec<u32>>,
}

impl<'a> Subgraphs<'a> {
    pub(super) fn new(model: &'a Model, rules: Rules) -> Self {
        let mut numbers = HashMap::new();
        let mut number = |operand: &'a Operand| {
            if operand.extra_params == ExtraParams::None {
                return 0;
            }
            let next = u32::try_from(numbers.len() + 1).unwrap_or(u32::MAX);
            *numbers.entry(Bits(&operand.extra_params)).or_insert(next)
        };
        // Only control flow compares operands.
        let extra_params = if model.referenced.is_empty() {
            Vec::new()
        } else {
            let numbers = |graph: &'a Subgraph| graph.operands.iter().map(&mut number).collect();
            model.subgraphs().map(|(_, graph)| graph).map(numbers).collect()
        };
        Self { model, rules, extra_params }
    }

    /// The rules that the model is checked by.
    pub(super) fn rules(&self) -> Rules {
        self.rules
    }

    /// A subgraph by name; the main one if there is no such.
    pub(super) fn graph(&self, name: SubgraphName) -> &'a Subgraph {
        match name {
            SubgraphName::Main => &self.model.main,
            SubgraphName::Referenced(index) => {
                self.model.referenced.get(index).unwrap_or(&self.model.main)
            }
        }
    }

    fn member(&self, party: Party, name: SubgraphName, operand: u32) -> Member<'a> {
        let extra_params =
            self.extra_params.get(name.position()).map_or(0, |it| it[operand as usize]);
        Member { party, operand: &self.graph(name).operands[operand as usize], extra_params }
    }
}

/// Extra parameters compared bit by bit, so that they can be looked up.
struct Bits<'a>(&'a ExtraParams);

impl Bits<'_> {
    fn scales(quant: &ChannelQuant) -> impl Iterator<Item = u32> {
        quant.scales.iter().map(|scale| scale.to_bits())
    }
}

impl PartialEq for Bits<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self.0, other.0) {
            (ExtraParams::ChannelQuant(ours), ExtraParams::ChannelQuant(theirs)) => {
                ours.channel_dim == theirs.channel_dim
                    && Self::scales(ours).eq(Self::scales(theirs))
            }
            (ExtraParams::Extension(ours), ExtraParams::Extension(theirs)) => ours == theirs,
            (ExtraParams::None, ExtraParams::None) => true,
            _ => false,
        }
    }
}

impl Eq for Bits<'_> {}

impl Hash for Bits<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.0 {
            ExtraParams::None => 0_u8.hash(state),
            ExtraParams::ChannelQuant(quant) => {
                quant.channel_dim.hash(state);
                Self::scales(quant).for_each(|scale| scale.hash(state));
            }
            ExtraParams::Extension(bytes) => bytes.hash(state),
        }
    }
}

/// An operand, and where it stands.
#[derive(Clone, Copy)]
struct Member<'a> {
    party: Party,
    operand: &'a Operand,
    extra_params: u32,
}

impl Member<'_> {
    /// Contract: CF-3.
    fn expect_compatible(&self, other: &Self) -> Result<(), ControlFlowError> {
        let differ = |what, found: String, expected: String| {
            let (party, other) = (self.party, other.party);
            Err(ControlFlowError::Incompatible { party, other, what, found, expected })
        };
        let (a, b) = (self.operand, other.operand);
        if a.operand_type != b.operand_type {
            return differ("type", a.operand_type.to_string(), b.operand_type.to_string());
        }
        // The same number stands for the same values; OEM types may carry anything, even NaN.
        if a.scale.to_bits() != b.scale.to_bits() && a.scale != b.scale {
            return differ("scale", a.scale.to_string(), b.scale.to_string());
        }
        if a.zero_point != b.zero_point {
            return differ("zero point", a.zero_point.to_string(), b.zero_point.to_string());
        }
        if self.extra_params != other.extra_params {
            return differ("extra parameters", "others".into(), "the same".into());
        }
        let same_rank = a.dimensions.len() == b.dimensions.len();
        let agree = |(a, b): (&u32, &u32)| *a == 0 || *b == 0 || a == b;
        let unknown_rank = a.dimensions.is_empty() || b.dimensions.is_empty();
        if unknown_rank || (same_rank && a.dimensions.iter().zip(&b.dimensions).all(agree)) {
            return Ok(());
        }
        differ("shape", format!("{:?}", a.dimensions), format!("{:?}", b.dimensions))
    }

    /// Contract: CF-1, CF-2.
    fn expect_condition(&self) -> Result<(), ControlFlowError> {
        let Operand { operand_type, dimensions, .. } = self.operand;
        if *operand_type == OperandType::TensorBool8 && dimensions[..] == [1] {
            return Ok(());
        }
        let (party, operand_type) = (self.party, *operand_type);
        Err(ControlFlowError::Condition { party, operand_type, dimensions: dimensions.clone() })
    }

    /// Contract: CF-4. Of an extension's type no one here knows.
    fn expect_known_size(&self) -> Result<(), ControlFlowError> {
        let is_extension = matches!(self.operand.operand_type, OperandType::Extension(_));
        if is_extension || self.operand.has_known_dimensions() {
            return Ok(());
        }
        let found = self.operand.dimensions.clone();
        Err(ControlFlowError::UnknownSize { party: self.party, found })
    }
}

/// An operation that controls others, its indexes and signature already checked.
struct Controller<'a> {
    subgraphs: &'a Subgraphs<'a>,
    name: SubgraphName,
    step: &'a Operation,
}

/// A subgraph that it runs.
#[derive(Clone, Copy)]
struct Controlled<'a> {
    role: Role,
    name: SubgraphName,
    graph: &'a Subgraph,
}

impl<'a> Controller<'a> {
    fn argument(&self, side: Side, position: usize) -> Member<'a> {
        let indexes = match side {
            Side::Input => &self.step.inputs,
            Side::Output => &self.step.outputs,
        };
        self.subgraphs.member(Party::Operation(side, position), self.name, indexes[position])
    }

    fn inner(&self, of: Controlled<'_>, side: Side, position: usize) -> Member<'a> {
        let indexes = match side {
            Side::Input => &of.graph.inputs,
            Side::Output => &of.graph.outputs,
        };
        let party = Party::Subgraph(of.role, side, position);
        self.subgraphs.member(party, of.name, indexes[position])
    }

    /// The subgraph that an input refers to.
    fn controlled(&self, role: Role, position: usize) -> Controlled<'a> {
        let offset = self.argument(Side::Input, position).operand.location.offset;
        let name = SubgraphName::Referenced(offset as usize);
        Controlled { role, name, graph: self.subgraphs.graph(name) }
    }

    /// Contract: CF-1.
    fn check_if(&self) -> Result<(), ControlFlowError> {
        const FIRST: usize = 3;
        self.argument(Side::Input, 0).expect_condition()?;
        let (inputs, outputs) = (self.step.inputs.len() - FIRST, self.step.outputs.len());
        for (role, position) in [(Role::Then, 1), (Role::Else, 2)] {
            let branch = self.controlled(role, position);
            expect_count(branch, Side::Input, inputs, inputs)?;
            expect_count(branch, Side::Output, outputs, outputs)?;
            for at in 0..inputs {
                let outer = self.argument(Side::Input, FIRST + at);
                self.inner(branch, Side::Input, at).expect_compatible(&outer)?;
            }
            for at in 0..outputs {
                let outer = self.argument(Side::Output, at);
                self.inner(branch, Side::Output, at).expect_compatible(&outer)?;
            }
        }
        Ok(())
    }

    /// Contract: CF-2, CF-4.
    fn check_while(&self) -> Result<(), ControlFlowError> {
        const FIRST: usize = 2;
        let (inputs, outputs) = (self.step.inputs.len() - FIRST, self.step.outputs.len());
        let condition = self.controlled(Role::Condition, 0);
        let body = self.controlled(Role::Body, 1);
        expect_count(condition, Side::Input, inputs, inputs)?;
        expect_count(condition, Side::Output, 1, 1)?;
        expect_count(body, Side::Input, inputs, inputs)?;
        expect_count(body, Side::Output, outputs, inputs)?;
        self.inner(condition, Side::Output, 0).expect_condition()?;
        for at in 0..inputs {
            let outer = self.argument(Side::Input, FIRST + at);
            for graph in [condition, body] {
                let inner = self.inner(graph, Side::Input, at);
                inner.expect_compatible(&outer)?;
                self.expect_known_size(inner)?;
            }
            self.expect_known_size(outer)?;
        }
        for at in 0..body.graph.outputs.len() {
            let result = self.inner(body, Side::Output, at);
            if at < outputs {
                let outer = self.argument(Side::Output, at);
                result.expect_compatible(&outer)?;
                self.expect_known_size(outer)?;
            }
            result.expect_compatible(&self.inner(body, Side::Input, at))?;
            self.expect_known_size(result)?;
        }
        Ok(())
    }

    /// Contract: CF-4.
    fn expect_known_size(&self, member: Member<'_>) -> Result<(), ControlFlowError> {
        match self.subgraphs.rules {
            Rules::Interface => member.expect_known_size(),
            Rules::Application => Ok(()),
        }
    }
}

fn expect_count(
    graph: Controlled<'_>,
    side: Side,
    least: usize,
    most: usize,
) -> Result<(), ControlFlowError> {
    let found = match side {
        Side::Input => graph.graph.inputs.len(),
        Side::Output => graph.graph.outputs.len(),
    };
    if (least..=most).contains(&found) {
        return Ok(());
    }
    Err(ControlFlowError::Count { role: graph.role, side, found, least, most })
}

/// Checks an operation if it is an IF or WHILE. Its signature holds, all subgraphs' indexes are in
/// range (CF-6) and there are no cycles. Costs no more than its own lists of indexes are long.
pub(super) fn check(
    subgraphs: &Subgraphs<'_>,
    name: SubgraphName,
    step: &Operation,
) -> Result<(), ControlFlowError> {
    let controller = Controller { subgraphs, name, step };
    match step.operation_type {
        OperationType::If => controller.check_if(),
        OperationType::While => controller.check_while(),
        _ => Ok(()),
    }
}

/// Checks an IF or WHILE of an application before its model is whole, against its subgraphs: `subgraph`
/// says which graph an input stands for, if it is set. Its signature holds, and indexes are in range.
///
/// # Errors
/// How they do not go together, or that one is not there (contract: CF-1 to CF-3).
pub fn check_control_flow<'a>(
    operands: &[Operand],
    operation: &Operation,
    subgraph: impl Fn(&u32) -> Option<&'a Subgraph>,
) -> Result<(), ControlFlowError> {
    let (first, roles) = match operation.operation_type {
        OperationType::If => (1, [Role::Then, Role::Else]),
        OperationType::While => (0, [Role::Condition, Role::Body]),
        _ => return Ok(()),
    };
    let outer = |indexes: &[u32]| -> Vec<Operand> {
        indexes.iter().map(|index| operands[*index as usize].clone()).collect()
    };
    let (inputs, outputs) = (outer(&operation.inputs), outer(&operation.outputs));
    let mut model = Model { main: border(inputs, outputs), ..Model::default() };
    for (position, role) in (first..).zip(roles) {
        let graph = subgraph(&operation.inputs[position]);
        let graph = graph.ok_or(ControlFlowError::NoModel { role })?;
        let graph = border(of(graph, &graph.inputs), of(graph, &graph.outputs));
        let reference = &mut model.main.operands[position];
        reference.lifetime = OperandLifeTime::Subgraph;
        reference.location.offset = u32::try_from(model.referenced.len()).unwrap_or(u32::MAX);
        model.referenced.push(graph);
    }
    let step = Operation {
        operation_type: operation.operation_type,
        inputs: model.main.inputs.clone(),
        outputs: model.main.outputs.clone(),
    };
    check(&Subgraphs::new(&model, Rules::Application), SubgraphName::Main, &step)
}

fn of(graph: &Subgraph, indexes: &[u32]) -> Vec<Operand> {
    indexes.iter().map(|index| graph.operands[*index as usize].clone()).collect()
}

/// A graph of nothing but its arguments.
fn border(inputs: Vec<Operand>, outputs: Vec<Operand>) -> Subgraph {
    let count = u32::try_from(inputs.len()).unwrap_or(u32::MAX);
    let all = u32::try_from(inputs.len() + outputs.len()).unwrap_or(u32::MAX);
    Subgraph {
        operands: inputs.into_iter().chain(outputs).collect(),
        operations: Vec::new(),
        inputs: (0..count).collect(),
        outputs: (count..all).collect(),
    }
}

#[cfg(test)]
mod tests;
