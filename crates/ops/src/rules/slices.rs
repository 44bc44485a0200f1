//! Slices along an axis: what SOFTMAX normalizes, ARGMAX searches and TOPK_V2 sorts.

/// A tensor cut along one axis: for each index of all other axes, one slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slices {
    /// Number of indexes of the axes before.
    outer: usize,
    /// The length of the axis, which is every slice's.
    length: usize,
    /// Number of indexes of the axes behind; also the distance between elements of a slice.
    inner: usize,
}

impl Slices {
    /// The slices of a tensor with these dimensions along one of its axes. An empty tensor has
    /// none, so that walking over them costs no more than the tensor is large.
    pub fn new(lengths: &[usize], axis: usize) -> Self {
        if lengths.contains(&0) {
            return Self { outer: 0, length: 0, inner: 0 };
        }
        let product = |lengths: &[usize]| lengths.iter().product();
        Self {
            outer: product(&lengths[..axis]),
            length: lengths[axis],
            inner: product(&lengths[axis + 1..]),
        }
    }

    /// Number of elements of each slice.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Each slice, as the positions of its elements. The slices come in the order that their first
    /// elements have in memory, which is the order of a result that lacks the axis.
    pub fn positions(&self) -> impl Iterator<Item = impl Iterator<Item = usize> + Clone> {
        let Self { outer, length, inner } = *self;
        (0..outer).flat_map(move |before| {
            (0..inner).map(move |behind| {
                let first = before * length * inner + behind;
                (0..length).map(move |index| first + index * inner)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(lengths: &[usize], axis: usize) -> Vec<Vec<usize>> {
        Slices::new(lengths, axis).positions().map(Iterator::collect).collect()
    }

    #[test]
    fn slices_by_hand() {
        assert_eq!(positions(&[2, 3], 1), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(positions(&[2, 3], 0), [[0, 3], [1, 4], [2, 5]]);
        assert_eq!(positions(&[2, 2, 2], 1), [[0, 2], [1, 3], [4, 6], [5, 7]]);
        assert_eq!(positions(&[1], 0), [[0]]);
    }

    #[test]
    fn an_empty_tensor_has_no_slices_however_long_its_other_axes_are() {
        let huge = usize::MAX;
        assert_eq!(positions(&[huge, 0, huge, huge], 1).len(), 0);
        assert_eq!(positions(&[huge, 0, huge, huge], 3).len(), 0);
    }
}
