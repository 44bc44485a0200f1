//! The sizes of a convolution, out of its arguments' lengths.

use super::{Graph, Node};
use crate::why::Why;
use nnhal_kernels::convolution::Shape;
use nnhal_ops::rules::padding::Window;

impl Graph<'_> {
    /// Those of a convolution in NHWC, whose second input is the filter, with height and width in the middle. Windows
    /// are those of rows and of columns. It may be no [valid](Shape::is_valid) shape.
    pub(crate) fn image_shape(
        &self,
        node: &Node,
        windows: [Window; 2],
        groups: usize,
    ) -> Result<Shape, Why> {
        let [batch, height, width, input_channels] = self.input(node, 0).image()?;
        let [_, filter_height, filter_width, _] = self.input(node, 1).image()?;
        let [_, out_height, out_width, output_channels] = self.output(node, 0).image()?;
        let lengths = [0, 1].map(|position| &self.values[node.inputs[position]].dimensions);
        let before = |axis: usize| {
            let [of_image, of_filter] = lengths.map(|lengths| lengths[1 + axis]);
            elements_before(windows[axis].padding(of_image, of_filter).0)
        };
        Ok(Shape {
            batch,
            input: [height, width],
            input_channels,
            output: [out_height, out_width],
            output_channels,
            filter: [filter_height, filter_width],
            stride: windows.map(|window| window.stride as usize),
            dilation: windows.map(|window| window.dilation as usize),
            padding_before: [before(0), before(1)],
            groups,
        })
    }
}

/// Elements before an image. More than there can be are no valid shape.
pub(crate) fn elements_before(elements: u64) -> usize {
    usize::try_from(elements).unwrap_or(usize::MAX)
}
