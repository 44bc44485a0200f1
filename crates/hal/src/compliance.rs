//! What an older interface cannot express.
//!
//! A model, request or capability of the canonical types may hold something that an older version
//! of the interface cannot express. The functions here list each such [`Obstacle`]. They look at types
//! and fields only: which argument types an operation takes in which version is known to the `ops` crate.

use crate::capabilities::Capabilities;
use crate::codes::{HalVersion, OperandLifeTime};
use crate::memory::MemoryKind;
use crate::model::{ExtraParams, Model, SubgraphName};
use crate::operand_type::OperandType;
use crate::operation_type::OperationType;
use crate::request::{Request, RequestArgument, RequestMemoryPool};

/// Something that a version of the interface cannot express.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// An operand's type is newer.
    #[error("operand {operand} of {subgraph} is {operand_type}, which came with {since}")]
    OperandType {
        /// The main subgraph, or the index of another.
        subgraph: SubgraphName,
        /// Index among the subgraph's operands.
        operand: usize,
        /// As the model declares it.
        operand_type: OperandType,
        /// The first version that has it.
        since: HalVersion,
    },
    /// An operation is newer.
    #[error("operation {operation} of {subgraph} is {operation_type}, which came with {since}")]
    OperationType {
        /// The main subgraph, or the index of another.
        subgraph: SubgraphName,
        /// Index among the subgraph's operations.
        operation: usize,
        /// As the model has it.
        operation_type: OperationType,
        /// The first version that has it.
        since: HalVersion,
    },
    /// A lifetime is newer.
    #[error("operand {operand} of {subgraph} has lifetime {lifetime}, which came with {since}")]
    LifeTime {
        /// The main subgraph, or the index of another.
        subgraph: SubgraphName,
        /// Index among the subgraph's operands.
        operand: usize,
        /// As the model declares it.
        lifetime: OperandLifeTime,
        /// The first version that has it.
        since: HalVersion,
    },
    /// A tensor of unknown rank, which only 1.2 brought.
    #[error("operand {operand} of {subgraph} has no known rank, which 1.2 first allowed")]
    UnknownRank {
        /// The main subgraph, or the index of another.
        subgraph: SubgraphName,
        /// Index among the subgraph's operands.
        operand: usize,
    },
    /// Extra parameters, which only 1.2 brought.
    #[error("operand {operand} of {subgraph} has extra parameters, which came with 1.2")]
    ExtraParams {
        /// The main subgraph, or the index of another.
        subgraph: SubgraphName,
        /// Index among the subgraph's operands.
        operand: usize,
    },
    /// Referenced subgraphs, which only 1.3 brought.
    #[error("the model refers to {count} other subgraphs, which came with 1.3")]
    ReferencedSubgraphs {
        /// The number of them in the model.
        count: usize,
    },
    /// Relaxed computation, which only 1.1 brought.
    #[error("float32 is relaxed to float16, which came with 1.1")]
    RelaxedComputation,
    /// Extensions, which only 1.2 brought.
    #[error("the model names {count} extensions, which came with 1.2")]
    Extensions {
        /// The number of them in the model.
        count: usize,
    },
    /// A kind of memory that is newer.
    #[error("pool {pool} is {}, which came with {}", .kind.name(), .kind.since())]
    MemoryKind {
        /// Index among the pools.
        pool: usize,
        /// The kind of the pool's memory.
        kind: MemoryKind,
    },
    /// A buffer that the driver manages, which only 1.3 brought.
    #[error("pool {pool} is a token, which came with 1.3")]
    Token {
        /// Index among the pools.
        pool: usize,
    },
    /// An output whose shape no one knows, which only 1.2 brought.
    #[error("output {output} has an unknown dimension, which 1.2 first allowed")]
    UnknownOutput {
        /// Index among the request's outputs.
        output: usize,
    },
    /// A cost of an operand type that is newer.
    #[error("the cost of {operand_type} is stated, which came with {}", .operand_type.since())]
    Performance {
        /// The type whose cost is stated.
        operand_type: OperandType,
    },
}

