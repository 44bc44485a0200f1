//! `Model`: a file, and what it says of itself.

use crate::array;
use crate::duration::seconds;
use crate::error::Outcome;
use crate::session::Session;
use nnhal::{SparseDimension, TensorInfo};
use numpy::{PyArray1, PyUntypedArray};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::path::PathBuf;

/// A model.
#[pyclass(frozen, module = "nnhal._nnhal")]
#[derive(Debug)]
pub(crate) struct Model(pub(crate) nnhal::Model);

/// Names, and positions among a model's inputs or outputs.
type Names = Vec<(String, usize)>;

#[pymethods]
impl Model {
    /// Reads a file.
    #[staticmethod]
    fn load_path(py: Python<'_>, path: PathBuf) -> Outcome<Self> {
        Ok(Self(py.detach(|| nnhal::Model::load(path))?))
    }

    /// Reads the bytes of a file.
    #[staticmethod]
    fn load_bytes(py: Python<'_>, bytes: &Bound<'_, PyBytes>) -> Outcome<Self> {
        // Bytes objects do not change, so they can be read without the GIL.
        let bytes = bytes.as_bytes();
        Ok(Self(py.detach(|| nnhal::Model::load(bytes))?))
    }

    /// A dictionary for each input.
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.describe(py, self.0.inputs())
    }

    /// A dictionary for each output.
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.describe(py, self.0.outputs())
    }

    /// How many of the outputs the file's subgraph has; those behind are outputs of signatures only.
    #[getter]
    fn own_output_count(&self) -> usize {
        self.0.own_outputs()
    }

    /// By variable: the tensor that it is the value of; `None` for a resource variable.
    fn state_tensors(&self) -> Vec<Option<usize>> {
        (0..self.0.states().len()).map(|state| self.0.state_tensor(state)).collect()
    }

    /// The file's subgraph that this model is.
    #[getter]
    fn subgraph(&self) -> usize {
        self.0.subgraph()
    }

    /// A dictionary for each tensor of any subgraph.
    fn tensors_of_subgraph<'py>(
        &self,
        py: Python<'py>,
        index: usize,
    ) -> Outcome<Bound<'py, PyList>> {
        let tensors = py.detach(|| self.0.file()?.tensors(index))?;
        Ok(self.describe(py, &tensors)?)
    }

    /// How many tensors the main subgraph has.
    #[getter]
    fn tensor_count(&self) -> usize {
        self.0.tensors().len()
    }

    /// A dictionary for a tensor of the main subgraph. Each by itself: a file has hundreds of them, with thousands of
    /// scales, and hardly any is asked for.
    fn tensor<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyDict>> {
        let all = self.0.tensors();
        let beyond = || PyIndexError::new_err(format!("tensor {index} of {}", all.len()));
        self.describe_tensor(py, all.get(index).ok_or_else(beyond)?)
    }

    /// The shape that the import found for each tensor of the main subgraph, which other shapes of inputs may have changed;
    /// `None` where it is not known before a run.
    fn prepared_shapes(&self) -> Vec<Option<Vec<usize>>> {
        self.0.tensors().iter().map(|info| self.prepared_shape(info)).collect()
    }

    /// Name, inputs and outputs of each signature.
    fn signatures(&self) -> Vec<(String, Names, Names)> {
        let all = self.0.signatures().iter();
        all.map(|it| (it.name.clone(), it.inputs.clone(), it.outputs.clone())).collect()
    }

    /// All signatures of the file: name, subgraph, inputs and outputs with the indexes of their tensors.
    fn file_signatures(&self) -> Vec<(String, usize, Names, Names)> {
        let all = self.0.file_signatures().iter();
        all.map(|it| (it.name.clone(), it.subgraph, it.inputs.clone(), it.outputs.clone()))
            .collect()
    }

    /// The same file, of which layers of floats with 8-bit weights are computed in floats.
    fn with_dequantized_weights(&self, py: Python<'_>) -> Outcome<Self> {
        Ok(Self(py.detach(|| self.0.with_dequantized_weights())?))
    }

    /// The same file with the subgraph of a signature.
    fn with_signature(&self, py: Python<'_>, name: &str) -> Outcome<Self> {
        Ok(Self(py.detach(|| self.0.with_signature(name))?))
    }

    /// Name, inputs (`None` for one left out) and outputs of each operator of the main subgraph.
    fn operators(&self) -> Vec<(String, Vec<Option<usize>>, Vec<usize>)> {
        let all = self.0.operators().iter();
        all.map(|it| (it.name.clone(), it.inputs.clone(), it.outputs.clone())).collect()
    }

    /// The value of a constant tensor; what is stored in 2 or 4 bits as integers of 8 bits.
    fn constant<'py>(&self, py: Python<'py>, index: usize) -> Outcome<Bound<'py, PyUntypedArray>> {
        as_array(py, &py.detach(|| self.0.constant(index))?)
    }

    /// The value of a constant tensor of any subgraph.
    fn constant_of_subgraph<'py>(
        &self,
        py: Python<'py>,
        subgraph: usize,
        index: usize,
    ) -> Outcome<Bound<'py, PyUntypedArray>> {
        let tensors = py.detach(|| self.0.file()?.tensors(subgraph))?;
        let beyond = || PyIndexError::new_err(format!("tensor {index} of {}", tensors.len()));
        let info = tensors.get(index).ok_or_else(beyond)?;
        as_array(py, &py.detach(|| self.0.constant_of(info))?)
    }

    fn metadata_names(&self) -> Vec<String> {
        self.0.metadata_names().map(str::to_owned).collect()
    }

    fn metadata<'py>(&self, py: Python<'py>, name: &str) -> Outcome<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.metadata(name)?))
    }

    /// The same file with other shapes of its inputs.
    fn with_input_shapes(
        &self,
        py: Python<'_>,
        shapes: Vec<Option<Vec<usize>>>,
        strict: bool,
    ) -> Outcome<Self> {
        Ok(Self(py.detach(|| self.0.with_input_shapes(&shapes, strict))?))
    }

    /// Prepares the model on a device. Times are seconds.
    #[pyo3(signature = (*, device=None, threads=None, priority=None, preference=None, timeout=None,
        prepare_timeout=None, loop_timeout=None, cache_dir=None, share_weights=false))]
    #[allow(clippy::too_many_arguments)] // Python has names for them.
    fn session(
        &self,
        py: Python<'_>,
        device: Option<String>,
        threads: Option<usize>,
        priority: Option<&str>,
        preference: Option<&str>,
        timeout: Option<f64>,
        prepare_timeout: Option<f64>,
        loop_timeout: Option<f64>,
        cache_dir: Option<PathBuf>,
        share_weights: bool,
    ) -> Outcome<Session> {
        let mut options = nnhal::SessionOptions::new().threads(threads.unwrap_or(0));
        if let Some(device) = device {
            options = options.device(device);
        }
        if let Some(priority) = priority {
            options = options.priority(choice("priority", priority, &PRIORITIES)?);
        }
        if let Some(preference) = preference {
            options = options.preference(choice("preference", preference, &PREFERENCES)?);
        }
        if let Some(timeout) = timeout {
            options = options.run_timeout(seconds(timeout)?);
        }
        if let Some(timeout) = prepare_timeout {
            options = options.prepare_timeout(seconds(timeout)?);
        }
        if let Some(timeout) = loop_timeout {
            options = options.loop_timeout(seconds(timeout)?);
        }
        if let Some(folder) = cache_dir {
            options = options.cache_dir(folder);
        }
        options = options.share_weights(share_weights);
        Ok(Session::new(py.detach(|| self.0.session(options.clone()))?, options))
    }

    #[getter]
    fn description(&self) -> &str {
        self.0.description()
    }

    #[getter]
    fn subgraph_count(&self) -> usize {
        self.0.subgraph_count()
    }

    #[getter]
    fn is_stateful(&self) -> bool {
        self.0.is_stateful()
    }

    #[getter]
    fn has_example_shapes(&self) -> bool {
        self.0.has_example_shapes()
    }
}

