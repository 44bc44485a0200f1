//! A [`Call`] as a model of its own, what is known of it when, and running it on a device.

use super::random::Random;
use super::sample::{Call, Typed};
use nnhal_hal::memory::MemoryError;
use nnhal_hal::{
    Device, ExecutionOptions, HalVersion, Model, ModelBuilder, OperandId, OperandSpec, OperandType,
    PrepareOptions, Request, RequestBuilder, RequestMemoryPool, SubgraphBuilder,
};
use nnhal_ops::extension::{self, element_size};

/// Dimensions and bytes.
pub type Tensor = (Vec<u32>, Vec<u8>);

/// Room that every output gets: more than any sample needs.
pub const ROOM: usize = 1 << 16;

/// What a model says of its shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shapes<'a> {
    /// Everything; the outputs' are these.
    Known(&'a [Tensor]),
    /// Inputs as they are, nothing of the outputs.
    OfInputs,
    /// Only ranks; of some outputs not even that.
    Ranks(&'a [Tensor]),
    /// Nothing.
    Unknown,
}

/// What inputs are constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constants {
    /// Scalars, and tensors by chance but for the first.
    Some,
    /// All inputs but the first.
    AllButFirst,
    /// None: even scalars come with the request.
    None,
}

/// What a model says of an operand's shape.
pub fn declared(spec: &OperandSpec, shapes: Shapes<'_>) -> OperandSpec {
    let dimensions = match shapes {
        // Channel scales need a length.
        _ if spec.operand_type == OperandType::TensorQuant8SymmPerChannel => return spec.clone(),
        _ if spec.operand_type.is_scalar() => return spec.clone(),
        Shapes::Known(_) | Shapes::OfInputs => return spec.clone(),
        Shapes::Ranks(_) => vec![0; spec.dimensions.len()],
        Shapes::Unknown => vec![],
    };
    OperandSpec { dimensions, ..spec.clone() }
}

/// A specification of an output with the shape that a model says.
fn declared_output(call: &Call, index: usize, shapes: Shapes<'_>) -> OperandSpec {
    let spec = call.outputs[index].clone();
    match shapes {
        _ if spec.operand_type.is_scalar() => spec,
        Shapes::Known(outputs) => OperandSpec { dimensions: outputs[index].0.clone(), ..spec },
        Shapes::Ranks(outputs) => {
            OperandSpec { dimensions: vec![0; outputs[index].0.len()], ..spec }
        }
        Shapes::OfInputs | Shapes::Unknown => spec,
    }
}

/// Places inputs in a subgraph, and those that are not constants in a request.
pub struct Arguments<'random> {
    /// What decides which are constants.
    pub random: &'random mut Random,
    /// Which are.
    pub constants: Constants,
}

impl Arguments<'_> {
    /// An operand for an input.
    pub fn place(
        &mut self,
        graph: &mut SubgraphBuilder,
        request: &mut RequestBuilder,
        index: usize,
        input: &Typed,
        shapes: Shapes<'_>,
    ) -> OperandId {
        let spec = declared(&input.spec, shapes);
        let is_scalar = spec.operand_type.is_scalar();
        if input.is_omitted {
            if self.constants != Constants::None {
                return graph.omitted(input.spec.clone());
            }
            request.omitted_input();
            return graph.input("", spec);
        }
        let is_constant = match self.constants {
            Constants::Some => is_scalar || (index > 0 && self.random.coin()),
            Constants::AllButFirst => is_scalar || index > 0,
            Constants::None => false,
        };
        if is_constant {
            return graph.constant_bytes(input.spec.clone(), &input.bytes);
        }
        request.input_shaped(&input.bytes, &input.spec.dimensions);
        graph.input("", spec)
    }
}

/// A model of one operation, and a request for it.
pub fn alone(
    call: &Call,
    shapes: Shapes<'_>,
    constants: Constants,
    random: &mut Random,
) -> Result<(Model, Request), String> {
    let mut graph = SubgraphBuilder::new();
    let mut request = RequestBuilder::new();
    let mut arguments = Arguments { random, constants };
    let inputs: Vec<OperandId> = call
        .inputs
        .iter()
        .enumerate()
        .map(|(index, input)| arguments.place(&mut graph, &mut request, index, input, shapes))
        .collect();
    let outputs: Vec<OperandId> = (0..call.outputs.len())
        .map(|index| graph.temporary(declared_output(call, index, shapes)))
        .collect();
    graph.operation_into(call.operation, inputs, &outputs);
    for output in outputs {
        graph.output(output);
        request.output(ROOM);
    }
    let model = with_extension(graph)?;
    Ok((model, request.build().map_err(|error| error.to_string())?))
}

/// A model of this subgraph alone, that may use our extension.
pub fn with_extension(graph: SubgraphBuilder) -> Result<Model, String> {
    let mut model = ModelBuilder::new();
    model.extension(extension::NAME, extension::PREFIX);
    model.build(graph).map_err(|error| error.to_string())
}

/// Prepares a model on a device, runs a request, and gives all outputs. What a run before left in
/// the outputs is not taken for theirs.
pub fn execute(
    device: &dyn Device,
    model: &Model,
    request: &Request,
) -> Result<Vec<Tensor>, String> {
    let prepared = device
        .prepare_model(model, HalVersion::LATEST, PrepareOptions::default())
        .map_err(|error| error.to_string())?;
    spoil_outputs(request).map_err(|error| error.to_string())?;
    let execution = prepared
        .execute(request, &ExecutionOptions::default())
        .map_err(|failed| failed.error.to_string())?;
    let mut tensors = Vec::new();
    for (index, shape) in execution.output_shapes.into_iter().enumerate() {
        let operand = &model.main.operands[model.main.outputs[index] as usize];
        let size = element_size(operand.operand_type).ok_or("an element size")?;
        let length: u32 = shape.dimensions.iter().product::<u32>() * size;
        let mut bytes =
            RequestBuilder::read_output(request, index).map_err(|error| error.to_string())?;
        bytes.truncate(length as usize);
        tensors.push((shape.dimensions, bytes));
    }
    Ok(tensors)
}

/// Fills outputs with bytes that make no sense.
fn spoil_outputs(request: &Request) -> Result<(), MemoryError> {
    for output in request.outputs.iter().filter(|output| !output.has_no_value) {
        let location = &output.location;
        let pool = request.pools.get(location.pool_index as usize);
        if let Some(RequestMemoryPool::Memory(memory)) = pool {
            let bytes = vec![0xA5; location.length as usize];
            memory.view()?.write(u64::from(location.offset), &bytes)?;
        }
    }
    Ok(())
}
