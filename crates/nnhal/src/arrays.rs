//! Tensors as views of [`ndarray`], and its arrays as inputs.

use crate::data_type::Element;
use crate::error::{Error, Result};
use crate::session::Input;
use crate::tensor::{Tensor, TensorView};
use ndarray::{ArrayBase, ArrayViewD, ArrayViewMutD, CowArray, Data, Dimension, IxDyn};
use std::borrow::Cow;

impl Tensor {
    /// The elements as an array of the tensor's shape.
    ///
    /// # Errors
    /// [`Error::Type`]: they are of another type.
    pub fn array<T: Element>(&self) -> Result<ArrayViewD<'_, T>> {
        ArrayViewD::from_shape(IxDyn(self.shape()), self.as_slice()?).map_err(|_| self.mismatch())
    }

    /// The elements as an array of the tensor's shape, to be changed.
    ///
    /// # Errors
    /// [`Error::Type`]: they are of another type.
    pub fn array_mut<T: Element>(&mut self) -> Result<ArrayViewMutD<'_, T>> {
        let shape = IxDyn(self.shape());
        let mismatch = self.mismatch();
        ArrayViewMutD::from_shape(shape, self.as_mut_slice()?).map_err(|_| mismatch)
    }

    /// A tensor has as many elements as its shape says, so that this is not seen.
    fn mismatch(&self) -> Error {
        let (data_type, shape) = (self.data_type(), self.shape().to_vec());
        Error::Elements { data_type, shape, found: self.as_bytes().len() }
    }

    /// A tensor of an array's elements.
    ///
    /// # Errors
    /// [`Error::TooLarge`]
    pub fn from_array<T: Element, S: Data<Elem = T>, D: Dimension>(
        array: &ArrayBase<S, D>,
    ) -> Result<Self> {
        let packed = CowArray::from(array.view());
        let packed = packed.as_standard_layout();
        Self::new(array.shape(), packed.as_slice().unwrap_or_default())
    }
}

/// An array whose elements are packed row by row is taken as it is; others are copied.
impl<'a, T: Element, S: Data<Elem = T>, D: Dimension> From<&'a ArrayBase<S, D>> for TensorView<'a> {
    fn from(array: &'a ArrayBase<S, D>) -> Self {
        let bytes = match array.as_slice() {
            Some(elements) => Cow::Borrowed(T::bytes(elements)),
            None => {
                let elements: Vec<T> = array.iter().copied().collect();
                Cow::Owned(T::bytes(&elements).to_vec())
            }
        };
        let shape = Some(Cow::Borrowed(array.shape()));
        Self { data_type: T::DATA_TYPE, shape, bytes }
    }
}

impl<'a, T: Element, S: Data<Elem = T>, D: Dimension> From<&'a ArrayBase<S, D>> for Input<'a> {
    fn from(array: &'a ArrayBase<S, D>) -> Self {
        TensorView::from(array).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{array, s};

    #[test]
    fn arrays_of_any_strides_become_tensors() {
        let array = array![[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let columns = array.slice(s![.., ..;2]);
        let turned = columns.t();
        for (shape, elements, view) in [
            ([2, 2], [1.0, 3.0, 4.0, 6.0], TensorView::from(&columns)),
            ([2, 2], [1.0, 4.0, 3.0, 6.0], TensorView::from(&turned)),
        ] {
            assert_eq!(view.shape(), Some(&shape[..]));
            assert_eq!(&*view.bytes, f32::elements_as_bytes(&elements));
        }
        let tensor = Tensor::from_array(&turned).unwrap();
        assert_eq!(tensor.as_slice::<f32>().unwrap(), [1.0, 4.0, 3.0, 6.0]);
    }

    #[test]
    fn tensors_are_seen_as_arrays() {
        let mut tensor = Tensor::new([2, 2], &[1_i32, 2, 3, 4]).unwrap();
        tensor.array_mut::<i32>().unwrap()[[1, 0]] = 7;
        assert_eq!(tensor.array::<i32>().unwrap(), array![[1, 2], [7, 4]].into_dyn());
        assert!(tensor.array::<f32>().is_err());
    }

    trait AsBytes: Element {
        fn elements_as_bytes(elements: &[Self]) -> &[u8] {
            <Self as crate::data_type::sealed::Sealed>::bytes(elements)
        }
    }

    impl AsBytes for f32 {}
}