fn as_array<'py>(py: Python<'py>, tensor: &nnhal::Tensor) -> Outcome<Bound<'py, PyUntypedArray>> {
    array::filled(py, tensor.data_type(), tensor.shape(), |bytes| {
        bytes.copy_from_slice(tensor.as_bytes());
        Ok(())
    })
}

const PRIORITIES: [(&str, nnhal::hal::Priority); 3] = {
    use nnhal::hal::Priority;
    [("low", Priority::Low), ("medium", Priority::Medium), ("high", Priority::High)]
};

const PREFERENCES: [(&str, nnhal::hal::ExecutionPreference); 3] = {
    use nnhal::hal::ExecutionPreference;
    [
        ("fast_single_answer", ExecutionPreference::FastSingleAnswer),
        ("sustained_speed", ExecutionPreference::SustainedSpeed),
        ("low_power", ExecutionPreference::LowPower),
    ]
};

fn choice<T: Copy>(what: &'static str, name: &str, all: &[(&str, T)]) -> nnhal::Result<T> {
    let found = all.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| nnhal::Error::NotFound {
        what,
        name: name.to_owned(),
        available: all.iter().map(|(known, _)| (*known).to_owned()).collect(),
    })
}

impl Model {
    fn describe<'py>(&self, py: Python<'py>, all: &[TensorInfo]) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for info in all {
            list.append(self.describe_tensor(py, info)?)?;
        }
        Ok(list)
    }

    fn describe_tensor<'py>(
        &self,
        py: Python<'py>,
        info: &TensorInfo,
    ) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("name", &info.name)?;
        dict.set_item("signature_name", &info.signature_name)?;
        dict.set_item("index", info.index)?;
        dict.set_item("dtype", array::dtype(py, info.data_type))?;
        dict.set_item("type", info.data_type.to_string())?;
        dict.set_item("type_code", info.data_type.tflite_code())?;
        dict.set_item("shape", &info.shape)?;
        dict.set_item("example_shape", &info.example_shape)?;
        dict.set_item("declared_shape", &info.declared_shape)?;
        dict.set_item("shape_signature", &info.shape_signature)?;
        dict.set_item("is_variable", info.is_variable)?;
        dict.set_item("is_constant", info.stored.is_some())?;
        let quantization = info.quantization.as_ref();
        dict.set_item(
            "quantization",
            quantization.map(|it| {
                let scales = PyArray1::from_slice(py, &it.scales);
                (scales, PyArray1::from_slice(py, &it.zero_points), it.axis)
            }),
        )?;
        let blocks = info.blocks.as_ref();
        let blocks = blocks.map(|it| (it.scales, it.zero_points, it.size, it.axis));
        dict.set_item("blocks", blocks)?;
        let sparsity = PyDict::new(py);
        if let Some(it) = &info.sparsity {
            let order = PyArray1::from_slice(py, &it.traversal_order);
            sparsity.set_item("traversal_order", order)?;
            if !it.block_map.is_empty() {
                sparsity.set_item("block_map", PyArray1::from_slice(py, &it.block_map))?;
            }
            let levels = PyList::empty(py);
            for level in &it.dimensions {
                let dict = PyDict::new(py);
                match level {
                    SparseDimension::Dense { length } => {
                        dict.set_item("format", 0)?;
                        dict.set_item("dense_size", length)?;
                    }
                    SparseDimension::Compressed { segments, indices } => {
                        dict.set_item("format", 1)?;
                        dict.set_item("array_segments", PyArray1::from_slice(py, segments))?;
                        dict.set_item("array_indices", PyArray1::from_slice(py, indices))?;
                    }
                }
                levels.append(dict)?;
            }
            sparsity.set_item("dim_metadata", levels)?;
        }
        dict.set_item("sparsity", sparsity)?;
        Ok(dict)
    }

    /// See [`Self::prepared_shapes`].
    fn prepared_shape(&self, info: &TensorInfo) -> Option<Vec<usize>> {
        let main = &self.0.hal().main;
        let operand = self.0.operand(info.index)?;
        let operand = main.operands.get(operand as usize)?;
        if info.shape.is_empty() && *operand.dimensions == [1] {
            return Some(Vec::new());
        }
        let is_known = operand.has_known_dimensions();
        is_known.then(|| operand.dimensions.iter().map(|length| *length as usize).collect())
    }
}
