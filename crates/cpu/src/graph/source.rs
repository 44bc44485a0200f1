//! [`Sources`]: what plans are made of.

use super::{Constant, ConstantOrigin};
use nnhal_driver::{Constants, EngineError, Ledger, MemoryUse};
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{OperandLifeTime, Subgraph};
use nnhal_ops::{Shape, ValidModel};
use std::borrow::Cow;
use std::sync::Arc;

/// The main subgraph, then the referenced ones.
#[derive(Debug)]
pub(crate) struct Sources(Vec<Source>);

/// A subgraph and its constants.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: SubgraphName,
    pub(crate) subgraph: Subgraph,
    constants: SourceConstants,
}

#[derive(Debug)]
enum SourceConstants {
    /// Read out of the client's memory, for plans to come.
    Read(Arc<Constants>),
    /// By operand; those in pools are read when they are wanted.
    OfModel(Vec<Option<nnhal_ops::validate::Constant>>),
    /// By operand.
    Saved(Vec<Option<SavedConstant>>),
}

/// A constant of a program that was saved.
#[derive(Debug)]
pub(crate) struct SavedConstant {
    pub(crate) dimensions: Vec<u32>,
    pub(crate) length: usize,
    /// `None` if all that is wanted of it was packed.
    pub(crate) bytes: Option<bytes::Bytes>,
}

impl Sources {
    /// For one plan: it reads constants while the model is there. The ledger has to have room for those in
    /// pools.
    pub(crate) fn of_model(model: &ValidModel, ledger: &Ledger) -> Result<Self, EngineError> {
        let mut wanted = 0_u64;
        let source = |(name, subgraph): (SubgraphName, &Subgraph)| {
            let operands = 0..u32::try_from(subgraph.operands.len()).unwrap_or(u32::MAX);
            let constants = operands.map(|operand| model.constant(name, operand).cloned());
            let constants: Vec<_> = constants.collect();
            let in_pools = constants.iter().flatten().filter(|it| it.known().is_none());
            wanted += in_pools.map(|constant| constant.length() as u64).sum::<u64>();
            let constants = SourceConstants::OfModel(constants);
            Source { name, subgraph: subgraph.clone(), constants }
        };
        let sources = model.model().subgraphs().map(source).collect();
        ledger.expect_room(wanted, MemoryUse::Constants)?;
        Ok(Self(sources))
    }

    /// For plans when the model is gone.
    pub(crate) fn read(model: &ValidModel, constants: &Arc<Constants>) -> Self {
        let source = |(name, subgraph): (SubgraphName, &Subgraph)| {
            let (subgraph, constants) = (subgraph.clone(), Arc::clone(constants));
            Source { name, subgraph, constants: SourceConstants::Read(constants) }
        };
        Self(model.model().subgraphs().map(source).collect())
    }

    /// Of what was saved, by operand: a main subgraph that refers to no others.
    pub(crate) fn restored(subgraph: Subgraph, constants: Vec<Option<SavedConstant>>) -> Self {
        let constants = SourceConstants::Saved(constants);
        Self(vec![Source { name: SubgraphName::Main, subgraph, constants }])
    }

    /// By index: 0 is the main subgraph.
    pub(crate) fn get(&self, index: usize) -> Option<&Source> {
        self.0.get(index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Source> {
        self.0.iter()
    }

    /// The main subgraph.
    pub(crate) fn into_main(self) -> Option<Subgraph> {
        self.0.into_iter().next().map(|source| source.subgraph)
    }
}

impl Source {
    /// Whether it was saved.
    pub(crate) fn is_restored(&self) -> bool {
        matches!(self.constants, SourceConstants::Saved(_))
    }

    /// A constant operand and its lengths.
    pub(crate) fn constant(&self, operand: u32) -> Option<(Constant<'_>, &[u32])> {
        let index = operand as usize;
        let declared = &self.subgraph.operands[index];
        match &self.constants {
            SourceConstants::Saved(constants) => {
                let saved = constants.get(index)?.as_ref()?;
                let bytes = saved.bytes.as_deref().map(Cow::Borrowed);
                let origin = bytes.map_or(ConstantOrigin::Packed, ConstantOrigin::Here);
                Some((Constant::new(origin, saved.length), &saved.dimensions))
            }
            _ if !is_constant(declared.lifetime) => None,
            SourceConstants::Read(constants) => {
                let bytes = constants.bytes(self.name, operand)?;
                let origin = ConstantOrigin::Here(Cow::Borrowed(bytes));
                Some((Constant::new(origin, bytes.len()), &declared.dimensions))
            }
            SourceConstants::OfModel(constants) => {
                let constant = constants[index].as_ref()?;
                let known = constant.known().map(|bytes| ConstantOrigin::Here(bytes.into()));
                let origin = known.unwrap_or(ConstantOrigin::InPool(constant));
                Some((Constant::new(origin, constant.length()), &declared.dimensions))
            }
        }
    }

    /// What the model says of an operand's shape.
    pub(crate) fn declared(&self, operand: u32) -> Shape {
        Shape::declared(&self.subgraph.operands[operand as usize])
    }
}

fn is_constant(lifetime: OperandLifeTime) -> bool {
    matches!(lifetime, OperandLifeTime::ConstantCopy | OperandLifeTime::ConstantReference)
}
