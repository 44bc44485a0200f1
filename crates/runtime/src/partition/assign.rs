//! Which device does which operation.

use super::support::{referred, supported};
use crate::devices::Device;
use crate::error::{Error, Result};
use crate::model::Model;
use nnhal_hal::{ExecutionPreference, OperandType, OperationType, PerformanceInfo, Subgraph};

/// Who does an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Doer {
    /// The device at this place in the list.
    Device(usize),
    /// The runtime itself: it runs an IF or WHILE, whose models run on devices.
    Runtime,
}

/// For each operation, in running order, who does it: the device that promises to be best at it.
/// Of devices that promise the same, the fallback device goes first, so that work is not divided
/// without need; then the first.
///
/// # Errors
/// `BAD_DATA` if no device can do an operation.
pub(super) fn assign(
    model: &Model,
    devices: &[Device],
    preference: ExecutionPreference,
) -> Result<Vec<Doer>> {
    let can_do: Vec<Vec<bool>> = devices.iter().map(|device| supported(model, device)).collect();
    let costs: Vec<Costs<'_>> =
        devices.iter().map(|device| Costs::new(model.hal(), device, preference)).collect();
    let fallback = model.devices().fallback();
    let is_fallback = |device: usize| fallback.is_some_and(|it| it.is_same(&devices[device]));
    let main = &model.hal().main;
    let mut doers = Vec::with_capacity(main.operations.len());
    for (index, operation) in main.operations.iter().enumerate() {
        let able = (0..devices.len()).filter(|device| can_do[*device][index]);
        let best = able
            .map(|device| (costs[device].operation(main, index), !is_fallback(device), device))
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)))
            .map(|(_, _, device)| device);
        let is_controller =
            matches!(operation.operation_type, OperationType::If | OperationType::While);
        doers.push(match best {
            // Others than the fallback device may do what the IF or WHILE runs.
            Some(device)
                if is_controller
                    && is_fallback(device)
                    && others_help(model, index, devices, device) =>
            {
                Doer::Runtime
            }
            Some(device) => Doer::Device(device),
            None if is_controller => Doer::Runtime,
            None => {
                let added_as = model.added_as()[index];
                let name = operation.operation_type;
                return Err(Error::bad_data(format!(
                    "no device can do operation {added_as} ({name})"
                )));
            }
        });
    }
    Ok(doers)
}

/// Whether any device but this one can do an operation of those that an IF or WHILE runs.
fn others_help(model: &Model, operation: usize, devices: &[Device], but: usize) -> bool {
    let mut others = devices.iter().enumerate().filter(|(index, _)| *index != but);
    others.any(|(_, device)| {
        model.controlled(operation).iter().any(|inner| supported(inner, device).contains(&true))
    })
}

/// What a device promises for the operations of a model: the less, the better.
struct Costs<'a> {
    device: &'a Device,
    preference: ExecutionPreference,
    is_relaxed: bool,
    /// Of each referenced subgraph.
    subgraphs: Vec<Option<f32>>,
}

impl<'a> Costs<'a> {
    fn new(model: &nnhal_hal::Model, device: &'a Device, preference: ExecutionPreference) -> Self {
        let mut costs = Self {
            device,
            preference,
            is_relaxed: model.relax_computation_float32_to_float16,
            subgraphs: vec![None; model.referenced.len()],
        };
        // Those that refer to none first, then those that refer to them.
        let mut progress = true;
        while progress {
            progress = false;
            for index in 0..model.referenced.len() {
                let graph = &model.referenced[index];
                if costs.subgraphs[index].is_none()
                    && let Some(cost) = costs.graph(graph)
                {
                    costs.subgraphs[index] = Some(cost);
                    progress = true;
                }
            }
        }
        costs
    }

    fn graph(&self, graph: &Subgraph) -> Option<f32> {
        (0..graph.operations.len()).map(|index| self.known(graph, index)).sum()
    }

    fn operation(&self, graph: &Subgraph, index: usize) -> f32 {
        self.known(graph, index).unwrap_or(f32::MAX)
    }

    /// Of an operation; `None` if it runs subgraphs whose costs are not known yet.
    fn known(&self, graph: &Subgraph, index: usize) -> Option<f32> {
        let operation = &graph.operations[index];
        let capabilities = self.device.capabilities();
        let inner = || -> Option<f32> {
            let subgraphs = operation.inputs.iter().filter_map(|input| referred(graph, *input));
            subgraphs.map(|inner| self.subgraphs.get(inner).copied().flatten()).sum()
        };
        match operation.operation_type {
            // One of two branches runs.
            OperationType::If => Some(self.promise(capabilities.if_performance) + inner()? / 2.0),
            OperationType::While => Some(self.promise(capabilities.while_performance) + inner()?),
            _ => {
                // What the first operand is decides, for want of anything better.
                let first = operation.inputs.first()?;
                let info = match graph.operands[*first as usize].operand_type {
                    OperandType::Float32 if self.is_relaxed => {
                        capabilities.relaxed_float32_to_float16_scalar
                    }
                    OperandType::TensorFloat32 if self.is_relaxed => {
                        capabilities.relaxed_float32_to_float16_tensor
                    }
                    operand_type => capabilities.of(operand_type),
                };
                Some(self.promise(info))
            }
        }
    }

