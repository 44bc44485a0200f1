//! Models out of arbitrary bytes: wild ones, and valid ones with a few fields overwritten. Used by
//! the tests and by the fuzz target.

use nnhal_hal::{
    ChannelQuant, DataLocation, ExtensionNameAndPrefix, ExtensionType, ExtraParams, Memory, Model,
    Operand, OperandLifeTime, OperandType, Operation, OperationType, Subgraph,
};
use std::sync::OnceLock;

/// Draws numbers from bytes; zeros when there are no more.
pub struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    /// All of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether no bytes are left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    /// Below `count`, which is above 0.
    fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count
    }

    fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// Mostly small, sometimes one of the numbers at which things break.
    fn number(&mut self) -> u32 {
        match self.byte() {
            small @ 0..=199 => u32::from(small % 8),
            200..=229 => self.pick(&[
                16,
                255,
                256,
                0x7FFF,
                0x8000,
                0xFFFF,
                0x1_0000,
                0x3FFF_FFFF,
                0x4000_0000,
                0x7FFF_FFFF,
                0x8000_0000,
                0xFFFF_FFFE,
                u32::MAX,
            ]),
            _ => self.word(),
        }
    }

    fn real(&mut self) -> f32 {
        match self.byte() {
            0..=199 => self.pick(&[0.0, 1.0, 0.5, 0.25, 1.0 / 128.0, 1.0 / 256.0]),
            _ => f32::from_bits(self.word()),
        }
    }

    fn numbers(&mut self, most: usize) -> Vec<u32> {
        (0..self.below(most + 1)).map(|_| self.number()).collect()
    }

    fn operand_type(&mut self) -> OperandType {
        match self.byte() {
            0..=15 => OperandType::Extension(self.extension()),
            _ => self.pick(OperandType::FUNDAMENTAL),
        }
    }

    fn operation_type(&mut self) -> OperationType {
        match self.byte() {
            0..=7 => OperationType::Extension(self.extension()),
            8..=71 => self.pick(&[OperationType::If, OperationType::While]),
            _ => self.pick(OperationType::FUNDAMENTAL),
        }
    }

    fn extension(&mut self) -> ExtensionType {
        let code = self.pick(&[0x0001_0000, 0x0001_0001, 0x0002_0000, 0xFFFF_FFFF]);
        ExtensionType::from_code(code).expect("high bits are set")
    }

    fn extra_params(&mut self) -> ExtraParams {
        match self.byte() {
            0..=179 => ExtraParams::None,
            180..=239 => {
                let scales = (0..self.below(5)).map(|_| self.real()).collect();
                ExtraParams::ChannelQuant(ChannelQuant { scales, channel_dim: self.number() })
            }
            _ => ExtraParams::Extension([self.byte()].as_slice().into()),
        }
    }

    fn location(&mut self) -> DataLocation {
        match self.byte() {
            0..=127 => DataLocation::default(),
            _ => DataLocation {
                pool_index: self.number(),
                offset: self.number(),
                length: self.number(),
            },
        }
    }

    fn operand(&mut self) -> Operand {
        Operand {
            operand_type: self.operand_type(),
            dimensions: self.numbers(5),
            number_of_consumers: self.number(),
            scale: self.real(),
            zero_point: self.number().cast_signed(),
            lifetime: self.pick(OperandLifeTime::ALL),
            location: self.location(),
            extra_params: self.extra_params(),
        }
    }

    fn subgraph(&mut self) -> Subgraph {
        let operands: Vec<_> = (0..self.below(8)).map(|_| self.operand()).collect();
        let operations = (0..self.below(4)).map(|_| Operation {
            operation_type: self.operation_type(),
            inputs: self.numbers(12),
            outputs: self.numbers(3),
        });
        Subgraph {
            operations: operations.collect(),
            operands,
            inputs: self.numbers(4),
            outputs: self.numbers(4),
        }
    }
}

/// One pool for all, made once: making memory is slow.
fn pool() -> Memory {
    static POOL: OnceLock<Memory> = OnceLock::new();
    POOL.get_or_init(|| Memory::from_bytes(&[1; 64]).expect("memory")).clone()
}

/// Nothing about it need be right.
pub fn wild(source: &mut Source<'_>) -> Model {
    let extensions = (0..source.below(3)).map(|_| ExtensionNameAndPrefix {
        name: source.pick(&["a.b", "c.d", "", "A.b"]).to_owned(),
        prefix: u16::from(source.byte() % 4),
    });
    Model {
        extension_name_to_prefix: extensions.collect(),
        main: source.subgraph(),
        referenced: (0..source.below(4)).map(|_| source.subgraph()).collect(),
        operand_values: (0..source.below(40)).map(|_| source.byte()).collect(),
        pools: vec![pool(); source.below(3)],
        relax_computation_float32_to_float16: source.byte() > 127,
    }
}

/// Overwrites one thing for every few bytes, and then brings the numbers of consumers in line, so
/// that the damage is not found before it matters.
pub fn damage(model: &mut Model, source: &mut Source<'_>) {
    while !source.is_empty() {
        let graphs = 1 + model.referenced.len();
        let graph = match source.below(graphs) {
            0 => &mut model.main,
            index => &mut model.referenced[index - 1],
        };
        damage_graph(graph, source);
    }
    for graph in std::iter::once(&mut model.main).chain(&mut model.referenced) {
        recount(graph);
    }
}

fn damage_graph(graph: &mut Subgraph, source: &mut Source<'_>) {
    if source.byte() < 160 && !graph.operands.is_empty() {
        let operand = source.below(graph.operands.len());
        let operand = &mut graph.operands[operand];
        match source.below(9) {
            0 => operand.operand_type = source.operand_type(),
            1 => operand.dimensions = source.numbers(5),
            2 => operand.scale = source.real(),
            3 => operand.zero_point = source.number().cast_signed(),
            4 => operand.lifetime = source.pick(OperandLifeTime::ALL),
            5 => operand.location.offset = source.number(),
            6 => operand.location.length = source.number(),
            7 => operand.extra_params = source.extra_params(),
            _ => {
                if !operand.dimensions.is_empty() {
                    let axis = source.below(operand.dimensions.len());
                    operand.dimensions[axis] = source.number();
                }
            }
        }
    } else if !graph.operations.is_empty() {
        let operation = source.below(graph.operations.len());
        let operation = &mut graph.operations[operation];
        match source.below(5) {
            0 => operation.operation_type = source.operation_type(),
            1 => operation.inputs = source.numbers(12),
            2 => operation.inputs.push(source.number()),
            3 => drop(operation.inputs.pop()),
            _ => {
                if !operation.inputs.is_empty() {
                    let position = source.below(operation.inputs.len());
                    operation.inputs[position] = source.number();
                }
            }
        }
    }
}

fn recount(graph: &mut Subgraph) {
    for operand in &mut graph.operands {
        operand.number_of_consumers = 0;
    }
    for index in graph.operations.iter().flat_map(|operation| &operation.inputs) {
        if let Some(operand) = graph.operands.get_mut(*index as usize) {
            operand.number_of_consumers = operand.number_of_consumers.saturating_add(1);
        }
    }
}
