//! Sparse constants, made dense.
//!
//! The format keeps a tree of levels: each axis of the tensor, then each axis of a block, in the
//! order of a traversal. A level is dense, and has all its coordinates, or compressed: of each entry
//! of the level above, a segment of an array of coordinates. The leaves are the stored values, in
//! order.

use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::schema::{DimensionType, SparseIndexVectorRef, SparsityParametersRef};

/// Levels that a sparse constant may have.
const MOST_LEVELS: usize = 16;

/// The coordinates of a level.
enum Level {
    Dense(usize),
    Compressed { segments: Vec<usize>, coordinates: Vec<usize> },
}

impl Level {
    fn coordinate_count(&self) -> usize {
        match self {
            Self::Dense(_) => 0,
            Self::Compressed { segments, coordinates } => segments.len() + coordinates.len(),
        }
    }
}

/// How a sparse constant is laid out.
struct Layout<'a> {
    levels: Vec<Level>,
    /// By level: how many elements of the dense tensor a step of its coordinate is.
    strides: Vec<usize>,
    /// By level: the coordinates that there are.
    limits: Vec<usize>,
    element: usize,
    values: &'a [u8],
}

impl GraphImporter<'_, '_> {
    /// The dense bytes of a sparse constant.
    pub(super) fn densified(
        &self,
        index: usize,
        sparsity: &SparsityParametersRef<'_>,
    ) -> Imported<Vec<u8>> {
        let tensor = self.tensor(index);
        let element = self.element(index)?.bytes();
        if element == 8 {
            return Err(Reason::new("sparse 64-bit integers have no counterpart"));
        }
        let shape: Vec<usize> = tensor.shape.iter().map(|length| *length as usize).collect();
        let values = self.file.bytes(&self.file.buffers[tensor.buffer])?;
        let layout = Layout::read(sparsity, &shape, element, &values)?;
        let coordinates: usize = layout.levels.iter().map(Level::coordinate_count).sum();
        let too_large = || Reason::new("a sparse constant is too large");
        let size = shape.iter().try_fold(element, |size, length| size.checked_mul(*length));
        let size = size.ok_or_else(too_large)?;
        // Coordinates too: tensors may share them.
        self.file.allow(size.saturating_add(coordinates))?;
        let mut dense = Vec::new();
        dense.try_reserve_exact(size).map_err(|_| too_large())?;
        dense.resize(size, 0);
        let mut leaves = 0;
        if size > 0 {
            layout.fill(0, 0, 0, &mut leaves, &mut dense)?;
        }
        if leaves * element == values.len() {
            Ok(dense)
        } else {
            Err(Reason::new(format!(
                "{} has more values than places for them",
                tensor.shown_name()
            )))
        }
    }
}

impl<'a> Layout<'a> {
    fn read(
        sparsity: &SparsityParametersRef<'_>,
        shape: &[usize],
        element: usize,
        values: &'a [u8],
    ) -> Imported<Self> {
        let wrong = |what: &str| Reason::new(format!("a sparse constant {what}"));
        let order = sparsity.traversal_order()?.ok_or_else(|| wrong("has no traversal order"))?;
        let table = sparsity.dim_metadata()?.ok_or_else(|| wrong("has no levels"))?;
        let block_axes = sparsity.block_map()?;
        let (rank, count) = (shape.len(), order.len());
        let blocks = block_axes.map_or(0, |axes| axes.len());
        if count > MOST_LEVELS || table.len() != count || rank + blocks != count {
            return Err(wrong("has as many levels as neither its axes nor its blocks ask for"));
        }
        let order = indexes_below(count, order.iter()).ok_or_else(|| wrong("has a bad order"))?;
        let is_permutation = (0..count).all(|axis| order.contains(&axis))
            && order.iter().take(rank).all(|axis| *axis < rank);
        if !is_permutation {
            return Err(wrong("has a traversal order that is none"));
        }
        let block_axes = block_axes.into_iter().flatten();
        let block_axes =
            indexes_below(rank, block_axes).ok_or_else(|| wrong("has blocks of other axes"))?;
        let levels = table
            .iter()
            .map(|level| {
                let level = level?;
                Ok(match level.format()? {
                    DimensionType::Dense => Level::Dense(
                        usize::try_from(level.dense_size()?)
                            .map_err(|_| wrong("has an axis of negative length"))?,
                    ),
                    DimensionType::SparseCsr => Level::Compressed {
                        segments: integers(level.array_segments()?)?,
                        coordinates: integers(level.array_indices()?)?,
                    },
                })
            })
            .collect::<Imported<Vec<_>>>()?;
        let mut block_lengths = vec![1; blocks];
        for (level, axis) in order.iter().enumerate().skip(rank) {
            let Level::Dense(length) = levels[level] else {
                return Err(wrong("has blocks that are not dense"));
            };
            block_lengths[axis - rank] = length;
        }
        // A step of an axis is a step of its blocks, if it has any.
        let mut block_of_axis = vec![1; rank];
        for (block, axis) in block_axes.iter().enumerate() {
            if std::mem::replace(&mut block_of_axis[*axis], block_lengths[block]) != 1 {
                return Err(wrong("has two blocks of one axis"));
            }
        }
        let mut axis_strides = vec![1_usize; rank];
        for axis in (1..rank).rev() {
            let stride = axis_strides[axis].checked_mul(shape[axis]);
            axis_strides[axis - 1] = stride.ok_or_else(|| wrong("is too large"))?;
        }
        let place = |axis: &usize| {
            if *axis < rank {
                let block = block_of_axis[*axis];
                if block == 0 || !shape[*axis].is_multiple_of(block) {
                    return None;
                }
                Some((axis_strides[*axis].checked_mul(block)?, shape[*axis] / block))
            } else {
                let (block, axis) = (*axis - rank, block_axes[*axis - rank]);
                Some((axis_strides[axis], block_lengths[block]))
            }
        };
        let places = order.iter().map(place).collect::<Option<Vec<_>>>();
        let places = places.ok_or_else(|| wrong("has blocks that do not divide its axes"))?;
        let (strides, limits): (Vec<usize>, Vec<usize>) = places.into_iter().unzip();
        // So that no level has more entries than the dense tensor has elements.
        for (level, limit) in levels.iter().zip(&limits) {
            match level {
                Level::Dense(length) if length != limit => {
                    return Err(Reason::new(format!(
                        "a sparse constant has a dense level of length {length}, expected {limit}"
                    )));
                }
                _ => {}
            }
        }
        Ok(Self { levels, strides, limits, element, values })
    }

