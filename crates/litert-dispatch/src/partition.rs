//! [`DeviceContext`] and [`Partition`]: buffers that LiteRT has registered, and a part of a model that runs in them.

use crate::runtime::{Access, Buffer, Locked, Runtime};
use nnhal::hal::Memory;
use nnhal::hal::memory::Loan;
use nnhal::{ModelFile, Runner, TensorInfo};
use nnhal_litert_common::compiled::{Failure, Outcome, RankedTensorType, Status};
use nnhal_litert_common::{Shared, copy_of};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a program has for all partitions of a model.
pub(crate) struct DeviceContext {
    pub(crate) runtime: Runtime,
    pub(crate) shared: Shared,
    buffers: Mutex<Buffers>,
}

#[derive(Default)]
struct Buffers {
    last: u64,
    all: BTreeMap<u64, Buffer>,
}

impl DeviceContext {
    pub(crate) fn new(runtime: Runtime, shared: Shared) -> Self {
        Self { runtime, shared, buffers: Mutex::default() }
    }

    fn buffers(&self) -> MutexGuard<'_, Buffers> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a buffer a number, which no other one gets.
    pub(crate) fn register(&self, buffer: Buffer) -> u64 {
        let mut buffers = self.buffers();
        buffers.last += 1;
        let number = buffers.last;
        buffers.all.insert(number, buffer);
        number
    }

    pub(crate) fn unregister(&self, number: u64) -> Outcome {
        self.buffers().all.remove(&number).map(drop).ok_or_else(|| no_buffer(number))
    }

    fn buffer(&self, number: u64) -> Outcome<Buffer> {
        self.buffers().all.get(&number).copied().ok_or_else(|| no_buffer(number))
    }
}

fn no_buffer(number: u64) -> Failure {
    Failure::argument(format!("there is no tensor buffer {number}, or not any more"))
}

/// A part of a model, prepared.
pub(crate) struct Partition {
    pub(crate) device: Arc<DeviceContext>,
    name: String,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    running: Mutex<Running>,
    /// What of the byte code the model may read.
    _byte_code: Loan,
}

/// A tensor that LiteRT gives or takes.
struct Tensor {
    shape: Vec<usize>,
    size: usize,
}

struct Running {
    runner: Runner,
    /// By input and by output: the number of the buffer that it has.
    attached: [Vec<Option<u64>>; 2],
    runs: u64,
}

/// The two sides of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Input,
    Output,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

impl Partition {
    /// Prepares the partition of byte code that has this name.
    pub(crate) fn new(
        device: Arc<DeviceContext>,
        (byte_code, memory): (Loan, Memory),
        name: &str,
        [inputs, outputs]: [usize; 2],
    ) -> Outcome<Self> {
        device.shared.check_process()?;
        let wrong = |error: nnhal::Error| {
            Failure::new(Status::InvalidFlatbuffer, format!("partition {name:?}: {error}"))
        };
        let prepare = || {
            let memory = if device.shared.is_elsewhere() { copy_of(&memory)? } else { memory };
            let file = ModelFile::open(memory).map_err(wrong)?;
            let subgraph = name.parse().map_err(|_| {
                Failure::argument(format!("partition {name:?}, expected the number of a subgraph"))
            })?;
            let mut model = file.model(subgraph, &[], true).map_err(wrong)?;
            if device.shared.options.allow_fp16 {
                model = model.relaxed();
            }
            let found = [model.inputs().len(), model.outputs().len()];
            if found != [inputs, outputs] {
                return Err(Failure::argument(format!(
                    "LiteRT gives {inputs} inputs and {outputs} outputs to partition {name:?}, which has {} and {}",
                    found[0], found[1]
                )));
            }
            if model.is_stateful() {
                let sentence = format!("partition {name:?} has variables, which LiteRT keeps");
                return Err(Failure::new(Status::Unsupported, sentence));
            }
            let tensors = |all: &[TensorInfo]| all.iter().map(Tensor::new).collect::<Outcome<_>>();
            let (inputs, outputs) = (tensors(model.inputs())?, tensors(model.outputs())?);
            let threads = device.shared.threads(None);
            let session = model.session(device.shared.session_options(threads)).map_err(wrong)?;
            Ok((inputs, outputs, session.runner().map_err(wrong)?))
        };
        let (inputs, outputs, runner): (Vec<Tensor>, Vec<Tensor>, _) =
            device.shared.observed(prepare)?;
        let attached = [vec![None; inputs.len()], vec![None; outputs.len()]];
        let running = Mutex::new(Running { runner, attached, runs: 0 });
        let name = name.to_owned();
        Ok(Self { device, name, inputs, outputs, running, _byte_code: byte_code })
    }