impl Model {
    /// Everything that keeps an interface of `version` from expressing this model.
    pub fn obstacles_in(&self, version: HalVersion) -> Vec<Obstacle> {
        let mut obstacles = Vec::new();
        if version < HalVersion::V1_3 && !self.referenced.is_empty() {
            obstacles.push(Obstacle::ReferencedSubgraphs { count: self.referenced.len() });
        }
        if version < HalVersion::V1_1 && self.relax_computation_float32_to_float16 {
            obstacles.push(Obstacle::RelaxedComputation);
        }
        if version < HalVersion::V1_2 && !self.extension_name_to_prefix.is_empty() {
            obstacles.push(Obstacle::Extensions { count: self.extension_name_to_prefix.len() });
        }
        obstacles.extend(newer_memory(self.pools.iter().enumerate(), version));
        for (name, subgraph) in self.subgraphs() {
            for (index, operand) in subgraph.operands.iter().enumerate() {
                obstacles.extend(operand_obstacles(name, index, operand, version));
            }
            for (index, operation) in subgraph.operations.iter().enumerate() {
                let operation_type = operation.operation_type;
                if operation_type.since() > version {
                    obstacles.push(Obstacle::OperationType {
                        subgraph: name,
                        operation: index,
                        operation_type,
                        since: operation_type.since(),
                    });
                }
            }
        }
        obstacles
    }

    /// The oldest version that can express this model. The argument types of its operations are not
    /// looked at: for that, ask the `ops` crate.
    pub fn oldest_expressible(&self) -> HalVersion {
        HalVersion::ALL
            .iter()
            .copied()
            .find(|version| self.obstacles_in(*version).is_empty())
            .unwrap_or(HalVersion::LATEST)
    }
}

fn operand_obstacles(
    subgraph: SubgraphName,
    index: usize,
    operand: &crate::model::Operand,
    version: HalVersion,
) -> Vec<Obstacle> {
    let mut obstacles = Vec::new();
    let operand_type = operand.operand_type;
    if operand_type.since() > version {
        obstacles.push(Obstacle::OperandType {
            subgraph,
            operand: index,
            operand_type,
            since: operand_type.since(),
        });
    } else if version < HalVersion::V1_2 {
        if operand.extra_params != ExtraParams::None {
            obstacles.push(Obstacle::ExtraParams { subgraph, operand: index });
        }
        if operand_type.is_tensor() == Some(true) && operand.dimensions.is_empty() {
            obstacles.push(Obstacle::UnknownRank { subgraph, operand: index });
        }
    }
    if operand.lifetime.since() > version {
        obstacles.push(Obstacle::LifeTime {
            subgraph,
            operand: index,
            lifetime: operand.lifetime,
            since: operand.lifetime.since(),
        });
    }
    obstacles
}

fn newer_memory<'a>(
    pools: impl Iterator<Item = (usize, &'a crate::Memory)>,
    version: HalVersion,
) -> impl Iterator<Item = Obstacle> {
    pools
        .filter(move |(_, memory)| memory.kind().since() > version)
        .map(|(pool, memory)| Obstacle::MemoryKind { pool, kind: memory.kind() })
}

impl Request {
    /// Everything that keeps an interface of `version` from expressing this request to `model`.
    pub fn obstacles_in(&self, version: HalVersion, model: &Model) -> Vec<Obstacle> {
        let memories = self.pools.iter().enumerate().filter_map(|(index, pool)| match pool {
            RequestMemoryPool::Memory(memory) => Some((index, memory)),
            RequestMemoryPool::Token(_) => None,
        });
        let mut obstacles: Vec<_> = newer_memory(memories, version).collect();
        if version < HalVersion::V1_3 {
            obstacles.extend(self.pools.iter().enumerate().filter_map(|(pool, kind)| {
                matches!(kind, RequestMemoryPool::Token(_)).then_some(Obstacle::Token { pool })
            }));
        }
        if version < HalVersion::V1_2 {
            obstacles.extend(
                self.outputs
                    .iter()
                    .zip(&model.main.outputs)
                    .enumerate()
                    .filter(|(_, (argument, index))| {
                        model
                            .main
                            .operands
                            .get(**index as usize)
                            .is_some_and(|operand| is_unknown(argument, operand))
                    })
                    .map(|(output, _)| Obstacle::UnknownOutput { output }),
            );
        }
        obstacles
    }
}