    fn promise(&self, info: PerformanceInfo) -> f32 {
        match self.preference {
            ExecutionPreference::LowPower => info.power_usage,
            _ => info.exec_time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::Devices;
    use nnhal_hal::{
        Capabilities, DataLocation, DeviceType, ExtraParams, HalVersion, Model as HalModel,
    };
    use nnhal_hal::{
        Operand, OperandLifeTime, OperandPerformance, Operation, PrepareOptions, Support,
    };
    use std::sync::Arc;

    /// A device with a price list: everything takes its time, and twice that of power.
    struct Priced;

    fn price(exec_time: f32) -> PerformanceInfo {
        PerformanceInfo { exec_time, power_usage: 2.0 * exec_time }
    }

    impl nnhal_hal::Device for Priced {
        fn name(&self) -> &str {
            "test-priced"
        }

        fn version_string(&self) -> String {
            "1".to_owned()
        }

        fn device_type(&self) -> DeviceType {
            DeviceType::Other
        }

        fn capabilities(&self) -> Capabilities {
            let operand =
                |operand_type, time| OperandPerformance { operand_type, info: price(time) };
            Capabilities {
                relaxed_float32_to_float16_scalar: price(100.0),
                relaxed_float32_to_float16_tensor: price(200.0),
                operand_performance: vec![
                    operand(OperandType::TensorFloat32, 3.0),
                    operand(OperandType::TensorQuant8Asymm, 5.0),
                    operand(OperandType::TensorBool8, 7.0),
                ],
                if_performance: price(1000.0),
                while_performance: price(2000.0),
            }
        }

        fn supported_operations(
            &self,
            _: &HalModel,
            _: HalVersion,
        ) -> nnhal_hal::Result<Vec<Support>> {
            Ok(Vec::new())
        }

        fn prepare_model(
            &self,
            _: &HalModel,
            _: HalVersion,
            _: PrepareOptions,
        ) -> nnhal_hal::Result<Arc<dyn nnhal_hal::PreparedModel>> {
            Err(nnhal_hal::Error::failure("it only has prices"))
        }
    }

    /// A graph of operations, each with operands of its own: of these types, or a subgraph's number.
    fn graph(operations: &[(OperationType, &[Result<OperandType, u32>])]) -> Subgraph {
        let mut graph = Subgraph::default();
        for (operation_type, arguments) in operations {
            let first = u32::try_from(graph.operands.len()).unwrap();
            let last = first + u32::try_from(arguments.len()).unwrap();
            graph.operands.extend(arguments.iter().map(|argument| Operand {
                operand_type: argument.unwrap_or(OperandType::Subgraph),
                dimensions: Vec::new(),
                number_of_consumers: 1,
                scale: 0.0,
                zero_point: 0,
                lifetime: match argument {
                    Ok(_) => OperandLifeTime::SubgraphInput,
                    Err(_) => OperandLifeTime::Subgraph,
                },
                location: DataLocation {
                    offset: argument.err().unwrap_or(0),
                    ..DataLocation::default()
                },
                extra_params: ExtraParams::None,
            }));
            graph.operations.push(Operation {
                operation_type: *operation_type,
                inputs: (first..last).collect(),
                outputs: Vec::new(),
            });
        }
        graph
    }

    /// What each operation of the main graph costs.
    fn costs(model: &HalModel, preference: ExecutionPreference) -> Vec<f32> {
        let devices = Devices::new([Arc::new(Priced) as Arc<dyn nnhal_hal::Device>]);
        let costs = Costs::new(model, &devices.list()[0], preference);
        let count = model.main.operations.len();
        (0..count).map(|operation| costs.operation(&model.main, operation)).collect()
    }

    #[test]
    fn dev_cap_8_an_operation_costs_what_its_first_operand_and_its_subgraphs_cost() {
        use OperandType::{TensorBool8, TensorFloat32, TensorInt32, TensorQuant8Asymm};
        const FAST: ExecutionPreference = ExecutionPreference::FastSingleAnswer;
        let (float, quantized) = (Ok(TensorFloat32), Ok(TensorQuant8Asymm));
        let mut model = HalModel {
            main: graph(&[
                (OperationType::Relu, &[float]),
                (OperationType::Add, &[quantized, float]),
                (OperationType::If, &[Ok(TensorBool8), Err(0), Err(1)]),
                (OperationType::While, &[Err(0), Err(2), float]),
                (OperationType::Abs, &[Ok(TensorInt32)]),
            ]),
            referenced: vec![
                graph(&[
                    (OperationType::Relu, &[float]),
                    (OperationType::Add, &[quantized, float]),
                ]),
                graph(&[(OperationType::Relu, &[quantized])]),
                graph(&[(OperationType::If, &[Ok(TensorBool8), Err(0), Err(1)])]),
            ],
            ..HalModel::default()
        };
        let branches = 1000.0 + f32::midpoint(3.0 + 5.0, 5.0);
        let expected = [3.0, 5.0, branches, 2000.0 + (3.0 + 5.0) + branches, f32::MAX];
        assert_eq!(costs(&model, FAST), expected);
        let power = costs(&model, ExecutionPreference::LowPower);
        assert_eq!(power[..4], expected.map(|time| 2.0 * time)[..4]);
        model.relax_computation_float32_to_float16 = true;
        assert_eq!(costs(&model, FAST)[..2], [200.0, 5.0]);
    }
}