    /// What a run left half done after a fault of the library is written anew by the next one.
    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tensors(&self, side: Side) -> &[Tensor] {
        match side {
            Side::Input => &self.inputs,
            Side::Output => &self.outputs,
        }
    }

    fn index(&self, side: Side, index: i32) -> Outcome<usize> {
        let count = self.tensors(side).len();
        usize::try_from(index).ok().filter(|at| *at < count).ok_or_else(|| {
            let sentence = format!("there is no {} {index}, only {count}", side.name());
            Failure::new(Status::IndexOutOfBounds, sentence)
        })
    }

    /// What LiteRT is asked for as the buffer of an input or output that it says to have this type.
    pub(crate) fn requirements(
        &self,
        side: Side,
        index: i32,
        of: &RankedTensorType,
    ) -> Outcome<*mut c_void> {
        let tensor = &self.tensors(side)[self.index(side, index)?];
        let found = of.shape().filter(|_| !of.has_strides());
        let same = |(found, expected): (&i32, &usize)| usize::try_from(*found) == Ok(*expected);
        let is_same = found.is_some_and(|found| {
            found.len() == tensor.shape.len() && found.iter().zip(&tensor.shape).all(same)
        });
        if !is_same {
            let found = found.map_or_else(|| "strides or no rank".into(), |it| format!("{it:?}"));
            return Err(Failure::new(
                Status::Unsupported,
                format!(
                    "{} {index} of partition {:?} has {found}, it was compiled for {:?}: compile the model with that \
                     shape",
                    side.name(),
                    self.name,
                    tensor.shape
                ),
            ));
        }
        self.device.runtime.requirements(tensor.size)
    }

    /// Gives an input or output the buffer with this number.
    pub(crate) fn attach(&self, side: Side, index: i32, number: u64) -> Outcome {
        self.device.buffer(number)?;
        let at = self.index(side, index)?;
        self.running().attached[side as usize][at] = Some(number);
        Ok(())
    }

    /// Takes an input's or output's buffer away, if it is the one with this number.
    pub(crate) fn detach(&self, side: Side, index: i32, number: u64) -> Outcome {
        let at = self.index(side, index)?;
        let place = &mut self.running().attached[side as usize][at];
        if *place == Some(number) {
            *place = None;
        }
        Ok(())
    }

    /// Runs it in the buffers that it has.
    pub(crate) fn invoke(&self) -> Outcome {
        self.device.shared.check_process()?;
        self.device.shared.observed(|| {
            let mut running = self.running();
            let running = &mut *running;
            // A buffer can be locked once only, and may be that of several inputs, or of an input and an output: what
            // goes in is copied before anything comes out.
            let mut locked: Vec<(Buffer, usize, Locked)> = Vec::new();
            let mut memories = [Vec::new(), Vec::new()];
            for (side, access) in [(Side::Output, Access::Write), (Side::Input, Access::Read)] {
                let attached = running.attached[side as usize].iter().zip(self.tensors(side));
                for (index, (number, tensor)) in attached.enumerate() {
                    let number = number.ok_or_else(|| {
                        Failure::argument(format!("{} {index} has no buffer", side.name()))
                    })?;
                    let buffer = self.device.buffer(number)?;
                    let is_it =
                        |it: &(Buffer, usize, Locked)| (it.0, it.1) == (buffer, tensor.size);
                    let at = match locked.iter().position(is_it) {
                        Some(at) => at,
                        None => {
                            let lock = self.device.runtime.lock(buffer, tensor.size, access)?;
                            locked.push((buffer, tensor.size, lock));
                            locked.len() - 1
                        }
                    };
                    memories[side as usize].push(locked[at].2.memory().cloned());
                }
            }
            let [inputs, outputs] = &memories;
            self.device.shared.run_in(&mut running.runner, inputs, outputs, None)?;
            running.runs += 1;
            tracing::debug!("partition {}: run {}", self.name, running.runs);
            Ok(())
        })
    }
}

impl Tensor {
    fn new(info: &TensorInfo) -> Outcome<Self> {
        let unsupported = |what: &str| {
            Failure::new(Status::Unsupported, format!("tensor {:?} {what}", info.name))
        };
        let shape = info.known_shape();
        let shape = shape.ok_or_else(|| unsupported("has a shape that is known only later"))?;
        let size = info.data_type.byte_length(&shape);
        let size = size.ok_or_else(|| unsupported("has no size that is known"))?;
        Ok(Self { shape, size })
    }
}