    /// Places what is below one entry of the level above. Coordinates ascend and dense levels are
    /// as long as their axes, so an entry of a level is one place of the dense tensor, and this takes
    /// as many steps as that has elements, by level. Without elements there is nothing to place.
    fn fill(
        &self,
        level: usize,
        entry: usize,
        at: usize,
        leaves: &mut usize,
        dense: &mut [u8],
    ) -> Imported {
        let wrong = || Reason::new("a sparse constant has coordinates out of range");
        let Some(coordinates) = self.levels.get(level) else {
            let from = leaves.checked_mul(self.element).ok_or_else(wrong)?;
            let value = self.values.get(from..).and_then(|rest| rest.get(..self.element));
            let to = at.checked_mul(self.element).ok_or_else(wrong)?;
            let place = dense.get_mut(to..).and_then(|rest| rest.get_mut(..self.element));
            place.ok_or_else(wrong)?.copy_from_slice(value.ok_or_else(wrong)?);
            *leaves += 1;
            return Ok(());
        };
        let below = |coordinate: usize| {
            let step = coordinate.checked_mul(self.strides[level])?;
            at.checked_add(step).filter(|_| coordinate < self.limits[level])
        };
        match coordinates {
            Level::Dense(length) => {
                for coordinate in 0..*length {
                    let entry =
                        entry.checked_mul(*length).and_then(|it| it.checked_add(coordinate));
                    let (entry, at) = entry.zip(below(coordinate)).ok_or_else(wrong)?;
                    self.fill(level + 1, entry, at, leaves, dense)?;
                }
            }
            Level::Compressed { segments, coordinates } => {
                let next = entry.checked_add(1).and_then(|next| segments.get(next));
                let (from, to) = segments.get(entry).zip(next).ok_or_else(wrong)?;
                let segment = coordinates.get(*from..*to).ok_or_else(wrong)?;
                if !segment.is_sorted_by(|one, next| one < next) {
                    return Err(Reason::new("a sparse constant has coordinates out of order"));
                }
                for (offset, coordinate) in segment.iter().enumerate() {
                    let at = below(*coordinate).ok_or_else(wrong)?;
                    self.fill(level + 1, from + offset, at, leaves, dense)?;
                }
            }
        }
        Ok(())
    }
}

/// The indexes, if all are below a limit.
fn indexes_below(limit: usize, indexes: impl Iterator<Item = i32>) -> Option<Vec<usize>> {
    indexes.map(|index| usize::try_from(index).ok().filter(|index| *index < limit)).collect()
}

fn integers(vector: Option<SparseIndexVectorRef<'_>>) -> Imported<Vec<usize>> {
    let missing = || Reason::new("a sparse constant lacks coordinates");
    Ok(match vector.ok_or_else(missing)? {
        SparseIndexVectorRef::Int32Vector(table) => table
            .values()?
            .ok_or_else(missing)?
            .iter()
            .map(usize::try_from)
            .collect::<Result<_, _>>()
            .map_err(|_| Reason::new("a sparse constant has negative coordinates"))?,
        SparseIndexVectorRef::Uint16Vector(table) => {
            table.values()?.ok_or_else(missing)?.iter().map(usize::from).collect()
        }
        SparseIndexVectorRef::Uint8Vector(table) => {
            table.values()?.ok_or_else(missing)?.iter().map(|byte| usize::from(*byte)).collect()
        }
    })
}
