//! [`Panels`]: the right side of a matrix product, in the order in which tiles read it.

use super::Blocking;
use crate::Lines;
use std::ops::Range;

/// Columns `[group, depth, group_columns]` with their biases, cut into panels as wide as a tile. A
/// panel is the biases of its columns, and then a row of them for each value of the depth. The last
/// panel of a group may be narrower, by whole vectors; columns beyond the group's are zero.
#[derive(Debug, Clone)]
pub(crate) struct Panels {
    blocking: Blocking,
    depth: usize,
    group_columns: usize,
    groups: usize,
    values: Lines,
}

/// One of the panels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Panel {
    pub(crate) group: usize,
    /// The columns, counted through all groups.
    pub(crate) columns: Range<usize>,
    /// How many vectors wide it is.
    pub(crate) vectors: usize,
    /// Where it begins, in values.
    start: usize,
}

impl Panels {
    /// Packs `weight(column, depth)` and `bias(column)`, columns counted through all groups.
    pub(crate) fn pack(
        blocking: Blocking,
        depth: usize,
        [groups, group_columns]: [usize; 2],
        bias: impl Fn(usize) -> f32,
        weight: impl Fn(usize, usize) -> f32,
    ) -> Self {
        let values = Self::values_needed(blocking, depth, [groups, group_columns]);
        let mut panels = Self {
            blocking,
            depth,
            group_columns,
            groups,
            values: Lines::with_elements::<f32>(values),
        };
        for index in 0..panels.count() {
            let panel = panels.panel(index);
            let width = panel.vectors * blocking.lanes;
            let values = &mut panels.values.elements_mut::<f32>()[panel.start..];
            for (lane, column) in panel.columns.enumerate() {
                values[lane] = bias(column);
                for depth in 0..depth {
                    values[(1 + depth) * width + lane] = weight(column, depth);
                }
            }
        }
        panels
    }

    fn values_needed(blocking: Blocking, depth: usize, [groups, columns]: [usize; 2]) -> usize {
        let width = columns.div_ceil(blocking.lanes) * blocking.lanes;
        let values = depth.checked_add(1).and_then(|rows| rows.checked_mul(width));
        values.and_then(|values| values.checked_mul(groups)).expect("weights larger than memory")
    }

    /// How many panels there are, of all groups.
    pub(crate) fn count(&self) -> usize {
        self.groups * self.group_columns.div_ceil(self.blocking.columns())
    }

    /// Bytes of all panels.
    pub(crate) fn bytes(&self) -> usize {
        self.values.bytes()
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    pub(crate) fn blocking(&self) -> Blocking {
        self.blocking
    }

    /// Columns of all groups.
    pub(super) fn columns(&self) -> usize {
        self.groups * self.group_columns
    }

    pub(crate) fn panel(&self, index: usize) -> Panel {
        let Blocking { lanes, .. } = self.blocking;
        let width = self.blocking.columns();
        let by_group = self.group_columns.div_ceil(width);
        let (group, first) = (index / by_group, index % by_group * width);
        let columns = width.min(self.group_columns - first);
        let start = group * self.group_columns + first;
        let rows = 1 + self.depth;
        Panel {
            group,
            columns: start..start + columns,
            vectors: columns.div_ceil(lanes),
            start: rows * (group * self.group_columns.div_ceil(lanes) * lanes + first),
        }
    }

    /// Where a panel begins among the values of all.
    pub(crate) fn start(&self, panel: &Panel) -> usize {
        panel.start
    }

    /// The biases of a panel, and its rows of weights.
    pub(crate) fn split(&self, panel: &Panel) -> (&[f32], &[f32]) {
        self.values(panel).split_at(panel.vectors * self.blocking.lanes)
    }

    /// The values of a panel.
    pub(crate) fn values(&self, panel: &Panel) -> &[f32] {
        let length = (1 + self.depth) * panel.vectors * self.blocking.lanes;
        &self.values.elements()[panel.start..panel.start + length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::cast_precision_loss)] // Small numbers.
    fn panels_follow_each_other_and_end_narrow() {
        let blocking = Blocking { rows: 1, vectors: 2, lanes: 4 };
        let bias = |column: usize| 100.0 + column as f32;
        let weight = |column: usize, depth: usize| (column * 2 + depth) as f32;
        let panels = Panels::pack(blocking, 2, [2, 11], bias, weight);
        assert_eq!((panels.count(), panels.columns()), (4, 22));
        let last = panels.panel(3);
        assert_eq!((last.group, last.columns.clone(), last.vectors), (1, 19..22, 1));
        assert_eq!(
            panels.values(&last),
            [119., 120., 121., 0., 38., 40., 42., 0., 39., 41., 43., 0.]
        );
        let mut end = 0;
        for panel in (0..4).map(|index| panels.panel(index)) {
            assert_eq!(panel.start, end);
            end += panels.values(&panel).len();
        }
    }
}