/// Whether model and request together leave a dimension open.
fn is_unknown(argument: &RequestArgument, operand: &crate::model::Operand) -> bool {
    !argument.has_no_value
        && !operand.has_known_dimensions()
        && (argument.dimensions.is_empty() || argument.dimensions.contains(&0))
}

impl Capabilities {
    /// Everything that keeps an interface of `version` from stating these capabilities. Older
    /// interfaces state less; see [`Capabilities::in_version`] for what remains.
    pub fn obstacles_in(&self, version: HalVersion) -> Vec<Obstacle> {
        self.operand_performance
            .iter()
            .filter(|row| row.operand_type.since() > version)
            .map(|row| Obstacle::Performance { operand_type: row.operand_type })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ModelBuilder, OperandSpec, PerformanceInfo, SubgraphBuilder};

    fn relu(spec: OperandSpec) -> Model {
        let mut graph = SubgraphBuilder::new();
        let x = graph.input("x", spec.clone());
        let y = graph.operation(OperationType::Relu, [x], spec);
        graph.output(y);
        graph.into_model().unwrap()
    }

    #[test]
    fn a_plain_model_is_expressible_everywhere() {
        let model = relu(OperandSpec::tensor_float32([1, 2]));
        assert_eq!(model.oldest_expressible(), HalVersion::V1_0);
    }

    #[test]
    fn newer_types_are_named() {
        let model = relu(OperandSpec::tensor_quant8_asymm_signed([1, 2], 1.0, 0));
        assert_eq!(model.oldest_expressible(), HalVersion::V1_3);
        let obstacles = model.obstacles_in(HalVersion::V1_2);
        assert_eq!(
            obstacles[0].to_string(),
            "operand 0 of main subgraph is TENSOR_QUANT8_ASYMM_SIGNED, which came with 1.3"
        );
        assert_eq!(obstacles.len(), 2);
    }

    #[test]
    fn model_6_unknown_rank_needs_1_2() {
        assert_eq!(relu(OperandSpec::tensor_float32([])).oldest_expressible(), HalVersion::V1_2);
        assert_eq!(
            relu(OperandSpec::tensor_float32([0, 2])).oldest_expressible(),
            HalVersion::V1_0
        );
    }

    #[test]
    fn relaxed_computation_needs_1_1() {
        let mut graph = SubgraphBuilder::new();
        let x = graph.input("x", OperandSpec::tensor_float32([1]));
        let y = graph.operation(OperationType::Relu, [x], OperandSpec::tensor_float32([1]));
        graph.output(y);
        let model = ModelBuilder::new().relaxed(true).build(graph).unwrap();
        assert_eq!(model.obstacles_in(HalVersion::V1_0), [Obstacle::RelaxedComputation]);
        assert_eq!(model.oldest_expressible(), HalVersion::V1_1);
    }

    #[test]
    fn requests_with_tokens_need_1_3() {
        let model = relu(OperandSpec::tensor_float32([0]));
        let request = Request {
            inputs: vec![RequestArgument::default()],
            outputs: vec![RequestArgument::default()],
            pools: vec![RequestMemoryPool::Token(1)],
        };
        assert_eq!(
            request.obstacles_in(HalVersion::V1_1, &model),
            [Obstacle::Token { pool: 0 }, Obstacle::UnknownOutput { output: 0 }]
        );
        assert!(request.obstacles_in(HalVersion::V1_3, &model).is_empty());
    }

    #[test]
    fn dev_cap_5_capabilities_of_newer_types_are_named() {
        let capabilities = Capabilities::uniform(PerformanceInfo::AS_CPU);
        assert_eq!(
            capabilities.obstacles_in(HalVersion::V1_2),
            [Obstacle::Performance { operand_type: OperandType::TensorQuant8AsymmSigned }]
        );
    }
}
