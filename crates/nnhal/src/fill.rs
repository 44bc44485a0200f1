//! [`Fill`]: values for inputs that no one gives.

use crate::data_type::DataType;
use crate::error::{Error, Result};
use crate::info::TensorInfo;
use crate::model::Model;
use crate::tensor::Tensor;
use num_complex::Complex32;

/// Generated values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fill {
    /// The real number 0; of a quantized type its zero point.
    #[default]
    Zeros,
    /// Floats and both parts of complex numbers from 0 to 1, quantized values of the whole range of their type, other
    /// integers 0.
    /// The same seed gives the same values.
    Random {
        /// Where the sequence begins.
        seed: u64,
    },
}

impl Fill {
    /// A value for each input of a model. `shapes` says what lengths are that the model leaves open,
    /// by input.
    ///
    /// # Errors
    /// [`Error::Input`]: a shape is not known, or too large.
    pub fn inputs(self, model: &Model, shapes: &[Option<Vec<usize>>]) -> Result<Vec<Tensor>> {
        let mut random = self.generator();
        let tensor = |(index, info): (usize, &TensorInfo)| {
            let shape = shapes.get(index).cloned().flatten().or_else(|| info.known_shape());
            let open = || Error::OpenShape { expected: info.shape.clone() };
            let tensor = shape.ok_or_else(open).and_then(|it| self.tensor(info, &it, &mut random));
            tensor.map_err(Error::input(&info.name))
        };
        model.inputs().iter().enumerate().map(tensor).collect()
    }

    /// What [`Fill::tensor`] draws from.
    pub fn generator(self) -> fastrand::Rng {
        match self {
            Self::Zeros => fastrand::Rng::with_seed(0),
            Self::Random { seed } => fastrand::Rng::with_seed(seed),
        }
    }

    /// Whether values of a tensor are drawn, rather than 0.
    pub fn draws(self, info: &TensorInfo) -> bool {
        let is_random = matches!(self, Self::Random { .. });
        is_random && (is_of_floats(info.data_type) || is_quantized(info))
    }

    /// A value of this shape.
    ///
    /// # Errors
    /// [`Error::TooLarge`]
    pub fn tensor(
        self,
        info: &TensorInfo,
        shape: &[usize],
        random: &mut fastrand::Rng,
    ) -> Result<Tensor> {
        let data_type = info.data_type;
        // What no request could hold is refused before memory is asked for.
        let length = data_type.byte_length(shape).and_then(|length| u32::try_from(length).ok());
        if length.is_none() {
            return Err(Error::TooLarge { data_type, shape: shape.to_vec() });
        }
        let quantization = info.quantization();
        if self.draws(info) && !is_of_floats(data_type) {
            let mut tensor = Tensor::zeros(data_type, shape)?.with_quantization(quantization);
            tensor.as_bytes_mut().iter_mut().for_each(|byte| *byte = random.u8(..));
            return Ok(tensor);
        }
        if self.draws(info) && data_type == DataType::Complex64 {
            let mut tensor = Tensor::zeros(data_type, shape)?;
            for number in tensor.as_mut_slice::<Complex32>()? {
                *number = Complex32::new(random.f32(), random.f32());
            }
            return Ok(tensor);
        }
        let count = shape.iter().product();
        let mut reals = Vec::new();
        let too_large = |_| Error::TooLarge { data_type, shape: shape.to_vec() };
        reals.try_reserve_exact(count).map_err(too_large)?;
        reals.resize(count, 0.0);
        if self.draws(info) {
            reals.iter_mut().for_each(|real| *real = random.f32());
        }
        Tensor::from_reals(data_type, shape, quantization, &reals)
    }
}

fn is_of_floats(data_type: DataType) -> bool {
    data_type.is_float() || data_type == DataType::Complex64
}

fn is_quantized(info: &TensorInfo) -> bool {
    let is_narrow = matches!(
        info.data_type,
        DataType::Int8 | DataType::Uint8 | DataType::Int16 | DataType::Uint16
    );
    is_narrow || info.quantization.is_some()
}
