//! [`Kernel`]: a partition of an interpreter's nodes, prepared for the shapes that its inputs have.

use crate::error::{Error, Result};
use crate::gather::gather;
use crate::host::{Host, Partition};
use crate::profiler::{Recognized, Times};
use nnhal::hal::Memory;
use nnhal::hal::memory::{Loan, Protection};
use nnhal::{Model, Observer, Runner};
use nnhal_litert_common::{Shared, from_elsewhere};
use std::sync::Arc;

/// Preparations for other shapes that a kernel keeps.
const MOST_VARIANTS: usize = 4;

/// A partition of an interpreter's nodes.
pub(crate) struct Kernel {
    pub(crate) shared: Arc<Shared>,
    inputs: Vec<i32>,
    outputs: Vec<i32>,
    /// By variable of the model: the interpreter's tensor.
    states: Vec<i32>,
    threads: usize,
    model: Model,
    /// The one that was used last comes last.
    variants: Vec<Variant>,
    recognized: Recognized,
    /// What of the interpreter's constants the model may read.
    _loans: Vec<Loan>,
    /// Addresses of the contexts of subgraphs that run within it.
    pub(crate) subgraphs: Arc<[usize]>,
}

/// The model for certain shapes.
struct Variant {
    shapes: Vec<Vec<usize>>,
    /// `None`: neither inputs nor outputs have elements, and there is nothing to run.
    runner: Option<Runner>,
    /// Whether the device says how long each operation takes.
    has_times: bool,
    /// By output: its shape, if it is known before a run.
    outputs: Vec<Option<Vec<usize>>>,
}

impl Kernel {
    /// Prepares a partition for the shapes that its inputs have now.
    pub(crate) fn new(
        host: &Host<'_>,
        partition: &Partition,
        shared: &Arc<Shared>,
    ) -> Result<Self> {
        let given =
            partition.inputs.iter().copied().filter(|it| *it != crate::abi::OPTIONAL_TENSOR);
        let inputs = from_elsewhere(host, &given.collect::<Vec<_>>())?;
        let outputs = partition.outputs.clone();
        host.copy_constants(shared.is_elsewhere());
        let gathered = gather(host, &partition.nodes, &inputs, &outputs)?;
        let token = shared.options.model_token.as_ref();
        let token = token.map(|token| format!("{token} {:?}", partition.nodes));
        let mut model = Model::from_graph(gathered.graph, token)?;
        if shared.options.allow_fp16 || host.allows_fp16() {
            model = model.relaxed();
        }
        let state = |at| {
            let tensor = model.state_tensor(at).and_then(|it| gathered.tensors.get(it));
            tensor.copied().ok_or_else(|| {
                Error::Node(format!(
                    "variable {at} of the partition is no tensor of the interpreter"
                ))
            })
        };
        let states = (0..model.states().len()).map(state).collect::<Result<_>>()?;
        let mut kernel = Self {
            shared: Arc::clone(shared),
            inputs,
            outputs,
            states,
            threads: shared.threads(host.recommended_threads()),
            model,
            variants: Vec::new(),
            recognized: Recognized::default(),
            _loans: gathered.loans,
            subgraphs: gathered.subgraphs.into(),
        };
        let shapes = kernel.shapes(host)?;
        let variant = kernel.variant(kernel.model.clone(), shapes)?;
        kernel.variants.push(variant);
        Ok(kernel)
    }

    fn variant(&self, model: Model, shapes: Vec<Vec<usize>>) -> Result<Variant> {
        let session = model.session(self.shared.session_options(self.threads))?;
        let runner = session.runner()?;
        let outputs = model.outputs().iter().map(nnhal::TensorInfo::known_shape).collect();
        let has_times = session.plan().is_ok();
        Ok(Variant { shapes, runner: Some(runner), has_times, outputs })
    }

    /// For inputs of which some have no elements, which no device takes: if the outputs have none either, there is
    /// nothing to run. Otherwise the model is one without those inputs.
    fn variant_without_elements(&self, shapes: Vec<Vec<usize>>) -> Result<Variant> {
        let outputs = match self.model.outputs_without_elements(&shapes) {
            Err(nnhal::Error::NoElements { .. }) if !self.model.is_stateful() => {
                return self.variant_for(shapes);
            }
            other => other?.into_iter().map(Some).collect(),
        };
        Ok(Variant { shapes, runner: None, has_times: false, outputs })
    }

    fn variant_for(&self, shapes: Vec<Vec<usize>>) -> Result<Variant> {
        let wanted: Vec<_> = shapes.iter().cloned().map(Some).collect();
        let mut model = self.model.with_input_shapes(&wanted, false)?;
        if self.model.hal().relax_computation_float32_to_float16 {
            model = model.relaxed();
        }
        self.variant(model, shapes)
    }

    /// The shapes of the inputs as they are now.
    fn shapes(&self, host: &Host<'_>) -> Result<Vec<Vec<usize>>> {
        let shape = |tensor: &i32| {
            let lengths = host.shape(*tensor)?;
            let shape: Option<Vec<usize>> =
                lengths.iter().map(|length| usize::try_from(*length).ok()).collect();
            shape.ok_or_else(|| Error::Tensor {
                tensor: *tensor,
                what: format!("has shape {lengths:?}, expected lengths that are not negative"),
            })
        };
        self.inputs.iter().map(shape).collect()
    }

    /// Whether it takes and gives what a partition says.
    pub(crate) fn fits(&self, partition: &Partition) -> bool {
        self.outputs == partition.outputs
            && self.inputs.iter().all(|it| partition.inputs.contains(it))
    }

    /// Prepares for the shapes that inputs have now, and gives outputs theirs.
    pub(crate) fn prepare(&mut self, host: &Host<'_>) -> Result<()> {
        self.shared.check_process()?;
        let shapes = self.shapes(host)?;
        if let Some(at) = self.variants.iter().position(|variant| variant.shapes == shapes) {
            self.variants[at..].rotate_left(1);
        } else {
            let variant = if shapes.iter().any(|shape| shape.contains(&0)) {
                self.variant_without_elements(shapes)?
            } else {
                self.variant_for(shapes)?
            };
            if self.variants.len() == MOST_VARIANTS {
                self.variants.remove(0);
            }
            self.variants.push(variant);
        }
        let Some(variant) = self.variants.last() else { return Ok(()) };
        for (tensor, shape) in self.outputs.iter().zip(&variant.outputs) {
            match shape {
                Some(shape) => host.resize(*tensor, &lengths(shape)?)?,
                None => host.make_dynamic(*tensor)?,
            }
        }
        Ok(())
    }

    /// Runs the partition in the interpreter's memory.
    pub(crate) fn invoke(&mut self, host: &Host<'_>) -> Result<()> {
        self.shared.check_process()?;
        let Some(variant) = self.variants.last_mut() else { return Ok(()) };
        let Some(runner) = &mut variant.runner else { return Ok(()) };
        let mut loans = Vec::with_capacity(self.inputs.len() + self.outputs.len());
        let mut keep = |lent: Option<(Loan, Memory)>| {
            lent.map(|(loan, memory)| {
                loans.push(loan);
                memory
            })
        };
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for tensor in &self.inputs {
            inputs.push(keep(host.lend(*tensor, Protection::READ)?));
        }
        let mut outputs = Vec::with_capacity(self.outputs.len());
        for (at, (tensor, shape)) in self.outputs.iter().zip(&variant.outputs).enumerate() {
            let Some(shape) = shape else {
                outputs.push(None);
                continue;
            };
            let others = self.outputs.iter().enumerate().filter(|(other, _)| *other != at);
            let others = others.map(|(_, tensor)| *tensor).chain(self.inputs.iter().copied());
            let others = others.chain(self.states.iter().copied());
            // Its size is checked when it is run.
            let memory = keep(host.lend_output(*tensor, others)?);
            if memory.is_none() && !shape.contains(&0) {
                let what = format!("has no bytes, expected those of shape {shape:?}");
                return Err(Error::Tensor { tensor: *tensor, what });
            }
            outputs.push(memory);
        }
        let mut bytes = Vec::new();
        for (at, tensor) in self.states.iter().enumerate() {
            let Some((_loan, memory)) = host.lend(*tensor, Protection::READ)? else { continue };
            bytes = memory.view()?.read_to_vec(0, memory.size())?;
            runner.write_state(at, &bytes)?;
        }
        let profiler = host.profiler(&mut self.recognized).filter(|_| variant.has_times);
        let times = profiler.is_some().then(Times::default);
        let observer = times.as_ref().map(|times| times as &dyn Observer);
        self.shared.run_in(runner, &inputs, &outputs, observer)?;
        if let (Some(profiler), Some(times)) = (profiler, times) {
            profiler.add(times);
        }
        for (at, tensor) in self.states.iter().enumerate() {
            let Some((_loan, memory)) = host.lend(*tensor, Protection::READ_WRITE)? else {
                continue;
            };
            bytes.resize(usize::try_from(memory.size()).unwrap_or(0), 0);
            runner.read_state(at, &mut bytes)?;
            memory.view()?.write(0, &bytes)?;
        }
        drop(loans);
        for (at, tensor) in self.outputs.iter().enumerate() {
            if variant.outputs.get(at).is_some_and(Option::is_some) {
                continue;
            }
            let Some(shape) = runner.output_shape(at)? else { continue };
            host.resize(*tensor, &lengths(shape)?)?;
            let Some((_loan, memory)) = host.lend(*tensor, Protection::READ_WRITE)? else {
                continue;
            };
            bytes.resize(usize::try_from(memory.size()).unwrap_or(0), 0);
            runner.read_output_bytes(at, &mut bytes)?;
            memory.view()?.write(0, &bytes)?;
        }
        Ok(())
    }
}

/// A shape as the interpreter has it.
fn lengths(shape: &[usize]) -> Result<Vec<i32>> {
    let too_long = || Error::Node(format!("an output has shape {shape:?}, beyond 31 bits"));
    shape.iter().map(|length| i32::try_from(*length).map_err(|_| too_long())).collect()
}
